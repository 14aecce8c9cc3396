package bind

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/schema"
)

// A vector is checked like its cells: CheckVector finds the first cell that Check refuses.
func TestVectorsAreCheckedLikeTheirCells(t *testing.T) {
	const limit = 1500
	r := seedtest.Rand(t)
	columns := []schema.Column{
		{Name: "bool", Type: schema.Bool}, {Name: "date", Type: schema.Date},
		{Name: "binary", Type: schema.Binary}, {Name: "string", Type: schema.String},
		{Name: "varchar", Type: schema.Varchar, Length: 3}, {Name: "decimal32", Type: schema.Decimal32, Precision: 7},
		{Name: "decimal64", Type: schema.Decimal64, Precision: 18},
		{Name: "decimal128", Type: schema.Decimal128, Precision: 30}, {Name: "int", Type: schema.Int32},
	}
	refused := map[string]int{}
	for range 400 {
		for _, c := range columns {
			c.Nullable = r.IntN(2) == 0
			cells := make([][]byte, 1+r.IntN(40))
			for i := range cells {
				if cells[i] = randomCell(r, &c, 60); c.Nullable && r.IntN(10) == 0 {
					cells[i] = nil
				}
			}
			v := batch.NewVector(c.Type, len(cells))
			for i, cell := range cells {
				v.SetCell(i, cell)
			}
			want := ""
			for i, cell := range cells {
				err := Check(&c, cell)
				if len(cell) > limit {
					err = fault.CellTooLong(len(cell), limit)
				}
				if err != nil {
					want = fmt.Sprint(i, err)
					refused[c.Name]++
					break
				}
			}
			row, err := CheckVector(&c, v, limit)
			if got := fmt.Sprint(row, err); err != nil && got != want || err == nil && want != "" {
				t.Fatalf("%s %q: %s, want %s", c.Name, cells, got, want)
			}
		}
	}
	for _, c := range columns[:len(columns)-1] {
		if refused[c.Name] < 20 || refused[c.Name] > 380 {
			t.Errorf("%s: %d of 400 vectors are refused", c.Name, refused[c.Name])
		}
	}
}

// randomCell returns a cell that is not valid about once in so many times.
func randomCell(r *rand.Rand, c *schema.Column, once int) []byte {
	bad := r.IntN(once) == 0
	if c.Type.Variable() {
		text := strings.Repeat([]string{"a", "é", "日", "😀"}[r.IntN(4)], r.IntN(4))
		switch {
		case bad && r.IntN(2) == 0:
			text = strings.Repeat("x", 1501)
		case bad && len(text) > 2:
			text = text[1:len(text)-1] + "\xff"
		case r.IntN(once) == 0:
			text = strings.Repeat("é", 600)[:1000+r.IntN(2)*r.IntN(2)]
		}
		return []byte(text)
	}
	cell := make([]byte, c.Type.Width())
	if bad {
		for i := range cell {
			cell[i] = byte(r.Uint32())
		}
	} else if cell[0] = byte(r.Uint32()); c.Type == schema.Bool {
		cell[0] &= 1
	}
	return cell
}

func TestTextIsCheckedAcrossJoinedCells(t *testing.T) {
	long := strings.Repeat("é", 512)
	for _, c := range []struct {
		cells []string
		want  bool
	}{
		{nil, true},
		{[]string{"", "a", "", "é"}, true},
		{[]string{"\xc3", "\xa9"}, false}, // valid if joined
		{[]string{"a\xc3", "b"}, false},
		{[]string{"a\xc3"}, false},
		{[]string{long, "é", long[:1023] + "x"}, false},
		{[]string{"x", long, "é", long + "é"}, true},
		{[]string{"x", long + "é\xc3", "é"}, false},
		{[]string{long[:1022], "\xc3", "é"}, false},
	} {
		var cells [][]byte
		for _, s := range c.cells {
			cells = append(cells, []byte(s))
		}
		if got := allText(cells); got != c.want {
			t.Errorf("%q: %v", c.cells, got)
		}
	}
}
