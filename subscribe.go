package oribi

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/oribi-db/oribi/internal/conflict"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/tablet"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/scan"
)

// RowChange is what a write batch has made of one row.
type RowChange struct {
	Table *Table
	Difference
}

// CommittedBatch is a write batch that Store.Subscribe yields, or a piece of a large one. Its
// changes are in the order of the tables' creation, those of a table in key order. All of it may be
// kept; cells must not be modified.
type CommittedBatch struct {
	Timestamp mvcc.Timestamp
	Changes   []RowChange // at least one
	More      bool        // the next step has further changes of the same write batch
}

// SubscribeOption is an option of Store.Subscribe: OfTables, Until. A nil option has no effect.
type SubscribeOption interface{ subscribe(*follower) }

type subscribeOption func(*follower)

func (o subscribeOption) subscribe(f *follower) { o(f) }

// OfTables makes Subscribe yield the changes of these tables only; without arguments, of none.
func OfTables(tables ...*Table) SubscribeOption {
	tables = append([]*Table{}, tables...)
	return subscribeOption(func(f *follower) { f.only = tables })
}

// Until makes Subscribe end after the write batches up to ts, which must not be ahead of the clock.
func Until(ts mvcc.Timestamp) SubscribeOption {
	return subscribeOption(func(f *follower) { f.until, f.ends = ts, true })
}

// The limits of a piece of a write batch.
const (
	mostChanges     = 4096
	mostChangeBytes = 1 << 20
)

// maxIdle is how long the history that a subscription has yet to read is pinned while its loop is
// busy with a step.
const maxIdle = 10 * time.Minute

// Subscribe yields the write batches with timestamps above from, in the order of timestamps: first
// those that were committed already, then each one when it becomes visible. None is left out, and
// none comes twice. A program that remembers the timestamp of the last batch for which More is false
// continues there with another Subscribe, also after a restart.
//
// A batch has one change for each row whose content it has changed, as Table.Diff would find it
// immediately before and after: operations that change nothing do not appear, and several on one row
// appear as one. That is so for all kinds of writes: inserts of Ingest, deletes of Truncate, what
// RestoreTo brings back. Changes of schemas are no events: rows come with the columns that the table
// has when they are read. So are rows that expire. The changes of a dropped table no longer come.
// Batches committed with NoSync come when they are visible, so a power failure may undo them.
//
// The loop may be slow: no writer waits for it, and memory stays bounded, since the subscription
// reads what it has missed from the history of the tables. Between two steps it pins that history,
// for ten minutes at most; after that, a table may have dropped it, and the subscription ends with
// ErrTooOld. To begin anew, take a Snapshot, read the tables At it, and subscribe from its
// Timestamp. OfTables leaves out tables with a shorter history.
//
// In a read-only store the loop ends after the newest batch. Otherwise it ends with break, or with
// an error: ctx.Err(); ErrTooOld; ErrFuture if from or Until is ahead of the clock; ErrCorrupt;
// ErrPoisoned, after the last visible batch; ErrClosed.
func (s *Store) Subscribe(ctx context.Context, from mvcc.Timestamp, opts ...SubscribeOption) iter.Seq2[*CommittedBatch, error] {
	return func(yield func(*CommittedBatch, error) bool) {
		f := &follower{store: s, ctx: ctx, yield: yield, done: from}
		for _, o := range opts {
			if o != nil {
				o.subscribe(f)
			}
		}
		if err := f.run(); err != nil && err != errLoopEnded {
			yield(nil, callErr(fmt.Sprintf("subscription from %v", from), err))
		}
	}
}

// errLoopEnded ends a subscription whose loop has ended.
var errLoopEnded = errors.New("the loop has ended")

// follower is a running subscription. It looks for the batches after done, up to some later
// timestamp, and so on:
//
//	    │ history of the tables               │ recent │
//	────┼────────────┬────────────┬───────────┼────────┼──▶ time
//	  from         window       window      window  visible
//
// Which keys a batch has changed is in the store's list of recent changes, if it reaches back to
// done; otherwise in the delta stores of the tables, of which a window takes as many as fit into
// memory. What a batch has made of a row follows, in both cases, from the states before and after it.
type follower struct {
	store *Store
	ctx   context.Context
	yield func(*CommittedBatch, error) bool
	only  []*Table // nil: all
	until mvcc.Timestamp
	ends  bool // at until

	done     mvcc.Timestamp // all batches up to here were yielded
	horizon  mvcc.Timestamp // all batches up to here are visible
	inside   bool           // the store was entered
	recorded bool           // the store records changes for the subscription
	snapshot *Snapshot      // of done, or before; pins what is still to be read
	tables   map[uint32]*Table
	piece    *CommittedBatch
	bytes    int // of piece
}

func (f *follower) run() error {
	defer f.end()
	if err := f.begin(); err != nil {
		return err
	}
	for {
		for f.done < f.visible() {
			if err := f.step(); err != nil {
				return err
			}
		}
		if f.store.opts.ReadOnly || f.ends && f.done >= f.until {
			return nil
		}
		f.leave()
		if err := f.store.pub.WaitAbove(f.ctx, f.done); err != nil {
			return err
		}
		if err := f.enter(); err != nil {
			return err
		}
	}
}

// begin pins the history from done on, and makes the store record changes.
func (f *follower) begin() (err error) {
	if err := f.enter(); err != nil {
		return err
	}
	if f.ends {
		if err := f.store.advance(f.until); err != nil {
			return err
		}
		if err := f.store.waitPublished(f.ctx, f.until); err != nil {
			return err
		}
		f.horizon = f.until
	}
	if f.snapshot, err = f.pin(f.done); err != nil || f.ends {
		return err
	}
	since, recorded, err := f.store.record()
	if f.recorded = recorded; err != nil || !recorded {
		return err
	}
	if f.store.waitPublished(f.ctx, since) == nil { // else what is visible comes first, then the error
		f.horizon = since
	}
	return nil
}

// end releases what begin has acquired.
func (f *follower) end() {
	if f.snapshot != nil {
		f.snapshot.Close()
	}
	if f.recorded {
		f.store.endRecord()
	}
	f.leave()
}

func (f *follower) enter() error {
	if err := f.store.enter(); err != nil {
		return err
	}
	f.inside = true
	return f.ctx.Err()
}

func (f *follower) leave() {
	if f.inside {
		f.inside = false
		f.store.leave()
	}
}

// pin pins the history above a timestamp.
func (f *follower) pin(ts mvcc.Timestamp) (*Snapshot, error) {
	return f.store.SnapshotAt(f.ctx, ts, Named("subscription"))
}

// check returns ErrTooOld if a table may have dropped history after the snapshot.
func (f *follower) check() error {
	pins := f.store.pins
	for _, t := range f.tables {
		if err := pins.pinSnapshot(t.tab.Number, f.snapshot); err != nil {
			return t.errorf(err)
		}
		pins.unpin(f.snapshot.ts)
	}
	return nil
}

// visible returns the timestamp up to which there may be batches to yield now.
func (f *follower) visible() mvcc.Timestamp {
	if f.ends {
		return f.until
	}
	return max(f.horizon, f.store.pub.Visible())
}

// step yields batches after done, at most those that are visible now.
func (f *follower) step() error {
	s := f.store
	upTo := f.visible()
	f.tables = map[uint32]*Table{} // those that exist now: they include all that the batches have changed
	for _, t := range s.sortedTables() {
		if f.only == nil || slices.Contains(f.only, t) {
			f.tables[t.tab.Number] = t
		}
	}
	if err := f.check(); err != nil {
		return err
	}
	s.appendMu.Lock()
	changes := s.recent.Since(f.done)
	s.appendMu.Unlock()
	all := changes.All
	if !f.recorded || changes.Complete > f.done {
		w := window{limit: recentLimit(s.opts.MemoryLimit), upTo: upTo}
		if err := f.fill(&w); err != nil {
			return err
		}
		all, upTo = slices.Values(w.changes), w.upTo
	}
	if err := f.batches(all, upTo); err != nil {
		return err
	}
	next, err := f.pin(upTo)
	if err != nil {
		return err
	}
	f.snapshot.Close()
	f.snapshot, f.done = next, upTo
	return nil
}

// batches yields the batches up to a timestamp, of which changes, by timestamp, says the keys.
func (f *follower) batches(changes iter.Seq[conflict.Change], upTo mvcc.Timestamp) error {
	var of []conflict.Change // one batch
	for ch := range changes {
		if ch.Timestamp > upTo {
			break
		}
		if len(of) > 0 && of[0].Timestamp != ch.Timestamp {
			if err := f.batch(of); err != nil {
				return err
			}
			of = of[:0]
		}
		if f.tables[ch.Table] != nil {
			of = append(of, ch)
		}
	}
	if len(of) == 0 {
		return nil
	}
	return f.batch(of)
}

// batch yields a batch, of which changes lists the keys.
func (f *follower) batch(changes []conflict.Change) error {
	slices.SortFunc(changes, func(a, b conflict.Change) int {
		return cmp.Or(cmp.Compare(a.Table, b.Table), bytes.Compare(a.Key, b.Key)) // the unknown first
	})
	ts := changes[0].Timestamp
	f.piece, f.bytes = &CommittedBatch{Timestamp: ts}, 0
	for len(changes) > 0 {
		n := 1
		for n < len(changes) && changes[n].Table == changes[0].Table {
			n++
		}
		err := f.tableChanges(f.tables[changes[0].Table], ts, changes[:n])
		if err != nil && !errors.Is(err, fault.ErrNoTable) { // dropped
			return err
		}
		changes = changes[n:]
	}
	if len(f.piece.Changes) == 0 {
		return nil
	}
	return f.give()
}

// tableChanges adds the changes of a batch to a table.
func (f *follower) tableChanges(t *Table, ts mvcc.Timestamp, changes []conflict.Change) error {
	v, err := t.tab.View(tablet.Snapshot{At: mvcc.Before(ts)})
	if err != nil {
		return err
	}
	d := Difference{KeyColumns: v.Schema.Columns[:v.Schema.Keys], Columns: v.Schema.Columns}
	if changes[0].Unknown {
		return f.allChanges(t, v, ts, d)
	}
	defer v.Release()
	after := v.At(mvcc.AsOf(ts))
	defer after.Release()
	for i, ch := range changes {
		if i > 0 && bytes.Equal(changes[i-1].Key, ch.Key) {
			continue
		}
		before, existed, err := v.Get(ch.Key, v.All, nil)
		if err != nil {
			return err
		}
		now, exists, err := after.Get(ch.Key, v.All, nil)
		if err != nil {
			return err
		}
		if existed == exists && slices.EqualFunc(before, now, sameCell) {
			continue
		}
		d.Before, d.After = before, now
		if err := f.add(t, &v, ch.Key, d); err != nil {
			return err
		}
	}
	return nil
}

// allChanges is tableChanges for a batch of which the keys are not known. It releases v.
func (f *follower) allChanges(t *Table, v tablet.View, ts mvcc.Timestamp, d Difference) error {
	rows := v.Diff(scan.Options{Columns: v.All}, mvcc.AsOf(ts))
	defer rows.Close()
	rows.OnlyChanged()
	for n := 0; rows.Next(); n++ {
		if n%ctxEvery == 0 {
			if err := f.store.interrupted(f.ctx); err != nil {
				return err
			}
		}
		d.Before, d.After = cloneCells(rows.Before()), cloneCells(rows.After())
		if err := f.add(t, &v, rows.Key(), d); err != nil {
			return err
		}
	}
	return rows.Close()
}

// cloneCells returns a copy of cells; nil if there is no row.
func cloneCells(cells [][]byte) [][]byte {
	if cells == nil {
		return nil
	}
	size := 0
	for _, cell := range cells {
		size += len(cell)
	}
	out, buf := make([][]byte, len(cells)), make([]byte, 0, size)
	for i, cell := range cells {
		if cell != nil {
			at := len(buf)
			buf = append(buf, cell...)
			out[i] = buf[at:len(buf):len(buf)]
		}
	}
	return out
}

// add adds a change to the current piece, after it has yielded one that is full.
func (f *follower) add(t *Table, v *tablet.View, key []byte, d Difference) (err error) {
	if f.bytes > mostChangeBytes || len(f.piece.Changes) == mostChanges {
		f.piece.More = true
		if err := f.give(); err != nil {
			return err
		}
		f.piece, f.bytes = &CommittedBatch{Timestamp: f.piece.Timestamp}, 0
	}
	if d.Key, err = v.Encoder.Decode(key); err != nil {
		return t.errorf(err)
	}
	d.Kind = kindOf(d.Before != nil, d.After != nil)
	f.bytes += len(key)
	for _, cells := range [2][][]byte{d.Before, d.After} {
		for _, cell := range cells {
			f.bytes += len(cell) + sliceBytes
		}
	}
	f.piece.Changes = append(f.piece.Changes, RowChange{t, d})
	return nil
}

// sliceBytes is the size of a slice without its elements.
const sliceBytes = 24

// give passes the current piece to the loop. Meanwhile the store may be closed, and the history is
// pinned for a limited time.
func (f *follower) give() error {
	f.leave()
	pinned := f.snapshot
	idle := time.AfterFunc(maxIdle, func() { pinned.Close() })
	more := f.yield(f.piece, nil)
	inTime := idle.Stop()
	if !more {
		return errLoopEnded
	}
	if err := f.enter(); err != nil || inTime {
		return err
	}
	var err error
	if f.snapshot, err = f.pin(pinned.ts); err != nil {
		return err
	}
	return f.check()
}
