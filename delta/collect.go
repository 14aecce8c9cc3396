package delta

import (
	"cmp"
	"slices"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/invariant"
	"github.com/oribi-db/oribi/mvcc"
)

// Collector reads all changes of all columns, for compactions, window by window of row IDs. It is
// cheapest when windows ascend. Not for concurrent use.
type Collector struct {
	snap   mvcc.Snapshot
	lender *blockLender // nil if lists stay valid
	births []Birth
	undos  []cursor
	redos  []cursor
	mem    *MemStore // nil if snap sees none of its changes

	undo, redo         []change.Delta // the result of the last call
	lastUndo, lastRedo []change.Delta // of the call before
	buf, lastBuf       []byte         // lists in redo and lastRedo that are not in a store as they are
	rows               []memRow
}

// NewCollector returns a Collector of all undos and of the redos with timestamps below snap. It
// reuses the memory of cblocks and puts none into the cache.
func (t *Tracker) NewCollector(snap mvcc.Snapshot) *Collector {
	return t.newCollector(snap, new(blockLender))
}

func (t *Tracker) newCollector(snap mvcc.Snapshot, lender *blockLender) *Collector {
	c := &Collector{snap: snap, lender: lender, births: t.births}
	for _, f := range t.Undo {
		c.undos = append(c.undos, cursor{file: f, schema: t.schema(), lender: lender})
	}
	for _, f := range t.Redo {
		if need := (filter{kind: redos, to: snap}); f.has(need) {
			c.redos = append(c.redos, cursor{file: f, schema: t.schema(), filter: need, lender: lender})
		}
	}
	if t.Mem.relevant(snap) {
		c.mem = t.Mem
	}
	return c
}

// TakeBirths makes c omit births, and returns the rowset's births.
func (c *Collector) TakeBirths() []Birth {
	births := c.births
	c.births = nil
	return births
}

// Collect returns the changes of rows [from, from+n): undos by row, newest first; redos by row,
// oldest first; changes of one row and timestamp in the order in which they are applied. Delta.Row
// is the row ID. Both slices and the lists in them are valid until the second next call. Errors:
// ErrCorrupt.
func (c *Collector) Collect(from batch.Ordinal, n int) (undo, redo []change.Delta, err error) {
	c.undo, c.lastUndo = c.lastUndo, c.undo
	c.redo, c.lastRedo = c.lastRedo, c.redo
	c.buf, c.lastBuf = c.lastBuf[:0], c.buf
	clear(c.undo)
	clear(c.redo)
	c.undo, c.redo = c.undo[:0], c.redo[:0]
	if c.lender != nil {
		c.lender.takeBack(c.undos, c.redos)
	}
	to := uint64(from) + uint64(n)
	for i := range c.undos {
		err := c.undos[i].scan(uint64(from), to, func(b *deltaBlock, i, j int) {
			c.undo = b.appendEntries(c.undo, i, j, mvcc.Everything)
		})
		if err != nil {
			return nil, nil, err
		}
	}
	for _, b := range birthsOf(c.births, uint64(from), to) {
		c.undo = b.AppendUndos(c.undo, uint64(from), to)
	}
	for i := range c.redos {
		if err := c.redos[i].scan(uint64(from), to, c.takeRedos); err != nil {
			return nil, nil, err
		}
	}
	if m := c.mem; m != nil {
		c.rows = m.appendRows(c.rows[:0], from, to, false)
		for _, r := range c.rows {
			ref := newestBefore(m.changes, r.newest, c.snap)
			c.redo, c.buf = m.appendChanges(c.redo, c.buf, r.row, ref)
		}
	}
	// The stores and the changes in each are in the order in which they are applied, and sorting
	// must keep that order for equal timestamps. Files may overlap in time within a row if a
	// compaction rewrote some columns earlier than others. They do not overlap for any single
	// column, so changes of a column, deletes, and reinserts keep their relative order.
	sortUndos(c.undo)
	sortStable(c.redo, func(a, b change.Delta) int {
		return cmp.Or(cmp.Compare(a.Row, b.Row), cmp.Compare(a.TS, b.TS))
	})
	return c.undo, c.redo, nil
}

func (c *Collector) takeRedos(b *deltaBlock, i, j int) {
	c.redo = b.appendEntries(c.redo, i, j, c.snap)
}

// sortUndos sorts undos by row and within a row newest first.
func sortUndos(undos []change.Delta) {
	sortStable(undos, func(a, b change.Delta) int {
		return cmp.Or(cmp.Compare(a.Row, b.Row), cmp.Compare(b.TS, a.TS))
	})
}

// sortStable sorts deltas that are mostly sorted, since the deltas of each store are.
func sortStable(deltas []change.Delta, order func(a, b change.Delta) int) {
	if !slices.IsSortedFunc(deltas, order) {
		slices.SortStableFunc(deltas, order)
	}
}

// Collect calls Collector.Collect on a new Collector that uses the cache. The slices belong to the
// caller; the lists are never overwritten.
func (t *Tracker) Collect(from batch.Ordinal, n int, snap mvcc.Snapshot) (undo, redo []change.Delta, err error) {
	return t.newCollector(snap, nil).Collect(from, n)
}

// blockLender lends the memory of deltaBlocks to the cursors of one Collector.
type blockLender struct {
	lent []*deltaBlock // since the last call of Collect, or current then
	last []*deltaBlock // others that lists of that call refer to
	free []*deltaBlock
}

// lend returns memory for a cblock.
func (l *blockLender) lend() *deltaBlock {
	b := new(deltaBlock)
	if n := len(l.free); n > 0 {
		b, l.free = l.free[n-1], l.free[:n-1]
	}
	l.lent = append(l.lent, b)
	return b
}

// takeBack frees all blocks except the current ones of cursors and those that the last lists may
// refer to.
func (l *blockLender) takeBack(cursors ...[]cursor) {
	for _, b := range l.last {
		if invariant.Enabled {
			for i := range b.lists {
				b.lists[i] = 0xdd // a list that is used too long shows
			}
		}
		l.free = append(l.free, b)
	}
	lent := l.lent
	l.lent, l.last = l.lent[:0], l.last[:0]
	for _, b := range lent {
		if isCurrent(b, cursors) {
			l.lent = append(l.lent, b)
		} else {
			l.last = append(l.last, b)
		}
	}
}

func isCurrent(b *deltaBlock, cursors [][]cursor) bool {
	for _, list := range cursors {
		if slices.ContainsFunc(list, func(c cursor) bool { return c.block == b }) {
			return true
		}
	}
	return false
}
