package oribi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/record"
	"github.com/oribi-db/oribi/internal/tablet"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/mvcc"
)

// CommitOption is an option of Batch.Commit: NoSync, AllowPartial. A nil option has no effect.
type CommitOption interface {
	commit(commitOptions) commitOptions
}

type commitOptions struct {
	noSync, partial bool
}

// Each option is of a type that has no operators, so that options cannot be combined by "|".
type (
	noSync       bool
	allowPartial bool
)

func (noSync) commit(o commitOptions) commitOptions {
	o.noSync = true
	return o
}

func (allowPartial) commit(o commitOptions) commitOptions {
	o.partial = true
	return o
}

// NoSync makes Commit return when the batch is visible and written to the operating system. The
// batch then survives a kill of the process, but not a power failure. Close makes it durable.
const NoSync noSync = true

// AllowPartial makes Commit leave out refused rows instead of failing. The remaining operations are
// committed as one, and Refused returns the rows that were left out. A condition of the batch (If,
// IfAbsent) still refuses the whole batch; a condition of a row (UpdateIf, DeleteIf) refuses that
// row.
const AllowPartial allowPartial = true

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
	if b.committed {
		return 0, fmt.Errorf("oribi: commit: %w", ErrCommitted)
	}
	b.outcomes, b.assigned = nil, b.assigned[:0]
	ts, err := b.tryCommit(ctx, opts)
	if err != nil {
		b.assigned = b.assigned[:0]
		return 0, callErr("", err)
	}
	b.Reset()
	b.committed = true
	return ts, nil
}

func (b *Batch) tryCommit(ctx context.Context, opts []CommitOption) (mvcc.Timestamp, error) {
	s := b.store
	if s == nil {
		return 0, errNoBatchStore
	}
	if err := s.enterWriting(); err != nil {
		return 0, err
	}
	defer s.leave()
	begin := s.counters.now()
	var o commitOptions
	for _, opt := range opts {
		if opt != nil {
			o = opt.commit(o)
		}
	}
	if err := b.Err(); err != nil && !o.partial {
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
	if err := s.makeSpace(ctx, b); err != nil {
		return 0, err
	}
	ts, err := s.commit(ctx, b, !o.noSync, o.partial)
	if err == nil {
		s.counters.committed(begin, b.changes, b.bytes, !o.noSync)
	}
	return ts, err
}

const maxBatchBytes = 256 << 20

func (s *Store) batchLimit() int64 { return min(maxBatchBytes, s.opts.MemoryLimit/4) }

// commit carries out b in the steps resolve, log, apply, and publish. If a row by which it was
// decided expires in between, it is decided again.
func (s *Store) commit(ctx context.Context, b *Batch, sync, partial bool) (mvcc.Timestamp, error) {
	defer func() { b.asOf = 0 }()
	for a := (attempts{}); ; {
		ts, err := s.commitOnce(ctx, b, sync, partial)
		if err != errExpired {
			return ts, err
		}
		b.asOf = a.next(ts)
	}
}

func (s *Store) commitOnce(ctx context.Context, b *Batch, sync, partial bool) (mvcc.Timestamp, error) {
	writes, err := prepareAll(b, partial)
	b.writes = writes[:0]
	defer clear(writes)
	if err != nil {
		seen := s.lastLSN.Load()
		for _, w := range writes {
			w.Release()
		}
		return 0, s.refusal(ctx, err, seen)
	}
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
	locked, halfDone := true, false
	release := func() {
		if locked {
			locked = false
			for _, w := range writes {
				w.Release()
			}
		}
	}
	defer func() {
		if halfDone { // memory does not show what the log contains, and later batches would wait for it
			s.poison(errPanic)
		}
		release()
	}()
	b.changes = 0
	rec := &b.record
	rec.Begin(0)
	for _, w := range writes {
		w.Record(rec)
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	c := changes{writes: writes, check: b.check, asOf: b.asOf}
	if rec.Len() == 0 && b.unnamed {
		return s.commitNothing(ctx, sync, c, release)
	}
	if rec.Len() == 0 {
		rec.SetEmpty()
	}
	ts, lsn, op, err := s.append(rec, sync, c)
	if err != nil {
		return ts, err
	}
	halfDone = true
	for _, w := range writes {
		w.Apply(ts, lsn)
		b.changes += w.Changes()
		w.Assigned(func(row int, value int64) { b.assigned = append(b.assigned, Assigned{row, value}) })
	}
	if len(b.assigned) > 1 {
		slices.SortFunc(b.assigned, func(x, y Assigned) int { return cmp.Compare(x.Row, y.Row) })
	}
	release()
	s.background.check(b.tables)
	if sync {
		op.Applied()
		halfDone = false
		if err := s.log.Sync(lsn); err != nil {
			s.poison(err)
			return 0, err
		}
	} else {
		visible := op.Ready()
		halfDone = false
		if visible {
			return ts, nil
		}
	}
	// The batch is in the log: from here on ctx has no effect.
	return ts, s.pub.WaitTimestamp(context.Background(), ts)
}

// errPanic poisons a store in which a panic has ended a commit that was half done.
var errPanic = errors.New("a panic ended a commit that had begun to change the store")

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
		if err := s.pub.WaitLSN(ctx, lsn); err != nil {
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
		if len(p.ops) == 0 {
			continue
		}
		w, err := p.table.tab.Prepare(p.ops, p.schema, partial, b.asOf)
		if err != nil {
			first = earlier(first, err)
			continue
		}
		writes = append(writes, w)
	}
	done = true
	return writes, first
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

// changes is what transactions have to do with a batch that enters the log.
type changes struct {
	writes []*tablet.Write // the keys that it changes
	table  uint32          // instead: a table of which it changes keys that are not listed; 0: none

	settles bool // it settles what was announced, see package record

	// check returns an error if something that a transaction has read has changed before ts; nil:
	// of no transaction.
	check func(ts mvcc.Timestamp) error
	asOf  mvcc.Timestamp // as of which it was decided, if that is ahead; else 0
}

// errExpired ends an attempt to commit: a row by which the batch was decided has expired.
var errExpired = errors.New("a row has expired")

// timestamp assigns the batch its timestamp, as of which it was decided correctly. With errExpired,
// it was not. The caller holds appendMu.
func (s *Store) timestamp(c *changes) (ts mvcc.Timestamp, err error) {
	if c.asOf > 0 {
		if err := s.clock.Advance(c.asOf - 1); err != nil {
			return 0, err
		}
	}
	if ts, err = s.clock.Now(); err != nil {
		return 0, err
	}
	if c.check != nil {
		if err := c.check(ts); err != nil {
			return 0, err
		}
	}
	for _, w := range c.writes {
		if w.Expired(ts) {
			return ts, errExpired
		}
	}
	return ts, nil
}

// append assigns a timestamp and an LSN to a batch and appends its record to the log. If later is
// set, the caller syncs the log next, so the record need not be written to the operating system
// before.
func (s *Store) append(rec *record.Writer, later bool, c changes) (ts mvcc.Timestamp, at lsn.LSN, op mvcc.Op, err error) {
	s.appendMu.Lock()
	defer s.appendMu.Unlock()
	if err := s.poisoned(); err != nil {
		return 0, 0, op, err
	}
	if ts, err = s.timestamp(&c); err != nil {
		return ts, 0, op, err
	}
	rec.SetTimestamp(ts)
	confirmed := s.blocks.ConfirmedEpoch()
	switch {
	case c.settles:
		rec.Require(max(confirmed, 1))
	case rec.Announces(): // see package record; the next record has the epoch
		confirmed = s.loggedEpoch
	case confirmed > s.loggedEpoch:
		rec.Require(confirmed)
	}
	write := s.log.Append
	if later {
		write = s.log.AppendLater
	}
	if at, err = write(rec.Bytes()); err != nil {
		if !isNoSpace(err) {
			s.poison(err)
		}
		return 0, 0, op, err
	}
	s.loggedEpoch = confirmed
	if s.recent.Recording() {
		s.noteChanges(ts, c)
	}
	op = s.pub.Start(at, ts)
	s.lastLSN.Store(at)
	return ts, at, op, nil
}

// now returns a timestamp that no batch has, and the LSN of the last batch with a lower one. c is
// what would be committed at it, which changes nothing.
func (s *Store) now(c changes) (ts mvcc.Timestamp, last lsn.LSN, err error) {
	s.appendMu.Lock()
	defer s.appendMu.Unlock()
	ts, err = s.timestamp(&c)
	return ts, s.lastLSN.Load(), err
}

// commitNothing takes the place of the commit of a batch that changes nothing and whose timestamp no
// caller gets: it returns when everything before it is visible and, if sync is set, durable. It
// calls release, which unlocks the batch's rows, after it has taken a timestamp, so that what the
// batch found is true as of it.
func (s *Store) commitNothing(ctx context.Context, sync bool, c changes, release func()) (mvcc.Timestamp, error) {
	ts, last, err := s.now(c)
	release()
	if err != nil {
		return ts, err
	}
	if sync {
		if err := s.log.Sync(last); err != nil {
			s.poison(err)
			return 0, err
		}
	}
	return ts, s.pub.WaitLSN(ctx, last)
}

// logTimestamp makes sure that later batches get timestamps above ts, also after a kill of the
// process: unless a record of the log has a timestamp of at least ts, it appends one. Within this
// process the clock, which has passed ts, ensures it.
func (s *Store) logTimestamp(ts mvcc.Timestamp) error {
	if ts <= s.pub.Started() {
		return nil
	}
	var rec record.Writer
	rec.Begin(0)
	rec.SetEmpty()
	_, _, op, err := s.append(&rec, false, changes{})
	if err == nil {
		op.Ready()
	}
	return err
}
