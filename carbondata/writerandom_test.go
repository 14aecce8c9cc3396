package carbondata

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/calendar"
	"github.com/oribi-db/oribi/internal/seedtest"
)

// randomRows makes columns and rows that a Writer accepts.
type randomRows struct {
	*rand.Rand
	columns []Column
	narrow  []int // by column: values are of this kind, so that pages have various encodings
}

var randomTypes = []Type{String, Short, Int, Long, Double, Decimal, Timestamp, Date,
	Boolean, Varchar, Float, Byte, Binary}

func (r *randomRows) column(name string, depth int) Column {
	c := Column{Name: name, Type: randomTypes[r.IntN(len(randomTypes))]}
	if depth < 3 && r.IntN(4) == 0 {
		c.Type = []Type{Array, Struct, Map}[r.IntN(3)]
	}
	switch c.Type {
	case Decimal:
		c.Precision = 1 + r.IntN(38)
		c.Scale = r.IntN(c.Precision + 1)
	case Array:
		c.Children = []Column{r.column("", depth+1)}
	case Map:
		c.Children = []Column{{Type: Struct, Children: []Column{r.column("k", 3), r.column("v", depth+1)}}}
	case Struct:
		for i := range 1 + r.IntN(3) {
			c.Children = append(c.Children, r.column(fmt.Sprintf("f%d", i), depth+1))
		}
	}
	return c
}

// newRandomRows makes columns of all scalar types and some nested ones.
func newRandomRows(seed uint64) *randomRows {
	r := &randomRows{Rand: rand.New(rand.NewPCG(seed, 1))}
	for i := range 3 + r.IntN(8) {
		r.columns = append(r.columns, r.column(fmt.Sprintf("c%d", i), 0))
		r.narrow = append(r.narrow, r.IntN(6))
	}
	return r
}

func (r *randomRows) row() []any {
	row := make([]any, len(r.columns))
	for i := range row {
		row[i] = r.value(&r.columns[i], r.narrow[i], false)
	}
	return row
}

// int returns a number: of few values, of few bytes, around a large number, or any.
func (r *randomRows) int(narrow, bits int) int64 {
	limit := int64(1) << (bits - 1)
	switch narrow {
	case 0:
		return int64(r.IntN(3))
	case 1:
		return int64(r.IntN(256)) - 128
	case 2:
		return limit - 1 - int64(r.IntN(100))
	case 3:
		return -limit + int64(r.IntN(100))
	case 4:
		return r.Int64N(1<<min(bits-1, 17)) - 1<<min(bits-2, 16)
	}
	return int64(r.Uint64()) >> (64 - bits)
}

func (r *randomRows) float(narrow int) float64 {
	special := []float64{math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1), 0,
		math.MaxFloat64, math.SmallestNonzeroFloat64}
	switch narrow {
	case 0:
		return float64(r.IntN(1000))
	case 1:
		return float64(r.IntN(100000)-50000) / 100
	case 2:
		return 1e6 + float64(r.IntN(100))/1000
	case 3:
		if r.IntN(5) == 0 {
			return special[r.IntN(len(special))]
		}
	case 4:
		return math.Round(r.NormFloat64()*1e9) / 1e5
	}
	return math.Float64frombits(r.Uint64()&^(0x7ff<<52) | uint64(900+r.IntN(250))<<52)
}

func (r *randomRows) text(narrow int) string {
	switch narrow {
	case 0:
		return []string{"", "a", "oribi", "@NU#LL$", "zorilla"}[r.IntN(5)]
	case 1:
		return strings.Repeat("long ", r.IntN(60))
	case 2:
		return string([]rune{rune(r.IntN(0xd800)), 0x1f600, 'é', rune(r.IntN(100))})
	}
	return fmt.Sprint("text ", r.IntN(1<<(4*narrow)))
}

// value returns a value, or NULL if the column can have one.
func (r *randomRows) value(c *Column, narrow int, nested bool) any {
	if r.IntN(6) == 0 && (c.Type != Varchar || nested) {
		return nil
	}
	switch c.Type {
	case String, Varchar:
		return r.text(narrow)
	case Binary:
		return []byte("\x00\xff" + r.text(narrow))
	case Float:
		f := float32(r.float(narrow))
		return f
	case Double:
		return r.float(narrow)
	case Decimal:
		limit := batch.Pow10(c.Precision)
		if c.Precision <= 18 {
			return batch.Int128Of(r.int(narrow, 64) % int64(limit.Lo))
		}
		v := batch.Int128{Lo: r.Uint64(), Hi: r.int(narrow, 64) >> r.IntN(64)}
		for !v.FitsDigits(c.Precision) {
			v, _ = v.Div10()
		}
		return v
	case Date:
		return Days(writableDay(r.int(narrow, 22)))
	case Timestamp:
		day, of := calendar.FloorDiv(r.int(narrow, 48), dayMillis)
		return Micros(writableDay(day)*dayMicros + of*microsPerMilli)
	case Array, Map:
		list := make([]any, r.IntN(5))
		for i := range list {
			for list[i] = r.value(&c.Children[0], narrow, true); c.Type == Map && list[i] == nil; {
				list[i] = r.value(&c.Children[0], narrow, true)
			}
		}
		if len(list) == 1 && list[0] == nil {
			return nil
		}
		return list
	case Struct:
		fields, null := make([]any, len(c.Children)), true
		for i := range fields {
			fields[i] = r.value(&c.Children[i], narrow, true)
			null = null && fields[i] == nil
		}
		if null {
			return nil
		}
		return fields
	}
	return ofNumber(c.Type, r.int(narrow, 8*numberWidth(c.Type)))
}

// options returns options for rows in any order.
func (r *randomRows) options() WriterOptions {
	return WriterOptions{
		Compressor:        []string{"snappy", "zstd", "gzip"}[r.IntN(3)],
		PageRows:          []int{1, 7, 100, 1000, 0}[r.IntN(5)],
		BlockletBytes:     []int64{1, 20000, 0}[r.IntN(3)],
		FileBytes:         []int64{200000, 50000, 0}[r.IntN(3)],
		NoLocalDictionary: r.IntN(3) == 0,
	}
}

// TestWriterWritesRandomRows reads back rows of all types.
func TestWriterWritesRandomRows(t *testing.T) {
	seeds := seedtest.Rounds(uint64(30), 8)
	first := seedtest.Seed(t) - 1
	for seed := first; seed < first+seeds; seed++ {
		r := newRandomRows(seed)
		o := r.options()
		var rows [][]any
		for range 20 + r.IntN(600) {
			rows = append(rows, r.row())
		}
		dir := writeFolder(t, r.columns, o, rows)
		got := readFolder(t, dir)
		if len(namesIn(t, dir)) > 11 { // files are read by name: part-10 before part-2
			slices.Sort(got)
			slices.SortFunc(rows, func(a, b []any) int { return bytes.Compare(appendJSON(nil, a), appendJSON(nil, b)) })
		}
		wantRows(t, got, rows)
		if t.Failed() {
			t.Fatalf("seed %d: %+v %v", seed, o, r.columns)
		}
	}
}
