package oribi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/store"
	"github.com/oribi-db/oribi/internal/tablet"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/mvcc"
)

// UpdateOption is an option of Store.Update: Exclusive, or a CommitOption. A nil option has no effect.
type UpdateOption interface {
	update(updateOptions) updateOptions
}

type updateOptions struct {
	exclusive bool
	commit    []CommitOption
}

type exclusiveOption struct{}

func (exclusiveOption) update(o updateOptions) updateOptions {
	o.exclusive = true
	return o
}

// Exclusive makes the first attempt of Store.Update an exclusive one.
func Exclusive() UpdateOption { return exclusiveOption{} }

// CommitOption is an option of Batch.Commit, Batch.CommitPartial, Tx.Commit, and Store.Update:
// NoSync. A nil option has no effect.
type CommitOption interface {
	UpdateOption
	commit(commitOptions) commitOptions
}

type commitOptions struct{ noSync bool }

// noSync has no operator "|", so that NoSync cannot be combined like a flag.
type noSync bool

func (noSync) commit(o commitOptions) commitOptions {
	o.noSync = true
	return o
}

func (n noSync) update(o updateOptions) updateOptions {
	o.commit = append(o.commit, n)
	return o
}

// NoSync makes a commit return when the batch is visible and written to the operating system. The
// batch then survives a kill of the process, but not a power failure. Close makes it durable.
const NoSync noSync = true

// Commit carries out all operations of the batch at one timestamp, or none of them.
//
// It returns when the batch is visible and, unless NoSync is given, durable. If a row is refused,
// the error is a *RowError for the first such row, and nothing is changed. Commit returns this
// error only after the write batch that caused the refusal is visible. Canceling ctx has an effect
// until the batch enters the log, and none afterwards.
//
// A batch that changes nothing, for example an empty one, is committed like any other: it gets a
// timestamp, which is below those of all later batches.
//
// A batch whose Commit failed keeps its operations, and the same Commit may be tried again. A batch
// that was committed is empty. A second Commit of it returns ErrCommitted until a Reset or a new
// operation begins the next batch.
//
// Errors: ErrRow with ErrKeyExists, ErrNotFound, ErrConflict (If, UpdateIf, DeleteIf), or the
// reason why the row does not fit; ErrConflict alone if a column was given another type since the
// operations were added; ErrCommitted; ErrBatchTooLarge; ErrReadOnly; ErrNoSpace;
// ErrPoisoned; ErrClosed; ctx.Err().
func (b *Batch) Commit(ctx context.Context, opts ...CommitOption) (mvcc.Timestamp, error) {
	return b.commit(ctx, false, opts)
}

// CommitPartial is like Commit but leaves out refused rows instead of failing. The remaining
// operations are committed as one, and Refused returns the rows that were left out. A condition of
// the batch (If, IfAbsent) still refuses the whole batch; a condition of a row (UpdateIf, DeleteIf)
// refuses that row.
func (b *Batch) CommitPartial(ctx context.Context, opts ...CommitOption) (mvcc.Timestamp, error) {
	return b.commit(ctx, true, opts)
}

func (b *Batch) commit(ctx context.Context, partial bool, opts []CommitOption) (mvcc.Timestamp, error) {
	if b.committed {
		return 0, fmt.Errorf("oribi: commit: %w", ErrCommitted)
	}
	b.outcomes, b.assigned = nil, b.assigned[:0]
	b.results.reset()
	ts, err := b.tryCommit(ctx, partial, opts)
	if err != nil {
		b.assigned = b.assigned[:0]
		b.results.reset()
		return 0, callErr("", err)
	}
	b.Reset()
	b.committed = true
	return ts, nil
}

func (b *Batch) tryCommit(ctx context.Context, partial bool, opts []CommitOption) (mvcc.Timestamp, error) {
	s := b.store
	if s == nil {
		return 0, errNoBatchStore
	}
	if err := s.enterWriting(); err != nil {
		return 0, err
	}
	defer s.leave()
	begin := s.core.Counters.Now()
	var o commitOptions
	for _, opt := range opts {
		if opt != nil {
			o = opt.commit(o)
		}
	}
	if err := b.Err(); err != nil && !partial {
		return 0, err
	}
	if b.err != nil {
		return 0, b.err
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if limit := s.batchLimit(); b.bytes > limit {
		return 0, fmt.Errorf("oribi: write batch of %d bytes, limit %d: %w", b.bytes, limit, fault.ErrBatchTooLarge)
	}
	if err := s.makeRoom(ctx, b); err != nil {
		return 0, err
	}
	ts, err := s.commit(ctx, b, !o.noSync, partial)
	if err == nil {
		s.core.Counters.Committed(begin, b.changes, b.bytes, !o.noSync)
	}
	return ts, err
}

func (s *Store) batchLimit() int64 { return s.core.Options.BatchLimit() }

// commit carries out b in the steps resolve, log, apply, and publish. If a row by which it was
// decided expires in between, it is decided again.
func (s *Store) commit(ctx context.Context, b *Batch, sync, partial bool) (mvcc.Timestamp, error) {
	defer func() {
		b.asOf = 0
		s.core.Exclusive.Pass(&b.queued)
	}()
	for a := (attempts{}); ; {
		ts, err := s.commitOnce(ctx, b, sync, partial)
		switch {
		case err == errHeld:
			for _, p := range b.tables {
				if err := s.core.Exclusive.Wait(ctx, b.hold, p.table.tab.Number, &b.queued); err != nil {
					return 0, err
				}
			}
		case err == store.ErrExpired:
			b.asOf = a.next(ts)
		default:
			return ts, err
		}
	}
}

// errHeld ends an attempt to commit: an exclusive transaction reads one of the tables.
var errHeld = errors.New("a table is held")

func (s *Store) commitOnce(ctx context.Context, b *Batch, sync, partial bool) (mvcc.Timestamp, error) {
	writes, err := prepareAll(b, partial)
	b.writes = writes[:0]
	defer clear(writes)
	if err != nil {
		seen := s.core.LastLSN()
		for _, w := range writes {
			w.Release()
		}
		return 0, s.refusal(ctx, err, seen)
	}
	for _, p := range b.tables {
		if p.writes() && s.core.Exclusive.Held(b.hold, p.table.tab.Number) {
			for _, w := range writes {
				w.Release()
			}
			return 0, errHeld
		}
	}
	s.core.Exclusive.Pass(&b.queued)
	if partial {
		b.outcomes = slices.Clone(b.refused)
		for _, w := range writes {
			b.outcomes = append(b.outcomes, w.Refused...)
		}
		sortRefused(b.outcomes)
	}
	return s.carryOut(ctx, b, writes, sync)
}

// carryOut does the steps log, apply, and publish of a batch whose operations on each table are
// resolved. It releases writes, also if a panic passes through it.
func (s *Store) carryOut(ctx context.Context, b *Batch, writes []*tablet.Write, sync bool) (mvcc.Timestamp, error) {
	b.changes = 0
	b.entry = store.Commit{Writes: writes, Record: &b.record, Sync: sync, Nameless: b.unnamed,
		Check: b.check, AsOf: b.asOf, Observer: (*committing)(b)}
	return s.core.Writer.CarryOut(ctx, &b.entry)
}

// committing is a batch that observes its commit.
type committing Batch

// Applied notes the changes of the batch, the values of auto-incrementing columns, and the results of
// operands.
func (b *committing) Applied(w *tablet.Write) {
	b.changes += w.Changes()
	if !b.unnamed { // else nobody asks
		w.Results(b.results.add)
	}
	w.Assigned(func(row int, value int64) { b.assigned = append(b.assigned, Assigned{row, value}) })
}

// Released wakes background work if the batch makes some due.
func (b *committing) Released() {
	if len(b.assigned) > 1 {
		slices.SortFunc(b.assigned, func(x, y Assigned) int { return cmp.Compare(x.Row, y.Row) })
	}
	if len(b.results.list) > 1 {
		slices.SortStableFunc(b.results.list, func(x, y tablet.Result) int { return cmp.Compare(x.Index, y.Index) })
	}
	work := b.store.core.Background
	work.Appended()
	for _, p := range b.tables {
		work.Grown(p.table.entry)
	}
}

// refusal returns err after everything up to lsn has become visible. The batch that caused the
// refusal may still be waiting for the disk:
//
//	writer 1:  upserts k, waits for its sync                       visible
//	writer 2:                 inserts k: ErrKeyExists, reads k: not there?
//
// If that batch never becomes visible, because the store is poisoned, refusal returns the error of
// the wait instead.
func (s *Store) refusal(ctx context.Context, err error, lsn lsn.LSN) error {
	var row *RowError
	if errors.As(err, &row) {
		if err := s.core.WaitLSN(ctx, lsn); err != nil {
			return err
		}
	}
	return err
}

// prepareAll resolves the operations on each table, in the order of the tables' numbers. All
// batches use this order, so they cannot deadlock. The caller releases the writes, also after an
// error.
func prepareAll(b *Batch, partial bool) (_ []*tablet.Write, err error) {
	tables, writes := b.tables, b.writes[:0]
	if len(tables) > 1 {
		slices.SortFunc(tables, func(a, b *tableOps) int { return cmp.Compare(a.table.tab.Number, b.table.tab.Number) })
	}
	done := false
	defer func() {
		if !done { // a panic passes through
			for _, w := range writes {
				w.Release()
			}
		}
	}()
	var first error
	for _, p := range tables {
		if !p.writes() {
			continue
		}
		w, err := p.prepare(b, partial)
		if err != nil {
			first = earlier(first, err)
			continue
		}
		writes = append(writes, w)
	}
	done = true
	return writes, first
}

// prepare resolves the operations of a write batch on a table, and finds the rows of the ranges that it
// deletes, which come first.
func (p *tableOps) prepare(b *Batch, partial bool) (*tablet.Write, error) {
	if len(p.deleted) == 0 {
		return p.table.tab.Prepare(p.ops, p.schema, partial, b.asOf)
	}
	w, err := p.table.tab.PrepareAll()
	if err != nil {
		return nil, err
	}
	done := false
	defer func() {
		if !done {
			w.Release()
		}
	}()
	w.AsOf = b.asOf
	for _, r := range p.deleted {
		if _, err := w.DeleteRange(r.Lower, r.Upper, b.store.batchLimit()); err != nil {
			return nil, p.rangeError(err)
		}
	}
	if err := w.Resolve(p.ops, p.schema); err != nil {
		return nil, err
	}
	done = true
	return w, nil
}

// rangeError returns the error of a transaction that cannot delete a range.
func (p *tableOps) rangeError(err error) error {
	switch {
	case !errors.Is(err, tablet.ErrByRow):
		return err
	case p.table.byRow():
		return fmt.Errorf("table %q: rows expire, or there is an index, since the transaction has deleted a range: %w", p.table.tab.Name(), errTxConflict)
	}
	return fmt.Errorf("table %q: %w: %w", p.table.tab.Name(), err, fault.ErrBatchTooLarge)
}

// earlier returns the error that concerns the earlier row of the batch.
func earlier(a, b error) error {
	var ra, rb *RowError
	switch {
	case a == nil:
		return b
	case errors.As(a, &ra) && errors.As(b, &rb) && rb.Row < ra.Row:
		return b
	}
	return a
}
