package kudurow

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
	"unsafe"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/kudurpcpb"
	"github.com/oribi-db/oribi/schema"
)

// A Decoder decodes columnar answers, one after the other, in the same memory. Its zero value is ready
// for use. Not safe for concurrent use.
type Decoder struct {
	vectors  []*batch.Vector
	copies   [][]byte // of cells of fixed width that are not aligned, by column
	selected batch.Bitmap
}

// Decode returns the rows of an answer, all selected, valid until the next call. columns are those of
// the projection; the column that says whether a row is deleted is a Bool. The batch shares the bytes of
// sidecars: they must not change as long as it is in use. An answer without columns has no rows here,
// see [CountRows]. Errors: ErrCorrupt.
//
// For each column, the answer has the numbers of sidecars with
//
//	cells of fixed width, back to back, zeros for NULL;
//	or, for byte strings, the rows+1 ends of the cells as 32-bit integers, the first one 0, and the bytes;
//	and, if it is nullable, a bit for each row, lowest first, 1 if the cell is not NULL.
//
// Without rows all of these are empty. (1, 5, "a"), (2, NULL, NULL), (3, 7, "") of INT32, INT64, STRING:
//
//	010000000200000003000000  050000000000000000000000000000000700000000000000 05
//	00000000010000000100000001000000 61 05
func (d *Decoder) Decode(
	columns []schema.Column, m *kudurpcpb.ColumnarRowBlockPB, sidecars [][]byte,
) (*batch.RecordBatch, error) {
	if len(m.GetColumns()) != len(columns) {
		return nil, fault.Corruptf("answer with %d columns, want %d", len(m.GetColumns()), len(columns))
	}
	for len(d.vectors) < len(columns) {
		d.vectors, d.copies = append(d.vectors, &batch.Vector{}), append(d.copies, nil)
	}
	b := &batch.RecordBatch{Schema: columns, Columns: slices.Clone(d.vectors[:len(columns)])}
	in := columnDecoder{rows: m.GetNumRows(), sidecars: sidecars}
	for _, s := range sidecars {
		in.left += len(s)
	}
	for i := range columns {
		v := d.vectors[i]
		if err := in.column(v, &d.copies[i], &columns[i], m.Columns[i]); err != nil {
			return nil, fmt.Errorf("column %q: %w", columns[i].Name, err)
		}
		b.Len = v.Len
	}
	d.selected = d.selected.Resize(b.Len)
	d.selected.SetRange(0, b.Len)
	b.Selection = d.selected
	return b, nil
}

// CountRows returns the number of rows of an answer, which may have no columns. Errors: ErrCorrupt.
func CountRows(m *kudurpcpb.ColumnarRowBlockPB) (int64, error) {
	if m.GetNumRows() < 0 {
		return 0, fault.Corruptf("answer with %d rows", m.GetNumRows())
	}
	return m.GetNumRows(), nil
}

type columnDecoder struct {
	rows     int64 // as the answer says
	sidecars [][]byte
	// left is how many bytes of sidecars no column has used. Without it, an answer could take hundreds
	// of times its bytes in memory, by columns that share a sidecar.
	left int
}

func (d *columnDecoder) sidecar(i *int32, what string) ([]byte, error) {
	if i == nil || *i < 0 || int(*i) >= len(d.sidecars) {
		return nil, fault.Corruptf("no sidecar of %s: there are %d", what, len(d.sidecars))
	}
	s := d.sidecars[*i]
	if d.left -= len(s); d.left < 0 {
		return nil, fault.Corruptf("a sidecar of %s that another column has", what)
	}
	return s, nil
}

// column sets v to a column of an answer. copied is memory.
func (d *columnDecoder) column(
	v *batch.Vector, copied *[]byte, c *schema.Column, m *kudurpcpb.ColumnarRowBlockPB_Column,
) error {
	if m == nil || !c.Type.Scalar() {
		return fault.Corruptf("an answer has no %s", c.TypeName())
	}
	data, err := d.sidecar(m.DataSidecar, "data")
	if err != nil {
		return err
	}
	v.Type = c.Type
	if c.Type.Variable() {
		bytes, err := d.sidecar(m.VarlenDataSidecar, "byte strings")
		if err != nil {
			return err
		}
		if err := d.strings(v, data, bytes); err != nil {
			return err
		}
	} else if err := d.fixed(v, copied, data); err != nil {
		return err
	}
	if !c.Nullable {
		return nil
	}
	present, err := d.sidecar(m.NonNullBitmapSidecar, "NULLs")
	if err != nil {
		return err
	}
	return setPresent(v, present)
}

// fixed sets the cells of v to those in data.
func (d *columnDecoder) fixed(v *batch.Vector, copied *[]byte, data []byte) error {
	w := v.Type.Width()
	if len(data)%w != 0 || d.rows != int64(len(data)/w) {
		return fault.Corruptf("%d rows with %d bytes of data, want %d a row", d.rows, len(data), w)
	}
	if v.Type == schema.Bool {
		for i, b := range data {
			if b > 1 {
				return fault.Corruptf("row %d is a bool of %d", i, b)
			}
		}
	}
	v.Data = *copied
	if uintptr(unsafe.Pointer(unsafe.SliceData(data)))%8 == 0 { // as vectors must be
		v.Data = data
		v.Reset(len(data) / w)
		return nil
	}
	v.Reset(len(data) / w)
	copy(v.Data, data)
	*copied = v.Data
	return nil
}

// strings sets the cells of v to those that end at ends in data.
func (d *columnDecoder) strings(v *batch.Vector, ends, data []byte) error {
	const width = 4
	if d.rows == 0 && len(ends) == 0 {
		v.Reset(0)
		return nil
	}
	n := len(ends)/width - 1
	if len(ends)%width != 0 || d.rows != int64(n) || n < 0 {
		return fault.Corruptf("%d rows with %d bytes of offsets, want %d a row and %d more", d.rows, len(ends), width, width)
	}
	from := binary.LittleEndian.Uint32(ends)
	if from != 0 {
		return fault.Corruptf("the first byte string is at %d, want 0", from)
	}
	v.Reset(n)
	for i := range v.Bytes {
		ends = ends[width:]
		to := binary.LittleEndian.Uint32(ends)
		if to < from || uint64(to) > uint64(len(data)) {
			return fault.Corruptf("row %d is the byte string [%d, %d) of %d bytes", i, from, to, len(data))
		}
		v.Bytes[i] = data[from:to:to]
		from = to
	}
	return nil
}

// setPresent sets which cells of v are NULL.
func setPresent(v *batch.Vector, present []byte) error {
	if len(present) != (v.Len+7)/8 {
		return fault.Corruptf("%d rows with %d bytes of NULLs, want %d", v.Len, len(present), (v.Len+7)/8)
	}
	if allOnes(present, v.Len) {
		return nil
	}
	b := v.ZeroPresent()
	for i, bits := range present {
		b[i/8] |= uint64(bits) << (i % 8 * 8)
	}
	if n := v.Len % 64; n != 0 { // the bits after the last row are no rows
		b[len(b)-1] &= 1<<n - 1
	}
	if !v.Type.Variable() {
		return nil
	}
	for i := range v.Bytes {
		if !b.Get(i) {
			if len(v.Bytes[i]) > 0 {
				return fault.Corruptf("row %d is NULL, with %d bytes", i, len(v.Bytes[i]))
			}
			v.Bytes[i] = nil
		}
	}
	return nil
}

// allOnes reports whether the first n bits are 1.
func allOnes(b []byte, n int) bool {
	for _, x := range b[:n/8] {
		if x != 0xff {
			return false
		}
	}
	return n%8 == 0 || bits.TrailingZeros8(^b[n/8]) >= n%8
}
