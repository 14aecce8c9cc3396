package tablet

import (
	"context"
	"time"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/blockmanager"
	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/delta"
	"github.com/oribi-db/oribi/internal/meta"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/memrowset"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/rowset"
)

// rewrite is one flush or compaction on its way, under the work lock.
type rewrite struct {
	t       *Tablet
	blocked bool // the gate is held
	timed   bool // moment is set: by the first time that it was
	cutover      // as of which memory is written
	old     *tabletState
	in      []*rowset.DiskRowSet // rowsets that the outputs replace
	frozen  *frozen              // MemRowSet that the outputs replace; nil = none

	// Of the new state.
	shape *Shape
	mem   *memrowset.MemRowSet
	floor mvcc.Timestamp

	creation *blockmanager.Creation
	early    *blockmanager.Creation // blocks that were written, and synced, before the rewrite began; nil = none
	confirm  bool                   // the log cannot bring back what this brings
	out      []*meta.RowSet
	flushed  []flushedDeltas
	swapped  []swap
	flushLSN lsn.LSN     // the table's new flushed LSN; 0 = as it is
	highest  int64       // the highest value that the outputs have in an auto-incrementing column
	altered  *meta.Table // the table's row with what an Alter has changed in it; nil = no Alter

	logging   []*delta.MemStore          // those of in, and others, that note what comes
	caughtUp  map[uint64]*delta.MemStore // of outputs, by rowset: what was carried over
	files     *rowset.Tree               // outputs, opened to look for keys; nil = not open
	positions int64                      // places of rows that are remembered

	event compaction.Event
	start time.Time
	done  bool
}

// flushedDeltas is a rowset that gets its delta mem store as a file.
type flushedDeltas struct {
	set  *rowset.DiskRowSet
	from *delta.MemStore
	row  *meta.RowSet    // once the file is written
	file block.ID        // the same
	mem  *delta.MemStore // what came behind the file's end; nil = nothing
}

// begin starts a rewrite with writers about.
func (t *Tablet) begin() (*rewrite, error) {
	st, err := t.acquire()
	if err != nil {
		return nil, err
	}
	r := &rewrite{t: t, old: st, shape: st.shape, creation: t.opts.Store.NewCreation(), caughtUp: map[uint64]*delta.MemStore{}, start: time.Now()}
	r.event.Table, r.event.Before = t.Name(), st.info(t.Name())
	return r, nil
}

// freeze finds the moment as of which memory is written, has take note of what that is, and returns
// when all before it is durable and published:
//
//	work lock  ├───────────────────────────────────────────────────────────────────┤   no other flush or compaction
//	gate         ├─┤                                                  ├────────────┤    writers wait
//	              ▲     write and sync the outputs      carry over in    last round,
//	              L     as of L                         rounds           commit, install
//
// With the gate held no write batch is between its append and the end of its application. So the
// batches of the table with LSNs up to L are in the stores, all of them, and have timestamps below
// r.before; none of a later one is. What comes then goes
//
//	an insert             to the new MemRowSet, also when the frozen one, or a rowset, has a ghost of the key
//	a change of a row     to the store that has the row: the frozen MemRowSet, a rowset's delta mem store
//
// and the outputs, written as of r.before, have nothing of it. The stores that they replace note
// such changes, and carry brings them to the delta mem stores of the outputs. The included LSN of
// the outputs is L, and so is the table's flushed LSN after a flush, so replay brings to the
// outputs what carry has, and to a MemRowSet the later inserts.
//
// A failure before the commit leaves the frozen MemRowSet beside the new one: the next flush writes
// it first, as of the L at which it was frozen. The delta mem stores were never replaced; they stop
// noting. Source: design §5, tablet spec §13.1–§13.3.
func (r *rewrite) freeze(ctx context.Context, take func()) error {
	if err := r.blockWriters(); err != nil {
		return err
	}
	take()
	r.unblockWriters()
	return r.t.opts.Store.Wait(ctx, r.lsn)
}

// hold begins a rewrite that keeps the table's writers out to its end, and waits until all that is
// in the log is durable and published.
func (t *Tablet) beginBlocked(ctx context.Context) (*rewrite, error) {
	// What waits for the disk is mostly done before writers have to wait too.
	if err := t.opts.Store.Wait(ctx, t.opts.Store.LastLSN()); err != nil {
		return nil, err
	}
	r, err := t.begin()
	if err != nil {
		return nil, err
	}
	err = r.blockWriters()
	if err == nil {
		err = t.opts.Store.Wait(ctx, r.lsn)
	}
	if err != nil {
		r.end()
		return nil, err
	}
	return r, nil
}

// blockWriters takes the gate and goes by the state that there is now. What the rewrite replaces is in it
// still: only what holds the work lock replaces a rowset.
func (r *rewrite) blockWriters() error {
	t := r.t
	t.gate.Lock()
	r.blocked = true
	st, err := t.acquire()
	if err != nil {
		return err
	}
	r.old.release()
	r.old, r.mem = st, st.mem
	if !r.timed {
		r.timed = true
		r.cutover = cutover{lsn: t.opts.Store.LastLSN(), before: st.maxTimestamp() + 1, auto: t.auto}
	}
	return nil
}

// admit lets writers in again.
func (r *rewrite) unblockWriters() {
	r.blocked = false
	r.t.gate.Unlock()
}

// thaw ends the rewrite. What was not committed never happened.
func (r *rewrite) end() {
	r.closeFiles()
	for _, m := range r.logging {
		m.StopChangeLog()
	}
	if !r.done {
		r.creation.Abort()
		for _, m := range r.caughtUp {
			m.Release()
		}
		for _, f := range r.flushed {
			if f.mem != nil {
				f.mem.Release()
			}
		}
	}
	r.growPositions(-r.positions)
	r.old.release()
	if r.blocked {
		r.unblockWriters()
	}
}

// takeMemory freezes the MemRowSet, unless it is empty or an earlier flush has left a frozen one,
// and takes the delta mem stores. The gate is held.
func (r *rewrite) takeMemory() {
	t, st := r.t, r.old
	if st.frozen == nil && st.mem.Len() > 0 {
		st.mem.Freeze()
		n := newState(st.shape, t.newMem(st.shape), &frozen{st.mem, r.cutover}, st.tree.Sets, st.floor)
		n.refs.Add(1)
		t.install(n)
		st.release()
		r.old, r.mem, st = n, n.mem, n
	}
	r.flushLSN, r.highest = r.lsn, r.auto
	if r.frozen = st.frozen; r.frozen != nil {
		r.flushLSN, r.highest = r.frozen.lsn, r.frozen.auto
	}
	r.takeDeltas()
}

// takeDeltas takes the delta mem stores that hold something. The gate is held.
func (r *rewrite) takeDeltas() {
	for _, d := range r.old.tree.Sets {
		if !d.Tracker().Mem.Empty() {
			m := d.StartChangeLog()
			r.logging = append(r.logging, m)
			r.flushed = append(r.flushed, flushedDeltas{set: d, from: m})
		}
	}
}

// takeInputs has the delta mem stores of the rowsets that are replaced note what comes. The gate is
// held.
func (r *rewrite) takeInputs() {
	for _, d := range r.in {
		r.logging = append(r.logging, d.StartChangeLog())
	}
}
