package rowset

import (
	"fmt"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/cfile"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/schema"
)

// The functions below convert array cells. Outside of files an array is one byte string; in files
// it is its elements, encoded like any column of their type. Source: cfile spec §7.2.

// writeElements is about how many elements are passed to a file's writer at once.
const writeElements = 1 << 16

// appendColumn appends cells of column c to its file.
func appendColumn(w *cfile.Writer, c *schema.Column, v *batch.Vector) error {
	if c.Type != schema.Array {
		return w.Append(v)
	}
	arrays := batch.NewArrays(c.Element)
	for from := 0; from < v.Len; {
		arrays.ResetArrays(0)
		to, elements := from, 0
		for ; to < v.Len && elements < writeElements; to++ {
			if cell := v.Cell(to); len(cell) > 1 { // AppendUnpacked returns an error for shorter ones
				elements += schema.ArrayLen(cell)
			}
		}
		if err := arrays.AppendUnpacked(v, from, to); err != nil {
			return err
		}
		if err := w.Append(arrays); err != nil {
			return err
		}
		from = to
	}
	return nil
}

// readArrays sets v to exactly n cells of array column c; a file with fewer cells is corrupt. The
// cells are never overwritten.
func readArrays(r *cfile.ColumnReader, d *DiskRowSet, c *schema.Column, from batch.Ordinal, n int,
	v *batch.Vector) error {
	v.Reset(0)
	arrays := batch.NewArrays(c.Element)
	for v.Len < n {
		k, err := r.ReadVector(from+batch.Ordinal(v.Len), n-v.Len, arrays)
		if err == nil && k == 0 {
			err = fault.Corruptf("ends at row %d", int(from)+v.Len)
		}
		if err == nil {
			err = v.AppendPacked(arrays)
		}
		if err != nil {
			return fmt.Errorf("rowset %d: column %q: %w", d.Metadata().ID, c.Name, err)
		}
	}
	return nil
}

// arrayCell reads one cell of array column c.
func arrayCell(f *cfile.Reader, d *DiskRowSet, c *schema.Column, row batch.Ordinal) ([]byte, error) {
	v := batch.Vector{Type: schema.Array}
	if err := readArrays(f.NewColumnReader(), d, c, row, 1, &v); err != nil {
		return nil, err
	}
	return v.Cell(0), nil
}
