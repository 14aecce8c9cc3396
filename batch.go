package oribi

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/bind"
	"github.com/oribi-db/oribi/internal/exclusive"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/keyindex"
	"github.com/oribi-db/oribi/internal/operand"
	"github.com/oribi-db/oribi/internal/record"
	"github.com/oribi-db/oribi/internal/store"
	"github.com/oribi-db/oribi/internal/tablet"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// Op is the kind of an operation on a row in a write batch.
type Op uint8

// The eight operations. An insert is refused with ErrKeyExists if its key exists; an update or a
// delete is refused with ErrNotFound if it does not. The Ignore kinds do nothing in these cases. An
// upsert inserts the row, or updates the columns that are set. Operations on one key in one batch
// take effect in their order.
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

// kind returns the operation's kind in package tablet.
func (o Op) kind() tablet.OpKind { return tablet.OpKind(o) }

// known reports whether o is one of the eight operations.
func (o Op) known() bool { return OpInsert <= o && o <= OpDeleteIgnore }

// Inserts reports whether o is OpInsert or OpInsertIgnore, which assign the value of an
// auto-incrementing column.
func (o Op) Inserts() bool { return o == OpInsert || o == OpInsertIgnore }

// Upserts reports whether o is OpUpsert or OpUpsertIgnore.
func (o Op) Upserts() bool { return o == OpUpsert || o == OpUpsertIgnore }

// String returns the name of the operation in the files that the command reads, such as
// "insert_ignore".
func (o Op) String() string {
	if !o.known() {
		return fmt.Sprintf("operation %d", uint8(o))
	}
	return o.kind().String()
}

// Batch collects operations that are committed as one. It must be used by one goroutine at a time.
//
// Each row is checked and encoded when it is added, by the schema that its table had when the batch
// got the first row of that table, with the defaults of that schema. The caller may reuse what it
// passed. Commit returns the error of the first refused row. If the schema has changed by then,
// Commit converts the rows column by column (see Table.Alter).
type Batch struct {
	store  *Store
	tables []*tableOps
	n      int   // operations so far
	bytes  int64 // keys and bodies
	record record.Writer
	entry  store.Commit    // of the last Commit, to reuse its memory
	writes []*tablet.Write // memory of Commit

	committed bool        // and nothing was added since: Commit returns ErrCommitted
	err       error       // with which the whole batch fails
	refused   []*RowError // rows that do not fit, in their order
	outcomes  []*RowError // rows that the last Commit left out
	assigned  []Assigned  // values that the last Commit assigned
	results   results     // of the operands of the last Commit
	changes   int         // operations of the last Commit that changed something

	check func(mvcc.Timestamp) error // of a transaction, see changes
	hold  *exclusive.Hold            // of a transaction, or nil

	queued bool           // a hold has kept the commit waiting, see exclusive.Tables.Wait
	asOf   mvcc.Timestamp // of another attempt to commit, see attempts

	// unnamed says that no caller gets the batch's timestamp if it changes nothing. The log need
	// not have it then.
	unnamed bool
}

// tableOps contains a batch's operations on one table.
type tableOps struct {
	table  *Table
	schema *tablet.TableSchema // schema and format of ops, cells and set; nil = none yet
	ops    []tablet.Op
	buf    []byte // keys and bodies; never moved, so that slices of it stay valid
	cells  [][]byte
	set    []bool
	lacks  string // a column that is not set and that a new row must set
	value  []byte // bytes of fixed-width cells while a row is made

	operands []operand.Operand // of the row that is made, in the order of the schema

	index      *keyindex.Index   // of ops, up to some operation; nil until the first Get
	states     map[int]*rowState // by entry of index: rows that many operations have changed
	stateBytes int64             // of states

	// Of a transaction.
	garbage int             // bytes of buf that no operation uses, at least
	gaps    keyindex.Gaps   // where it sees no rows
	deleted keyindex.Ranges // before ops
	byIndex []*ownEntries   // by the indexes that the transaction has read by
}

// writes reports whether there are operations, or deletes of ranges.
func (p *tableOps) writes() bool { return len(p.ops)+len(p.deleted) > 0 }

// rowState is a row after some operations on it. Rows with fewer operations than keptAfter have none.
type rowState struct {
	op     int // the last of the operations
	schema *tablet.TableSchema
	clock  int            // column by which rows expire, below 0 if they do not
	ts     mvcc.Timestamp // if they do, the operations met the row as of here
	base   [][]byte       // the row before all operations
	cells  [][]byte       // after op
}

// ownEntries are the places in the order of an index at which writes of a transaction have put rows. The rows
// may have left them since.
type ownEntries struct {
	columns tablet.IndexColumns
	list    []ownEntry
	index   *keyindex.Index // of list, by position
	touched [][]byte        // keys that were written since list was extended
	bytes   int64           // that tableOps counts
}

// ownEntry is the place of a row in the order of an index.
type ownEntry struct{ entry, position, key []byte }

// errNoBatchStore is the error of a Batch that NewBatch did not make.
var errNoBatchStore = errors.New("the write batch belongs to no store: use Store.NewBatch")

// NewBatch returns an empty write batch.
func (s *Store) NewBatch() *Batch { return &Batch{store: s} }

// newBulkBatch is NewBatch for calls that return no timestamp if nothing changes.
func (s *Store) newBulkBatch() *Batch { return &Batch{store: s, unnamed: true} }

// Len returns the number of operations in the batch.
func (b *Batch) Len() int { return b.n }

// Bytes returns about how much memory the batch's operations take.
func (b *Batch) Bytes() int64 { return b.bytes }

// Err returns the first row error so far, which Commit will return, or nil.
func (b *Batch) Err() error {
	if len(b.refused) > 0 { // these were refused before the batch failed
		return callErr("", b.refused[0])
	}
	return callErr("", b.err)
}

// Reset removes all operations from the batch, which can then be used again. It keeps the memory.
func (b *Batch) Reset() {
	for _, p := range b.tables {
		clear(p.ops)
		p.schema, p.ops, p.buf = nil, p.ops[:0], p.buf[:0]
		p.index, p.states, p.stateBytes, p.garbage, p.gaps = nil, nil, 0, 0, keyindex.Gaps{}
		p.deleted = nil
	}
	if len(b.tables) > 8 {
		b.tables = nil
	}
	b.n, b.bytes, b.err, b.refused, b.committed = 0, 0, nil, nil, false
}

// Insert adds a row. It is refused with ErrKeyExists if the key exists.
func (b *Batch) Insert(t *Table, row Row) { b.Row(OpInsert, t, row) }

// Upsert adds a row, or sets the named columns of the row that exists.
func (b *Batch) Upsert(t *Table, row Row) { b.Row(OpUpsert, t, row) }

// Update sets the named columns of a row. It is refused with ErrNotFound if the row does not exist.
func (b *Batch) Update(t *Table, row Row) { b.Row(OpUpdate, t, row) }

// Delete deletes a row. It is refused with ErrNotFound if the row does not exist. key names the key
// columns only.
func (b *Batch) Delete(t *Table, key Row) { b.Row(OpDelete, t, key) }

// InsertIgnore adds a row unless its key exists.
func (b *Batch) InsertIgnore(t *Table, row Row) { b.Row(OpInsertIgnore, t, row) }

// UpsertIgnore adds a row, or sets the named columns of the row that exists, except immutable ones.
func (b *Batch) UpsertIgnore(t *Table, row Row) { b.Row(OpUpsertIgnore, t, row) }

// UpdateIgnore sets the named columns of a row if it exists.
func (b *Batch) UpdateIgnore(t *Table, row Row) { b.Row(OpUpdateIgnore, t, row) }

// DeleteIgnore deletes a row if it exists. key names the key columns only.
func (b *Batch) DeleteIgnore(t *Table, key Row) { b.Row(OpDeleteIgnore, t, key) }

// Row adds one operation of any kind. For deletes, row names the key columns only.
func (b *Batch) Row(op Op, t *Table, row Row) {
	p := b.opsOf(t)
	if p == nil {
		return
	}
	found := 0
	p.reserveValues(len(p.cells))
	for i := range p.cells {
		c := &p.schema.Schema.Columns[i]
		v, ok := row[c.Name]
		p.cells[i], p.set[i] = nil, ok
		if !ok {
			continue
		}
		found++
		if o, ok := operandOf(v); ok {
			if err := b.operand(op, p, i, o); err != nil {
				b.fail(t, c.Name, err)
				return
			}
			p.set[i] = false
			continue
		}
		start := len(p.value)
		cell, err := bind.Append(p.value[start:start], c, v)
		if err != nil {
			b.fail(t, c.Name, err)
			return
		}
		if cell != nil && !c.Type.Variable() {
			p.value = p.value[:start+len(cell)]
		}
		p.cells[i] = cell
	}
	if found < len(row) {
		if unknown := bind.UnknownColumn(p.schema.Schema, row); unknown != nil {
			b.fail(t, unknown.Column, unknown.Cause)
			return
		}
	}
	b.add(op, p)
}

// Cells adds one operation of any kind from cells, one for each column of the table's schema (see
// Batch.Schema), nil for NULL. Cells of fixed width are little-endian, as batch.Vector.Cell returns
// them. set[i] reports whether column i is set. A nil set means all columns that the operation
// takes: the key columns for a delete, and for an insert all but an auto-incrementing column.
func (b *Batch) Cells(op Op, t *Table, cells [][]byte, set []bool) {
	p := b.opsOf(t)
	if p == nil {
		return
	}
	if len(cells) != len(p.cells) || set != nil && len(set) != len(cells) {
		b.fail(t, "", fmt.Errorf("%d cells, the table has %d columns", len(cells), len(p.cells)))
		return
	}
	s := p.schema.Schema
	for i := range cells {
		p.set[i] = set == nil && takes(op, s, i) || set != nil && set[i]
		p.cells[i] = nil
		if !p.set[i] {
			continue
		}
		if err := bind.Check(&s.Columns[i], cells[i]); err != nil {
			b.fail(t, s.Columns[i].Name, err)
			return
		}
		p.cells[i] = cells[i]
	}
	b.add(op, p)
}

// takes reports whether an operation takes a value of column i.
func takes(op Op, s *schema.Schema, i int) bool {
	if s.Columns[i].AutoIncrement {
		return !op.Inserts()
	}
	return i < s.Keys || op != OpDelete && op != OpDeleteIgnore
}

// Vectors adds one operation for each row of vectors, one vector for each column of the table in
// schema order (see Batch.Schema). All vectors have the same length. A nil vector leaves its column
// unset. Arrays are vectors in array form (batch.NewArrays) or vectors of cells (type
// schema.Array). op is OpInsert, OpUpsert, or one of their Ignore kinds.
func (b *Batch) Vectors(op Op, t *Table, columns []*batch.Vector) {
	p := b.opsOf(t)
	if p == nil {
		return
	}
	s := p.schema.Schema
	n, err := checkVectors(s, op, columns)
	if err != nil {
		b.spoil(&RowError{Row: b.n, Table: t.tab.Name(), Cause: err})
		return
	}
	limit := b.store.opts.CellLimit
	columns, row, column, err := bind.PackArrays(s, columns, limit)
	if err != nil {
		b.n += row
		b.fail(t, column, err)
		return
	}
	for i, v := range columns {
		if v == nil {
			continue
		}
		if _, err := bind.CheckVector(&s.Columns[i], v, limit); err != nil {
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
	keys := change.AppendVectorKeys(make([][]byte, 0, n), p.schema.Encoder, filled, 0, n)
	buf, ends := p.schema.RowFormat.AppendVectorRows(nil, nil, filled, 0, n)
	start := 0
	alone := s.SingleKey() && s.Columns[0].Type.Variable() // the encoded key is the cell itself
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
			key = p.schema.RowFormat.Cell(body, 0)
		}
		p.ops = append(p.ops, tablet.Op{Kind: op.kind(), Index: b.n, Key: key, Body: body, Set: set, Lacks: lacks})
		b.n++
		b.bytes += opBytes(&p.ops[len(p.ops)-1])
	}
}

// checkVectors checks that the vectors are well-formed and that op takes them. It returns the
// number of their rows.
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

// Schema returns the schema by which the batch takes rows of t until it is committed or reset: the
// table's schema when the batch got its first row of t or Schema was first called. Callers of Cells
// and Vectors use it instead of Table.Schema, which may be newer if another goroutine alters the
// table. Schema returns nil if the batch has failed or t belongs to another store.
func (b *Batch) Schema(t *Table) *schema.Schema {
	if p := b.opsOf(t); p != nil {
		return p.schema.Schema
	}
	return nil
}

// opsOf returns the batch's operations on t, or nil if the batch has failed or t belongs to another
// store.
func (b *Batch) opsOf(t *Table) *tableOps {
	b.committed = false
	if b.err != nil {
		return nil
	}
	for _, p := range b.tables {
		if p.table == t {
			p.operands = p.operands[:0]
			if p.schema == nil {
				p.begin()
			}
			return p
		}
	}
	if t == nil || t.store != b.store {
		if b.store == nil {
			b.err = errNoBatchStore
			return nil
		}
		b.err = fmt.Errorf("row %d: the table belongs to another store: %w", b.n, fault.ErrNoTable)
		return nil
	}
	p := &tableOps{table: t}
	p.begin()
	b.tables = append(b.tables, p)
	return p
}

// begin sets the schema of p to the table's present one.
func (p *tableOps) begin() {
	p.schema = p.table.tab.Schema()
	if n := len(p.schema.Schema.Columns); n != len(p.cells) {
		p.cells, p.set = make([][]byte, n), make([]bool, n)
	}
}

// fail refuses the row that is being added.
func (b *Batch) fail(t *Table, column string, cause error) {
	b.refused = append(b.refused, &RowError{Row: b.n, Table: t.tab.Name(), Column: column, Cause: cause})
	b.n++
	b.bytes += opOverhead
}

// vectorRows adds the rows of vectors one by one, since some of them do not fit.
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

// opBytes returns about how much memory an operation takes.
func opBytes(op *tablet.Op) int64 {
	return int64(len(op.Key)+len(op.Body)+opOverhead) + op.Operands.Bytes()
}

func errKeyTooLong(n int) error {
	return fmt.Errorf("an encoded key of %d bytes, limit %d", n, schema.MaxKeyBytes)
}

func errRowTooLong(n int) error { return fmt.Errorf("a row of %d bytes, limit %d", n, maxRowBytes) }

// add adds an operation with the columns p.cells and p.set, each of which has been checked against
// its column's type.
func (b *Batch) add(op Op, p *tableOps) {
	t, s := p.table, p.schema.Schema
	if !op.known() {
		b.spoil(&RowError{Row: b.n, Table: t.tab.Name(),
			Cause: fmt.Errorf("%v is unknown: use one of OpInsert to OpDeleteIgnore", op)})
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
	// Keys escape, at most doubling; lists and images add less than 16 bytes a cell.
	p.reserve(3*size + 16*len(p.cells) + 64)
	start := len(p.buf)
	p.buf = p.schema.Encoder.AppendKey(p.buf, p.cells)
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
		p.buf = p.schema.RowFormat.AppendRow(p.buf, p.cells)
		o.Set, o.Lacks = p.setBitmap(op), p.lacks
	}
	if len(p.operands) > 1 { // the operands of a struct are in the order of its fields
		slices.SortFunc(p.operands, func(x, y operand.Operand) int {
			return cmp.Compare(s.IndexID(x.Column), s.IndexID(y.Column))
		})
	}
	o.Operands = b.store.operands(p.operands)
	o.Body = p.buf[start:len(p.buf):len(p.buf)]
	if n := len(o.Body) + int(o.Operands.Bytes()); n > maxRowBytes {
		b.fail(t, "", errRowTooLong(n))
		return
	}
	p.ops = append(p.ops, o)
	b.n++
	b.bytes += opBytes(&o)
}

// checkAuto returns an error if the row sets, or does not set, an auto-incrementing column against
// the rules of op. Such an error fails the whole batch. Source: tablet spec §12.6.
func checkAuto(op Op, p *tableOps) error {
	i := p.schema.AutoIncrement()
	switch {
	case i < 0:
	case op.Inserts() && p.set[i]:
		return tablet.ErrAutoSet
	case op.Upserts() && !p.set[i]:
		return tablet.ErrAutoNotSet
	case op.Upserts() && p.cells[i] != nil:
		return bind.CheckAuto(p.cells[i])
	}
	return nil
}

// complete checks that op takes the columns that are set, and fills in defaults.
func (b *Batch) complete(op Op, p *tableOps) (column string, err error) {
	s := p.schema.Schema
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
			return c.Name, bind.ErrNull
		case p.set[i] && len(p.cells[i]) > b.store.opts.CellLimit:
			return c.Name, fault.CellTooLong(len(p.cells[i]), b.store.opts.CellLimit)
		case i >= s.Keys && p.set[i]:
			others++
		case inserts && !p.set[i]:
			if p.cells[i] = c.Unset(); c.Required() && p.lacks == "" && !p.operates(c) {
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
		if others == 0 && len(p.operands) == 0 {
			return "", fmt.Errorf("an update must set at least one column that is not in the key")
		}
	case OpDelete, OpDeleteIgnore:
		if others > 0 {
			return "", errDeletesByKey
		}
	}
	return "", nil
}

// operand adds the operand for column i to the row that is being made.
func (b *Batch) operand(op Op, p *tableOps, i int, o bind.Operand) error {
	c := &p.schema.Schema.Columns[i]
	switch {
	case i < p.schema.Schema.Keys:
		return fmt.Errorf("%v in a key column, which takes values only", o.Kind)
	case op == OpInsert || op == OpInsertIgnore:
		return fmt.Errorf("%v in an insert, which takes values only: use an upsert", o.Kind)
	case op == OpDelete || op == OpDeleteIgnore:
		return errDeletesByKey
	}
	bound, err := b.store.operandFor(c, o)
	if err == nil {
		p.operands = append(p.operands, bound)
	}
	return err
}

// operandFor returns an operand for a column that is not in the key.
func (s *Store) operandFor(c *schema.Column, o bind.Operand) (operand.Operand, error) {
	bound, err := o.Of(c)
	if err == nil && c.Type.Variable() && len(bound.Cell) > s.opts.CellLimit {
		err = fault.CellTooLong(len(bound.Cell), s.opts.CellLimit)
	}
	return bound, err
}

// operates reports whether the row that is being made has an operand for a column.
func (p *tableOps) operates(c *schema.Column) bool {
	return slices.ContainsFunc(p.operands, func(o operand.Operand) bool { return o.Column == c.ID })
}

// operands returns the operands of an operation; without any it returns nil. It copies the list.
func (s *Store) operands(list []operand.Operand) *tablet.Operands {
	if len(list) == 0 {
		return nil
	}
	return &tablet.Operands{List: slices.Clone(list), CellLimit: s.opts.CellLimit, BatchLimit: s.core.Options.BatchLimit()}
}

var errDeletesByKey = errors.New("a delete takes the key columns only")

// setBitmap returns the columns that an upsert sets; nil means all.
func (p *tableOps) setBitmap(op Op) batch.Bitmap {
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

// tableOpsBufferBytes is the size of the first buffer of a tableOps. It fits a few rows, and most
// batches have no more. Each further buffer is at least twice as large.
const tableOpsBufferBytes = 512

// reserve makes sure that n more bytes fit into the buffer without moving it. If they do not, it
// replaces the buffer by a new one; slices of the old one stay valid.
func (p *tableOps) reserve(n int) {
	if cap(p.buf)-len(p.buf) < n {
		p.buf = make([]byte, 0, max(n, tableOpsBufferBytes, 2*cap(p.buf)))
	}
}

// reserveValues makes room in p.value for n cells of fixed width, so that it does not move while
// they are made.
func (p *tableOps) reserveValues(n int) {
	if cap(p.value) < 16*n {
		p.value = make([]byte, 0, 16*n)
	}
	p.value = p.value[:0]
}

// spoil makes the whole batch fail, also in CommitPartial.
func (b *Batch) spoil(err error) {
	if b.err == nil {
		b.err = err
	}
}

// Assigned is a value of an auto-incrementing column that Commit assigned to an inserted row.
type Assigned struct {
	Row   int // position in the batch or transaction, from 0
	Value int64
}

// Result is the value that an operand has given a column. See Operand.
type Result struct {
	Row    int // position in the batch or transaction, from 0
	Column string
	Value  any // as in Row
}

// results are the results of operands, as cells.
type results struct {
	list  []tablet.Result
	cells []byte
}

func (r *results) reset() {
	clear(r.list)
	r.list, r.cells = r.list[:0], r.cells[:0]
}

// add adds a result, whose cell it copies.
func (r *results) add(x tablet.Result) {
	from := len(r.cells)
	r.cells = append(append(r.cells, x.Cell...), 0) // a byte more, so that no cell is nil
	x.Cell = r.cells[from : len(r.cells)-1]
	r.list = append(r.list, x)
}

// Results returns the results of the operands of the last Commit, in the order of the batch; those of one
// row in the order of the table's columns. Rows that CommitPartial left out have none, and neither have
// rows that an Ignore kind did not find. A column that keeps its value has one.
func (b *Batch) Results() []Result { return b.results.all() }

func (r *results) all() []Result {
	out := make([]Result, 0, len(r.list))
	for _, r := range r.list {
		out = append(out, Result{r.Index, r.Column.Name, bind.Value(r.Column, r.Cell)})
	}
	return out
}
