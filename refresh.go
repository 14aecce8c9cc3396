package oribi

import (
	"bytes"
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

// following is what a follower knows of its own progress.
type following struct {
	mu     sync.Mutex       // one Refresh at a time
	broken bool             // a Refresh has failed after it had changed tables: all must be read again
	oldest uint64           // epoch of the oldest state that a reader may have; 0: the current one
	images int              // that are open
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
	return callErr("refresh", tryFollowing(ctx, &s.opts, s.dir, s.refresh))
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
		return callErr("wait", s.pub.WaitAbove(ctx, s.pub.Visible()))
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
	s.reader.set(s.blocks.Epoch(), s.blocks.LogStart())
	return nil
}

// readMetadata reads the metadata that the anchor announces, or, if it has not come, the log.
func (s *Store) readMetadata(announced uint64) error {
	f, before := &s.following, s.rows()
	changed, err := s.blocks.Reload()
	if err != nil {
		return err
	}
	if changed {
		f.oldest = s.oldestEpoch(before.epoch)
	} else {
		f.announced, f.at = announced, time.Now()
	}
	if changed || f.broken {
		return s.readStates(before)
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
	p := logPass{s: s, stored: &s.stored, tables: tables, after: s.pub.Visible()}
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
	s.clock.Restore(p.newest)
	s.lastLSN.Store(p.tail.Last())
	s.pub.Advance(p.newest, p.tail.Last())
	s.appendMu.Lock()
	s.seen = max(s.seen, p.seen)
	s.appendMu.Unlock()
}

// metaRows are the metadata rows of the caller of the block manager, as of one epoch.
type metaRows struct {
	epoch  uint64
	tables map[uint32][][]byte // keys and values of the rows of a table and of its rowsets
}

func (s *Store) rows() metaRows {
	r := metaRows{epoch: s.blocks.Epoch(), tables: map[uint32][][]byte{}}
	s.blocks.Rows(nil, func(key, value []byte) error { // fn returns no error
		if kind, table, _, err := meta.ParseKey(key); err == nil && kind != meta.StoreRow {
			r.tables[table] = append(r.tables[table], key, value)
		}
		return nil
	})
	return r
}

// nextState is the state of a table that a Refresh reads.
type nextState struct {
	table *Table         // that the store has; nil: a new one
	tab   *tablet.Tablet // that of table, if its metadata has not changed; else one that replaces it
}

// readStates reads what new metadata says. Tables whose rows are those of before get the new
// records of the log; the others are made anew, and get all records from log_start on that are not
// in their files.
func (s *Store) readStates(before metaRows) (err error) {
	stored, rows, err := s.readTables()
	if err != nil {
		return err
	}
	known := map[uint32]*Table{}
	for _, t := range s.sortedTables() {
		known[t.tab.Number] = t
	}
	now := s.rows()
	p := logPass{s: s, read: wal.Follow, stored: &stored, has: map[uint32]lsn.LSN{}}
	next := map[string]*nextState{}
	broken := s.following.broken
	s.following.broken = true
	defer func() {
		if err != nil {
			for _, n := range next {
				if n.table == nil || n.tab != n.table.tab {
					n.tab.Discard()
				}
			}
		}
	}()
	for _, row := range rows {
		n := &nextState{table: known[row.Number]}
		if n.table != nil && !broken && equalRows(before.tables[row.Number], now.tables[row.Number]) {
			n.tab = n.table.tab
			p.has[row.Number] = s.lastLSN.Load()
		} else if n.tab, err = s.openTable(row); err != nil {
			return err
		}
		if next[row.Name] != nil {
			n.tab.Discard()
			return fault.Corruptf("metadata: two tables are named %q", row.Name)
		}
		next[row.Name] = n
		p.tables = append(p.tables, n.tab)
	}
	if err := p.run(s.blocks.LogStart(), nil); err != nil {
		return err
	}
	if last, had := p.tail.Last(), s.lastLSN.Load(); last < had {
		return fault.Corruptf("log ends with LSN %d, but reached LSN %d before", last, had)
	}
	s.installStates(next)
	s.metaMu.Lock()
	s.stored = stored
	s.metaMu.Unlock()
	s.following.broken = false
	s.arrive(&p)
	return nil
}

func equalRows(a, b [][]byte) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !bytes.Equal(a[i], b[i]) {
			return false
		}
	}
	return true
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
		v, err := t.tab.View(tablet.Snapshot{At: mvcc.AsOf(sn.ts)})
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
