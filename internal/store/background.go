package store

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/internal/maintenance"
	"github.com/oribi-db/oribi/internal/storedir"
	"github.com/oribi-db/oribi/internal/tablet"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/storeinfo"
)

// Bounds of what may wait to be flushed or compacted.
const (
	// bytes of input that one background compaction should stay below, if the memory limit is not
	// less
	maxCompaction = 256 << 20
	confirmAfter  = time.Second
	historyAfter  = time.Minute // after which an idle store looks for history that has become too old
	syncAfter     = 4 << 20     // bytes by which the log grows before the syncer syncs it
)

// Background runs the store's maintenance: one goroutine lists the operations that are due, has
// package maintenance choose among them, and starts each in a goroutine of its own, up to
// Options.MaintenanceWorkers at once. Late merges may have one worker more, see maintenance.State.
// Another goroutine syncs the log of write batches that do not wait for it. With Options.Manual only
// the metadata is confirmed, once a second.
//
// Listing is cheap: what depends on the layout of a table is computed once for each version of it.
// The policy, which is the caller's code and may be slow, is asked by a worker.
type Background struct {
	w      *Writer
	o      BackgroundOptions
	locks  *storedir.Locks
	pacer  *pacer
	ctx    context.Context
	cancel context.CancelFunc
	done   sync.WaitGroup
	wake   chan struct{} // operations may be due, or a worker is free
	sync   chan struct{} // a sync of the log is due
	synced atomic.Int64  // length of the log when that was last begun
	// a commit has woken the scheduler since the last operation ended: memory or log is over a
	// limit of the store
	noted atomic.Bool

	mu         sync.Mutex // guards the fields below; no file is touched while it is held
	counts     maintenance.Counts
	rewriting  int           // running operations of kinds that do not free memory, and planning
	planning   bool          // the policy is being asked
	paused     int           // calls of PauseBackgroundWork without their end
	ended      chan struct{} // closed and replaced when an operation ends
	tables     map[uint32]*tableWork
	backoff    maintenance.Backoff
	owned      int64     // bytes of changes that flushes leave to compactions, as of the last list
	confirmDue bool      // it is time to confirm the metadata
	sparse     bool      // blocks were dropped since no container was sparse
	looked     time.Time // when history was last looked through
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Appended wakes the syncer if the log has grown, and the scheduler if the store has reached a
// limit. It wakes the scheduler once until an operation ends. It is called after a write batch has
// entered the log; Grown is called for its tables.
func (b *Background) Appended() {
	if b.o.Manual {
		return
	}
	switch length := b.w.Log.Bytes(); {
	case length >= b.synced.Load()+syncAfter:
		wake(b.sync)
	case length < b.synced.Load(): // segments were removed
		b.synced.Store(length)
	}
	if !b.noted.Load() && b.w.OverLimit() && b.noted.CompareAndSwap(false, true) {
		wake(b.wake)
	}
}

// Context returns a context that ends when the store is closed.
func (b *Background) Context() context.Context { return b.ctx }

// Grown wakes the scheduler if a write batch has brought a table or one of its indexes to its limit. It wakes the
// scheduler once until an operation on the table ends: a table stays above its limit while it is
// flushed.
func (b *Background) Grown(t *Table) {
	for _, x := range t.Indexes() {
		b.Grown(x)
	}
	if b.o.Manual || t.noted.Load() {
		return
	}
	if mem, _ := t.MemBytes(); mem >= b.o.FlushBytes && t.noted.CompareAndSwap(false, true) {
		wake(b.wake)
	}
}

// Poke looks for operations that are due after the layout of a table has changed, or after a job of
// a caller has ended.
func (b *Background) Poke() {
	if !b.o.Manual {
		wake(b.wake)
	}
}

// running returns how many workers are busy.
func (b *Background) running() int {
	if b.planning {
		return b.counts.Running + 1
	}
	return b.counts.Running
}

// end wakes those who wait for operations to end.
func (b *Background) end() {
	close(b.ended)
	b.ended = make(chan struct{})
}

// Counts returns the counts of operations.
func (b *Background) Counts() maintenance.Counts {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.counts
}

// operation is an operation that could run, with what is needed to run it.
type operation struct {
	maintenance.Operation
	table   *Table                 // nil for LogGC and Reclaim
	version uint64                 // of the table for which the operation was listed
	deltas  compaction.DeltaChoice // Minor, Major, Recompress, UndoGC
	plan    tablet.MergePlan       // Merge
	skip    bool                   // LogGC: skipLog first
	joined  []*Table               // Flush: other small tables, flushed in the same metadata commit
}

// rowsets returns the rowsets that the operation reads from disk.
func (op *operation) rowsets() []uint64 {
	switch op.Kind {
	case maintenance.Merge:
		return op.plan.RowSets
	case maintenance.Minor, maintenance.Major, maintenance.Recompress:
		return []uint64{op.deltas.RowSet}
	}
	return nil
}

// tableWork is what the scheduler knows of a table. A version of 0 is that of no table.
type tableWork struct {
	merges  tablet.Merges
	merging bool // a merge runs, or is being planned: merges is in use

	planned uint64 // version of the table for which plan was made
	plan    tablet.MergePlan
	seen    uint64 // version of the table of which deltas are
	deltas  []compaction.DeltaChoice
	idleAt  time.Time // when more will be due, unless the table changes; 0 = never
	gone    int       // rowsets that history no longer contained at that time

	damaged map[uint64]bool             // rowsets in which a rewrite has found damage
	futile  map[maintenance.Kind]uint64 // version of the table that an operation other than a flush has left as it was
	apart   bool                        // its last joint flush has failed: it is flushed alone
	hidden  bool                        // the policy was not shown all rowsets: running compactions owned some

	first lsn.LSN   // the oldest operation in memory; lsn.Max = none
	since time.Time // when it was first seen
}

func (w *tableWork) isDamaged(id uint64) bool { return w.damaged[id] }

// exclude leaves damaged rowsets out of compactions until the store is opened again.
func (w *tableWork) exclude(rowsets []uint64) {
	for _, id := range rowsets {
		w.damaged[id] = true
	}
	w.planned, w.seen = 0, 0
}

// public returns the operation as programs see it.
func (op *operation) public() storeinfo.BackgroundOp {
	out := storeinfo.BackgroundOp{Kind: string(op.Kind), Memory: op.Memory, Log: op.Log, Data: op.Data, Gain: op.Gain,
		Cost: op.Cost}
	if op.table != nil {
		out.Table = op.table.Name()
	}
	return out
}
