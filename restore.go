package oribi

import (
	"context"
	"fmt"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/store"
	"github.com/oribi-db/oribi/internal/tablet"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// Truncate deletes all rows of the table, or those that From, To, Prefix, and Where select, at one
// timestamp. Earlier states stay readable as far as the table's history goes. It misses no row: one
// that another writer commits during the call either is deleted too or has a later timestamp.
//
// Without Where, and unless rows of the table expire, it is DeleteWhere. Otherwise the deletes are one
// write batch, in memory and in the log. If there are more rows than a write batch takes, Truncate
// changes nothing and returns ErrBatchTooLarge; a row takes about 80 bytes and its key, and a write
// batch at most Options.MemoryLimit / 4 or 256 MiB, whichever is less. With InPieces, Truncate commits
// several write batches, and may leave rows that are inserted during the call. DropTable and
// CreateTable end the table's history.
//
// Other writers of the table wait while the write batch is committed. If one of them has committed
// since the rows were read, they also wait while the rows are read again.
//
// Errors: ErrBatchTooLarge; the errors of Batch.Commit and Table.Scan.
func (t *Table) Truncate(ctx context.Context, opts ...BulkOption) (BulkResult, error) {
	res, err := t.truncate(ctx, collectBulk(opts))
	if err != nil {
		err = callErr(fmt.Sprintf("truncate table %q", t.tab.Name()), err)
	}
	return res, err
}

func (t *Table) truncate(ctx context.Context, o bulkOptions) (BulkResult, error) {
	if err := t.store.enterWriting(); err != nil {
		return BulkResult{}, err
	}
	defer t.store.leave()
	c := rowsChange{t: t, op: OpDeleteIgnore, o: o, b: t.store.newBulkBatch()}
	if o.pieces > 0 {
		return c.run(ctx)
	}
	if err := c.o.ask(func() (int64, error) { return t.count(ctx, &c.o.read) }); err != nil {
		return BulkResult{}, err
	}
	if c.wholeRange() {
		if res, err := c.deleteRange(ctx); err != tablet.ErrByRow {
			return res, err
		}
	}
	return t.replace(ctx, c.b, !o.noSync, func() (mvcc.Timestamp, error) {
		_, err := c.collect(ctx)
		return c.at, err
	})
}

// RestoreTo changes the table's content back to its state at ts, in one write batch: it undoes the
// changes and deletes since ts, and deletes the rows inserted since. Rows that did not change are
// not touched. From, To, Prefix, and Where select the rows to restore: those for which the
// predicates are true now, or were true at ts. The states in between stay readable as far as the
// table's history goes, so another RestoreTo can undo this one.
//
// The table keeps its present columns. A column that was dropped since ts does not return, and a
// column that was added since gets the values that a read as of ts returns for it. Rows that have
// expired since ts stay absent.
//
// Other writers of the table wait while the write batch is committed. If one of them has committed
// since the difference to ts was read, they also wait while it is read again. What they commit
// afterwards is not undone.
//
// With InPieces, RestoreTo commits several write batches, one after the other in key order. What
// other writers commit to keys that it has passed is not undone. A call that fails has restored
// BulkResult.Rows rows; another one restores the others.
//
// Errors: ErrTooOld and ErrFuture as for AsOf(ts); ErrBatchTooLarge if more has changed since ts
// than a write batch takes, and then nothing is changed; ErrConflict with Confirm; the errors of
// Batch.Commit and Table.Diff.
func (t *Table) RestoreTo(ctx context.Context, ts mvcc.Timestamp, opts ...BulkOption) (BulkResult, error) {
	res, err := t.restore(ctx, ts, collectBulk(opts))
	if err != nil {
		err = callErr(fmt.Sprintf("restore table %q to %v", t.tab.Name(), ts), err)
	}
	return res, err
}

func (t *Table) restore(ctx context.Context, ts mvcc.Timestamp, o bulkOptions) (BulkResult, error) {
	s := t.store
	if err := s.enterWriting(); err != nil {
		return BulkResult{}, err
	}
	defer s.leave()
	r := restoring{t: t, ts: ts, o: o, b: s.newBulkBatch()}
	err := r.o.ask(func() (n int64, err error) {
		_, err = r.differences(ctx, func(*Difference) (bool, error) { n++; return true, nil })
		return n, err
	})
	for more := true; more && err == nil; {
		more, err = r.piece(ctx)
	}
	return r.res, err
}

// restoring is a call of RestoreTo.
type restoring struct {
	t    *Table
	ts   mvcc.Timestamp
	o    bulkOptions
	b    *Batch
	res  BulkResult
	done []byte // the last key that is restored, encoded, or nil
}

// differences calls each with the rows after done that restoring changes, until it returns false.
// It returns the timestamp of the state that it has compared with.
func (r *restoring) differences(
	ctx context.Context, each func(*Difference) (bool, error),
) (at mvcc.Timestamp, err error) {
	at = max(r.ts, r.t.store.core.NewestOf(r.t.tab))
	failed := r.t.diff(ctx, r.ts, at, r.o.read, r.done, func(d Difference, _ error) bool {
		if d.Kind == Deleted && r.t.expiredAt(at, d.Columns, d.Before) {
			return true // it would be absent again
		}
		var more bool
		more, err = each(&d)
		return more && err == nil
	})
	if err == nil {
		err = failed
	}
	return at, err
}

// piece restores rows after done in one write batch: all of them, or as many as it takes. more
// reports whether there are others.
func (r *restoring) piece(ctx context.Context) (more bool, err error) {
	limit := r.t.store.batchLimit()
	if r.o.pieces > 0 {
		limit = min(limit, r.o.pieces)
	}
	rows, last := int64(0), r.done
	res, err := r.t.replace(ctx, r.b, !r.o.noSync, func() (mvcc.Timestamp, error) {
		r.b.Reset()
		rows, more, last = 0, false, r.done
		return r.differences(ctx, func(d *Difference) (bool, error) {
			if more = r.b.bytes+undoBytes(d) > limit && rows > 0; more && r.o.pieces > 0 {
				return false, nil
			} else if more {
				return false, fmt.Errorf("more than %d rows, %d bytes of a write batch, limit %d: use InPieces: %w",
					r.b.n, r.b.bytes, limit, fault.ErrBatchTooLarge)
			}
			if err := r.o.exceeded(r.res.Rows + rows); err != nil {
				return false, err
			}
			rows++ // with one or two operations
			last = append([]byte{}, d.encoded...)
			return true, r.t.undo(r.b, d)
		})
	})
	if err != nil {
		return false, err
	}
	r.res.Rows += rows
	if res.Timestamp > 0 {
		r.res.Timestamp = res.Timestamp
	}
	r.done = last
	return more, nil
}

// undoBytes returns how many bytes the operations of undo take at most in a write batch.
func undoBytes(d *Difference) int64 {
	n := len(d.encoded) + opOverhead
	for _, cells := range [][][]byte{d.Before, d.Key} {
		for _, cell := range cells {
			n += len(cell) + opOverhead/8 // a column's ID and length
		}
	}
	return int64(2 * n)
}

// undo adds the operations that change a row back to its state before a difference.
func (t *Table) undo(b *Batch, d *Difference) error {
	p := b.opsOf(t)
	if p == nil {
		return b.err
	}
	s := p.schema.Schema
	before, set := cellsOf(s, d.Columns, d.Before), make([]bool, len(s.Columns))
	if d.Kind == Inserted {
		before = append(before[:0], d.Key...)
		before = before[:len(s.Columns)]
	}
	immutable := false
	if d.Kind == Updated {
		after := cellsOf(s, d.Columns, d.After)
		for i := range s.Columns {
			differs := !sameCell(before[i], after[i])
			set[i] = differs || i < s.Keys
			immutable = immutable || differs && s.Columns[i].Immutable
		}
	}
	switch {
	case d.Kind == Inserted:
		b.Cells(OpDeleteIgnore, t, before, nil)
	case d.Kind == Updated && !immutable:
		b.Cells(OpUpdateIgnore, t, before, set)
	case d.Kind == Updated: // only another row may have another value there
		b.Cells(OpDeleteIgnore, t, before, nil)
		fallthrough
	default:
		b.Cells(OpUpsert, t, before, nil)
	}
	return b.Err()
}

// cellsOf returns cells, which belong to columns, in the order of a schema. A column of the schema
// that is not in columns is NULL.
func cellsOf(s *schema.Schema, columns []schema.Column, cells [][]byte) [][]byte {
	out := make([][]byte, len(s.Columns))
	for i := range columns {
		if j := s.IndexID(columns[i].ID); j >= 0 && cells != nil {
			out[j] = cells[i]
		}
	}
	return out
}

// replace commits b. read fills b from the table's whole content, or from a difference to it, and
// returns the timestamp of that state. No other write batch of the table comes between that state
// and b:
//
//	other writers   ── 7 ──── 8 ──┐ wait          ── 10 ──
//	read            at 7          │ at 8, again
//	b                             └─ 9 ──
//
// If the table has changed since the state that read returned, or its rows expire, replace calls
// read again with writers blocked. In most cases it has not, and no writer waits for a long read.
func (t *Table) replace(
	ctx context.Context, b *Batch, sync bool, read func() (mvcc.Timestamp, error),
) (BulkResult, error) {
	defer func() { b.asOf = 0 }()
	for a := (attempts{}); ; {
		res, err := t.replaceOnce(ctx, b, sync, read)
		if err != store.ErrExpired {
			return res, err
		}
		b.asOf = a.next(res.Timestamp)
	}
}

// replaceOnce is replace unless a row that was read has expired before the commit: then it returns
// store.ErrExpired, and the timestamp at which it failed. The operations on rows that have expired
// by then have no effect.
func (t *Table) replaceOnce(
	ctx context.Context, b *Batch, sync bool, read func() (mvcc.Timestamp, error),
) (BulkResult, error) {
	s := t.store
	at, err := read()
	begin := s.core.Counters.Now() // as in the other bulk calls, the commit begins when the rows are known
	if err == nil {
		err = s.makeRoom(ctx, b) // which may flush, so it comes before the rows are locked
	}
	if err != nil {
		return BulkResult{}, err
	}
	w, err := t.lockAll(ctx)
	if err != nil {
		return BulkResult{}, err
	}
	defer func() {
		if w != nil {
			w.Release()
		}
	}()
	if w.MaxTimestamp() > at || store.Expires(t.tab) {
		if err = s.core.WaitLSN(ctx, s.core.LastLSN()); err == nil {
			_, err = read()
		}
	}
	if err == nil {
		var ops []tablet.Op
		tableSchema := t.tab.Schema()
		for _, p := range b.tables {
			ops, tableSchema = p.ops, p.schema
		}
		w.AsOf = b.asOf
		err = w.Resolve(ops, tableSchema)
	}
	if err != nil {
		return BulkResult{}, err
	}
	writes := []*tablet.Write{w}
	w = nil // carryOut releases it
	ts, err := s.carryOut(ctx, b, writes, sync)
	if err != nil {
		return BulkResult{Timestamp: ts}, err
	}
	s.core.Counters.Committed(begin, b.changes, b.bytes, sync)
	res := BulkResult{Rows: int64(b.changes)}
	if res.Rows > 0 {
		res.Timestamp = ts
	}
	return res, nil
}
