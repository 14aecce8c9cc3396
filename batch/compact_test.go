package batch

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/schema"
)

// mixedBatch returns a batch of n rows with a column of each form, every seventh cell NULL.
func mixedBatch(n int) *RecordBatch {
	b := New([]schema.Column{{Name: "n", Type: schema.Int64}, {Name: "f", Type: schema.Int8},
		{Name: "s", Type: schema.String},
		{Name: "d", Type: schema.String}, {Name: "a", Type: schema.Array, Element: schema.Int32}}, n)
	words := &Dictionary{}
	b.Columns[3].UseCodes(words, n)
	b.Columns[4] = NewArrays(schema.Int32)
	for i := range n {
		words.Words = append(words.Words, fmt.Appendf(nil, "word %d", i))
		b.Columns[0].SetCell(i, binary.LittleEndian.AppendUint64(nil, uint64(i)))
		b.Columns[1].SetCell(i, []byte{byte(i)})
		b.Columns[2].SetCell(i, fmt.Appendf(nil, "string %d", i))
		b.Columns[3].Codes[i] = uint32(i)
		if i%7 == 0 {
			b.Columns[1].SetCell(i, nil)
			b.Columns[2].SetCell(i, nil)
			b.Columns[3].NeedPresent().Clear(i)
			b.Columns[4].AppendNullArray()
			continue
		}
		var elements [][]byte
		for k := range i % 4 {
			if k == 2 {
				elements = append(elements, nil)
			} else {
				elements = append(elements, binary.LittleEndian.AppendUint32(nil, uint32(i+k)))
			}
		}
		b.Columns[4].AppendArray(elements)
	}
	return b
}

// rowText prints the cells of row i.
func rowText(b *RecordBatch, i int) string {
	var out bytes.Buffer
	for _, v := range b.Columns {
		if v.Elements == nil {
			fmt.Fprintf(&out, "%q nil=%v; ", v.Cell(i), v.Cell(i) == nil)
			continue
		}
		from, to := v.Array(i)
		fmt.Fprintf(&out, "null=%v", v.IsNull(i))
		for k := from; k < to; k++ {
			fmt.Fprintf(&out, " %q nil=%v", v.Elements.Cell(k), v.Elements.IsNull(k))
		}
	}
	return out.String()
}

func TestCompactKeepsSelectedRows(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 63, 64, 65, 200} {
		for _, share := range []float64{0, 0.1, 0.5, 0.99, 1} {
			b := mixedBatch(n)
			var want []string
			for i := range n {
				if r.Float64() >= share {
					b.Selection.Clear(i)
				}
			}
			for i := range b.Rows() {
				want = append(want, rowText(b, i))
			}
			b.Compact()
			must.Equal(t, b.Len, len(want), len(want), "of", n, "rows: Len")
			must.Equal(t, b.Selected(), len(want), len(want), "of", n, "rows: selected")
			for c, v := range b.Columns {
				must.Do(t, v.Validate())
				must.Equal(t, v.Len, b.Len, "column", c, "cells")
				if v.Present != nil && v.Present.Count() != v.Present.CountRange(0, v.Len) {
					t.Fatalf("column %d: presence bits after the last cell", c)
				}
			}
			for i, w := range want {
				must.Equal(t, rowText(b, i), w, "row", i)
			}
		}
	}
}

func TestCompactDuplicateColumn(t *testing.T) {
	v := NewVector(schema.Int8, 4)
	copy(v.Data, []byte{1, 2, 3, 4})
	b := &RecordBatch{Columns: []*Vector{v, v}, Len: 4, Selection: Bitmap{0b1010}}
	b.Compact()
	must.Equal(t, v.Data, []byte{2, 4})
	must.Equal(t, b.Len, 2, "rows")
}
