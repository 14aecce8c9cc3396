package oribi

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/bind"
	"github.com/oribi-db/oribi/internal/budget"
	"github.com/oribi-db/oribi/internal/conflict"
	"github.com/oribi-db/oribi/internal/exclusive"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/keyindex"
	"github.com/oribi-db/oribi/internal/store"
	"github.com/oribi-db/oribi/internal/tablet"
	"github.com/oribi-db/oribi/internal/txmemory"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/scan"
	"github.com/oribi-db/oribi/schema"
)

// Tx is a transaction: reads of one state of all tables, and writes that are committed as one.
// Transactions are serializable: those that commit have the results that they would have one after
// the other, in the order of their timestamps.
//
// A transaction reads the state of its beginning with its own writes applied. Except in an exclusive
// attempt of Store.Update, it holds no locks: other writers continue, and Commit fails with ErrConflict if one of them has changed a row that
// the transaction has read, or a row in a range of keys that it has scanned, including rows that
// did not exist, and if a row that it has read has expired since. Inserts, updates, and deletes
// read whether their row exists, and so do upserts that may be refused: those that lack a column
// that a new row needs, or set an immutable one. Other upserts and OpDeleteIgnore read nothing. A
// transaction that writes nothing never conflicts. Changes of schemas and dropped tables are not
// conflicts.
//
// Begin starts a transaction, and each one ends with Commit or Rollback. Store.Update does both,
// and tries again after a conflict:
//
//	err := store.Update(ctx, func(tx *oribi.Tx) error {
//		rows := accounts.In(tx)
//		a, err := rows.Get("alice")
//		if err != nil {
//			return err
//		}
//		a.Balance -= 10
//		return rows.Upsert(a)
//	})
//
// A transaction must be used by one goroutine at a time. The rows that it has written and the keys
// that it has read take memory until it ends. Each transaction may have 1 MiB. Beyond that, all open
// ones together may have a quarter of Options.MemoryLimit, or 256 MiB if that is less: a call waits
// for memory until the context of the transaction ends, and then fails with ErrTransactionsFull. It
// fails at once if the transactions that have that memory all wait for more, and this one is the
// youngest of them. A single transaction that needs more than all may have gets ErrBatchTooLarge. A
// goroutine that uses several large transactions at once should give them a context that ends: it
// may wait for itself.
type Tx struct {
	store      *Store
	ctx        context.Context
	snapshot   *Snapshot
	batch      *Batch
	reads      conflict.ReadSet
	checked    mvcc.Timestamp // nothing in reads has changed up to here
	until      mvcc.Timestamp // as of here, or later, a row that was read is expired
	scans      []openScan     // those whose reads are not all in reads and until
	indexes    []readIndex    // of which it has read entries
	cursors    []*Cursor      // those that are open
	turns      int            // how often writes were undone, or another state is read
	writes     int            // counts the calls that write or undo writes
	memory     *txmemory.Account
	reserved   int64              // memory that is counted in the store's budget
	recorded   bool               // the store records changes for the transaction
	hold       *exclusive.Hold    // of an exclusive attempt; else nil
	advance    func(*Table) error // of an exclusive attempt, see Tx.toNewest
	saved      []*Savepoint       // oldest first, without those that it was rolled back past
	savedBytes int64              // of saved and undo
	undo       []replacedOp       // what later writes have replaced in operations before savepoints
	rows       int                // that were written and not undone, see Tx.Results
	results    results            // of Commit
	assigned   []Assigned         // by Commit
	ended      bool
}

// openScan is a scan that runs.
type openScan interface {
	// settle adds to the transaction what the scan has read.
	settle()
}

// readIndex is an index of a table.
type readIndex struct {
	table   *Table
	entries *store.Table
}

// ErrTxEnded is returned by the methods of a transaction that was committed or rolled back.
var ErrTxEnded = errors.New("the transaction has ended")

// txName is the name of a transaction's snapshot in Store.Info.
const txName = "transaction"

// Begin starts a transaction, which ends with Commit or Rollback. It reads the newest published
// state. ctx applies to all its reads and to Commit. Until the transaction ends, no table drops
// history that it reads.
//
// Errors: ErrClosed; ctx.Err().
func (s *Store) Begin(ctx context.Context) (*Tx, error) { return s.begin(ctx, nil) }

// begin is Begin for a transaction that ends a hold when it ends.
func (s *Store) begin(ctx context.Context, hold *exclusive.Hold) (*Tx, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	from, recorded, err := s.record()
	if err != nil {
		return nil, fmt.Errorf("oribi: begin: %w", err)
	}
	tx := &Tx{store: s, ctx: ctx, batch: s.NewBatch(), until: mvcc.Max, memory: s.core.Transactions.Open(), hold: hold}
	tx.recorded = recorded
	if tx.snapshot, err = s.Snapshot(ctx, KeepHistory()); err == nil && tx.snapshot.pin.TS < from {
		tx.snapshot.Close()
		tx.snapshot, err = s.SnapshotAt(ctx, from, KeepHistory())
	}
	if err != nil {
		tx.end()
		return nil, err
	}
	tx.snapshot.SetName(txName)
	tx.checked = tx.snapshot.pin.TS
	return tx, nil
}

// record makes the store record changes until Commits.EndRecord, and returns the timestamp above which it
// has all of them. A store that accepts no writes has none to record.
func (s *Store) record() (from mvcc.Timestamp, recorded bool, err error) {
	if s.core.Writer == nil || s.core.Poisoned() != nil {
		return 0, false, nil
	}
	from, err = s.core.Writer.Record()
	return from, err == nil, err
}

// Timestamp returns the timestamp of the state that the transaction reads. It may enter the log, see
// Snapshot.Timestamp. In an exclusive attempt of Store.Update, it grows when the transaction reads
// from another table, and all that was read before is still so as of it.
func (tx *Tx) Timestamp() mvcc.Timestamp { return tx.snapshot.Timestamp() }

// Rollback ends the transaction without an effect. After Commit or Rollback it does nothing.
func (tx *Tx) Rollback() {
	if !tx.ended {
		tx.end()
	}
}

func (tx *Tx) end() {
	tx.ended = true
	for _, c := range tx.cursors {
		c.release()
	}
	tx.cursors = nil
	if tx.snapshot != nil {
		tx.snapshot.Close()
	}
	tx.batch, tx.reads, tx.saved, tx.undo = nil, conflict.ReadSet{}, nil, nil
	if tx.hold != nil {
		tx.hold.End()
	}
	tx.memory.Close()
	tx.store.core.Budget.Release(budget.Transaction, tx.reserved)
	tx.reserved = 0
	if tx.recorded {
		tx.store.core.Writer.EndRecord()
	}
}

// ready returns an error if the transaction cannot go on with a table.
func (tx *Tx) ready(t *Table) error {
	switch {
	case tx.ended:
		return callErr("", ErrTxEnded)
	case t == nil || t.store != tx.store:
		return fmt.Errorf("oribi: the table belongs to another store: %w", fault.ErrNoTable)
	}
	return tx.count()
}

// opMemory is about the memory of an operation and its place in the index of keys, besides its key,
// its cells, and opOverhead.
const opMemory = 48

// reading is ready for a call that reads the table. In an exclusive attempt, it holds off the writers
// of the table.
func (tx *Tx) reading(t *Table) error {
	if err := tx.ready(t); err != nil || tx.hold == nil {
		return err
	}
	tx.hold.Step()
	if !tx.hold.Add(t.tab.Number) {
		return nil
	}
	return callErr("", tx.advance(t))
}

// count counts the memory of the transaction, and waits until it may have so much. It must not be
// called within a call of the store: Close waits for those.
func (tx *Tx) count() error {
	size := tx.reads.Bytes() + tx.batch.bytes + int64(tx.batch.n)*opMemory
	for _, p := range tx.batch.tables {
		size += p.stateBytes
	}
	size += tx.savedBytes
	tx.store.core.Budget.Reserve(budget.Transaction, size-tx.reserved)
	tx.reserved = size
	return callErr("", tx.memory.Use(tx.ctx, size))
}

// Get reads a row, as Table.Get does. It does not see rows whose key contains an auto-incrementing
// column that Commit has yet to assign. Errors: ErrTxEnded; ErrTransactionsFull and
// ErrBatchTooLarge, see Tx; those of Table.Get.
func (tx *Tx) Get(t *Table, key any, opts ...ColumnsOption) (Row, error) {
	o := collect(opts)
	var row Row
	err := tx.get(t, key, &o, func(v *view, cols []int, cells [][]byte) error {
		row = bind.Row(v.Schema.Columns, cols, cells)
		return nil
	})
	return row, err
}

// GetCells is like Get but returns the columns read and their cells, nil for NULL. They must not be
// modified.
func (tx *Tx) GetCells(t *Table, key any, opts ...ColumnsOption) (columns []schema.Column, cells [][]byte, err error) {
	o := collect(opts)
	err = tx.get(t, key, &o, func(v *view, cols []int, found [][]byte) error {
		columns, cells = o.columnsOf(v.TableSchema, cols), found
		return nil
	})
	return columns, cells, err
}

// get reads a row and passes its cells of the columns that o chooses to found. Errors: ErrNotFound.
func (tx *Tx) get(t *Table, key any, o *readOptions, found func(v *view, cols []int, cells [][]byte) error) error {
	if err := tx.reading(t); err != nil {
		return err
	}
	At(tx.snapshot).apply(o)
	var v view
	err := t.read(tx.ctx, o, &v)
	if err != nil {
		return err
	}
	defer t.done(&v)
	encoded, err := t.appendKey(make([]byte, 0, 48), v.TableSchema, key, false)
	if err != nil {
		return err
	}
	return tx.getKey(t, &v, encoded, o, found)
}

// getKey is get for a key that is encoded.
func (tx *Tx) getKey(t *Table, v *view, encoded []byte, o *readOptions,
	found func(v *view, cols []int, cells [][]byte) error) error {
	cols, err := t.project(v.TableSchema, o)
	if err != nil {
		return err
	}
	tx.reads.AddKey(t.tab.Number, encoded)
	cells, until, ok, err := tx.cells(t, v, encoded, cols, nil)
	switch {
	case err != nil:
		return err
	case !ok:
		return t.missing(encoded)
	}
	tx.until = min(tx.until, until)
	return found(v, cols, cells)
}

// cells appends some cells of a row to dst, with the transaction's own writes applied, and returns until when
// the row exists. The caller adds the key and that to what the transaction has read.
func (tx *Tx) cells(t *Table, v *view, key []byte, cols []int, dst [][]byte) (
	cells [][]byte, until mvcc.Timestamp, ok bool, err error) {
	if !tx.wrote(t, key) {
		if cells, until, ok, err = v.GetUntil(key, cols, dst); err != nil {
			err = fmt.Errorf("oribi: %w", err)
		}
		return cells, until, ok, err
	}
	row, err := tx.row(t, v, key)
	if err != nil || row == nil {
		return dst, mvcc.Max, false, err
	}
	for _, c := range cols {
		dst = append(dst, row[c])
	}
	return dst, v.Until(row), true, nil
}

// wrote reports whether the transaction has written the row with an encoded key.
func (tx *Tx) wrote(t *Table, key []byte) bool {
	p := tx.batch.ops(t)
	return p != nil && (p.find(key) >= 0 || p.deleted.Contain(key))
}

// row returns all cells of a row with the transaction's own writes applied; nil if there is no row.
// The caller adds when that row expires, if it uses it.
func (tx *Tx) row(t *Table, v *view, key []byte) ([][]byte, error) {
	if p := tx.batch.ops(t); p != nil {
		if cells, ok := p.settled(v, key); ok {
			return cells, nil
		}
		if p.deleted.Contain(key) {
			return tx.batch.after(t, v, key, nil)
		}
	}
	cells, ok, err := v.Get(key, v.All, nil)
	if err != nil {
		return nil, fmt.Errorf("oribi: %w", err)
	}
	if !ok {
		cells = nil
	}
	tx.until = min(tx.until, v.Until(cells))
	return tx.batch.after(t, v, key, cells)
}

// Insert adds a row. Errors: ErrKeyExists if its key exists; those of Tx.Row.
func (tx *Tx) Insert(t *Table, row Row) error { return tx.Row(OpInsert, t, row) }

// Upsert adds a row, or sets the named columns of the row that exists. Errors: those of Tx.Row.
func (tx *Tx) Upsert(t *Table, row Row) error { return tx.Row(OpUpsert, t, row) }

// Update sets the named columns of a row. Errors: ErrNotFound if it does not exist; those of
// Tx.Row.
func (tx *Tx) Update(t *Table, row Row) error { return tx.Row(OpUpdate, t, row) }

// Delete deletes a row. key names the key columns only. Errors: ErrNotFound if it does not exist;
// those of Tx.Row.
func (tx *Tx) Delete(t *Table, key Row) error { return tx.Row(OpDelete, t, key) }

// Row carries out one operation of any kind in the transaction. After an error the transaction has
// the writes that it had before, and may go on. A refused operation counts as a read of its row:
// the caller knows from the error whether the row existed.
//
// Errors: ErrRow with ErrKeyExists, ErrNotFound, or the reason why the row does not fit;
// ErrTransactionsFull; ErrBatchTooLarge; ErrTxEnded; those of a read.
func (tx *Tx) Row(op Op, t *Table, row Row) error {
	return tx.add(t, func() { tx.batch.Row(op, t, row) })
}

// Cells carries out one operation of any kind on a row that is given as cells, as Batch.Cells does.
// Otherwise it is like Row.
func (tx *Tx) Cells(op Op, t *Table, cells [][]byte, set []bool) error {
	return tx.add(t, func() { tx.batch.Cells(op, t, cells, set) })
}

// add adds the operations on a table that fill adds to the write batch, if none of them is refused.
func (tx *Tx) add(t *Table, fill func()) error {
	if err := tx.ready(t); err != nil {
		return err
	}
	b := tx.batch
	p := b.opsOf(t)
	if p == nil {
		return b.Err()
	}
	ops, n, size, refused := len(p.ops), b.n, b.bytes, len(b.refused)
	fill()
	for i := range p.ops[ops:] {
		p.ops[ops+i].Index += tx.rows - n
	}
	err := b.Err()
	if re := (*RowError)(nil); errors.As(err, &re) {
		re.Row -= n // a row of this call, not of the write batch
	}
	if err == nil {
		err = tx.count()
	}
	if err == nil {
		err = tx.decide(t, p, ops)
	}
	if err != nil {
		p.truncate(ops)
		b.n, b.bytes, b.refused, b.err = n, size, b.refused[:refused], nil
		return err
	}
	tx.rows += b.n - n
	tx.take(p, ops)
	tx.writes++
	return nil
}

// take replaces each of the operations p.ops[from:] and the one before it on its key by one, if that
// is possible: the memory of a transaction depends on how many rows it writes, not on how often.
func (tx *Tx) take(p *tableOps, from int) {
	b, added := tx.batch, p.ops[from:]
	if p.index != nil {
		p.index.Truncate(from, func(e int) { p.keep(e, nil) })
	}
	p.ops = p.ops[:from]
	for i := range added {
		op := added[i]
		if !op.Kind.Deletes() {
			p.gaps.Fill(op.Key)
		}
		p.touch(op.Key)
		grown, folded := p.fold(&op, tx.replacing)
		if !folded {
			p.ops = append(p.ops, op)
			continue
		}
		b.n--
		b.bytes += grown - opBytes(&op)
	}
	clear(added[len(p.ops)-from:])
	p.collect(b.bytes)
}

// decide tests whether the operations p.ops[from:] are refused in the state that the transaction
// sees, and adds to the read set what that depends on.
func (tx *Tx) decide(t *Table, p *tableOps, from int) error {
	all := p.ops
	defer func() { p.ops = all }()
	var v view
	for i := from; i < len(all); i++ {
		op := &all[i]
		if blind(op, p.schema.Schema) || op.Kind.Inserts() && p.schema.Schema.AutoIncrement() >= 0 {
			continue
		}
		if v.pins == nil {
			if err := tx.reading(t); err != nil {
				return err
			}
			o := readOptions{}
			At(tx.snapshot).apply(&o)
			var err error
			if err = t.read(tx.ctx, &o, &v); err != nil {
				return err
			}
			defer t.done(&v)
		}
		p.ops = all[:i] // those before op
		// Of an update with operands, the caller learns only that the row exists, which Commit tests again.
		deferred := op.Kind == tablet.Update && op.Operands != nil
		if !deferred {
			tx.reads.AddKey(t.tab.Number, op.Key)
		}
		if err := tx.meet(t, &v, p, op, i-from); err != nil {
			tx.reads.AddKey(t.tab.Number, op.Key)
			return err
		}
	}
	return nil
}

// meet tests whether an operation, the n-th of a call, is refused in the state that the transaction sees.
func (tx *Tx) meet(t *Table, v *view, p *tableOps, op *tablet.Op, n int) error {
	cells, err := tx.row(t, v, op.Key)
	if err != nil {
		return err
	}
	tx.until = min(tx.until, v.Until(cells))
	if p.schema != v.TableSchema {
		if op, err = tablet.Converted(op, p.schema, v.TableSchema); err != nil {
			return err
		}
	}
	if _, err := v.TableSchema.After(op, cells); err != nil {
		return callErr("", tablet.Refusal(n, t.tab.Name(), t.tab.KeyText(op.Key), err))
	}
	return nil
}

// blind reports whether an operation is accepted whatever the row is, and leaves it in a state that
// does not depend on whether it existed.
func blind(op *tablet.Op, s *schema.Schema) bool {
	switch {
	case op.Check != nil || op.Lacks != "":
		return false
	case op.Kind == tablet.DeleteIgnore || op.Kind == tablet.UpsertIgnore:
		return true
	}
	for i := range s.Columns {
		if c := &s.Columns[i]; c.Immutable && (op.Set == nil || op.Set.Get(i) || op.Operands.Has(c.ID)) {
			return false
		}
	}
	return op.Kind == tablet.Upsert
}

// Has reports whether there is a row with a key, as Table.Has does. The transaction has then read
// the row, whether it exists or not: see Tx. Errors: as for Tx.Get, except that a missing row is
// no error.
func (tx *Tx) Has(t *Table, key any) (bool, error) {
	if err := tx.reading(t); err != nil {
		return false, err
	}
	o := readOptions{}
	At(tx.snapshot).apply(&o)
	var v view
	err := t.read(tx.ctx, &o, &v)
	if err != nil {
		return false, err
	}
	defer t.done(&v)
	encoded, err := t.appendKey(nil, v.TableSchema, key, false)
	if err != nil {
		return false, err
	}
	tx.reads.AddKey(t.tab.Number, encoded)
	if tx.wrote(t, encoded) {
		cells, err := tx.row(t, &v, encoded)
		return cells != nil, err
	}
	found := false
	if v.Clock() < 0 {
		found, err = v.Has(encoded)
	} else {
		var until mvcc.Timestamp
		_, until, found, err = v.GetUntil(encoded, nil, nil)
		tx.until = min(tx.until, until)
	}
	if err != nil {
		return false, fmt.Errorf("oribi: %w", err)
	}
	return found, nil
}

// trackedScan narrows a range of a transaction's read set to what was read, and finds out when the
// rows that were read expire. For that, the iterator has one column more, which trackedScan
// removes.
type trackedScan struct {
	scan.Iterator
	tx         *Tx
	reads      *conflict.Range
	descending bool
	left       int64     // rows up to the limit of the scan; below 0: there is none
	last       []byte    // key of the last row that the caller gets of the current batch, or nil
	ops        *tableOps // gets the gap before the first row; nil: there is none that it could use
	ended      bool      // Next has returned false
	closed     bool

	expires bool // the rows of the table expire
	view    tablet.View
	b       batch.RecordBatch // the current batch without the clock
	clock   *batch.Vector     // of the current batch: when its rows expire; nil if known
	upTo    int               // the last row of it that the caller gets
}

// Savepoint is a state of a transaction's writes, to which it can be rolled back. See Tx.Savepoint.
type Savepoint struct {
	tx       *Tx
	n        int // operations of the write batch
	rows     int // of the transaction
	bytes    int64
	tables   []savedTable
	undo     int // length of tx.undo
	replaced map[replaced]bool
}

// savedTable is the number of operations on a table, and the ranges that were deleted.
type savedTable struct {
	ops     *tableOps
	n       int
	deleted keyindex.Ranges
}

// replaced is an operation that was replaced since the savepoint.
type replaced struct {
	ops *tableOps
	i   int
}

// replacedOp is an operation as it was before.
type replacedOp struct {
	replaced
	op tablet.Op
}

func replacedBytes(op *tablet.Op) int64 { return opBytes(op) + 2*opMemory }

// replacing keeps operation i of a table, which is about to be replaced, for the newest savepoint.
func (tx *Tx) replacing(p *tableOps, i int) {
	if len(tx.saved) == 0 {
		return
	}
	sp, r := tx.saved[len(tx.saved)-1], replaced{p, i}
	before := slices.ContainsFunc(sp.tables, func(t savedTable) bool { return t.ops == p && i < t.n })
	if !before || sp.replaced[r] {
		return
	}
	if sp.replaced == nil {
		sp.replaced = map[replaced]bool{}
	}
	sp.replaced[r] = true
	tx.undo = append(tx.undo, replacedOp{r, p.ops[i]})
	tx.savedBytes += replacedBytes(&p.ops[i])
}
