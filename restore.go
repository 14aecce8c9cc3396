package oribi

import (
	"bytes"
	"context"
	"fmt"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/tablet"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// Truncate deletes all rows of the table at one timestamp: none of them exists from there on, and
// states before it stay readable as far as the table's history goes. A row that another writer
// commits during the call is deleted, too, or has a later timestamp.
//
// The deletes are one write batch, in memory and in the log, so a table of more rows than a write
// batch takes (about 80 bytes for each and its key, of Options.MemoryLimit / 4 or 256 MiB) is
// ErrBatchTooLarge, with nothing changed. With InPieces they are several write batches, as those of
// DeleteWhere, and rows that are inserted during the call may be left. DropTable and CreateTable
// take no time for each row, but end the table's history.
//
// Other writers of the table wait while the write batch is committed. If one of them has committed
// since the rows were read, they wait too while the rows are read again.
//
// Errors: ErrBatchTooLarge; those of Batch.Commit and Table.Scan.
func (t *Table) Truncate(ctx context.Context, opts ...TruncateOption) (BulkResult, error) {
	res, err := t.truncate(ctx, collectBulk(opts))
	if err != nil {
		err = fmt.Errorf("oribi: truncate table %q: %w", t.tab.Name(), err)
	}
	return res, err
}

func (t *Table) truncate(ctx context.Context, o bulkOptions) (BulkResult, error) {
	if err := t.store.enterWriting(); err != nil {
		return BulkResult{}, err
	}
	defer t.store.leave()
	c := rowsChange{t: t, op: OpDeleteIgnore, o: o, b: t.store.NewBatch()}
	if o.pieces {
		return c.run(ctx)
	}
	return t.replace(ctx, c.b, !o.noSync, func() (mvcc.Timestamp, error) {
		_, err := c.collect(ctx)
		return c.at, err
	})
}

// RestoreTo makes the table's content what it was at ts, in one write batch: rows that were deleted
// or changed since are as they were, rows that were inserted since are gone. The states in between
// stay readable as far as the table's history goes, so a restore can be taken back by another.
// Rows that did not change since ts are not touched.
//
// The columns are those that the table has now: a column that was dropped since does not come back,
// and one that was added has the values that a read as of ts returns for it.
//
// Other writers of the table wait while the write batch is committed. If one of them has committed
// since the difference to ts was read, they wait too while it is read again; what they commit later
// is not undone.
//
// Errors: ErrTooOld and ErrFuture for ts as of AsOf; ErrBatchTooLarge when more has changed since
// ts than a write batch takes, and nothing is changed then; those of Batch.Commit and Table.Diff.
func (t *Table) RestoreTo(ctx context.Context, ts mvcc.Timestamp) (BulkResult, error) {
	res, err := t.restore(ctx, ts)
	if err != nil {
		err = fmt.Errorf("oribi: restore table %q to %v: %w", t.tab.Name(), ts, err)
	}
	return res, err
}

func (t *Table) restore(ctx context.Context, ts mvcc.Timestamp) (BulkResult, error) {
	s := t.store
	if err := s.enterWriting(); err != nil {
		return BulkResult{}, err
	}
	defer s.leave()
	b := s.NewBatch()
	return t.replace(ctx, b, true, func() (mvcc.Timestamp, error) {
		b.Reset()
		at := max(ts, s.pub.Visible())
		for d, err := range t.Diff(ctx, ts, at) {
			if err != nil {
				return 0, err
			}
			if err := t.undo(b, &d); err != nil {
				return 0, err
			}
			if limit := s.batchLimit(); b.bytes > limit {
				return 0, fmt.Errorf("more than %d rows, %d bytes of a write batch, limit %d: %w", b.n, b.bytes, limit, fault.ErrBatchTooLarge)
			}
		}
		return at, nil
	})
}

// undo adds the operations that make a row what it was before a difference.
func (t *Table) undo(b *Batch, d *Difference) error {
	p := b.part(t)
	if p == nil {
		return b.err
	}
	s := p.shape.Schema
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
		b.Cells(OpDelete, t, before, nil)
	case d.Kind == Updated && !immutable:
		b.Cells(OpUpdate, t, before, set)
	case d.Kind == Updated: // only another row may have another value there
		b.Cells(OpDelete, t, before, nil)
		fallthrough
	default:
		b.Cells(OpUpsert, t, before, nil)
	}
	return b.Err()
}

// cellsOf returns cells, those of columns, in the order of a schema: a column that is not among
// them is NULL.
func cellsOf(s *schema.Schema, columns []schema.Column, cells [][]byte) [][]byte {
	out := make([][]byte, len(s.Columns))
	for i := range columns {
		if j := s.IndexID(columns[i].ID); j >= 0 && cells != nil {
			out[j] = cells[i]
		}
	}
	return out
}

func sameCell(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }

// replace commits b, which read fills by the table's whole content, or by a difference to it, and
// of which it returns the timestamp. No other write batch of the table comes between that state and
// b:
//
//	other writers   ── 7 ──── 8 ──┐ wait          ── 10 ──
//	read            at 7          │ at 8, again
//	b                             └─ 9 ──
//
// read is called a second time, with writers blocked, if there is something newer than the state
// that it has read: mostly there is not, and no one waits for a long read.
func (t *Table) replace(ctx context.Context, b *Batch, sync bool, read func() (mvcc.Timestamp, error)) (BulkResult, error) {
	s := t.store
	at, err := read()
	if err == nil {
		err = s.makeRoom(ctx, b) // which may flush, so it comes before the rows are locked
	}
	if err == nil {
		err = s.makeSpace(ctx, b)
	}
	if err != nil {
		return BulkResult{}, err
	}
	w, err := t.tab.PrepareAll()
	if err != nil {
		return BulkResult{}, err
	}
	if w.MaxTimestamp() > at {
		if err = s.pub.WaitLSN(ctx, s.lastLSN.Load()); err == nil {
			_, err = read()
		}
	}
	if err == nil {
		var ops []tablet.Op
		shape := t.tab.Shape()
		for _, p := range b.parts {
			ops, shape = p.ops, p.shape
		}
		err = w.Resolve(ops, shape)
	}
	if err != nil {
		w.Release()
		return BulkResult{}, err
	}
	ts, err := s.carryOut(ctx, b, []*tablet.Write{w}, sync)
	if err != nil {
		return BulkResult{}, err
	}
	return BulkResult{Rows: int64(b.changes), Timestamp: ts}, nil
}
