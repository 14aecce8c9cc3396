package batch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/schema"
)

func TestAppendPackedUnpackedRoundTrip(t *testing.T) {
	for _, element := range []schema.Type{schema.Int8, schema.Int64, schema.String} {
		value := func(x byte) []byte {
			if w := element.Width(); w > 0 {
				return append([]byte{x}, make([]byte, w-1)...)
			}
			return bytes.Repeat([]byte{x}, int(x))
		}
		cells := [][][]byte{{value(1), nil, value(3)}, {}, nil, {value(0)}, {value(0)}, {nil}}
		arrays := NewArrays(element)
		want := NewVector(schema.Array, 0)
		for _, c := range cells {
			if c == nil {
				arrays.AppendNullArray()
				want.AppendCell(nil)
			} else {
				arrays.AppendArray(c)
				want.AppendCell(schema.AppendArray(nil, element, c))
			}
		}
		packed := NewVector(schema.Array, 0)
		packed.AppendCell(nil) // appended to, not replaced
		must.Do(t, packed.AppendPacked(arrays))
		for i := range cells {
			if got := packed.Cell(i + 1); !bytes.Equal(got, want.Cell(i)) || (got == nil) != (cells[i] == nil) {
				t.Errorf("%s: cell %d is % x, want % x", element, i, got, want.Cell(i))
			}
		}
		must.Equal(t, &packed.Cell(4)[0] == &packed.Cell(5)[0], true, element, "adjacent equal cells share memory")
		back := NewArrays(element)
		must.Do(t, back.AppendUnpacked(packed, 1, packed.Len))
		must.Equal(t, back.Len, len(cells), "cells")
		for i, c := range cells {
			from, to := back.Array(i)
			must.Equal(t, back.IsNull(i), c == nil, element, "cell", i, "NULL")
			must.Equal(t, to-from, len(c), element, "cell", i, "elements")
			for k := range c {
				if got := back.Elements.Cell(from + k); !bytes.Equal(got, c[k]) || (got == nil) != (c[k] == nil) {
					t.Errorf("%s: element %d of cell %d is %x, want %x", element, k, i, got, c[k])
				}
			}
		}
	}
}

// A few bytes of a file can repeat a dictionary word 65535 times; the cell would take gigabytes.
func TestAppendPackedRefusesOversizedArrays(t *testing.T) {
	long := NewArrays(schema.Binary)
	word := make([]byte, 1<<20)
	long.AppendArray([][]byte{word})
	elements := make([][]byte, 9)
	for i := range elements {
		elements[i] = word
	}
	long.AppendArray(elements)
	v := NewVector(schema.Array, 0)
	must.Fail(t, v.AppendPacked(long), fault.ErrCorrupt)
	must.Equal(t, v.Len, 1, "cells")
	many := NewArrays(schema.Int8)
	many.AppendArray(make([][]byte, schema.MaxElements+1))
	must.Fail(t, v.AppendPacked(many), fault.ErrCorrupt)
}

func TestAppendUnpackedRefusesInvalidArrays(t *testing.T) {
	v := NewVector(schema.Array, 2)
	v.SetCell(0, schema.AppendArray(nil, schema.Int32, [][]byte{binary.LittleEndian.AppendUint32(nil, 7)}))
	v.SetCell(1, []byte{1})
	back := NewArrays(schema.Int32)
	must.Fail(t, back.AppendUnpacked(v, 0, 2), fault.ErrCorrupt)
	must.Equal(t, back.Len, 1, "cells")
}

func TestPrepareAllowsOnlyNullTestsOnArrays(t *testing.T) {
	for op := Eq; op <= NotNull; op++ {
		p := Predicate{Type: schema.Array, Op: op}
		if op <= Ge {
			p.Values = [][]byte{{0, 0}}
		}
		if err := p.Prepare(); (err == nil) != (op == IsNull || op == NotNull) ||
			err != nil && !errors.Is(err, fault.ErrSchema) {
			t.Errorf("%s: %v", op, err)
		}
	}
}
