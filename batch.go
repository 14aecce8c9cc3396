package oribi

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/record"
	"github.com/oribi-db/oribi/internal/tablet"
	"github.com/oribi-db/oribi/schema"
)

// Op is what a write batch does with a row.
type Op uint8

// The eight operations. An insert of a key that is there is ErrKeyExists, an update or delete of
// one that is not ErrNotFound; the Ignore kinds do nothing instead. An upsert inserts, or updates
// the columns that it names. Operations on one key in one batch take effect in their order.
const (
	OpInsert Op = iota + 1
	OpUpsert
	OpUpdate
	OpDelete
	OpInsertIgnore
	OpUpsertIgnore
	OpUpdateIgnore
	OpDeleteIgnore
)

// kind returns the operation as the tablet knows it.
func (o Op) kind() tablet.OpKind { return tablet.OpKind(o) }

// known reports whether o is one of the eight operations.
func (o Op) known() bool { return OpInsert <= o && o <= OpDeleteIgnore }

// Inserts reports whether o is OpInsert or OpInsertIgnore: an auto-incrementing column gives it a
// value.
func (o Op) Inserts() bool { return o == OpInsert || o == OpInsertIgnore }

// Upserts reports whether o is OpUpsert or OpUpsertIgnore.
func (o Op) Upserts() bool { return o == OpUpsert || o == OpUpsertIgnore }

// String returns the name as the command's files of operations have it, such as "insert_ignore".
func (o Op) String() string {
	if !o.known() {
		return fmt.Sprintf("operation %d", uint8(o))
	}
	return o.kind().String()
}

// Row is a row by column names: nil is NULL, an absent name is "not set". For small programs;
// TableOf is for real ones, vectors for bulk.
//
// Values: any integer kind in range for integers; Int128; float32 and float64; string; []byte for
// binary; bool; time.Time for date and timestamp; Decimal; for an array a slice of those, or []any
// where elements are NULL. A row that is read has arrays as []any.
type Row map[string]any

// Batch collects operations that are committed as one. It is for one goroutine.
//
// Rows are checked and encoded as they come, by the table's schema as of the first of them, with
// the defaults of that; nothing of the caller's is kept. The first refused row is reported by
// Commit. When the schema is another by then, Commit brings the rows to it, column by column
// (Table.Alter).
type Batch struct {
	store  *Store
	parts  []*part
	n      int   // operations so far
	bytes  int64 // keys and bodies
	record record.Writer

	committed bool        // nothing was added since; Commit would be a mistake
	err       error       // for which the batch fails as a whole
	refused   []*RowError // rows that do not fit, in their order
	outcomes  []*RowError // what the last Commit left out
	assigned  []Assigned  // what the last Commit gave
	changes   int         // operations of the last Commit that changed something
}

// part is a batch's share of one table.
type part struct {
	table *Table
	shape *tablet.Shape // by which ops, cells and set are to be read; nil = none yet
	ops   []tablet.Op
	buf   []byte // keys and bodies; never moved, so that slices of it hold
	cells [][]byte
	set   []bool
	lacks string // a column that is not set and has to be in a new row
	value []byte // bytes of fixed-width cells while a row is made

	byKey   map[string][]int32 // operations on a key, of ops[:indexed]; nil until Get asks
	indexed int
}

// NewBatch begins an empty write batch.
func (s *Store) NewBatch() *Batch { return &Batch{store: s} }

// Len is the number of operations.
func (b *Batch) Len() int { return b.n }

// Bytes is about how much memory the batch's operations take.
func (b *Batch) Bytes() int64 { return b.bytes }

// Err is the first row error so far, the one that Commit will return.
func (b *Batch) Err() error {
	if len(b.refused) > 0 { // all of them came before what made the batch fail
		return b.refused[0]
	}
	return b.err
}

// Reset forgets all operations, to begin the next batch; memory is used again.
func (b *Batch) Reset() {
	for _, p := range b.parts {
		clear(p.ops)
		p.shape, p.ops, p.buf = nil, p.ops[:0], p.buf[:0]
		p.byKey, p.indexed = nil, 0
	}
	if len(b.parts) > 8 {
		b.parts = nil
	}
	b.n, b.bytes, b.err, b.refused, b.committed = 0, 0, nil, nil, false
}

// Insert adds a row that must not be there.
func (b *Batch) Insert(t *Table, row Row) { b.Row(OpInsert, t, row) }

// Upsert adds a row, or sets the named columns of the one that is there.
func (b *Batch) Upsert(t *Table, row Row) { b.Row(OpUpsert, t, row) }

// Update sets the named columns of a row that must be there.
func (b *Batch) Update(t *Table, row Row) { b.Row(OpUpdate, t, row) }

// Delete removes a row that must be there. key names the key columns.
func (b *Batch) Delete(t *Table, key Row) { b.Row(OpDelete, t, key) }

// InsertIgnore adds a row unless it is there.
func (b *Batch) InsertIgnore(t *Table, row Row) { b.Row(OpInsertIgnore, t, row) }

// UpsertIgnore adds a row, or sets the named columns of the one that is there; immutable columns of
// that are left as they are.
func (b *Batch) UpsertIgnore(t *Table, row Row) { b.Row(OpUpsertIgnore, t, row) }

// UpdateIgnore sets the named columns of a row if it is there.
func (b *Batch) UpdateIgnore(t *Table, row Row) { b.Row(OpUpdateIgnore, t, row) }

// DeleteIgnore removes a row if it is there.
func (b *Batch) DeleteIgnore(t *Table, key Row) { b.Row(OpDeleteIgnore, t, key) }

// Row adds one operation of any kind. Deletes take the key columns only.
func (b *Batch) Row(op Op, t *Table, row Row) {
	p := b.part(t)
	if p == nil {
		return
	}
	found := 0
	p.value = p.value[:0]
	for i := range p.cells {
		c := &p.shape.Schema.Columns[i]
		v, ok := row[c.Name]
		p.cells[i], p.set[i] = nil, ok
		if !ok {
			continue
		}
		found++
		start := len(p.value)
		cell, err := appendValue(&p.value, c, v)
		if err != nil {
			b.fail(t, c.Name, err)
			return
		}
		if c.Type.Variable() {
			p.cells[i] = cell
		} else if cell != nil {
			p.cells[i] = p.value[start:len(p.value):len(p.value)]
		}
	}
	if found < len(row) {
		for name := range row {
			if p.shape.Schema.Index(name) < 0 {
				b.fail(t, name, fault.ErrNoColumn)
				return
			}
		}
	}
	b.add(op, p)
}

// Cells adds one operation by cells: one for each column of the table's schema, nil for NULL, fixed
// widths little-endian (batch.Vector.Cell says how). set tells which columns were given; nil = all
// that the operation takes: for a delete the key columns, for an insert all but an
// auto-incrementing column.
func (b *Batch) Cells(op Op, t *Table, cells [][]byte, set []bool) {
	p := b.part(t)
	if p == nil {
		return
	}
	if len(cells) != len(p.cells) || set != nil && len(set) != len(cells) {
		b.fail(t, "", fmt.Errorf("%d cells, the table has %d columns", len(cells), len(p.cells)))
		return
	}
	s := p.shape.Schema
	for i := range cells {
		p.set[i] = set == nil && takes(op, s, i) || set != nil && set[i]
		p.cells[i] = nil
		if !p.set[i] {
			continue
		}
		if err := checkCell(&s.Columns[i], cells[i]); err != nil {
			b.fail(t, s.Columns[i].Name, err)
			return
		}
		p.cells[i] = cells[i]
	}
	b.add(op, p)
}

// takes tells whether an operation can be given column i.
func takes(op Op, s *schema.Schema, i int) bool {
	if s.Columns[i].AutoIncrement {
		return !op.Inserts()
	}
	return i < s.Keys || op != OpDelete && op != OpDeleteIgnore
}

// Vectors adds one operation for each row of vectors, which stand for the table's columns in schema
// order. A nil vector is a column that is not set. All vectors have the same length. Arrays are
// vectors in array form (batch.NewArrays) or of cells (type schema.Array). For OpInsert, OpUpsert
// and their Ignore kinds.
func (b *Batch) Vectors(op Op, t *Table, columns []*batch.Vector) {
	p := b.part(t)
	if p == nil {
		return
	}
	s := p.shape.Schema
	n, err := checkVectors(s, op, columns)
	if err != nil {
		b.spoil(&RowError{Row: b.n, Table: t.tab.Name(), Cause: err})
		return
	}
	limit := b.store.opts.CellLimit
	columns, row, column, err := packArrays(s, columns, limit)
	if err != nil {
		b.n += row
		b.fail(t, column, err)
		return
	}
	for i, v := range columns {
		if v == nil {
			continue
		}
		if _, err := checkVector(&s.Columns[i], v, limit); err != nil {
			b.vectorRows(op, t, columns, n)
			return
		}
	}
	var set batch.Bitmap
	lacks := ""
	filled := append([]*batch.Vector(nil), columns...)
	for i, v := range columns {
		if v != nil {
			continue
		}
		c := &s.Columns[i]
		if c.Required() {
			if lacks = c.Name; op == OpInsert || op == OpInsertIgnore {
				b.vectorRows(op, t, columns, n)
				return
			}
		}
		filled[i] = &batch.Vector{Type: c.Type}
		filled[i].Fill(n, c.Unset())
		if set == nil {
			set = batch.MakeBitmap(len(columns))
			for j, v := range columns {
				if v != nil {
					set.Set(j)
				}
			}
		}
	}
	keys := change.AppendVectorKeys(make([][]byte, 0, n), p.shape.Encoder, filled, 0, n)
	buf, ends := p.shape.RowFormat.AppendVectorRows(nil, nil, filled, 0, n)
	start := 0
	alone := s.SingleKey() && s.Columns[0].Type.Variable() // such keys are the caller's cells
	for i, key := range keys {
		body := buf[start:ends[i]:ends[i]]
		start = ends[i]
		if len(key) > schema.MaxKeyBytes {
			b.fail(t, "", errKeyTooLong(len(key)))
			continue
		}
		if len(body) > maxRowBytes {
			b.fail(t, "", errRowTooLong(len(body)))
			continue
		}
		if alone {
			key = p.shape.RowFormat.Cell(body, 0)
		}
		p.ops = append(p.ops, tablet.Op{Kind: op.kind(), Index: b.n, Key: key, Body: body, Set: set, Lacks: lacks})
		b.n++
		b.bytes += int64(len(key) + len(body) + opOverhead)
	}
}

// checkVectors checks that the vectors are well-formed and what op takes, and returns the number of
// their rows.
func checkVectors(s *schema.Schema, op Op, columns []*batch.Vector) (n int, err error) {
	switch op {
	case OpInsert, OpUpsert, OpInsertIgnore, OpUpsertIgnore:
	default:
		return 0, fmt.Errorf("vectors do not take %v", op)
	}
	if len(columns) != len(s.Columns) {
		return 0, fmt.Errorf("%d vectors, the table has %d columns", len(columns), len(s.Columns))
	}
	first := slices.IndexFunc(columns, func(v *batch.Vector) bool { return v != nil })
	if first < 0 {
		return 0, errors.New("no vectors")
	}
	n = columns[first].Len
	for i, v := range columns {
		c := &s.Columns[i]
		switch {
		case c.AutoIncrement && op.Inserts() && v != nil:
			return 0, fmt.Errorf("column %q: %w", c.Name, tablet.ErrAutoSet)
		case c.AutoIncrement && op.Inserts():
		case c.AutoIncrement && v == nil:
			return 0, fmt.Errorf("column %q: %w", c.Name, tablet.ErrAutoNotSet)
		case v == nil && i < s.Keys:
			return 0, fmt.Errorf("key column %q: %w", c.Name, tablet.ErrNotSet)
		}
		if v == nil {
			continue
		}
		arrays := v.Elements != nil && c.Type == schema.Array && v.Type == c.Element
		if !arrays && (v.Elements != nil || v.Type != c.Type) {
			return 0, fmt.Errorf("column %q: a vector of %s, want %s", c.Name, v.Type, c.Type)
		}
		if err := v.Validate(); err != nil {
			return 0, fmt.Errorf("column %q: %w", c.Name, err)
		}
		if v.Len != n {
			return 0, fmt.Errorf("column %q: a vector of %d cells, the first has %d", c.Name, v.Len, n)
		}
	}
	return n, nil
}

// Schema is the schema by which the batch takes rows of t until it is committed or reset: the one
// that the table had when the batch was first asked for it or got a row. Who gives cells or vectors
// while others may Alter the table goes by it and not by Table.Schema, which may be a newer one.
// nil when the batch has failed or t is another store's.
func (b *Batch) Schema(t *Table) *schema.Schema {
	if p := b.part(t); p != nil {
		return p.shape.Schema
	}
	return nil
}

// part is the batch's share of t; nil when the batch has failed or t is another store's.
func (b *Batch) part(t *Table) *part {
	b.committed = false
	if b.err != nil {
		return nil
	}
	for _, p := range b.parts {
		if p.table == t {
			if p.shape == nil {
				p.begin()
			}
			return p
		}
	}
	if t == nil || t.store != b.store {
		b.err = fmt.Errorf("oribi: row %d: the table belongs to another store: %w", b.n, fault.ErrNoTable)
		return nil
	}
	p := &part{table: t}
	p.begin()
	b.parts = append(b.parts, p)
	return p
}

// begin takes the table's schema as it is now.
func (p *part) begin() {
	p.shape = p.table.tab.Shape()
	if n := len(p.shape.Schema.Columns); n != len(p.cells) {
		p.cells, p.set = make([][]byte, n), make([]bool, n)
	}
}

// fail refuses the row that is being added.
func (b *Batch) fail(t *Table, column string, cause error) {
	b.refused = append(b.refused, &RowError{Row: b.n, Table: t.tab.Name(), Column: column, Cause: cause})
	b.n++
	b.bytes += opOverhead
}

// vectorRows adds vectors, some of whose rows do not fit, row by row.
func (b *Batch) vectorRows(op Op, t *Table, columns []*batch.Vector, n int) {
	cells, set := make([][]byte, len(columns)), make([]bool, len(columns))
	for i := range n {
		for c, v := range columns {
			if cells[c], set[c] = nil, v != nil; v != nil {
				cells[c] = v.Cell(i)
			}
		}
		b.Cells(op, t, cells, set)
	}
}

// Bounds of a row. Source: design §10.
const (
	maxRowBytes = 8 << 20
	opOverhead  = 64 // bytes of bookkeeping for one operation, about
)

func errKeyTooLong(n int) error {
	return fmt.Errorf("an encoded key of %d bytes, limit %d", n, schema.MaxKeyBytes)
}

func errRowTooLong(n int) error { return fmt.Errorf("a row of %d bytes, limit %d", n, maxRowBytes) }

// add makes an operation of p.cells and p.set, which have been checked against their columns' types
// one by one.
func (b *Batch) add(op Op, p *part) {
	t, s := p.table, p.shape.Schema
	if !op.known() {
		b.spoil(&RowError{Row: b.n, Table: t.tab.Name(), Cause: fmt.Errorf("%v is unknown: use one of OpInsert to OpDeleteIgnore", op)})
		return
	}
	if err := checkAuto(op, p); err != nil {
		b.spoil(&RowError{Row: b.n, Table: t.tab.Name(), Column: schema.AutoIncrementName, Cause: err})
		return
	}
	if column, err := b.complete(op, p); err != nil {
		b.fail(t, column, err)
		return
	}
	size := 0
	for _, c := range p.cells {
		size += len(c)
	}
	p.reserve(3*size + 16*len(p.cells) + 64) // keys escape, at most doubling; lists and images add less than 16 bytes a cell
	start := len(p.buf)
	p.buf = p.shape.Encoder.AppendKey(p.buf, p.cells)
	o := tablet.Op{Kind: op.kind(), Index: b.n, Key: p.buf[start:len(p.buf):len(p.buf)]}
	if len(o.Key) > schema.MaxKeyBytes {
		b.fail(t, "", errKeyTooLong(len(o.Key)))
		return
	}
	start = len(p.buf)
	switch op {
	case OpDelete, OpDeleteIgnore:
	case OpUpdate, OpUpdateIgnore:
		p.buf = change.AppendUpdateHeader(p.buf, change.Update)
		for i := s.Keys; i < len(p.cells); i++ {
			if p.set[i] {
				p.buf = change.AppendColumn(p.buf, s.Columns[i].ID, p.cells[i])
			}
		}
	default:
		p.buf = p.shape.RowFormat.AppendRow(p.buf, p.cells)
		o.Set, o.Lacks = p.setBitmap(op), p.lacks
	}
	if o.Body = p.buf[start:len(p.buf):len(p.buf)]; len(o.Body) > maxRowBytes {
		b.fail(t, "", errRowTooLong(len(o.Body)))
		return
	}
	p.ops = append(p.ops, o)
	b.n++
	b.bytes += int64(len(o.Key) + len(o.Body) + opOverhead)
}

// checkAuto tells what is wrong with what a row gives for an auto-incrementing column. It spoils
// the batch. Source: tablet spec §12.6.
func checkAuto(op Op, p *part) error {
	i := p.shape.Schema.AutoIncrement()
	switch {
	case i < 0:
	case op.Inserts() && p.set[i]:
		return tablet.ErrAutoSet
	case op.Upserts() && !p.set[i]:
		return tablet.ErrAutoNotSet
	case op.Upserts() && p.cells[i] != nil:
		return checkAutoCell(p.cells[i])
	}
	return nil
}

// checkAutoCell tells whether a cell can be given to an auto-incrementing column.
func checkAutoCell(cell []byte) error {
	if int64(binary.LittleEndian.Uint64(cell)) < 0 {
		return tablet.ErrAutoNegative
	}
	return nil
}

// complete checks which columns are set for the kind of operation, and fills in defaults.
func (b *Batch) complete(op Op, p *part) (column string, err error) {
	s := p.shape.Schema
	inserts := op != OpDelete && op != OpDeleteIgnore && op != OpUpdate && op != OpUpdateIgnore
	others := 0
	p.lacks = ""
	for i := range p.cells {
		c := &s.Columns[i]
		switch {
		case c.AutoIncrement && !p.set[i] && op.Inserts():
			p.cells[i] = c.Unset()
		case i < s.Keys && !p.set[i]:
			return c.Name, fmt.Errorf("the key column is not set")
		case p.set[i] && p.cells[i] == nil && !c.Nullable:
			return c.Name, fmt.Errorf("NULL, which it cannot be")
		case p.set[i] && len(p.cells[i]) > b.store.opts.CellLimit:
			return c.Name, fmt.Errorf("%d bytes, limit %d", len(p.cells[i]), b.store.opts.CellLimit)
		case i >= s.Keys && p.set[i]:
			others++
		case inserts && !p.set[i]:
			if p.cells[i] = c.Unset(); c.Required() && p.lacks == "" {
				p.lacks = c.Name
			}
		}
	}
	switch op {
	case OpInsert, OpInsertIgnore:
		if p.lacks != "" {
			return p.lacks, tablet.ErrNotSet
		}
	case OpUpdate, OpUpdateIgnore:
		if others == 0 {
			return "", fmt.Errorf("an update sets at least one column that is not in the key")
		}
	case OpDelete, OpDeleteIgnore:
		if others > 0 {
			return "", fmt.Errorf("a delete takes the key columns only")
		}
	}
	return "", nil
}

// setBitmap tells an upsert which columns were given; nil = all.
func (p *part) setBitmap(op Op) batch.Bitmap {
	if op == OpInsert || op == OpInsertIgnore {
		return nil
	}
	for _, set := range p.set {
		if !set {
			m := batch.MakeBitmap(len(p.set))
			for i, set := range p.set {
				if set {
					m.Set(i)
				}
			}
			return m
		}
	}
	return nil
}

// A part's first buffer fits a few rows: most batches have no more. Later ones double.
const partBufferBytes = 512

// reserve makes sure that n more bytes fit into the buffer without moving it. Slices of a full
// buffer stay valid: a new one takes its place.
func (p *part) reserve(n int) {
	if cap(p.buf)-len(p.buf) < n {
		p.buf = make([]byte, 0, max(n, partBufferBytes, 2*cap(p.buf)))
	}
}
