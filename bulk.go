package oribi

import (
	"context"
	"errors"
	"fmt"

	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/bind"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/operand"
	"github.com/oribi-db/oribi/internal/tablet"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

type pieceBytes int64

type confirmation func(rows int64) error

func (f confirmation) bulk(o *bulkOptions) { o.confirm = f }
func (n pieceBytes) bulk(o *bulkOptions)   { o.pieces = int64(n) }
func (noSync) bulk(o *bulkOptions)         { o.noSync = true }
func (f rangeOption) bulk(o *bulkOptions)  { f(&o.read) }

// InPieces lets a bulk call commit several write batches, one after the other in key order, if one
// would be too large or keep too many rows in memory. Each is atomic and has its own timestamp, and
// readers see it as soon as it is committed. Each changes the rows as they are when it begins.
//
// A write batch is at most 4 MiB, or a quarter of Options.MemoryLimit if that is less.
func InPieces() BulkOption { return PieceBytes(defaultPieceBytes) }

// PieceBytes is InPieces with write batches of at most n bytes, as Batch.Bytes counts them, but of
// at least one row. Other writers wait less for the rows of a smaller write batch; the call itself
// takes longer.
func PieceBytes(n int64) BulkOption { return pieceBytes(max(n, 1)) }

// Confirm lets ask decide whether a bulk call changes anything. The call first counts the rows that
// it would change, and calls ask with their number. If ask returns an error, the call changes
// nothing and returns that error. If other writers have made so much more to change meanwhile that
// the call would change more rows than ask has accepted, it returns ErrConflict before it does.
//
// The call reads the rows twice then. Other writers are not blocked while ask runs.
func Confirm(ask func(rows int64) error) BulkOption { return confirmation(ask) }

// ask counts the rows to change and calls Confirm's function.
func (o *bulkOptions) ask(count func() (int64, error)) error {
	if o.confirm == nil {
		return nil
	}
	n, err := count()
	if err == nil {
		err = o.confirm(n)
	}
	o.most = n
	return err
}

// exceeded returns the error about the row after n others to change, nil if it may be changed.
func (o *bulkOptions) exceeded(n int64) error {
	if o.confirm == nil || n < o.most {
		return nil
	}
	return fmt.Errorf("there is more to change now than the %d rows that were confirmed: %w", o.most, fault.ErrConflict)
}

// BulkResult describes the changes of a bulk call, up to its error if it failed.
type BulkResult struct {
	Rows      int64          // rows that were changed, durably unless NoSync was given
	Timestamp mvcc.Timestamp // of the last write batch that changed a row; 0 if no row was changed

	// Next is set if a call with InPieces failed: the key of the first row that may not have been
	// changed. The same call with From(Next) does the rest.
	Next Key
}

const defaultPieceBytes = 4 << 20

// UpdateWhere sets the columns of set in every row that From, To, Prefix, and Where select. Without
// these options, it changes all rows. set contains Go values as in Row, nil for NULL, or operands such as
// Add, and no key column.
//
// The update is one write batch: all rows change at one timestamp, or none. It takes memory for
// each row. If it is larger than a write batch may be, UpdateWhere changes nothing and returns
// ErrBatchTooLarge, unless InPieces allows several write batches.
//
// Other writers are not blocked. UpdateWhere reads the rows when it begins, and tests each of them
// again when it commits, with no other writer in between. It does not change a row for which the
// predicates are no longer true. It may miss a row for which they become true during the call.
// Earlier states stay readable as far as the table's history goes.
//
// A call that fails with InPieces has changed BulkResult.Rows rows. It may be resumed at
// BulkResult.Next or, without operands, repeated, since it sets the same values again.
//
// Errors: ErrNoColumn and ErrSchema for a column or predicate that does not fit the table;
// ErrBatchTooLarge; ErrConflict with Confirm; the errors of Batch.Commit and Table.Scan.
func (t *Table) UpdateWhere(ctx context.Context, set Row, opts ...BulkOption) (BulkResult, error) {
	res, err := t.changeWhere(ctx, OpUpdateIgnore, set, opts)
	if err != nil {
		err = t.bulkError("update", err)
	}
	return res, err
}

// DeleteWhere deletes every row that From, To, Prefix, and Where select. Without these options, it
// deletes all rows. In all else it is like UpdateWhere.
//
// Without Where, unless rows of the table expire or it has indexes, it does not make a list of the rows: one write
// batch deletes any number of them, in a time that hardly grows with their number, also with InPieces.
// Rows that are scattered among many deleted ones are the exception: if a list of their runs does not fit
// a write batch, they are deleted as with Where. Otherwise it misses no row: a row that another writer commits during the call either is deleted too or has
// a later timestamp. Other writers of the table wait during the commit.
func (t *Table) DeleteWhere(ctx context.Context, opts ...BulkOption) (BulkResult, error) {
	res, err := t.changeWhere(ctx, OpDeleteIgnore, nil, opts)
	if err != nil {
		err = t.bulkError("delete", err)
	}
	return res, err
}

// DeleteRange deletes the rows whose keys are not below from and below to. Each bound is given as
// in From, or is nil for no bound. In all else it is like DeleteWhere.
func (t *Table) DeleteRange(ctx context.Context, from, to any, opts ...BulkOption) (BulkResult, error) {
	return t.DeleteWhere(ctx, append([]BulkOption{From(from), To(to)}, opts...)...)
}

func (t *Table) bulkError(what string, err error) error {
	return callErr(fmt.Sprintf("%s rows of table %q", what, t.tab.Name()), err)
}

func collectBulk(opts []BulkOption) bulkOptions {
	o := bulkOptions{read: collect[ScanOption](nil)}
	for _, opt := range opts {
		if opt != nil {
			opt.bulk(&o)
		}
	}
	return o
}

// changeWhere commits an operation on each row that the options select.
func (t *Table) changeWhere(ctx context.Context, op Op, set Row, opts []BulkOption) (BulkResult, error) {
	if err := t.store.enterWriting(); err != nil {
		return BulkResult{}, err
	}
	defer t.store.leave()
	c := rowsChange{t: t, op: op, set: set, o: collectBulk(opts), b: t.store.newBulkBatch()}
	return c.run(ctx)
}

// rowsChange is a bulk call: it commits one operation on each row that a scan finds.
type rowsChange struct {
	t   *Table
	op  Op  // OpUpdateIgnore, OpDeleteIgnore, opPurge, opReindex
	set Row // of an update
	o   bulkOptions
	res BulkResult

	b     *Batch
	p     *tableOps      // of b
	at    mvcc.Timestamp // of the state that collect has read
	first []byte         // the key of b's first operation; nil if b is empty
	done  []byte         // the last key that is committed, or nil
}

func (c *rowsChange) run(ctx context.Context) (BulkResult, error) {
	err := c.check()
	if err == nil {
		err = c.o.ask(func() (int64, error) {
			o := c.o.read
			return c.t.count(ctx, &o)
		})
	}
	if err == nil && c.wholeRange() {
		if res, err := c.deleteRange(ctx); err != tablet.ErrByRow {
			return res, err
		}
	}
	for more := true; more && err == nil; {
		if more, err = c.collect(ctx); err == nil {
			err = c.commit(ctx)
		}
	}
	if err != nil && c.o.pieces > 0 {
		c.res.Next = c.next()
	}
	return c.res, err
}

// wholeRange reports whether the call deletes all rows in a range of keys, whatever their cells are.
func (c *rowsChange) wholeRange() bool {
	return c.op == OpDeleteIgnore && len(c.o.read.where) == 0 && !c.t.byRow()
}

// deleteRange deletes the rows in one write batch, without a list of them. If it returns ErrByRow, it has
// changed nothing.
func (c *rowsChange) deleteRange(ctx context.Context) (BulkResult, error) {
	s := c.t.store
	if c.p = c.b.opsOf(c.t); c.p == nil {
		return c.res, c.b.err
	}
	lower, upper, err := c.t.keyRange(new(bounds), c.p.schema, &c.o.read)
	if err == nil {
		err = ctx.Err()
	}
	begin := s.core.Counters.Now()
	if err == nil {
		c.b.bytes = int64(len(lower) + len(upper) + opOverhead)
		err = s.makeRoom(ctx, c.b)
	}
	if err != nil {
		return c.res, err
	}
	w, err := c.t.lockAll(ctx)
	if err != nil {
		return c.res, err
	}
	rows, err := w.DeleteRange(lower, upper, s.batchLimit())
	if err == nil && rows > 0 {
		err = c.o.exceeded(rows - 1)
	}
	if err != nil {
		w.Release()
		return c.res, err
	}
	ts, err := s.carryOut(ctx, c.b, []*tablet.Write{w}, !c.o.noSync)
	if err == nil && rows > 0 {
		c.res = BulkResult{Rows: rows, Timestamp: ts}
	}
	if err == nil {
		s.core.Counters.Committed(begin, c.b.changes, c.b.bytes, !c.o.noSync)
	}
	return c.res, err
}

// lockAll begins a write batch that holds the locks of all rows, when no exclusive transaction reads the
// table.
func (t *Table) lockAll(ctx context.Context) (*tablet.Write, error) {
	x, queued := t.store.core.Exclusive, false
	defer x.Pass(&queued)
	for {
		w, err := t.tab.PrepareAll()
		if err != nil || !x.Held(nil, t.tab.Number) {
			return w, err
		}
		w.Release()
		if err := x.Wait(ctx, nil, t.tab.Number, &queued); err != nil {
			return nil, err
		}
	}
}

// check reports the errors of an update that do not depend on the rows, before they are counted.
func (c *rowsChange) check() error {
	if c.op != OpUpdateIgnore {
		return nil
	}
	return c.update(c.t.tab.Schema().Schema, new(tablet.Op))
}

// collect fills the write batch with operations on the rows after c.done. more reports whether rows
// are left for which it had no room.
func (c *rowsChange) collect(ctx context.Context) (more bool, err error) {
	c.b.Reset()
	c.first = nil
	if c.p = c.b.opsOf(c.t); c.p == nil {
		return false, c.b.err
	}
	filter, err := c.t.filter(c.p.schema.Schema, c.o.read.where, false)
	if err != nil {
		return false, err
	}
	// The condition is tested under the row's lock: between the scan and the commit other writers
	// may change the row.
	op := tablet.Op{Kind: tablet.OpKind(c.op)}
	if c.op != opPurge && c.op != opReindex {
		op.Check = &tablet.Condition{Filter: filter}
	}
	if c.op == OpUpdateIgnore {
		if err = c.update(c.p.schema.Schema, &op); err != nil {
			return false, err
		}
	}
	limit := c.t.store.batchLimit()
	if c.o.pieces > 0 {
		limit = min(limit, c.o.pieces)
	}
	o := c.o.read
	o.columns, o.all = nil, false
	sc := &Scan{t: c.t, ctx: ctx, o: o, keys: true, after: c.done, expired: c.op == opPurge}
	it, err := sc.start()
	if err != nil {
		return false, err
	}
	defer it.Close()
	c.at = it.(*pinnedScan).view.ts
	for !more && sc.next(it) {
		rows, keys := it.Batch(), it.Keys()
		for i := rows.Selection.Next(0); i >= 0; i = rows.Selection.Next(i + 1) {
			size := int64(len(keys[i])+len(op.Body)+opOverhead) + op.Operands.Bytes()
			if more = c.b.bytes+size > limit && c.b.n > 0; more {
				break
			}
			if err := c.o.exceeded(c.res.Rows + int64(c.b.n)); err != nil {
				return false, err
			}
			c.add(op, keys[i], size)
		}
	}
	if err = it.Close(); err == nil {
		err = sc.interrupted()
	}
	if err == nil && more && c.o.pieces == 0 {
		err = fmt.Errorf("more than %d rows, %d bytes of a write batch, limit %d: use InPieces: %w", c.b.n, c.b.bytes,
			limit, fault.ErrBatchTooLarge)
	}
	return more, err
}

// add appends op for a key to the write batch.
func (c *rowsChange) add(op tablet.Op, key []byte, size int64) {
	p := c.p
	p.reserve(len(key))
	start := len(p.buf)
	p.buf = append(p.buf, key...)
	op.Index, op.Key = c.b.n, p.buf[start:len(p.buf):len(p.buf)]
	p.ops = append(p.ops, op)
	c.b.n++
	c.b.bytes += size
	if c.first == nil {
		c.first = append([]byte{}, key...) // not nil, even if the key is empty
	}
}

// update sets the change of one row, which is the same for all, in op.
func (c *rowsChange) update(s *schema.Schema, op *tablet.Op) error {
	list := change.AppendUpdateHeader(nil, change.Update)
	var operands []operand.Operand
	found := 0
	for i := range s.Columns {
		column := &s.Columns[i]
		v, ok := c.set[column.Name]
		if !ok {
			continue
		}
		found++
		var cell []byte
		var bound operand.Operand
		var err error
		o, computed := operandOf(v)
		if computed {
			bound, err = c.t.store.operandFor(column, o)
		} else {
			cell, err = bind.Append(nil, column, v)
		}
		switch {
		case err != nil:
		case i < s.Keys:
			err = errors.New("the column is in the key, which an update cannot change")
		case column.Immutable:
			err = tablet.ErrImmutable
		case computed:
			operands = append(operands, bound)
		case cell == nil && !column.Nullable:
			err = bind.ErrNull
		case len(cell) > c.t.store.opts.CellLimit:
			err = fault.CellTooLong(len(cell), c.t.store.opts.CellLimit)
		}
		if err != nil {
			return fmt.Errorf("column %q: %w: %w", column.Name, err, fault.ErrSchema)
		}
		if !computed {
			list = change.AppendColumn(list, column.ID, cell)
		}
	}
	if unknown := bind.UnknownColumn(s, c.set); unknown != nil {
		return unknown
	}
	if found == 0 {
		return fmt.Errorf("no column to set: %w", fault.ErrSchema)
	}
	op.Body, op.Operands = list, c.t.store.operands(operands)
	return nil
}

// commit commits the changes that collect has found. If it has found no row at all, commit commits
// an empty batch, so that the call returns when everything that it has read is durable.
func (c *rowsChange) commit(ctx context.Context) error {
	n := len(c.p.ops)
	if n == 0 && c.done != nil {
		return nil
	}
	var last []byte
	if n > 0 {
		last = append([]byte{}, c.p.ops[n-1].Key...)
	}
	var opts []CommitOption
	if c.o.noSync {
		opts = append(opts, NoSync)
	}
	ts, err := c.b.Commit(ctx, opts...)
	if err != nil {
		return err
	}
	if c.b.changes > 0 {
		c.res.Rows += int64(c.b.changes)
		c.res.Timestamp = ts
	}
	c.done, c.first = last, nil
	return nil
}

// next returns the key at which a failed call can be resumed, or nil if that is its beginning.
func (c *rowsChange) next() Key {
	encoded := c.first
	if encoded == nil {
		encoded = c.done
	}
	if encoded == nil || c.p == nil {
		return nil
	}
	tableSchema := c.t.tab.Schema()
	cells, err := tableSchema.Encoder.Decode(encoded)
	if err != nil {
		return nil
	}
	key := make(Key, len(cells))
	for i, cell := range cells {
		key[i] = bind.Value(&tableSchema.Schema.Columns[i], cell)
	}
	return key
}

// opPurge is an operation of this package that deletes expired rows. No read changes by it.
const opPurge = Op(tablet.Purge)

// opReindex is an operation of this package that adds the entries of a row to indexes.
const opReindex = Op(tablet.Reindex)
