package tablet

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/blockmanager"
	"github.com/oribi-db/oribi/bloom"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/delta"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/memrowset"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/rowset"
)

const (
	// lastRound limits the changes that the last round applies. That round blocks writers and takes
	// a few µs per change.
	lastRound = 64
	// maxRounds limits the number of rounds. If writers are as fast as catching up, the number of
	// remaining changes never falls to lastRound.
	maxRounds = 12
)

// catchUp applies the changes made since a job's cutover point to the stores that replace the
// stores in which they were logged: the Mem fields of the edit's Added and Replaced. A row whose
// row ID changes is looked up by key, once:
//
//	frozen MemRowSet                  key           → row in an added rowset
//	delta mem store of a removed one  row → key     → row in an added rowset
//	delta mem store that is flushed   row           → the same row
//
// A delete of a range in one of the first two is the delete of all rows of the added rowsets between two
// keys: all rows there that exist were deleted with it, also those from other stores. So the changes
// before it in all logs come first, see round.
//
// A ghost is never changed, so each row with such a change was live at the cutover point and was
// written exactly once.
type catchUp struct {
	j         *job
	logs      []changeLog
	added     map[uint64]*Added // by rowset ID
	st        *tabletState      // the table's state before the commit; nil until metaCommit
	files     *rowset.Tree      // the added rowsets, opened to look up keys; nil = not open
	positions int64             // of rows in added rowsets, remembered by logs; bounds their memory
}

// changeLog gives access to the changes that one store has logged.
type changeLog struct {
	next int // the first change that is not caught up
	// apply applies the changes from position from on and returns the position after the last one. It
	// stops before a delete of a range, which it returns.
	apply func(from int) (next int, held *heldRange, err error)
}

// heldRange is a delete of the rows with keys in [first, last], before which a log has stopped.
type heldRange struct {
	log         *changeLog
	first, last []byte
	ts          mvcc.Timestamp
	lsn         lsn.LSN
}

// errHeld ends the reading of a log before a delete of a range.
var errHeld = errors.New("held")

// finish commits the edit of a job that freeze began, in metadata and then in memory. Writers
// continue, except while they are blocked for the last round and the new state.
func (j *job) finish(ctx context.Context) error {
	if err := j.awaitLog(); err != nil {
		return err
	}
	if err := j.creation.Sync(); err != nil {
		return err
	}
	j.countWritten()
	c := newCatchUp(j)
	defer c.close()
	commit, err := c.metaCommit(ctx)
	if err == nil {
		err = j.t.opts.Store.CommitMeta(commit)
	}
	if err != nil {
		return fmt.Errorf("table %q: %w", j.t.Name(), err)
	}
	return nil
}

// newCatchUp returns the catch-up of a job whose files are written. The caller calls close.
func newCatchUp(j *job) *catchUp {
	c := &catchUp{j: j, added: map[uint64]*Added{}}
	c.addLogs()
	return c
}

// rounds catches up until few changes are left, or until a round had no fewer than the one before:
// then writers are faster, and each further round would be longer. It ends with the first error of
// proceed, which it calls after each round.
func (c *catchUp) rounds(proceed func() error) error {
	last := math.MaxInt
	for round := 0; ; round++ {
		n, err := c.round()
		if err == nil {
			err = proceed()
		}
		if err != nil {
			return err
		}
		if n <= lastRound || n >= last || round == maxRounds {
			return nil
		}
		last = n
	}
}

// metaCommit catches up and returns the job's part in a metadata commit. The log is kept from the
// first change on that is in a store of the edit, or that is not caught up yet: after a kill, replay
// applies both to the new files.
func (c *catchUp) metaCommit(ctx context.Context) (m MetaCommit, err error) {
	if err := c.rounds(ctx.Err); err != nil {
		return m, err
	}
	j := c.j
	applied := j.t.applied()
	if c.st, err = j.t.acquire(); err != nil {
		return m, err
	}
	if _, err := c.round(); err != nil { // now all changes up to applied are caught up
		return m, err
	}
	first := func() lsn.LSN { return min(j.edit.firstLSN(c.st), applied+1) }
	return j.metaCommit(first, c.publish), nil
}

// publish replaces the table's state after the metadata commit. It catches up what was changed in
// the meantime, and blocks writers for the last round.
func (c *catchUp) publish() error {
	j := c.j
	if err := j.edit.open(j.schema.Schema, j.t.opts.RowSets); err != nil {
		return err
	}
	c.useAdded()
	if err := c.rounds(func() error { return nil }); err != nil {
		return err
	}
	if err := j.blockWriters(); err != nil {
		return err
	}
	if _, err := c.round(); err != nil {
		return err
	}
	if err := j.install(); err != nil {
		return err
	}
	j.unblockWriters()
	return nil
}

// applied returns an LSN up to which every operation on the table in the log has been applied.
func (t *Tablet) applied() lsn.LSN {
	t.gate.Lock()
	defer t.gate.Unlock()
	return t.opts.Store.LastLSN()
}

func (c *catchUp) addLogs() {
	e := &c.j.edit
	for i := range e.Added {
		c.added[e.Added[i].Row.ID] = &e.Added[i]
	}
	if e.Frozen != nil {
		c.addMemRowSet(e.Frozen.mem)
	}
	for _, d := range e.Removed {
		c.addRemoved(d)
	}
	for i := range e.Replaced {
		c.addFlushed(&e.Replaced[i])
	}
}

func (c *catchUp) addMemRowSet(m *memrowset.MemRowSet) {
	known := map[uint64]outputPosition{}
	c.logs = append(c.logs, changeLog{apply: func(from int) (next int, held *heldRange, err error) {
		next, err = m.LoggedChanges(from, func(n memrowset.LoggedChange) error {
			if n.Last != nil {
				held = &heldRange{first: n.Key, last: n.Last, ts: n.TS, lsn: n.LSN}
				return errHeld
			}
			at, err := c.find(known, n.Row, n.List, func() ([]byte, error) { return n.Key, nil })
			at.apply(n.TS, n.LSN, n.List)
			return err
		})
		return next, held, err
	}})
}

func (c *catchUp) addRemoved(d *rowset.DiskRowSet) {
	known := map[uint64]outputPosition{}
	m := d.Tracker().Mem
	c.logs = append(c.logs, changeLog{apply: func(from int) (next int, held *heldRange, err error) {
		next, err = m.LoggedChanges(from, func(n delta.LoggedChange) error {
			if n.Rows > 0 {
				held = &heldRange{ts: n.TS, lsn: n.LSN}
				if held.first, err = d.Key(n.Row); err == nil {
					held.last, err = d.Key(n.Row + batch.Ordinal(n.Rows-1))
				}
				return cmp.Or(err, errHeld)
			}
			at, err := c.find(known, uint64(n.Row), n.List, func() ([]byte, error) { return d.Key(n.Row) })
			at.apply(n.TS, n.LSN, n.List)
			return err
		})
		return next, held, err
	}})
}

func (c *catchUp) addFlushed(r *Replaced) {
	m := r.Set.Tracker().Mem
	c.logs = append(c.logs, changeLog{apply: func(from int) (next int, held *heldRange, err error) {
		next, err = m.LoggedChanges(from, func(n delta.LoggedChange) error {
			if r.Mem == nil {
				r.Mem = delta.NewMemStore(c.j.schema.RowFormat, c.j.t.opts.RowSets.Grow)
			}
			if n.Rows > 0 {
				r.Mem.DeleteRun(n.Row, n.Rows, n.TS, n.LSN)
			} else {
				r.Mem.Apply(n.Row, n.TS, n.LSN, n.List)
			}
			return nil
		})
		return next, nil, err
	}})
}

// round applies the changes logged since the previous round, and returns their number.
//
// All logs stop before a delete of a range, and the one with the lowest LSN comes first:
//
//	log 1   ── 7 ── range 9 │            ── 12 ──
//	log 2   ── 8 ── 10 ─────┼── range 11 │
//	                        first        then
//
// While it was applied to the stores, no other writer was between two of them. So when one log has it,
// all logs have the changes before it, after a second reading of those that were read earlier.
func (c *catchUp) round() (n int, err error) {
	for {
		var held *heldRange
		for range 2 {
			var some int
			if some, held, err = c.advance(); err != nil {
				return n, err
			}
			if n += some; held == nil {
				return n, nil
			}
		}
		if err := c.deleteRange(held); err != nil {
			return n, err
		}
		held.log.next++
		n++
	}
}

// advance applies the changes of each log up to its next delete of a range, and returns their number, and
// the one of these deletes that comes first.
func (c *catchUp) advance() (n int, first *heldRange, _ error) {
	for i := range c.logs {
		log := &c.logs[i]
		from := log.next
		next, held, err := log.apply(from)
		log.next = next
		if n += next - from; err != nil && err != errHeld {
			return n, nil, err
		}
		if held != nil && (first == nil || held.lsn < first.lsn) {
			held.log, first = log, held
		}
	}
	return n, first, nil
}

// deleteRange deletes the rows of the added rowsets that exist and have keys in a range.
func (c *catchUp) deleteRange(r *heldRange) error {
	if err := c.open(); err != nil {
		return err
	}
	upper := append(bytes.Clone(r.last), 0) // the least key above r.last
	for _, d := range c.files.Range(nil, r.first, upper) {
		a := c.added[d.Metadata().ID]
		if a.Mem == nil {
			a.Mem = delta.NewMemStore(c.j.schema.RowFormat, c.j.t.opts.RowSets.Grow)
		}
		err := d.LiveRuns(r.first, upper, func(first batch.Ordinal, n uint32) { a.Mem.DeleteRun(first, n, r.ts, r.lsn) })
		if err != nil {
			return err
		}
	}
	return nil
}

// outputPosition is the position of a row in an added rowset, to which the row's changes are
// applied. It is zero if the rewrite has dropped the row.
type outputPosition struct {
	mem *delta.MemStore
	row batch.Ordinal
}

func (at outputPosition) apply(ts mvcc.Timestamp, lsn lsn.LSN, list change.List) {
	if at.mem != nil {
		at.mem.Apply(at.row, ts, lsn, list)
	}
}

// positionBytes approximates the memory of an outputPosition in a map.
const positionBytes = 64

func (c *catchUp) growPositions(n int64) {
	c.positions += n
	c.j.t.opts.RowSets.Grow(n * positionBytes)
}

// find returns the position of a row in the added rowsets, to which list is applied. known maps the
// number that identifies a row in its input to the position found for the row. A row that has expired
// may not be there: the only change that it takes is a DELETE.
func (c *catchUp) find(known map[uint64]outputPosition, number uint64, list change.List,
	key func() ([]byte, error)) (outputPosition, error) {
	if at, ok := known[number]; ok {
		return at, nil
	}
	k, err := key()
	if err == nil {
		err = c.open()
	}
	if err != nil {
		return outputPosition{}, err
	}
	var buf [1]*rowset.DiskRowSet
	for _, d := range c.files.Candidates(buf[:0], k) {
		row, found, err := d.Find(bloom.MakeProbe(k))
		if err != nil {
			return outputPosition{}, err
		}
		if !found {
			continue
		}
		a := c.added[d.Metadata().ID]
		if a.Mem == nil {
			a.Mem = delta.NewMemStore(c.j.schema.RowFormat, c.j.t.opts.RowSets.Grow)
		}
		known[number] = outputPosition{a.Mem, row}
		c.growPositions(1)
		return known[number], nil
	}
	if c.j.schema.mayDrop() && isDelete(list) {
		return outputPosition{}, nil
	}
	return outputPosition{}, fault.Corruptf("key %s was changed but is in no output", c.j.t.KeyText(k))
}

// useAdded makes the rowsets that the edit has opened after the commit those in which rows are
// found.
func (c *catchUp) useAdded() {
	closeUncommitted(c.files)
	var sets []*rowset.DiskRowSet
	for _, a := range c.j.edit.Added {
		a.set.Ref()
		sets = append(sets, a.set)
	}
	c.files = rowset.NewTree(sets)
}

// open opens the added rowsets, unless they are open.
func (c *catchUp) open() (err error) {
	if c.files == nil {
		var rows []*rowset.Metadata
		for _, a := range c.j.edit.Added {
			rows = append(rows, a.Row)
		}
		c.files, err = c.j.t.openUncommitted(c.j.creation, c.j.schema, rows)
	}
	return err
}

func (c *catchUp) close() {
	if c.st != nil {
		c.st.release()
	}
	closeUncommitted(c.files)
	c.growPositions(-c.positions)
}

// uncommittedBlocks are the blocks of a creation that is not committed yet.
type uncommittedBlocks struct{ c *blockmanager.Creation }

func (b uncommittedBlocks) OpenBlock(id block.ID) (rowset.Block, error) { return b.c.OpenBlock(id) }

// openUncommitted opens rowsets that are not committed yet.
func (t *Tablet) openUncommitted(c *blockmanager.Creation, tableSchema *TableSchema,
	rows []*rowset.Metadata) (*rowset.Tree, error) {
	o := t.opts.RowSets
	o.Blocks = uncommittedBlocks{c}
	var sets []*rowset.DiskRowSet
	for _, m := range rows {
		d, err := rowset.Open(tableSchema.Schema, m, o)
		if err != nil {
			for _, d := range sets {
				d.Unref()
			}
			return nil, err
		}
		sets = append(sets, d)
	}
	return rowset.NewTree(sets), nil
}

// closeUncommitted closes what openUncommitted opened. It does nothing if tree is nil.
func closeUncommitted(tree *rowset.Tree) {
	if tree == nil {
		return
	}
	for _, d := range tree.Sets {
		d.Unref()
	}
}
