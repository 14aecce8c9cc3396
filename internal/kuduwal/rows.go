package kuduwal

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/kudupb"
	"github.com/oribi-db/oribi/keyenc"
	"github.com/oribi-db/oribi/schema"
)

// Kind is the kind of a row operation: insert, update, and so on.
type Kind uint8

// The kinds. Kudu's kinds whose names end in IGNORE, for example INSERT_IGNORE, become the kind
// without it, with Row.Ignore set.
const (
	Insert Kind = iota + 1
	Upsert
	Update
	Delete
)

func (k Kind) String() string {
	return [...]string{"none", "insert", "upsert", "update", "delete"}[k]
}

// Row is an operation on one row, as the client sent it.
type Row struct {
	Kind   Kind
	Ignore bool
	Key    []byte // encoded; nil if Problem says why
	// Problem is the reason why the server refuses the row whatever is stored under its key, "" for
	// none. The server's limits on sizes, which it can be started with, are not considered.
	Problem string

	cells [][]byte     // one for each column of the decoder's schema, nil for NULL and unset
	set   batch.Bitmap // the columns that have a value, which may be NULL
}

// Decoder decodes the rows of write operations into row images and change lists. Not for concurrent
// use.
type Decoder struct {
	last    *schema.Schema
	format  *change.RowFormat
	keys    *keyenc.Encoder
	schema  *schema.Schema
	columns []int // of last's columns, the index in schema; -1 if it lacks the column

	client   []byte // the SchemaPB by which from was made
	from     []clientColumn
	nullable bool  // the client's schema has a nullable column
	counter  int64 // the highest value of the auto-incrementing column

	row      Row
	key      []byte
	image    [][]byte
	defaults [8]byte // of the auto-incrementing column
}

// clientColumn is a column of the client's schema.
type clientColumn struct {
	index int // in the decoder's schema
	width int // of a cell in the request
}

// NewDecoder returns a decoder of images and lists for rows of last, the newest schema of the
// tablet, which SetSchema may precede by older ones.
func NewDecoder(last *schema.Schema) (*Decoder, error) {
	d := &Decoder{last: last, format: change.NewRowFormat(last), keys: keyenc.NewEncoder(last)}
	return d, d.SetSchema(last, false)
}

// SetSchema sets the tablet's schema as of the next operation. Columns of older schemas that the
// newest one lacks have no effect on images; those that s lacks get their read default. newer is
// whether s is the schema after the newest one, which the log has when a server ended before it
// wrote its superblock: columns that s has dropped have no values, so those that need one get a
// default or zeros. Errors: ErrCorrupt if one could not have become the other.
func (d *Decoder) SetSchema(s *schema.Schema, newer bool) error {
	if s.Keys != d.last.Keys {
		return fault.Corruptf("schema with %d key columns, the tablet has %d", s.Keys, d.last.Keys)
	}
	columns := make([]int, len(d.last.Columns))
	for i := range d.last.Columns {
		c := &d.last.Columns[i]
		columns[i] = s.IndexID(c.ID)
		if columns[i] < 0 {
			if i < s.Keys || !newer && !c.Nullable && c.ReadDefault == nil {
				return fault.Corruptf("schema without column %q, which has no default", c.Name)
			}
			continue
		}
		o := &s.Columns[columns[i]]
		if o.Type != c.Type || o.Nullable != c.Nullable || (i < s.Keys || columns[i] < s.Keys) && columns[i] != i {
			return fault.Corruptf("schema with column %q of type %s, the tablet's is %s", o.Name,
				o.TypeName(), c.TypeName())
		}
	}
	d.schema, d.columns, d.client = s, columns, nil
	d.row.cells = make([][]byte, len(s.Columns))
	return nil
}

// setClient prepares for the rows of a client's schema, whose columns are matched with the tablet's
// columns by name.
func (d *Decoder) setClient(message []byte) error {
	if d.client != nil && bytes.Equal(d.client, message) {
		return nil
	}
	m, err := DecodeSchema(message)
	if err != nil {
		return err
	}
	d.from, d.nullable, d.client = d.from[:0], false, nil
	seen := batch.MakeBitmap(len(d.schema.Columns))
	for _, c := range m.Columns {
		i := d.schema.Index(c.GetName())
		switch {
		case i < 0:
			return fault.Corruptf("client's schema: column %q, which the table does not have", c.GetName())
		case seen.Get(i):
			return fault.Corruptf("client's schema: duplicate column %q", c.GetName())
		case schema.Type(c.GetType()) != d.schema.Columns[i].Type:
			return fault.Corruptf("client's schema: column %q of type %d, the table's is %d", c.GetName(), c.GetType(),
				d.schema.Columns[i].Type)
		case d.schema.Columns[i].Type == schema.Array:
			return fault.Unsupportedf("arrays in the log: column %q", c.GetName())
		}
		seen.Set(i)
		d.addClientColumn(i, c.GetIsNullable())
	}
	d.client = append([]byte(nil), message...)
	return nil
}

// addClientColumn adds column i of d.schema to the columns of the rows.
func (d *Decoder) addClientColumn(i int, nullable bool) {
	width := d.schema.Columns[i].Type.Width()
	if width == 0 {
		width = indirectLen
	}
	d.from = append(d.from, clientColumn{i, width})
	d.nullable = d.nullable || nullable
}

// Rows of a request, back to back. Bit i of the bitmaps is column i of the client's schema, lowest
// bit first. Source: tablet spec §2.6.
//
//	width  field
//	1      kind of the operation, RowOperationType
//	b      columns that are set; b = (columns + 7) / 8
//	b      columns that are NULL; absent if no column is nullable
//	then the cell of each column that is set and not NULL: of fixed width little-endian, or
//	8      offset of a byte string in the indirect data
//	8      its length
//
// INSERT of k = 974 (INT32), fixed = "pewter" (STRING, nullable), third column unset, with
// "pewter" first in the indirect data:
//
//	01 03 00 ce 03 00 00 00 00 00 00 00 00 00 00 06 00 00 00 00 00 00 00
const indirectLen = 16 // file format: never change

// Each calls use for each row of a request, in order, up to its first error. The row and all that
// Image and Change return of it are valid during the call. Errors: ErrCorrupt, ErrUnsupported, and
// the errors that use returns.
func (d *Decoder) Each(w *kudupb.WriteRequestPB, use func(r *Row) error) error {
	if w.TxnId != nil {
		return fault.Unsupportedf("a write of transaction %d", w.GetTxnId())
	}
	if err := d.setClient(w.GetSchema()); err != nil {
		return err
	}
	if a := w.GetAutoIncrementingColumn(); a != nil {
		d.counter = a.GetAutoIncrementingCounter()
	}
	in := rowInput{rows: w.GetRowOperations().GetRows(), indirect: w.GetRowOperations().GetIndirectData()}
	for n := 0; len(in.rows) > 0; n++ {
		if err := d.decode(&in); err != nil {
			return fmt.Errorf("row %d: %w", n, err)
		}
		if err := use(&d.row); err != nil {
			return err
		}
	}
	return nil
}

// rowInput is the rest of a request.
type rowInput struct{ rows, indirect []byte }

// take returns the next n bytes of the rows.
func (in *rowInput) take(n int) ([]byte, error) {
	if len(in.rows) < n {
		return nil, fault.Corruptf("cut off")
	}
	b := in.rows[:n:n]
	in.rows = in.rows[n:]
	return b, nil
}

// cell returns the next cell of a column of type t.
func (in *rowInput) cell(t schema.Type, width int) ([]byte, error) {
	b, err := in.take(width)
	if err != nil {
		return nil, err
	}
	if t == schema.Bool && b[0] > 1 {
		return nil, fault.Corruptf("bool of %d", b[0])
	}
	if !t.Variable() {
		return b, nil
	}
	off, n := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
	if size := uint64(len(in.indirect)); off > size || n > size-off {
		return nil, fault.Corruptf("byte string of %d bytes at %d, of %d", n, off, size)
	}
	if n == 0 {
		return []byte{}, nil // not NULL, even without any indirect data
	}
	return in.indirect[off : off+n : off+n], nil
}

// decode reads the next row into d.row.
func (d *Decoder) decode(in *rowInput) error {
	r := &d.row
	head, err := in.take(1)
	if err != nil {
		return err
	}
	if err := r.setKind(head[0]); err != nil {
		return err
	}
	if err := d.decodeCells(in); err != nil {
		return err
	}
	if err := d.autoIncrement(r); err != nil {
		return err
	}
	d.check(r)
	r.Key = nil
	if r.Problem == "" {
		d.key = d.keys.AppendKey(d.key[:0], r.cells)
		r.Key = d.key
	}
	return nil
}

// decodeCells reads the bitmaps and cells, which follow the kind of an operation, into d.row.
func (d *Decoder) decodeCells(in *rowInput) error {
	isSet, err := in.take((len(d.from) + 7) / 8)
	if err != nil {
		return err
	}
	var isNull []byte
	if d.nullable {
		if isNull, err = in.take(len(isSet)); err != nil {
			return err
		}
	}
	r := &d.row
	clear(r.cells)
	r.set, r.Problem = r.set.Resize(len(r.cells)), ""
	for i, c := range d.from {
		bit := byte(1) << (i & 7)
		if isSet[i>>3]&bit == 0 {
			continue
		}
		r.set.Set(c.index)
		if d.nullable && isNull[i>>3]&bit != 0 {
			continue
		}
		if r.cells[c.index], err = in.cell(d.schema.Columns[c.index].Type, c.width); err != nil {
			return err
		}
	}
	return nil
}

func (r *Row) setKind(b byte) error {
	switch kudupb.RowOperationType(b) {
	case kudupb.RowOperationType_INSERT, kudupb.RowOperationType_INSERT_IGNORE:
		r.Kind = Insert
	case kudupb.RowOperationType_UPSERT, kudupb.RowOperationType_UPSERT_IGNORE:
		r.Kind = Upsert
	case kudupb.RowOperationType_UPDATE, kudupb.RowOperationType_UPDATE_IGNORE:
		r.Kind = Update
	case kudupb.RowOperationType_DELETE_ROW, kudupb.RowOperationType_DELETE_IGNORE:
		r.Kind = Delete
	default:
		return fault.Corruptf("operation of kind %d", b)
	}
	r.Ignore = b >= byte(kudupb.RowOperationType_INSERT_IGNORE)
	return nil
}

// autoIncrement sets the auto-incrementing column of an insert. Source: tablet spec §12.6.
func (d *Decoder) autoIncrement(r *Row) error {
	i := d.schema.AutoIncrement()
	if i < 0 {
		return nil
	}
	switch r.Kind {
	case Insert:
		if r.set.Get(i) || d.counter == 1<<63-1 {
			return fault.Corruptf("insert with a value of %s, or without one left", schema.AutoIncrementName)
		}
		d.counter++
		binary.LittleEndian.PutUint64(d.defaults[:], uint64(d.counter))
		r.cells[i] = d.defaults[:]
		r.set.Set(i)
	case Upsert:
		if r.cells[i] == nil {
			return fault.Corruptf("upsert without a value of %s", schema.AutoIncrementName)
		}
		d.counter = max(d.counter, int64(binary.LittleEndian.Uint64(r.cells[i])))
	}
	return nil
}

// check sets r.Problem. Source: tablet spec §2.6.
func (d *Decoder) check(r *Row) {
	changes := false
	for i := range d.schema.Columns {
		c := &d.schema.Columns[i]
		set := r.set.Get(i)
		switch {
		case i < d.schema.Keys && !set:
			r.Problem = "key column " + c.Name + " is not set"
		case set && r.cells[i] == nil && !c.Nullable && r.Kind != Delete:
			r.Problem = "NULL in column " + c.Name
		case i < d.schema.Keys && r.cells[i] == nil:
			r.Problem = "NULL in key column " + c.Name
		case !set && c.Required() && (r.Kind == Insert || r.Kind == Upsert):
			r.Problem = "column " + c.Name + " is not set"
		case set && i >= d.schema.Keys && r.Kind == Delete:
			r.Problem = "delete with a value of column " + c.Name
		case set && c.Immutable && r.Kind == Update && !r.Ignore:
			r.Problem = "update of the immutable column " + c.Name
		}
		changes = changes || set && i >= d.schema.Keys
	}
	if r.Kind == Update && !changes {
		r.Problem = "update without a value"
	}
}

// Image returns the image of the row that r inserts, in the newest schema.
func (d *Decoder) Image(r *Row, dst []byte) []byte {
	d.image = d.image[:0]
	for i, from := range d.columns {
		c := &d.last.Columns[i]
		cell := c.ReadDefault
		if from >= 0 {
			if cell = r.cells[from]; !r.set.Get(from) {
				cell = d.schema.Columns[from].Default
			}
		} else if cell == nil && !c.Nullable {
			cell = c.Unset() // a newer schema lacks the column
		}
		d.image = append(d.image, cell)
	}
	return d.format.AppendRow(dst, d.image)
}

// Change returns the change that r makes to an existing row; empty for an operation without effect.
// ok is false if the server refuses it, because an upsert sets an immutable column.
func (d *Decoder) Change(r *Row, dst []byte) (list change.List, ok bool) {
	if r.Kind == Delete {
		return change.AppendDelete(dst), true
	}
	empty := len(dst)
	for i := d.schema.Keys; i < len(d.schema.Columns); i++ {
		c := &d.schema.Columns[i]
		if !r.set.Get(i) || c.Immutable && r.Ignore {
			continue
		}
		if c.Immutable {
			return nil, false
		}
		if len(dst) == empty {
			dst = change.AppendUpdateHeader(dst, change.Update)
		}
		dst = change.AppendColumn(dst, c.ID, r.cells[i])
	}
	return dst, true
}
