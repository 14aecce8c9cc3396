package tablet

import (
	"context"
	"slices"
	"sync"

	"github.com/oribi-db/oribi/rowset"
)

// claims records which parts of a table its running jobs own. Jobs that own different parts run
// concurrently; each makes an edit of the state that is current when it ends.
//
//	flush          owns the MemRowSets, and the rowsets whose delta mem stores it writes
//	compaction     owns the rowsets that it replaces
//	exclusive job  owns the whole table: Alter, Drop, Rename, Compact, Extract, the end of an Ingest
//
// A flush waits for no compaction: it leaves the delta mem stores of rowsets that one owns in
// memory, where the compaction's successors take them over. A compaction that begins waits for a
// flush that owns one of its rowsets; the next flush finds these rowsets owned. An exclusive job
// lets no new compaction begin, and once the running ones have ended, no new flush:
//
//	compaction of 1, 2   ├───────────────────────────┤
//	flush                    ├─ 3, 4 ─┤ ├─ 3 ─┤        ├──┤
//	compaction of 4             ·······├──────────────┤
//	exclusive job                           ················├─────────┤
//	compaction of 3                            ························├─────
//	flush                                                  ············├──┤
//
// So a flush waits for another flush or an exclusive job only, nothing waits forever, and no two
// jobs wait for each other: a compaction that waits for a flush already owns its rowsets, and a
// flush that runs waits for nothing here.
type claims struct {
	// changed is closed when a job gives something back, and every waiting job looks again: a
	// condition variable would not end a wait with its context. It is nil if no job waits.
	mu        sync.Mutex
	changed   chan struct{}
	exclusive exclusion
	flushing  bool            // a flush runs
	flushed   map[uint64]bool // IDs of the rowsets whose delta mem stores it writes
	compacted map[uint64]bool // IDs of rowsets that compactions own
}

// exclusion says how far an exclusive job has come.
type exclusion int

const (
	noExclusion   exclusion = iota
	noCompactions           // it waits for compactions; flushes may begin
	noJobs                  // it waits for a flush, or runs
)

// wait calls take with c.mu held, when it is called and after each change, until take returns true.
// Errors: ctx.Err().
func (c *claims) wait(ctx context.Context, take func() bool) error {
	for {
		c.mu.Lock()
		if take() {
			c.mu.Unlock()
			return nil
		}
		if c.changed == nil {
			c.changed = make(chan struct{})
		}
		changed := c.changed
		c.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// release calls give with c.mu held, and wakes all waiting jobs.
func (c *claims) release(give func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	give()
	if c.changed != nil {
		close(c.changed)
		c.changed = nil
	}
}

// exclude takes the whole table.
func (c *claims) exclude(ctx context.Context) error {
	err := c.wait(ctx, func() bool {
		if c.exclusive != noExclusion {
			return false
		}
		c.exclusive = noCompactions
		return true
	})
	if err != nil {
		return err
	}
	err = c.wait(ctx, func() bool {
		if len(c.compacted) > 0 {
			return false
		}
		c.exclusive = noJobs
		return true
	})
	if err == nil {
		err = c.wait(ctx, func() bool { return !c.flushing })
	}
	if err != nil {
		c.include()
	}
	return err
}

// include ends what exclude has begun.
func (c *claims) include() {
	c.release(func() {
		c.exclusive = noExclusion
		if !c.flushing { // else a running flush owns them, and exclude has failed
			c.flushed = nil
		}
	})
}

// beginFlush takes the MemRowSets.
func (c *claims) beginFlush(ctx context.Context) error {
	return c.wait(ctx, func() bool {
		if c.flushing || c.exclusive == noJobs {
			return false
		}
		c.flushing = true
		return true
	})
}

func (c *claims) endFlush() {
	c.release(func() { c.flushing, c.flushed = false, nil })
}

// takeFlushed takes, for the running flush or exclusive job, the rowsets of sets that no compaction
// owns and for which want returns true. It returns them.
func (c *claims) takeFlushed(sets []*rowset.DiskRowSet,
	want func(*rowset.DiskRowSet) bool) (taken []*rowset.DiskRowSet) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.flushed = map[uint64]bool{}
	for _, d := range sets {
		if id := d.Metadata().ID; !c.compacted[id] && want(d) {
			c.flushed[id] = true
			taken = append(taken, d)
		}
	}
	return taken
}

// beginCompaction takes rowsets for a compaction, and waits for the flush of any of them.
func (c *claims) beginCompaction(ctx context.Context, ids []uint64) error {
	err := c.wait(ctx, func() bool {
		if c.exclusive != noExclusion || owned(c.compacted, ids) {
			return false
		}
		c.takeCompacted(ids)
		return true
	})
	if err != nil {
		return err
	}
	return c.waitFlushed(ctx, ids)
}

// beginCompactionOfRest takes those rowsets that no other compaction owns, waits for the flush of
// any of them, and returns them.
func (c *claims) beginCompactionOfRest(ctx context.Context, ids []uint64) (taken []uint64, err error) {
	err = c.wait(ctx, func() bool {
		if c.exclusive != noExclusion {
			return false
		}
		taken = slices.DeleteFunc(slices.Clone(ids), func(id uint64) bool { return c.compacted[id] })
		c.takeCompacted(taken)
		return true
	})
	if err != nil {
		return nil, err
	}
	return taken, c.waitFlushed(ctx, taken)
}

// adopt takes, for a running compaction, rowsets that are not part of the table yet.
func (c *claims) adopt(ids []uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.takeCompacted(ids)
}

func (c *claims) takeCompacted(ids []uint64) {
	if c.compacted == nil {
		c.compacted = map[uint64]bool{}
	}
	for _, id := range ids {
		c.compacted[id] = true
	}
}

// waitFlushed waits until no flush owns any of the rowsets of a compaction. After an error the
// compaction has given them back.
func (c *claims) waitFlushed(ctx context.Context, ids []uint64) error {
	err := c.wait(ctx, func() bool { return !owned(c.flushed, ids) })
	if err != nil {
		c.endCompaction(ids)
	}
	return err
}

func (c *claims) endCompaction(ids []uint64) {
	c.release(func() {
		for _, id := range ids {
			delete(c.compacted, id)
		}
	})
}

// waitCompacted waits until no compaction owns any of the rowsets.
func (c *claims) waitCompacted(ctx context.Context, ids []uint64) error {
	return c.wait(ctx, func() bool { return !owned(c.compacted, ids) })
}

// compactedIDs returns the IDs of the rowsets that compactions own.
func (c *claims) compactedIDs() map[uint64]bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make(map[uint64]bool, len(c.compacted))
	for id := range c.compacted {
		out[id] = true
	}
	return out
}

// free reports whether a job could begin now without waiting: a flush, a compaction of all rowsets
// that no other one owns, or one of the given rowsets.
func (c *claims) free(flush, rest bool, ids []uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case flush:
		return !c.flushing && c.exclusive != noJobs
	case rest:
		return c.exclusive == noExclusion && len(c.flushed) == 0
	}
	return c.exclusive == noExclusion && !owned(c.compacted, ids) && !owned(c.flushed, ids)
}

// owned reports whether any of the rowsets is in the set.
func owned(set map[uint64]bool, ids []uint64) bool {
	return slices.ContainsFunc(ids, func(id uint64) bool { return set[id] })
}

// flushing calls work for the owner of the MemRowSets. It returns ctx.Err() if ctx ends before the
// owner before has finished, otherwise the error of work.
func (t *Tablet) flushing(ctx context.Context, work func() error) error {
	if err := t.claims.beginFlush(ctx); err != nil {
		return err
	}
	return t.run(work, t.claims.endFlush)
}

// compacting calls work for the owner of rowsets, which may be gone. It returns ctx.Err() if ctx
// ends before the owners before have finished, otherwise the error of work.
func (t *Tablet) compacting(ctx context.Context, ids []uint64, work func() error) error {
	if err := t.claims.beginCompaction(ctx, ids); err != nil {
		return err
	}
	return t.run(work, func() { t.claims.endCompaction(ids) })
}

// compactingRest is compacting for the table's rowsets that no other compaction owns.
func (t *Tablet) compactingRest(ctx context.Context, work func(ids []uint64) error) error {
	var all []uint64
	for _, m := range t.RowSetMetadata() {
		all = append(all, m.ID)
	}
	ids, err := t.claims.beginCompactionOfRest(ctx, all)
	if err != nil {
		return err
	}
	return t.run(func() error { return work(ids) }, func() { t.claims.endCompaction(ids) })
}

// exclusively calls work for the owner of the whole table. It returns ctx.Err() if ctx ends before
// the owners before have finished, otherwise the error of work.
func (t *Tablet) exclusively(ctx context.Context, work func() error) error {
	return exclusively(ctx, []*Tablet{t}, work)
}

// exclusively calls work for the owner of all the tables, which ascend as by Compare.
func exclusively(ctx context.Context, tables []*Tablet, work func() error) error {
	owned := 0
	defer func() { // after the last table is given back, so that a listener may use all of them
		for _, t := range tables[:owned] {
			t.sendEvents()
		}
	}()
	defer func() {
		for _, t := range tables[:owned] {
			t.claims.include()
		}
	}()
	for _, t := range tables {
		if err := t.claims.exclude(ctx); err != nil {
			return err
		}
		owned++
	}
	return work()
}

// run calls work, then end, and then sends events, so that a listener may use the table.
func (t *Tablet) run(work func() error, end func()) error {
	err := func() error {
		defer end()
		return work()
	}()
	t.sendEvents()
	return err
}
