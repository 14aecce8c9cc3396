package oribi

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/meta"
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
// The steps need not be of one moment, as in an open (see openFollower): the log is read last, so it is
// the newest. What it has beyond the metadata ends it.
//
//	writer     append 7   flush: commit of epoch 5   append 8   ingest: append 9             commit of epoch 6
//	follower      had 6   anchor 5 journal 5: table t                          log 7 … 8, 9 announces: as of 8
//
// Nothing of it is visible before all of it is read: readers have the published timestamp of before,
// and new records have higher ones. After a failure in the middle, the stores in memory may have
// records that are not published. Nobody sees them; the next try reads everything anew.

// following is what a follower knows of its own progress.
type following struct {
	mu     sync.Mutex       // one Refresh at a time
	broken bool             // a Refresh has failed after it had changed tables: all must be read again
	oldest uint64           // epoch of the oldest state that a reader may have; 0: the current one
	images int              // that are open
	tails  []*wal.Tail      // ends of the log that were found, ascending
	ended  []*tablet.Tablet // that the writer has dropped, and of which readers may have states

	// The anchor announced this epoch at that time, and there was no such metadata. A writer that
	// was killed leaves it so.
	announced uint64
	at        time.Time
}

// announcedAgain is after what time Wait takes an announced epoch for news again.
const announcedAgain = 100 * time.Millisecond

// Refresh moves a follower to the newest state of the store: every write batch whose Commit had
// returned when Refresh was called, and perhaps later ones. Its cost depends on what has changed.
// Reads that run, and open snapshots, keep the state that they have. Tables stay valid; those that
// the writer has dropped return ErrNoTable.
//
// In a store that was not opened with Options.Follow, Refresh does nothing: it always sees the
// newest state, or, opened read-only, there is no other. Errors: ErrLocked if a writer changes the
// store faster than it can be read, within five seconds; ErrCorrupt; ErrClosed; ctx.Err(). After an
// error the follower has the state from before.
func (s *Store) Refresh(ctx context.Context) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	if err := ctx.Err(); err != nil || !s.opts.Follow {
		return callErr("refresh", err)
	}
	s.following.mu.Lock()
	defer s.following.mu.Unlock()
	return callErr("refresh", s.dir.Retry(ctx, s.refresh))
}

func (f *following) endImage() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.images--
}

// ofThePast returns err as ErrTooOld if it is ErrCorrupt, in a follower whose writer has gone on:
// files that the follower needs may have been removed.
func (s *Store) ofThePast(err error) error {
	if !s.opts.Follow || !errors.Is(err, fault.ErrCorrupt) {
		return err
	}
	if epoch, aerr := s.blocks.AnchorEpoch(); aerr == nil && epoch <= s.blocks.Epoch() {
		return err
	}
	return fault.Reworded(fault.ErrTooOld, "the writer has removed what this follower needs: refresh it, or open it again (%v)", err)
}

// restartTries is how often a read of a follower begins again.
const restartTries = 3

// restarts refreshes a follower in which a read of the newest state needs something that the writer
// has removed, and reports whether the read, which has returned nothing yet, may begin again.
func (s *Store) restarts(ctx context.Context, asOf bool, err error, tries int) bool {
	return s.opts.Follow && !asOf && tries < restartTries && errors.Is(err, fault.ErrTooOld) && s.Refresh(ctx) == nil
}

// restarts is Store.restarts for a read of a table with options.
func restarts[O option](ctx context.Context, t *Table, opts []O, err error, tries int) bool {
	return t.store.opts.Follow && t.store.restarts(ctx, collect(opts).asOf, err, tries)
}

// Between two looks for something new, Wait sleeps, for a time that doubles up to the second value.
const waitSleep, waitMaxSleep = time.Millisecond, 50 * time.Millisecond

// Wait returns when a follower would find something new by Refresh, or may. It looks at the files
// periodically: the writer copies small batches into mapped memory, of which the system tells
// nobody.
//
// In a store that was not opened with Options.Follow, Wait waits for the next write batch to become
// visible. Errors: ctx.Err(); ErrPoisoned; ErrClosed.
func (s *Store) Wait(ctx context.Context) error {
	if !s.opts.Follow {
		return callErr("wait", s.timeline.WaitAbove(ctx, s.timeline.Visible()))
	}
	for sleep := waitSleep; ; sleep = min(2*sleep, waitMaxSleep) {
		news, err := s.news()
		if err != nil || news {
			return err
		}
		select {
		case <-ctx.Done():
			return callErr("wait", ctx.Err())
		case <-time.After(sleep):
		}
	}
}

// news reports whether a Refresh may find something.
func (s *Store) news() (bool, error) {
	if err := s.enter(); err != nil {
		return false, err
	}
	defer s.leave()
	s.following.mu.Lock()
	defer s.following.mu.Unlock()
	f := &s.following
	epoch, err := s.blocks.AnchorEpoch()
	switch {
	case err != nil, f.broken, s.logTail.Load().News():
		return true, nil
	case epoch <= s.blocks.Epoch():
		return false, nil
	}
	return epoch != f.announced || time.Since(f.at) > announcedAgain, nil
}

// refresh is one try of Refresh.
func (s *Store) refresh() error {
	epoch, err := s.blocks.AnchorEpoch()
	switch {
	case err != nil:
		return err
	case epoch > s.blocks.Epoch() || s.following.broken:
		err = s.readMetadata(epoch)
	default:
		err = s.readTail()
	}
	if err != nil {
		return err
	}
	if s.following.oldest = s.oldestEpoch(0); s.following.oldest > 0 || s.following.images > 0 {
		return nil
	}
	if err := s.blocks.Forget(); err != nil {
		return err
	}
	s.reader.Set(s.blocks.Epoch(), s.blocks.LogStart())
	return nil
}

// readMetadata reads the metadata that the anchor announces, or, if it has not come, the log.
func (s *Store) readMetadata(announced uint64) error {
	f, before := &s.following, s.blocks.Epoch()
	changed, moved, err := s.blocks.Reload()
	if err != nil {
		return err
	}
	if moved {
		f.oldest = s.oldestEpoch(before)
	} else {
		f.announced, f.at = announced, time.Now()
	}
	if moved || f.broken {
		return s.readStates(changed)
	}
	return s.readTail()
}

// oldestEpoch returns the epoch of the oldest state that a reader may have; other if there is none
// but the current one.
func (s *Store) oldestEpoch(other uint64) uint64 {
	f := &s.following
	f.ended = slices.DeleteFunc(f.ended, func(t *tablet.Tablet) bool { return !t.Retired() })
	retired := len(f.ended) > 0
	for _, t := range s.sortedTables() {
		retired = retired || t.tab.Retired()
	}
	if f.oldest > 0 && retired {
		return f.oldest
	}
	return other
}

// readTail applies what is new in the log to the tables, with the same metadata.
func (s *Store) readTail() error {
	var tables []*tablet.Tablet
	for _, t := range s.sortedTables() {
		tables = append(tables, t.tab)
	}
	p := logPass{s: s, stored: &s.stored, tables: tables, after: s.timeline.Visible()}
	p.read = func(_ wal.Options, _ lsn.LSN, fn func(lsn lsn.LSN, payload []byte) error) (*wal.Tail, error) {
		return s.logTail.Load().Continue(fn)
	}
	if err := p.run(0, func() { s.following.broken = true }); err != nil {
		return err
	}
	s.following.broken = false
	s.arrive(&p)
	return nil
}

// arrive makes visible what a pass over the log has applied.
func (s *Store) arrive(p *logPass) {
	s.logTail.Store(p.tail)
	s.following.addTail(p.tail)
	s.timeline.Advance(p.newest, p.tail.Last(), p.seen)
}

// nextState is the state of a table that a Refresh reads.
type nextState struct {
	table *Table         // that the store has; nil: a new one
	tab   *tablet.Tablet // that of table, if its metadata has not changed; else one that replaces it
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
	s       *Store
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
func (s *Store) readStates(keys [][]byte) (err error) {
	r := &stateReader{s: s, had: s.timeline.LastLSN(), broken: s.following.broken, known: map[uint32]*Table{}, changed: changedTables(keys), next: map[string]*nextState{}}
	s.following.broken = true // until all of it is read
	for _, t := range s.sortedTables() {
		r.known[t.tab.Number] = t
	}
	stored, rows, err := s.readTables(r.row)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			r.discard()
		}
	}()
	r.pass = logPass{s: s, stored: &stored, has: map[uint32]lsn.LSN{}}
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
	s.installStates(r.next)
	s.metaMu.Lock()
	s.stored = stored
	s.metaMu.Unlock()
	s.following.broken = false
	s.arrive(&r.pass)
	return nil
}

// row returns the metadata of a table if its row has not changed, else nil.
func (r *stateReader) row(number uint32) *meta.Table {
	if t, c := r.known[number], r.changed[number]; t != nil && !r.broken && (c == nil || !c.row) {
		return t.tab.Metadata()
	}
	return nil
}

// read makes the state of a table.
func (r *stateReader) read(row *meta.Table) (err error) {
	n, c := &nextState{table: r.known[row.Number]}, r.changed[row.Number]
	switch {
	case r.broken:
		n.tab, err = r.s.openTable(row)
	case n.table == nil: // its first record is one that the follower has not read
		n.tab, err = r.s.openTable(row)
		r.pass.has[row.Number] = r.had
	case c == nil:
		n.tab = n.table.tab
		r.pass.has[row.Number] = r.had
	default:
		var from lsn.LSN
		n.tab, from, err = r.s.openNext(row, tablet.Next{Of: n.table.tab, Changed: c.sets, UpTo: r.had})
		r.from = min(r.from, from)
	}
	if err != nil {
		return err
	}
	if r.next[row.Name] != nil {
		r.discardOne(n)
		return fault.Corruptf("metadata: two tables are named %q", row.Name)
	}
	r.next[row.Name] = n
	r.pass.tables = append(r.pass.tables, n.tab)
	return nil
}

func (r *stateReader) discard() {
	for _, n := range r.next {
		r.discardOne(n)
	}
}

func (r *stateReader) discardOne(n *nextState) {
	if n.table == nil || n.tab != n.table.tab {
		n.tab.Discard()
	}
}

// log reads the records that are needed.
func (r *stateReader) log() error {
	s, f := r.s, &r.s.following
	from := max(r.from, s.blocks.LogStart())
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
func (f *following) addTail(t *wal.Tail) {
	if n := len(f.tails); n > 0 && f.tails[n-1].Last() == t.Last() {
		f.tails[n-1] = t
		return
	}
	if f.tails = append(f.tails, t); len(f.tails) > keptTails {
		f.tails = slices.Delete(f.tails, 0, 1)
	}
}

// tailBefore returns the last remembered end of the log before an LSN, nil if there is none.
func (f *following) tailBefore(lsn lsn.LSN) *wal.Tail {
	for _, t := range slices.Backward(f.tails) {
		if t.Last() < lsn {
			return t
		}
	}
	return nil
}

// installStates makes the tables those of next, by name.
func (s *Store) installStates(next map[string]*nextState) {
	s.tablesMu.Lock()
	defer s.tablesMu.Unlock()
	left := map[*Table]bool{}
	for _, t := range s.tables {
		left[t] = true
	}
	clear(s.tables)
	for name, n := range next {
		t := n.table
		switch {
		case t == nil:
			t = &Table{store: s, tab: n.tab}
		case n.tab != t.tab:
			t.tab.Replace(n.tab)
		}
		s.tables[name] = t
		delete(left, t)
	}
	for t := range left {
		t.tab.End()
		s.following.ended = append(s.following.ended, t.tab)
	}
}

// keep makes a snapshot of a follower keep the states of the tables, in which it reads.
func (sn *Snapshot) keep() {
	s := sn.store
	if !s.opts.Follow {
		return
	}
	sn.states = map[*Table]tablet.View{}
	for _, t := range s.sortedTables() {
		v, err := t.tab.View(tablet.Snapshot{At: mvcc.AsOf(sn.pin.TS)})
		if err == nil { // else a read has the same error
			sn.states[t] = v
		}
	}
}

// state returns the view of a table that the snapshot keeps, which the caller releases.
func (sn *Snapshot) state(t *Table) (tablet.View, bool) {
	sn.statesMu.Lock()
	defer sn.statesMu.Unlock()
	v, ok := sn.states[t]
	if ok {
		v = v.Ref()
	}
	return v, ok
}

// release releases the states.
func (sn *Snapshot) release() {
	sn.statesMu.Lock()
	defer sn.statesMu.Unlock()
	for _, v := range sn.states {
		v.Release()
	}
	sn.states = nil
}
