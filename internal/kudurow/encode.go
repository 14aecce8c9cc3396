package kudurow

import (
	"encoding/binary"
	"slices"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/kudupb"
	"github.com/oribi-db/oribi/keyenc"
	"github.com/oribi-db/oribi/schema"
)

// Operation is the kind of a row operation.
type Operation = kudupb.RowOperationType

// Encoder encodes rows of a table as row operations: package kuduwal has the format and decodes it.
type Encoder struct {
	schema   *schema.Schema
	keys     *keyenc.Encoder
	auto     int // the auto-incrementing column, -1 for none
	bitmap   int // bytes of a bitmap
	nullable bool
	sets     [3]batch.Bitmap // the columns that an insert, a delete, and others give if nothing else is said
}

// stringSlot is the size of a byte string among the rows: its offset and length in the indirect data.
const stringSlot = 16 // wire format: never change

// NewEncoder returns an encoder for the schema of the requests that have the rows.
func NewEncoder(s *schema.Schema) *Encoder {
	e := &Encoder{schema: s, keys: keyenc.NewEncoder(s), auto: s.AutoIncrement(), bitmap: (len(s.Columns) + 7) / 8}
	e.nullable = slices.ContainsFunc(s.Columns, func(c schema.Column) bool { return c.Nullable })
	for i := range e.sets {
		e.sets[i] = batch.MakeBitmap(len(s.Columns))
		e.sets[i].SetRange(0, len(s.Columns))
	}
	e.sets[1].ClearRange(s.Keys, len(s.Columns))
	if e.auto >= 0 {
		e.sets[0].Clear(e.auto)
	}
	return e
}

// Rows are row operations, back to back, and their byte strings. The zero value has none.
type Rows struct {
	Operations []byte
	Indirect   []byte
	N          int
}

// Reset removes all operations, and keeps the memory.
func (r *Rows) Reset() { r.Operations, r.Indirect, r.N = r.Operations[:0], r.Indirect[:0], 0 }

// Bytes returns the size of the operations in a request.
func (r *Rows) Bytes() int { return len(r.Operations) + len(r.Indirect) }

// Message returns r as a message, which aliases it.
func (r *Rows) Message() *kudupb.RowOperationsPB {
	return &kudupb.RowOperationsPB{Rows: r.Operations, IndirectData: r.Indirect}
}

// AppendRow is CheckRow and AppendChecked. Errors: *CellError, ErrRow; r is then unchanged.
func (e *Encoder) AppendRow(r *Rows, op Operation, cells [][]byte, set batch.Bitmap) error {
	if err := e.CheckRow(op, cells, set); err != nil {
		return err
	}
	e.AppendChecked(r, op, cells, set)
	return nil
}

// CheckRow checks an operation. cells has a cell for each column of the schema, nil for NULL; set has a
// bit for each that is given, nil means all, or those of the key for a delete. An insert never gives an
// auto-incrementing column. Errors: *CellError, ErrRow.
func (e *Encoder) CheckRow(op Operation, cells [][]byte, set batch.Bitmap) error {
	if len(cells) != len(e.schema.Columns) {
		return badCell("%d cells of %d columns", len(cells), len(e.schema.Columns))
	}
	if set == nil {
		set = e.all(op)
	}
	return e.checkRow(op, cells, set)
}

// AppendChecked appends an operation that CheckRow has accepted.
func (e *Encoder) AppendChecked(r *Rows, op Operation, cells [][]byte, set batch.Bitmap) {
	if set == nil {
		set = e.all(op)
	}
	e.appendRow(r, op, cells, set)
}

// all returns the columns that an operation gives if nothing else is said.
func (e *Encoder) all(op Operation) batch.Bitmap {
	switch {
	case isInsert(op):
		return e.sets[0]
	case isDelete(op):
		return e.sets[1]
	}
	return e.sets[2]
}

func isDelete(op Operation) bool {
	return op == kudupb.RowOperationType_DELETE_ROW || op == kudupb.RowOperationType_DELETE_IGNORE
}

func isInsert(op Operation) bool {
	return op == kudupb.RowOperationType_INSERT || op == kudupb.RowOperationType_INSERT_IGNORE
}

func isUpsert(op Operation) bool {
	return op == kudupb.RowOperationType_UPSERT || op == kudupb.RowOperationType_UPSERT_IGNORE
}

func isUpdate(op Operation) bool {
	return op == kudupb.RowOperationType_UPDATE || op == kudupb.RowOperationType_UPDATE_IGNORE
}

// checkRow checks the columns that an operation gives, their cells, and the size of the key.
func (e *Encoder) checkRow(op Operation, cells [][]byte, set batch.Bitmap) error {
	if err := e.checkSet(op, set); err != nil {
		return err
	}
	for i := range e.schema.Columns {
		if !set.Get(i) {
			continue
		}
		c := &e.schema.Columns[i]
		err := error(nil)
		switch {
		case cells[i] != nil:
			err = checkCell(c, cells[i])
		case !c.Nullable:
			err = badCell("NULL, and the column is not nullable")
		}
		if err != nil {
			return &CellError{Column: c.Name, Cause: err}
		}
	}
	if size := e.keyBytes(cells); size > schema.MaxKeyBytes {
		return badCell("the encoded key has %d bytes, at most %d", size, schema.MaxKeyBytes)
	}
	return nil
}

// keyBytes returns the size of an encoded key.
func (e *Encoder) keyBytes(cells [][]byte) (size int) {
	if size = e.keys.Width(); size > 0 {
		return size
	}
	for _, cell := range cells[:e.schema.Keys] {
		size += len(cell)
	}
	if 2*size+2*e.schema.Keys <= schema.MaxKeyBytes { // enough even if all bytes are zeros
		return size
	}
	size = 0
	var buf []byte
	for i, cell := range cells[:e.schema.Keys] {
		if cell != nil { // else the auto-incrementing column
			buf = e.keys.AppendCell(buf[:0], i, cell)
			size += len(buf)
		}
	}
	return size
}

// checkSet checks the columns that an operation gives. Errors: *CellError, ErrRow.
func (e *Encoder) checkSet(op Operation, set batch.Bitmap) error {
	if !isInsert(op) && !isUpsert(op) && !isUpdate(op) && !isDelete(op) {
		return badCell("operation %d is none on rows", op)
	}
	values := false
	for i := range e.schema.Columns {
		c := &e.schema.Columns[i]
		err := error(nil)
		switch key, given := i < e.schema.Keys, set.Get(i); {
		case i == e.auto && isInsert(op):
			if given {
				err = badCell("inserts do not give it; upserts do")
			}
		case key && !given:
			err = badCell("the key column is not given")
		case !key && given && isDelete(op):
			err = badCell("a delete gives the key only")
		case !given && c.Required() && (isInsert(op) || isUpsert(op)):
			err = badCell("not given, not nullable, and without default")
		}
		if err != nil {
			return &CellError{Column: c.Name, Cause: err}
		}
		values = values || i >= e.schema.Keys && set.Get(i)
	}
	if isUpdate(op) && !values {
		return badCell("an update gives a column besides the key")
	}
	return nil
}

// AppendBound appends a bound of a range partition: cells of its columns, nil for those that are not
// set. op is one of the four kinds of bounds, or SPLIT_ROW. Errors: *CellError.
func (e *Encoder) AppendBound(r *Rows, op Operation, cells [][]byte) error {
	if len(cells) != len(e.schema.Columns) {
		return badCell("%d cells of %d columns", len(cells), len(e.schema.Columns))
	}
	set := batch.MakeBitmap(len(cells))
	for i, cell := range cells {
		if cell == nil {
			continue
		}
		set.Set(i)
		if err := checkCell(&e.schema.Columns[i], cell); err != nil {
			return &CellError{Column: e.schema.Columns[i].Name, Cause: err}
		}
	}
	e.appendRow(r, op, cells, set)
	return nil
}

// appendRow appends checked cells.
func (e *Encoder) appendRow(r *Rows, op Operation, cells [][]byte, set batch.Bitmap) {
	out := append(r.Operations, byte(op))
	out = appendBits(out, set, e.bitmap)
	nulls := len(out)
	if e.nullable {
		out = append(out, make([]byte, e.bitmap)...)
	}
	for i, cell := range cells {
		switch {
		case !set.Get(i):
		case cell == nil:
			out[nulls+i/8] |= 1 << (i % 8)
		case e.schema.Columns[i].Type.Variable():
			out = binary.LittleEndian.AppendUint64(out, uint64(len(r.Indirect)))
			out = binary.LittleEndian.AppendUint64(out, uint64(len(cell)))
			r.Indirect = append(r.Indirect, cell...)
		default:
			out = append(out, cell...)
		}
	}
	r.Operations = out
	r.N++
}

// appendBits appends the first n bytes of a bitmap.
func appendBits(dst []byte, b batch.Bitmap, n int) []byte {
	for i := range n {
		dst = append(dst, byte(b[i/8]>>(i%8*8)))
	}
	return dst
}

// Key returns the encoded primary key of a row. Errors: ErrRow if a cell is missing.
func (e *Encoder) Key(dst []byte, cells [][]byte) ([]byte, error) {
	for i := range e.schema.Keys {
		if len(cells) <= i || cells[i] == nil || checkCell(&e.schema.Columns[i], cells[i]) != nil {
			return dst, &CellError{Column: e.schema.Columns[i].Name, Cause: badCell("no value of the key column")}
		}
	}
	return e.keys.AppendKey(dst, cells), nil
}

// Least returns the least encoded key whose first columns have the values cells: servers take no
// prefixes of keys as bounds. Errors: *CellError.
func (e *Encoder) Least(cells [][]byte) (key []byte, err error) {
	if len(cells) > e.schema.Keys {
		return nil, badCell("%d values of a key of %d columns", len(cells), e.schema.Keys)
	}
	for i := range e.schema.Keys {
		c := &e.schema.Columns[i]
		switch {
		case i >= len(cells) && c.Type.Variable():
			key = e.keys.AppendCell(key, i, []byte{})
		case i >= len(cells):
			key = append(key, make([]byte, c.Type.Width())...)
		case cells[i] == nil:
			return nil, &CellError{Column: c.Name, Cause: badCell("NULL in a key")}
		default:
			if err := checkCell(c, cells[i]); err != nil {
				return nil, &CellError{Column: c.Name, Cause: err}
			}
			key = e.keys.AppendCell(key, i, cells[i])
		}
	}
	return key, nil
}
