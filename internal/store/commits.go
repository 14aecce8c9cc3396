package store

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"

	"github.com/oribi-db/oribi/blockmanager"
	"github.com/oribi-db/oribi/internal/conflict"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/record"
	"github.com/oribi-db/oribi/internal/tablet"
	"github.com/oribi-db/oribi/internal/wal"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/mvcc"
)

// Commits gives write batches their timestamps and makes them durable and visible: it is the log of
// a writer, with the critical section in which a batch enters it. It is safe for concurrent use.
type Commits struct {
	*Timeline
	Log    *wal.Log
	Gate   *Gate // of changes outside the log
	blocks *blockmanager.Manager
	logger *slog.Logger

	promised atomic.Uint64 // highest timestamp without a batch that later batches must be above

	// The rest is guarded by Timeline.mu.

	recent *conflict.Log
	// loggedEpoch is the newest confirmed epoch that a record of this session contains. Replay
	// checks the metadata against it.
	loggedEpoch uint64
}

// NewCommits returns the commits of a writer. recentBytes bounds the memory for the keys of recent
// write batches.
func NewCommits(t *Timeline, log *wal.Log, blocks *blockmanager.Manager, logger *slog.Logger,
	recentBytes int64) *Commits {
	return &Commits{Timeline: t, Log: log, Gate: newGate(), blocks: blocks, logger: logger,
		recent: conflict.NewLog(recentBytes)}
}

// Poisoned returns the error that ended all writing, or nil.
func (c *Commits) Poisoned() error {
	if err := c.Log.Poisoned(); err != nil {
		return err
	}
	return c.blocks.Poisoned()
}

// Poison ends all writing. The first cause is kept.
func (c *Commits) Poison(cause error) {
	c.logger.Error("store is read-only from here on", slog.Any("cause", cause))
	c.Log.Poison(cause)
	c.blocks.Poison(cause)
	c.Publisher.Poison(cause)
}

// ErrPanic is the cause that poisons a store in which a panic has ended a change that was half done.
var ErrPanic = errors.New("a panic ended a commit that had begun to change the store")

// ErrExpired ends an attempt to commit: a row by which the batch was decided has expired at the
// timestamp that CarryOut returns with it.
var ErrExpired = errors.New("a row has expired")

// Commit is a write batch whose operations on each table are resolved.
type Commit struct {
	Writes []*tablet.Write
	Record *record.Writer // buffer for the batch's record

	Sync bool // CarryOut returns when the batch is durable
	// Nameless says that no caller gets the timestamp. Then a batch that changes nothing need not be
	// in the log.
	Nameless bool

	// Check, unless it is nil, returns an error if something that a transaction has read has
	// changed before ts. It is called in the critical section.
	Check func(ts mvcc.Timestamp) error
	AsOf  mvcc.Timestamp // as of which the batch was decided, if that is ahead of the clock; else 0

	Observer Observer
}

// Observer is told how a commit proceeds.
type Observer interface {
	// Applied is called for each of the writes after it was applied to memory.
	Applied(w *tablet.Write)
	// Released is called when the rows are unlocked, and the batch is not durable yet.
	Released()
}

// CarryOut does the steps log, apply, and publish of a batch. It returns when the batch is visible.
// It releases the writes, also if a panic passes through it. Errors: ErrExpired; the errors of
// b.Check; ErrNoSpace; ErrPoisoned; ctx.Err(), until the batch enters the log.
func (c *Commits) CarryOut(ctx context.Context, b *Commit) (mvcc.Timestamp, error) {
	locked, halfDone := true, false
	release := func() {
		if locked {
			locked = false
			for _, w := range b.Writes {
				w.Release()
			}
		}
	}
	defer func() {
		if halfDone { // memory does not show what the log contains, and later batches would wait for it
			c.Poison(ErrPanic)
		}
		release()
	}()
	rec := b.Record
	rec.Begin(0)
	for _, w := range b.Writes {
		w.RecordRanges(rec)
	}
	for _, w := range b.Writes {
		w.Record(rec)
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if rec.Len() == 0 && b.Nameless {
		return c.commitNothing(ctx, b, release)
	}
	if rec.Len() == 0 {
		rec.SetEmpty()
	}
	ts, lsn, op, err := c.appendBatch(b)
	if err != nil {
		return ts, err
	}
	halfDone = true
	for _, w := range b.Writes {
		w.Apply(ts, lsn)
		b.Observer.Applied(w)
	}
	release()
	b.Observer.Released()
	if b.Sync {
		op.Applied()
		halfDone = false
		if err := c.Log.Sync(lsn); err != nil {
			c.Poison(err)
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
	return ts, c.WaitTimestamp(context.Background(), ts)
}

// commitNothing takes the place of the commit of a batch that changes nothing and whose timestamp no
// caller gets: it returns when everything before it is visible and, if b.Sync is set, durable. It
// calls release, which unlocks the batch's rows, after it has taken a timestamp, so that what the
// batch found is true as of it.
func (c *Commits) commitNothing(ctx context.Context, b *Commit, release func()) (mvcc.Timestamp, error) {
	c.mu.Lock()
	ts, err := c.timestamp(b)
	last := c.LastLSN()
	c.mu.Unlock()
	release()
	if err != nil {
		return ts, err
	}
	if b.Sync {
		if err := c.Log.Sync(last); err != nil {
			c.Poison(err)
			return 0, err
		}
	}
	return ts, c.WaitLSN(ctx, last)
}

// timestamp assigns the batch its timestamp, as of which it was decided correctly. With ErrExpired,
// it was not. The caller holds mu.
func (c *Commits) timestamp(b *Commit) (ts mvcc.Timestamp, err error) {
	if b.AsOf > 0 {
		if err := c.Clock.Advance(b.AsOf - 1); err != nil {
			return 0, err
		}
	}
	if ts, err = c.Clock.Now(); err != nil {
		return 0, err
	}
	if b.Check != nil {
		if err := b.Check(ts); err != nil {
			return 0, err
		}
	}
	for _, w := range b.Writes {
		if w.Expired(ts) {
			return ts, ErrExpired
		}
	}
	return ts, nil
}

// appendBatch assigns a timestamp and an LSN to a batch and appends its record to the log.
func (c *Commits) appendBatch(b *Commit) (ts mvcc.Timestamp, at lsn.LSN, op mvcc.Op, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.Poisoned(); err != nil {
		return 0, 0, op, err
	}
	if ts, err = c.timestamp(b); err != nil {
		return ts, 0, op, err
	}
	if at, op, err = c.append(b.Record, ts, c.requireConfirmed(b.Record), b.Sync); err == nil && c.recent.Recording() {
		c.noteWrites(ts, b.Writes)
	}
	return ts, at, op, err
}

// requireConfirmed makes a record require the confirmed metadata, unless one before it does, and
// returns the epoch that the log has required then.
func (c *Commits) requireConfirmed(rec *record.Writer) uint64 {
	confirmed := c.blocks.ConfirmedEpoch()
	if confirmed > c.loggedEpoch {
		rec.Require(confirmed)
	}
	return confirmed
}

// append appends a record to the log and starts the publication of its batch. required is the epoch
// that the log has required then. If later is set, the caller syncs the log next, so the record need
// not be written to the operating system before. The caller holds mu.
func (c *Commits) append(rec *record.Writer, ts mvcc.Timestamp, required uint64,
	later bool) (at lsn.LSN, op mvcc.Op, err error) {
	rec.SetTimestamp(ts)
	write := c.Log.Append
	if later {
		write = c.Log.AppendLater
	}
	if at, err = write(rec.Bytes()); err != nil {
		if !errors.Is(err, fault.ErrNoSpace) {
			c.Poison(err)
		}
		return 0, op, err
	}
	c.loggedEpoch = required
	op = c.Start(at, ts)
	c.last.Store(at)
	return at, op, nil
}

// noteWrites records which keys a batch changes, for transactions and subscriptions. The caller
// holds mu.
func (c *Commits) noteWrites(ts mvcc.Timestamp, writes []*tablet.Write) {
	n := 0
	for _, w := range writes {
		n += w.Changes()
		for x := range w.Indexes {
			n += x.Changes()
		}
	}
	list := c.recent.Room(n)
	if !c.recent.Recording() {
		return
	}
	for _, w := range writes {
		c.noteWrite(ts, w, list)
		for x := range w.Indexes {
			c.noteWrite(ts, x, list)
		}
	}
}

// noteWrite records which keys of a table a batch changes, or only that it changes some.
func (c *Commits) noteWrite(ts mvcc.Timestamp, w *tablet.Write, list bool) {
	if !list || w.Ranges() {
		c.recent.AddUnknown(ts, w.Table())
		return
	}
	for key := range w.Keys {
		c.recent.Add(ts, w.Table(), key)
	}
}

// Announce appends a record that announces a change of a table outside the log, as of an ingest, and
// syncs it. publish, which the caller calls once, makes the change visible. Until then no image
// begins. The change may be of any keys of the table; table is 0 if the record changes none. The
// record keeps the timestamp from being assigned again until the metadata does.
func (c *Commits) Announce(rec *record.Writer,
	table uint32) (ts mvcc.Timestamp, at lsn.LSN, publish func(), err error) {
	c.Gate.begin(table)
	synced := false
	defer func() {
		if !synced {
			c.Gate.end(table, c.AbortInDoubt)
		}
	}()
	ts, at, op, err := c.appendAnnouncement(rec, table)
	if err != nil {
		return 0, 0, nil, err
	}
	defer func() {
		if !synced {
			op.Ready()
		}
	}()
	if err := c.Log.Sync(at); err != nil {
		c.Poison(err)
		return 0, 0, nil, err
	}
	synced = true
	return ts, at, func() { op.Ready(); c.Gate.end(table, c.AbortInDoubt) }, nil
}

func (c *Commits) appendAnnouncement(rec *record.Writer,
	table uint32) (ts mvcc.Timestamp, at lsn.LSN, op mvcc.Op, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.Poisoned(); err != nil {
		return 0, 0, op, err
	}
	if ts, err = c.Clock.Now(); err != nil {
		return 0, 0, op, err
	}
	required := c.loggedEpoch // see package record; the next record has the epoch
	if !rec.Announces() {
		required = c.requireConfirmed(rec)
	}
	if at, op, err = c.append(rec, ts, required, true); err == nil && table != 0 && c.recent.Recording() {
		c.recent.AddUnknown(ts, table)
	}
	return ts, at, op, err
}

// AbortInDoubt appends a record which says that announced changes which are not in the metadata
// will never come, if there may be such changes. No announced change is in flight.
func (c *Commits) AbortInDoubt() error {
	if c.Poisoned() != nil {
		return nil
	}
	var rec record.Writer
	rec.Begin(0)
	return c.appendAlone(&rec, func() uint64 {
		confirmed := c.blocks.ConfirmedEpoch()
		rec.Require(max(confirmed, 1))
		return confirmed
	})
}

// LogTimestamp makes sure that later batches get timestamps above ts, also after a kill of the
// process: unless a record of the log has a timestamp of at least ts, it appends one. Within this
// process the clock, which has passed ts, ensures it.
func (c *Commits) LogTimestamp(ts mvcc.Timestamp) error {
	if ts <= c.Started() {
		return nil
	}
	var rec record.Writer
	rec.Begin(0)
	rec.SetEmpty()
	return c.appendAlone(&rec, func() uint64 { return c.requireConfirmed(&rec) })
}

// appendAlone appends a record that is no write batch, and publishes it. require is called in the
// critical section, and returns the epoch that the log has required with the record.
func (c *Commits) appendAlone(rec *record.Writer, require func() uint64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.Poisoned(); err != nil {
		return err
	}
	ts, err := c.Clock.Now()
	if err != nil {
		return err
	}
	_, op, err := c.append(rec, ts, require(), false)
	if err == nil {
		op.Ready()
	}
	return err
}

// End returns the timestamp and the LSN of the newest batch in the log.
func (c *Commits) End() (newest mvcc.Timestamp, last lsn.LSN) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.Started(), c.LastLSN()
}

// Exclusive calls do while no batch enters the log.
func (c *Commits) Exclusive(do func() error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return do()
}

// Promise makes sure that later batches get timestamps above ts, also after Close and the next Open.
// Within this process the clock ensures it; after a kill, what LogTimestamp has done.
func (c *Commits) Promise(ts mvcc.Timestamp) {
	for old := c.promised.Load(); uint64(ts) > old; old = c.promised.Load() {
		if c.promised.CompareAndSwap(old, uint64(ts)) {
			return
		}
	}
}

// Promised returns the highest timestamp that was promised.
func (c *Commits) Promised() mvcc.Timestamp { return mvcc.Timestamp(c.promised.Load()) }

// Record makes the store record changes until EndRecord, and returns the timestamp above which it
// has all of them. Errors: the errors of the clock.
func (c *Commits) Record() (from mvcc.Timestamp, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.recent.Begin(c.Clock.Now)
}

// EndRecord ends a call of Record.
func (c *Commits) EndRecord() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.recent.End()
}

// Since returns the recorded changes after ts.
func (c *Commits) Since(ts mvcc.Timestamp) conflict.Changes {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.recent.Since(ts)
}

// SinceLocked is Since within Commit.Check.
func (c *Commits) SinceLocked(ts mvcc.Timestamp) conflict.Changes { return c.recent.Since(ts) }
