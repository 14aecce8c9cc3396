package store

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/meta"
	"github.com/oribi-db/oribi/internal/storedir"
	"github.com/oribi-db/oribi/internal/tablet"
	"github.com/oribi-db/oribi/internal/wal"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/mvcc"
)

// A Refresh reads in this order:
//
//	anchor      unchanged: on to the log. Else:
//	metadata    the changes in the journal that lead to the anchor's state; without them all of it
//	tables      those with changed rows, anew from what has not changed and what has
//	clock mark  no batch up to it will come that the log does not have from now on
//	log         what is new, for all tables; what new rowsets lack, for these alone
//	pin         what the oldest reader needs
//
// The steps need not be of one moment, as in an open (see Open): the log is read last, so it is
// the newest. What it has beyond the metadata ends it.
//
//	writer     append 7   flush: commit of epoch 5   append 8   ingest: append 9             commit of epoch 6
//	follower      had 6   anchor 5 journal 5: table t                          log 7 … 8, 9 announces: as of 8
//
// Nothing of it is visible before all of it is read: readers have the published timestamp of before,
// and new records have higher ones. After a failure in the middle, the stores in memory may have
// records that are not published. Nobody sees them; the next try reads everything anew.

// Follower is a reader that moves to newer states of the store. It is safe for concurrent use.
type Follower struct {
	core *Core
	pin  *storedir.Pin // of the oldest state that is read

	mu     sync.Mutex       // one Refresh at a time
	broken bool             // a Refresh has failed after it had changed tables: all must be read again
	oldest uint64           // epoch of the oldest state that a reader may have; 0: the current one
	images int              // that are open
	tails  []*wal.Tail      // ends of the log that were found, ascending
	ended  []*tablet.Tablet // that the writer has dropped, and of which readers may have states

	announced announcement
}

// announcement is an epoch that the anchor announced at a time, and there was no such metadata. A
// writer that was killed leaves it so.
type announcement struct {
	epoch uint64
	at    time.Time
}

// needsRefresh reports whether the anchor's epoch is worth a look at the metadata: if the anchor
// announces another epoch, or some time has passed.
func (a announcement) needsRefresh(epoch uint64, now time.Time) bool {
	return epoch != a.epoch || now.Sub(a.at) > announcedAgain
}

// newFollower returns the follower of an open reader. pin pins the state that it reads; it may be nil.
func newFollower(c *Core, pin *storedir.Pin) *Follower {
	f := &Follower{core: c, pin: pin}
	f.addTail(c.Tail.Load())
	f.setPin()
	return f
}

func (f *Follower) setPin() { f.pin.Set(f.core.Blocks.Epoch(), f.core.Blocks.LogStart()) }

// announcedAgain is the time after which NeedsRefresh reports an announced epoch again.
const announcedAgain = 100 * time.Millisecond

// Refresh moves to the newest state of the store. Errors: ErrLocked if a writer changes the store
// faster than it can be read; ErrCorrupt; ctx.Err(). After an error the follower has the state from
// before.
func (f *Follower) Refresh(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.core.Dir.Retry(ctx, f.refresh)
}

// NeedsRefresh reports whether a Refresh may find something.
func (f *Follower) NeedsRefresh() (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.core
	epoch, err := c.Blocks.AnchorEpoch()
	switch {
	case err != nil, f.broken, c.Tail.Load().MayContinue():
		return true, nil
	case epoch <= c.Blocks.Epoch():
		return false, nil
	}
	return f.announced.needsRefresh(epoch, time.Now()), nil
}

// Capture calls capture between two calls of Refresh, and returns the end of the log that is visible.
// The follower keeps its pin until release is called.
func (f *Follower) Capture(capture func() error) (newest mvcc.Timestamp, last lsn.LSN, release func(), err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	newest, last = f.core.Visible(), f.core.LastLSN()
	if err := capture(); err != nil {
		return 0, 0, nil, err
	}
	f.images++
	return newest, last, sync.OnceFunc(f.endImage), nil
}

func (f *Follower) endImage() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.images--
}

// OutOfDate returns err as ErrTooOld if it is ErrCorrupt, in a follower whose writer has gone on: files
// that the follower needs may have been removed.
func (c *Core) OutOfDate(err error) error {
	if !c.Options.Follow || !errors.Is(err, fault.ErrCorrupt) {
		return err
	}
	if epoch, aerr := c.Blocks.AnchorEpoch(); aerr == nil && epoch <= c.Blocks.Epoch() {
		return err
	}
	return fault.Reworded(fault.ErrTooOld,
		"the writer has removed what this follower needs: refresh it, or open it again (%v)", err)
}

// refresh is one try of Refresh.
func (f *Follower) refresh() error {
	blocks := f.core.Blocks
	epoch, err := blocks.AnchorEpoch()
	switch {
	case err != nil:
		return err
	case epoch > blocks.Epoch() || f.broken:
		err = f.readMetadata(epoch)
	default:
		err = f.readTail()
	}
	if err != nil {
		return err
	}
	if f.oldest = f.oldestEpoch(0); f.oldest > 0 || f.images > 0 {
		return nil
	}
	if err := blocks.Forget(); err != nil {
		return err
	}
	f.setPin()
	return nil
}

// readMetadata reads the metadata that the anchor announces, or, if it has not come, the log.
func (f *Follower) readMetadata(announced uint64) error {
	before := f.core.Blocks.Epoch()
	changed, moved, err := f.core.Blocks.Reload()
	if err != nil {
		return err
	}
	if moved {
		f.oldest = f.oldestEpoch(before)
	} else {
		f.announced = announcement{announced, time.Now()}
	}
	if moved || f.broken {
		return f.readStates(changed)
	}
	return f.readTail()
}

// oldestEpoch returns the epoch of the oldest state that a reader may have; other if there is none
// but the current one.
func (f *Follower) oldestEpoch(other uint64) uint64 {
	f.ended = slices.DeleteFunc(f.ended, func(t *tablet.Tablet) bool { return !t.Retired() })
	retired := len(f.ended) > 0
	for _, t := range f.core.sorted() {
		retired = retired || t.Retired()
	}
	if f.oldest > 0 && retired {
		return f.oldest
	}
	return other
}

// readTail applies what is new in the log to the tables, with the same metadata.
func (f *Follower) readTail() error {
	c := f.core
	p := logPass{core: c, stored: &c.stored, tables: c.replayers(), after: c.Visible()}
	p.read = func(_ wal.Options, _ lsn.LSN, fn func(lsn lsn.LSN, payload []byte) error) (*wal.Tail, error) {
		return c.Tail.Load().Continue(fn)
	}
	if err := p.run(0, func() { f.broken = true }); err != nil {
		return err
	}
	f.broken = false
	f.publish(&p)
	return nil
}

// publish makes visible what a pass over the log has applied.
func (f *Follower) publish(p *logPass) {
	f.core.Tail.Store(p.tail)
	f.addTail(p.tail)
	f.core.Advance(p.newest, p.tail.Last(), p.seen)
	if f.core.installs.Load()%2 != 0 {
		f.core.installs.Add(1)
	}
}

// nextState is the state of a table that a Refresh reads. Exactly one of made and table is set.
type nextState struct {
	made  *tablet.Tablet // a new table
	table *Table         // a table of the store
	next  *tablet.Next   // its next state; nil if its metadata has not changed
}

// replayer returns the replayer of the state.
func (n *nextState) replayer() *tablet.Replayer {
	switch {
	case n.made != nil:
		return n.made.Replayer()
	case n.next != nil:
		return n.next.Replayer
	}
	return n.table.Replayer()
}

// discard closes what is new in the state.
func (n *nextState) discard() {
	switch {
	case n.made != nil:
		n.made.End()
	case n.next != nil:
		n.next.Abort()
	}
}

// changedTable says which metadata rows of a table have changed.
type changedTable struct {
	row  bool            // its own
	sets map[uint64]bool // of rowsets
}

func changedTables(keys [][]byte) map[uint32]*changedTable {
	tables := map[uint32]*changedTable{}
	for _, key := range keys {
		kind, table, id, err := meta.ParseKey(key)
		if err != nil || kind == meta.StoreRow {
			continue
		}
		c := tables[table]
		if c == nil {
			c = &changedTable{sets: map[uint64]bool{}}
			tables[table] = c
		}
		if kind == meta.TableRow {
			c.row = true
		} else {
			c.sets[id] = true
		}
	}
	return tables
}

// stateReader reads the states of the tables in new metadata.
type stateReader struct {
	f       *Follower
	core    *Core
	had     lsn.LSN // the tables have the records up to here
	broken  bool    // they may have more
	known   map[uint32]*Table
	changed map[uint32]*changedTable
	next    map[string]*nextState
	from    lsn.LSN // the records from here on are needed
	pass    logPass
}

// readStates reads what new metadata says, of which the rows with some keys have changed. Tables
// with other rows keep their state, and get the new records of the log. The others get a new one,
// with what has not changed in it, and the records that their new rowsets lack.
func (f *Follower) readStates(keys [][]byte) (err error) {
	c := f.core
	r := &stateReader{f: f, core: c, had: c.LastLSN(), broken: f.broken,
		known: map[uint32]*Table{}, changed: changedTables(keys), next: map[string]*nextState{}}
	f.broken = true // until all of it is read
	for _, t := range c.sorted() {
		r.known[t.Number] = t
	}
	stored, rows, err := c.readTables(r.row)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			r.discard()
		}
	}()
	r.pass = logPass{core: c, stored: &stored, has: map[uint32]lsn.LSN{}}
	r.from = r.had + 1
	if r.broken {
		r.from = 0
	}
	for _, row := range rows {
		if err := r.read(row); err != nil {
			return err
		}
	}
	if err := r.log(); err != nil {
		return err
	}
	f.install(r.next)
	c.metaMu.Lock()
	c.stored = stored
	c.metaMu.Unlock()
	f.broken = false
	f.publish(&r.pass)
	return nil
}

// row returns the metadata of a table if its row has not changed, else nil.
func (r *stateReader) row(number uint32) *meta.Table {
	if t, c := r.known[number], r.changed[number]; t != nil && !r.broken && (c == nil || !c.row) {
		return t.Metadata()
	}
	return nil
}

// read makes the state of a table.
func (r *stateReader) read(row *meta.Table) (err error) {
	n, c := &nextState{table: r.known[row.Number]}, r.changed[row.Number]
	switch {
	case n.table == nil:
		if n.made, err = r.core.openTable(row); !r.broken { // the follower has not read its first record
			r.pass.has[row.Number] = r.had
		}
	case r.broken:
		n.next, err = r.core.nextOf(n.table, row, nil, 0)
	case c == nil:
		r.pass.has[row.Number] = r.had
	default:
		if n.next, err = r.core.nextOf(n.table, row, c.sets, r.had); err == nil {
			r.from = min(r.from, n.next.From())
		}
	}
	if err != nil {
		return err
	}
	if r.next[row.Name] != nil {
		n.discard()
		return fault.Corruptf("metadata: two tables are named %q", row.Name)
	}
	r.next[row.Name] = n
	r.pass.tables = append(r.pass.tables, n.replayer())
	return nil
}

func (r *stateReader) discard() {
	for _, n := range r.next {
		n.discard()
	}
}

// log reads the records that are needed.
func (r *stateReader) log() error {
	f := r.f
	from := max(r.from, r.core.Blocks.LogStart())
	r.pass.read = wal.Follow
	if tail := f.tailBefore(from); tail != nil && !r.broken {
		r.pass.read = func(o wal.Options, from lsn.LSN, fn func(lsn lsn.LSN, payload []byte) error) (*wal.Tail, error) {
			found := false
			end, err := tail.Continue(func(at lsn.LSN, payload []byte) error {
				found = true
				return fn(at, payload)
			})
			if err != nil && !found { // its segment may have been removed
				return wal.Follow(o, from, fn)
			}
			return end, err
		}
	}
	if err := r.pass.run(from, nil); err != nil {
		return err
	}
	if last := r.pass.tail.Last(); last < r.had {
		return fault.Corruptf("log ends with LSN %d, but reached LSN %d before", last, r.had)
	}
	return nil
}

// keptTails is how many ends of the log a follower remembers.
const keptTails = 64

// addTail remembers where the log ended.
func (f *Follower) addTail(t *wal.Tail) {
	if n := len(f.tails); n > 0 && f.tails[n-1].Last() == t.Last() {
		f.tails[n-1] = t
		return
	}
	if f.tails = append(f.tails, t); len(f.tails) > keptTails {
		f.tails = slices.Delete(f.tails, 0, 1)
	}
}

// tailBefore returns the last remembered end of the log before an LSN, or nil.
func (f *Follower) tailBefore(lsn lsn.LSN) *wal.Tail {
	for _, t := range slices.Backward(f.tails) {
		if t.Last() < lsn {
			return t
		}
	}
	return nil
}

// install makes the tables those of next, by name. What is new in them is visible after publish.
func (f *Follower) install(next map[string]*nextState) {
	if f.core.installs.Load()%2 == 0 { // else a Refresh failed before publish
		f.core.installs.Add(1)
	}
	f.core.changeTables(func() { f.replaceTables(next) })
}

// Installs returns a number that is odd from when a Refresh replaces the states of tables until it publishes
// what is new in them, and that changes with each Refresh that does. If it is even and has not changed, the
// newest timestamp and the states that a reader got meanwhile are of one Refresh.
func (c *Core) Installs() uint64 { return c.installs.Load() }

func (f *Follower) replaceTables(next map[string]*nextState) {
	c := f.core
	left := map[*Table]bool{}
	for _, t := range c.tables {
		left[t] = true
	}
	clear(c.tables)
	for name, n := range next {
		t := n.table
		switch {
		case t == nil:
			t = c.newTable(n.made)
		case n.next != nil:
			n.next.Install()
		}
		c.tables[name] = t
		delete(left, t)
	}
	for t := range left {
		t.End()
		f.ended = append(f.ended, t.Tablet)
	}
}
