// Package tablet manages the live state of one table: its MemRowSet, its DiskRowSets, and the jobs
// that rewrite them.
//
// A write batch goes through Prepare (lock rows, resolve each operation against the current state),
// the store's log, and Apply. A View reads as of a snapshot. Flush writes memory to rowsets,
// Compact and Merge rewrite rowsets, an Ingest adds rowsets of sorted rows. Replay applies the
// log's operations after a restart.
//
// Locks, in this order:
//
//	claims   the parts of the table that jobs replace: jobs of different parts run concurrently
//	gate     shared by write batches, from Prepare to the end of Apply; exclusive while the state is
//	         replaced: briefly when a flush or merging compaction begins and after its metadata
//	         commit, and for the commit of a delta compaction and of an Ingest. Alter and Drop hold it
//	         longer
//	autoMu   orders the assignment of auto-incrementing values; held until the end of Apply
//	rows     row locks, one for each stripe of keys; a batch acquires all that it needs at once
//
// A tabletState, which includes the schema, is immutable and reference-counted. A reader uses the
// state that it acquired, whose files stay open until its last reader is done. The stores in it
// (MemRowSets, delta mem stores) take changes; a reader's snapshot determines which ones it sees.
//
// Every change of the state is an Edit. Writers continue while a flush or merging compaction writes
// its files and commits: see freeze for its beginning, finish for its end. Source: design §5–§7,
// tablet spec §12, §13.
package tablet

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/blockmanager"
	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/delta"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/meta"
	"github.com/oribi-db/oribi/internal/record"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/memrowset"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/rowset"
)

// Store is the part of the store that a tablet uses.
type Store interface {
	// LastLSN returns the LSN of the last batch appended to the log.
	LastLSN() lsn.LSN
	// Wait returns when everything up to lsn is durable in the log and published.
	Wait(ctx context.Context, lsn lsn.LSN) error
	// Visible returns the newest timestamp that reads see: all batches up to there are applied.
	Visible() mvcc.Timestamp
	// Append appends a batch to the log whose operations on a table the caller applies, and returns
	// when it is durable. An empty one gives an ingest its timestamp and its LSN. No later batch
	// becomes visible before publish has been called. The caller must call publish once, whether
	// its commit succeeded or not.
	Append(rec *record.Writer, table uint32) (ts mvcc.Timestamp, lsn lsn.LSN, publish func(), err error)
	// CommitMeta makes one metadata commit of the edits of one or more tables. After an error the
	// commit has not taken effect, unless the store is poisoned, as it is if an Install fails: then
	// it may have.
	CommitMeta(tables ...MetaCommit) error
	// NewCreation returns a new set of blocks.
	NewCreation() *blockmanager.Creation
	// BlockBytes appends the sizes of committed blocks, in bytes, to dst: −1 for a block that does
	// not exist. It reads no file.
	BlockBytes(dst []int64, ids ...block.ID) []int64
	// Retained returns the states of t that may still be read: by a retention in seconds
	// (−1 = forever), by the snapshots and reads that pin history, and by the floor in t's metadata.
	Retained(t *Tablet, historySec int64) mvcc.Retained
	// Retains reports whether ts, which is pinned, is one of the states that Retained returned last.
	Retains(t *Tablet, ts mvcc.Timestamp) bool
	// Now returns the present time; 0 if the clock is not a physical one.
	Now() mvcc.Timestamp
	// Timestamp returns a timestamp above the timestamps of all write batches so far and below the
	// timestamps of all later ones.
	Timestamp() (mvcc.Timestamp, error)
	// NextJob returns the number of a new job.
	NextJob() uint64
	// Event is called when a flush, compaction or ingest begins, in the middle of it, and after it
	// has ended, without any lock.
	Event(compaction.Event)
}

// MetaCommit is the part of a table in a metadata commit. Its functions are called in this order,
// each for all tables before the next one:
type MetaCommit struct {
	Table *Tablet
	// First returns the lowest LSN that replay needs for the table after the edit; lsn.Max = none.
	First func() lsn.LSN
	// Edit returns the edit. No other metadata commit runs between the calls of Edit and Committed.
	Edit func() blockmanager.Edit
	// Committed is called after the commit.
	Committed func()
	// Install makes the edit visible to readers and writers of the table. No lock of the store is
	// held, so metadata commits of others may come before it has returned.
	Install func() error
}

// Options are shared by all tablets of a store.
type Options struct {
	Store       Store
	RowSets     rowset.Options
	GrowMem     func(n int64) // called when MemRowSets allocate n bytes; n is negative on release
	TargetBytes int64         // size at which a flush or compaction starts a new rowset; 0 = 32 MiB
	Logger      *slog.Logger

	// GrowFlush and GrowMerge are called with the memory that a flush, or a compaction, will take, and
	// with -n at its end. nil disables them.
	GrowFlush, GrowMerge func(n int64)
	// FitMerge calls fit with the number of bytes that reading the rowsets of a merge should take at most,
	// one call at a time for all tablets, and counts the bytes that fit returns, as GrowMerge does. nil: any
	// number of bytes, which are not counted.
	FitMerge func(fit func(limit int64) (bytes int64, err error)) error

	// RecompressAfter is the age at which a rowset is at rest; a negative one: none is.
	RecompressAfter time.Duration

	// Progress is called during a flush or merge with the number of rows read and their total, in
	// an Alter with the gate held. nil disables it.
	Progress func(table string, rows, of int64)

	// Throttle is called before so many bytes are written to a new file of a merge or a delta
	// compaction, and waits until they may be. Its errors end the job. nil disables it.
	Throttle func(ctx context.Context, bytes int64) error
}

// Tablet is one table.
type Tablet struct {
	opts   Options
	Number uint32
	opened mvcc.Timestamp // when; 0 if the clock is not a physical one

	// claims decides which jobs may run at once, and reports sends their events in the order of
	// their commits.
	claims  claims
	reports reports

	// Locks of writers, taken in the order gate, autoMu, rows. A write batch holds the gate,
	// shared, and the locks of its rows from Prepare to Release, so that nothing changes the rows
	// between its decisions and their effect. A job holds the gate alone while it replaces the
	// state.
	gate sync.RWMutex
	rows rowLocks

	autoMu sync.Mutex
	// auto is the highest value of an auto-incrementing column ever inserted. It is guarded by
	// autoMu or by the exclusive gate.
	auto int64

	// state is replaced as a whole: a reader acquires one state and sees the same rowsets until it
	// releases it, without a lock. It is nil once the table is closed or dropped. retired has the
	// states that were replaced and are still in use: their files stay open.
	state   atomic.Pointer[tabletState]
	retired retired
	version atomic.Uint64 // of the state

	// Parts of the state, for callers that need no more and must not keep files open.
	schema   atomic.Pointer[TableSchema] // of the last state
	metadata atomic.Pointer[meta.Table]  // the last committed row
	nextID   atomic.Uint64               // of rowsets
	dropped  atomic.Bool
	deltaMem atomic.Int64 // bytes in delta mem stores

	dictionaries rowset.Dictionaries

	indexes atomic.Pointer[[]*Tablet] // the tables with the entries of the table's indexes, by number
	plan    atomic.Pointer[indexPlan] // of the newest schema and indexes; nil until it is needed
}

// tabletState is one immutable state of the table.
type tabletState struct {
	schema *TableSchema
	mem    *memrowset.MemRowSet   // takes the inserts
	frozen *frozen                // being flushed, or left by a flush that failed; nil = none
	mems   []*memrowset.MemRowSet // both
	tree   *rowset.Tree
	floor  mvcc.Timestamp // reads below are refused

	// refs counts the users of the state, the table among them until it replaces the state. The last
	// release closes the files that the next state does not have.
	refs    atomic.Int64
	retired *retired // set when the state was replaced
}

// frozen is a MemRowSet that takes no more inserts, with the cutover point at which it was frozen.
type frozen struct {
	mem *memrowset.MemRowSet
	cutover
}

// cutover is a point between two write batches of the table.
type cutover struct {
	lsn  lsn.LSN        // the last LSN in the log at this point
	snap mvcc.Snapshot  // sees all batches before the point and none after it
	auto int64          // the highest value of an auto-incrementing column that was inserted before it
	now  mvcc.Timestamp // the time of the point, if rows expire: later changes may renew them
}

// Open returns the live state of a table, from its metadata rows. The rowsets' delta files are
// opened at once, all other files when they are needed.
func Open(o Options, row *meta.Table, sets []*rowset.Metadata) (*Tablet, error) {
	t := &Tablet{opts: o, Number: row.Number}
	if o.Store != nil { // nil for a reader of loose rowsets
		t.opened = o.Store.Now()
	}
	tableSchema := tableSchemaOf(row)
	t.metadata.Store(row)
	t.auto = row.AutoIncrement
	t.nextID.Store(row.NextRowSetID)
	t.opts.RowSets.Grow = func(n int64) {
		t.deltaMem.Add(n)
		if o.RowSets.Grow != nil {
			o.RowSets.Grow(n)
		}
	}
	t.opts.RowSets.Damaged = func(rowSet uint64, id block.ID, err error) {
		t.opts.Logger.Error("row file or key directory damaged: other files are read instead",
			slog.String("table", t.Name()), slog.Uint64("rowset", rowSet),
			slog.Uint64("block", uint64(id)), slog.Any("err", err))
	}
	var open []*rowset.DiskRowSet
	for _, m := range sets {
		d, err := rowset.Open(tableSchema.Schema, m, t.opts.RowSets)
		if err != nil {
			for _, d := range open {
				d.Unref()
			}
			return nil, fmt.Errorf("table %q: %w", t.Name(), err)
		}
		open = append(open, d)
	}
	t.install(newState(tableSchema, t.newMem(tableSchema), nil, open, row.HistoryFloor))
	for _, d := range open {
		d.Unref() // the state has references of its own
	}
	return t, nil
}

func (t *Tablet) newMem(s *TableSchema) *memrowset.MemRowSet {
	return memrowset.New(s.Schema, t.opts.GrowMem)
}

// newState returns a state with one reference. It takes a reference to each rowset.
func newState(tableSchema *TableSchema, mem *memrowset.MemRowSet, old *frozen, sets []*rowset.DiskRowSet,
	floor mvcc.Timestamp) *tabletState {
	st := &tabletState{schema: tableSchema, mem: mem, frozen: old, mems: []*memrowset.MemRowSet{mem},
		tree: rowset.NewTree(sets), floor: floor}
	if old != nil {
		st.mems = append(st.mems, old.mem)
	}
	for _, d := range sets {
		d.Ref()
	}
	st.refs.Store(1)
	return st
}

// acquire returns the current state, which the caller releases. Errors: ErrNoTable when the table
// was dropped, ErrClosed.
func (t *Tablet) acquire() (*tabletState, error) {
	for {
		switch st := t.state.Load(); {
		case st == nil && t.dropped.Load():
			return nil, t.errDropped()
		case st == nil:
			return nil, fault.ErrClosed
		case st.ref():
			return st, nil
		}
	}
}

func (t *Tablet) errDropped() error {
	return fmt.Errorf("table %q was dropped: %w", t.Name(), fault.ErrNoTable)
}

// ref adds a reference and returns true, unless the number of references has reached 0: then the
// state was replaced.
func (st *tabletState) ref() bool {
	for {
		n := st.refs.Load()
		if n == 0 || st.refs.CompareAndSwap(n, n+1) {
			return n > 0
		}
	}
}

func (st *tabletState) release() {
	if st.refs.Add(-1) > 0 {
		return
	}
	st.retired.remove(st)
	for _, d := range st.tree.Sets {
		d.Unref()
	}
}

// install replaces the state.
func (t *Tablet) install(st *tabletState) {
	if st != nil {
		t.schema.Store(st.schema)
	}
	old := t.state.Swap(st)
	t.version.Add(1) // afterwards: who sees the new version sees the new state
	if old != nil {
		t.retired.add(old)
		old.release()
	}
}

// Close closes each file when its last reader is done. Later reads and writes return ErrClosed.
func (t *Tablet) Close() { t.install(nil) }

// End ends a follower's table that the writer has dropped. Readers keep the state that they have.
func (t *Tablet) End() {
	if st, err := t.acquire(); err == nil {
		st.releaseStores()
		st.release()
	}
	t.dropped.Store(true)
	t.Close()
}

// releaseStores reports that the memory of the state's stores is freed. Readers may continue.
func (st *tabletState) releaseStores() {
	for _, m := range st.mems {
		m.Release()
	}
	for _, d := range st.tree.Sets {
		if m := d.Tracker().Mem; m != nil {
			m.Release()
		}
	}
}

// Retired reports whether readers have states of the table that were replaced.
func (t *Tablet) Retired() bool {
	t.retired.mu.Lock()
	defer t.retired.mu.Unlock()
	return len(t.retired.states) > 0
}

// Rename changes the table's name. It calls commit with the new metadata row; commit commits the
// row and then calls install, which makes the row current. Readers and writers continue: they
// identify the table by its number, as the log does.
//
// Errors: ErrNoTable if the table was dropped; the errors of commit.
func (t *Tablet) Rename(name string, commit func(row *meta.Table, install func()) error) error {
	// A concurrent flush could commit a copy of the old row after the new one.
	return t.exclusively(context.Background(), func() error {
		if t.dropped.Load() {
			return t.errDropped()
		}
		row := *t.Metadata()
		row.Name = name
		return commit(&row, func() { t.metadata.Store(&row) })
	})
}

// Name returns the table's last committed name.
func (t *Tablet) Name() string {
	row := t.Metadata()
	if row.Index != nil {
		return "index " + row.Index.Name
	}
	return row.Name
}

// Metadata returns the table's last committed metadata row. It is immutable.
func (t *Tablet) Metadata() *meta.Table { return t.metadata.Load() }

// MemBytes returns the sizes of the MemRowSets and of the delta mem stores.
func (t *Tablet) MemBytes() (mem, deltas int64) {
	st, err := t.acquire()
	if err != nil {
		return 0, 0
	}
	defer st.release()
	for _, m := range st.mems {
		mem += m.Bytes()
	}
	return mem, t.deltaMem.Load()
}

// FirstLSN returns the lowest LSN of an operation that is in memory and not in files, or lsn.Max if
// files contain all operations.
func (t *Tablet) FirstLSN() lsn.LSN {
	st, err := t.acquire()
	if err != nil {
		return lsn.Max
	}
	defer st.release()
	return st.firstLSN()
}

func (st *tabletState) firstLSN() lsn.LSN {
	first := firstLSN(st.mems, nil)
	for _, d := range st.tree.Sets {
		if m := d.Tracker().Mem; m != nil && m.FirstLSN() != 0 {
			first = min(first, m.FirstLSN())
		}
	}
	return first
}

// firstLSN returns the lowest LSN of an operation in memory stores, or lsn.Max if they are empty. A
// nil store is empty.
func firstLSN(mems []*memrowset.MemRowSet, deltas []*delta.MemStore) lsn.LSN {
	first := lsn.Max
	see := func(l lsn.LSN) {
		if l != 0 {
			first = min(first, l)
		}
	}
	for _, m := range mems {
		see(m.FirstLSN())
	}
	for _, m := range deltas {
		if m != nil {
			see(m.FirstLSN())
		}
	}
	return first
}

// memEndsBefore reports whether all keys in memory come before key.
func (st *tabletState) memEndsBefore(key []byte) bool {
	for _, m := range st.mems {
		if !m.EndsBefore(key) {
			return false
		}
	}
	return true
}

// Info returns the rowsets' bounds and sizes, in order of first keys.
func (t *Tablet) Info() compaction.Layout {
	l, _ := t.layout()
	return l
}

// layout is Info with the error that there is after the table was dropped or the store closed.
func (t *Tablet) layout() (compaction.Layout, error) {
	st, err := t.acquire()
	if err != nil {
		return compaction.Layout{Table: t.Name()}, err
	}
	defer st.release()
	return t.describe(states(st)), nil
}

// states returns the states of the rowsets, in order of first keys. They are immutable; a flush
// gives a rowset another one.
func states(st *tabletState) []*rowset.State {
	out := make([]*rowset.State, len(st.tree.Sets))
	for i, d := range st.tree.Sets {
		out[i] = d.State()
	}
	return out
}

// describe returns the layout of rowsets in these states.
func (t *Tablet) describe(sets []*rowset.State) compaction.Layout {
	out := compaction.Layout{Table: t.Name(), RowSetBytes: t.opts.TargetBytes}
	for _, s := range sets {
		r := describe(s.Meta)
		for _, f := range s.Deltas.Redo {
			r.RedoBytes += f.Bytes()
		}
		for _, f := range s.Deltas.Undo {
			r.UndoBytes += f.Bytes()
		}
		out.RowSets = append(out.RowSets, r)
	}
	return out
}

// describe returns what a layout has of m. It is the caller's: nothing in it is shared with m.
func describe(m *rowset.Metadata) compaction.RowSetInfo {
	return compaction.RowSetInfo{ID: m.ID, MinKey: bytes.Clone(m.MinKey), MaxKey: bytes.Clone(m.MaxKey),
		Rows: m.Rows, LiveRows: m.LiveRows,
		Bytes: m.Bytes, Redos: len(m.Redo), Undos: len(m.Undo)}
}

// RowSetMetadata returns the metadata rows of all rowsets.
func (t *Tablet) RowSetMetadata() []*rowset.Metadata {
	st, err := t.acquire()
	if err != nil {
		return nil
	}
	defer st.release()
	return st.rowSetMetadata()
}

func (st *tabletState) rowSetMetadata() (out []*rowset.Metadata) {
	for _, d := range st.tree.Sets {
		out = append(out, d.Metadata())
	}
	return out
}

// LiveRows returns the number of rows in the newest applied state, published or not. It reads no
// row.
func (t *Tablet) LiveRows() int64 {
	st, err := t.acquire()
	if err != nil {
		return 0
	}
	defer st.release()
	n := int64(0)
	for _, m := range st.mems {
		n += m.LiveRows()
	}
	for _, d := range st.tree.Sets {
		s := d.State()
		n += s.Meta.LiveRows
		if m := s.Deltas.Mem; m != nil {
			n -= m.Deleted()
		}
	}
	return n
}

// MaxTimestamp returns the newest timestamp of any change in the table.
func (t *Tablet) MaxTimestamp() mvcc.Timestamp {
	st, err := t.acquire()
	if err != nil {
		return mvcc.Min
	}
	defer st.release()
	return st.maxTimestamp()
}

func (st *tabletState) maxTimestamp() mvcc.Timestamp {
	ts := mvcc.Min
	for _, m := range st.mems {
		ts = max(ts, m.MaxTimestamp())
	}
	for _, d := range st.tree.Sets {
		ts = max(ts, d.Metadata().MaxTimestamp)
		if m := d.Tracker().Mem; m != nil {
			ts = max(ts, m.MaxTimestamp())
		}
	}
	return ts
}
