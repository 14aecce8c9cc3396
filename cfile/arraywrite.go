package cfile

import (
	"fmt"
	"math"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/encoding"
	"github.com/oribi-db/oribi/internal/fault"
)

// maxBlockElements limits the elements of a cblock where the format leaves the choice to us, since
// NULL elements never fill one.
const maxBlockElements = 1 << 20

// appendArrays appends cells [from, to) of v, which is in array form. A cell is never split:
// whether the cblock is full is checked after each cell that has elements. Source: cfile spec §7.2,
// §11.3.
func (w *Writer) appendArrays(v *batch.Vector, from, to int) error {
	for from < to {
		if v.IsNull(from) {
			end, _ := runEnd(v.Present, from, to)
			if !w.o.Nullable {
				return w.errNull()
			}
			w.arrays.AddNulls(end - from)
			w.rows += end - from
			from = end
			continue
		}
		first, end := v.Array(from)
		from++
		if err := w.appendArray(v.Elements, first, end); err != nil {
			return err
		}
	}
	return nil
}

// appendArray appends one cell, the elements [from, to) of v.
func (w *Writer) appendArray(v *batch.Vector, from, to int) error {
	switch n := to - from; {
	case n > encoding.MaxElements:
		return fmt.Errorf("cfile: block %v: row %d: array of %d elements, at most %d: %w", w.out.sink.ID(),
			w.Rows(), n, encoding.MaxElements, fault.ErrSchema)
	case n > math.MaxUint32-w.arrays.Elements():
		return fmt.Errorf("cfile: block %v: row %d: more than %d elements in one cblock", w.out.sink.ID(),
			w.Rows(), uint32(math.MaxUint32))
	}
	w.arrays.AddCell(to - from)
	w.rows++
	if from == to {
		return nil
	}
	for from < to {
		end, present := to, true
		if v.Present != nil {
			end, present = runEnd(v.Present, from, to)
		}
		if present {
			w.values.AppendAll(v, from, end)
		}
		w.arrays.AddElements(end-from, present)
		from = end
	}
	if w.values.Full() || !w.o.Exact && w.arrays.Elements() >= maxBlockElements {
		return w.finishBlock()
	}
	return nil
}
