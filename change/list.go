package change

import (
	"fmt"

	"github.com/oribi-db/oribi/internal/coding"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/schema"
)

// List is one change to one row: an update, a delete, a reinsert, or, in memory only, a replacement.
// Source: tablet spec §5.
//
//	width  field
//	1      kind: 1 update, 2 delete, 3 reinsert
//	then, for each column (an update has at least one, a delete none):
//	1–5    column ID, varint
//	1–5    n, varint: 0 for NULL, else one more than the bytes that follow
//	n−1    the cell: fixed width little-endian, or the byte string
//
// If a column occurs twice, the last value counts. Update of column 11 (INT32) to 5 and of column
// 12 (STRING) to NULL: 01 0b 05 05 00 00 00 0c 00
//
// A replacement is the byte 5 and a row image, of which the non-key cells count. It has no columns
// to be read one by one: Columns and Find are for the other kinds, and Check refuses it.
type List []byte

// AppendDelete appends the list of a delete.
func AppendDelete(dst []byte) []byte { return append(dst, byte(Delete)) }

// AppendUpdateHeader begins a list of kind Update or Reinsert. AppendColumn adds its columns.
func AppendUpdateHeader(dst []byte, kind Kind) []byte { return append(dst, byte(kind)) }

// MaxColumnHeader is the maximum number of bytes that AppendColumn appends in addition to the cell.
const MaxColumnHeader = 10

// AppendColumn appends one column's new value, nil for NULL, to a list begun by AppendUpdateHeader.
func AppendColumn(dst []byte, id schema.ColumnID, cell []byte) []byte {
	dst = coding.AppendUvarint32(dst, uint32(id))
	if cell == nil {
		return append(dst, 0)
	}
	dst = coding.AppendUvarint32(dst, uint32(len(cell))+1)
	return append(dst, cell...)
}

// Kind returns the list's kind, 0 for an empty list. Check refuses empty lists.
func (l List) Kind() Kind {
	if len(l) == 0 {
		return 0
	}
	return Kind(l[0])
}

// AppendReplace appends the list that sets all non-key cells of a row to the cells of an image.
func AppendReplace(dst, image []byte) []byte { return append(append(dst, byte(Replace)), image...) }

// Image returns the row image in a list of kind Replace.
func (l List) Image() []byte { return l[1:len(l):len(l)] }

// Columns returns a reader of the columns that l sets, in their order in l.
func (l List) Columns() ListReader {
	if len(l) == 0 {
		return ListReader{}
	}
	return ListReader{rest: l[1:]}
}

// ColumnsAt returns a reader of the columns encoded in rest: the last bytes of a list, as many as
// Left returned for another reader of it.
func ColumnsAt(rest []byte) ListReader { return ListReader{rest: rest} }

// Left returns the number of bytes of the columns after the last one read.
func (r *ListReader) Left() int { return len(r.rest) }

// Find returns the value that l gives to a column: the last one, if it is set more than once. ok is
// false if l does not set the column; a nil cell with ok is NULL.
func (l List) Find(id schema.ColumnID) (cell []byte, ok bool) {
	r := l.Columns()
	for {
		at, c, more := r.Next()
		if !more {
			return cell, ok
		}
		if at == id {
			cell, ok = c, true
		}
	}
}

// ListReader iterates over the columns of a List. Copies are independent.
type ListReader struct {
	rest []byte
	bad  bool
}

// Next returns the next column, with a cell that aliases the list; ok is false at the end, or where
// the list is damaged.
func (r *ListReader) Next() (id schema.ColumnID, cell []byte, ok bool) {
	if len(r.rest) == 0 {
		return 0, nil, false
	}
	// Most IDs and sizes are one byte.
	b := r.rest
	number, n := uint32(b[0]), 1
	if number >= 0x80 {
		if number, n, ok = coding.Uvarint32(b); !ok || int32(number) < 0 {
			return r.fail()
		}
	}
	b = b[n:]
	if len(b) == 0 {
		return r.fail()
	}
	size, n := uint32(b[0]), 1
	if size >= 0x80 {
		if size, n, ok = coding.Uvarint32(b); !ok {
			return r.fail()
		}
	}
	b = b[n:]
	if size == 0 {
		r.rest = b
		return schema.ColumnID(number), nil, true
	}
	if uint64(size)-1 > uint64(len(b)) {
		return r.fail()
	}
	r.rest = b[size-1:]
	return schema.ColumnID(number), b[: size-1 : size-1], true
}

func (r *ListReader) fail() (schema.ColumnID, []byte, bool) {
	r.rest, r.bad = nil, true
	return 0, nil, false
}

// Damaged reports whether Next stopped before the end because an ID or size is cut off or exceeds
// the rest.
func (r *ListReader) Damaged() bool { return r.bad }

// Check returns an error unless l is a well-formed list that fits s. Column IDs that s does not
// have are allowed: they are dropped columns, whose changes no reader needs. Errors: ErrCorrupt.
// Source: tablet spec §5.2.
func (l List) Check(s *schema.Schema) error {
	switch l.Kind() {
	case Delete:
		if len(l) > 1 {
			return fault.Corruptf("change list: %d bytes after a delete", len(l)-1)
		}
		return nil
	case Update:
		if len(l) == 1 {
			return fault.Corruptf("change list: update of no column")
		}
	case Reinsert:
	default:
		if len(l) == 0 {
			return fault.Corruptf("change list: empty")
		}
		return fault.Corruptf("change list: kind %d", l[0])
	}
	r := l.Columns()
	for {
		id, cell, ok := r.Next()
		if !ok {
			break
		}
		if err := checkCell(s, id, cell); err != nil {
			return err
		}
	}
	if r.Damaged() {
		return fault.Corruptf("change list: %s: a column is cut short", l.Kind())
	}
	return nil
}

// checkCell returns an error if a change may not set the column to that value.
func checkCell(s *schema.Schema, id schema.ColumnID, cell []byte) error {
	i := s.IndexID(id)
	if i < 0 {
		return nil
	}
	c := &s.Columns[i]
	switch {
	case i < s.Keys:
		return fault.Corruptf("change list: column %d is in the key", id)
	case cell == nil && !c.Nullable:
		return fault.Corruptf("change list: column %d: NULL, but the column is not nullable", id)
	case cell != nil && !c.Type.Variable() && len(cell) != c.Type.Width():
		return fault.Corruptf("change list: column %d: %d bytes, want %d", id, len(cell), c.Type.Width())
	case cell != nil && c.Type == schema.Array:
		if err := schema.CheckArray(c.Element, cell); err != nil {
			return fmt.Errorf("change list: column %d: %w", id, err)
		}
	}
	return nil
}
