package tablet

import (
	"context"
	"fmt"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/blockmanager"
	"github.com/oribi-db/oribi/bloom"
	"github.com/oribi-db/oribi/delta"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/memrowset"
	"github.com/oribi-db/oribi/rowset"
)

const (
	// lastRound limits the changes that the last round applies. That round blocks writers and takes
	// a few µs per change, so its time is about that of the commit that follows.
	lastRound = 256
	// maxRounds limits the number of rounds. If writers are as fast as catching up, the number of
	// remaining changes never falls to lastRound.
	maxRounds = 12
)

// catchUp applies the changes made since a job's cutover point to the stores that replace the ones
// that logged them: the Mem fields of the edit's Added and Replaced. A row whose row ID changes is
// looked up by key, once:
//
//	frozen MemRowSet                  key           → row in an added rowset
//	delta mem store of a removed one  row → key     → row in an added rowset
//	delta mem store that is flushed   row           → the same row
//
// A ghost is never changed, so each row with such a change was live at the cutover point and was
// written exactly once.
type catchUp struct {
	j         *job
	logs      []changeLog
	added     map[uint64]*Added // by rowset ID
	files     *rowset.Tree      // the added rowsets, opened to look up keys; nil = not open
	positions int64             // number of positions remembered by logs
}

// changeLog gives access to the changes that one store has logged.
type changeLog struct {
	next int // the first change that is not caught up
	// apply applies the changes from position from on and returns the position after the last one.
	apply func(from int) (next int, err error)
}

// catchUp waits for the log, syncs what the job has written, and catches up. It returns with writers
// blocked and every change applied.
func (j *job) catchUp(ctx context.Context) error {
	if err := j.awaitLog(); err != nil {
		return err
	}
	if err := j.creation.Sync(); err != nil {
		return err
	}
	for _, d := range j.edit.Removed {
		d.OpenFiles() // commit needs them open, which may take a while
	}
	c := catchUp{j: j, added: map[uint64]*Added{}}
	c.addLogs()
	defer c.close()
	for round := 0; ; round++ {
		n, err := c.round()
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("table %q: %w", j.t.Name(), err)
		}
		if n <= lastRound || round == maxRounds {
			break
		}
	}
	if err := j.blockWriters(); err != nil {
		return err
	}
	if _, err := c.round(); err != nil {
		return fmt.Errorf("table %q: %w", j.t.Name(), err)
	}
	return nil
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
	c.logs = append(c.logs, changeLog{apply: func(from int) (int, error) {
		return m.LoggedChanges(from, func(n memrowset.LoggedChange) error {
			at, err := c.find(known, n.Row, func() ([]byte, error) { return n.Key, nil })
			if err == nil {
				at.mem.Apply(at.row, n.TS, n.LSN, n.List)
			}
			return err
		})
	}})
}

func (c *catchUp) addRemoved(d *rowset.DiskRowSet) {
	known := map[uint64]outputPosition{}
	m := d.Tracker().Mem
	c.logs = append(c.logs, changeLog{apply: func(from int) (int, error) {
		return m.LoggedChanges(from, func(n delta.LoggedChange) error {
			at, err := c.find(known, uint64(n.Row), func() ([]byte, error) { return d.Key(n.Row) })
			if err == nil {
				at.mem.Apply(at.row, n.TS, n.LSN, n.List)
			}
			return err
		})
	}})
}

func (c *catchUp) addFlushed(r *Replaced) {
	m := r.Set.Tracker().Mem
	c.logs = append(c.logs, changeLog{apply: func(from int) (int, error) {
		return m.LoggedChanges(from, func(n delta.LoggedChange) error {
			if r.Mem == nil {
				r.Mem = delta.NewMemStore(c.j.t.opts.RowSets.Grow)
			}
			r.Mem.Apply(n.Row, n.TS, n.LSN, n.List)
			return nil
		})
	}})
}

// round applies the changes logged since the previous round, and returns their number.
func (c *catchUp) round() (n int, err error) {
	for i := range c.logs {
		log := &c.logs[i]
		from := log.next
		log.next, err = log.apply(from)
		if n += log.next - from; err != nil {
			return n, err
		}
	}
	return n, nil
}

// outputPosition is where an added rowset takes the changes of a row.
type outputPosition struct {
	mem *delta.MemStore
	row batch.Ordinal
}

// positionBytes approximates the memory of an outputPosition in a map.
const positionBytes = 64

func (c *catchUp) growPositions(n int64) {
	c.positions += n
	c.j.t.opts.RowSets.Grow(n * positionBytes)
}

// find returns the position of a row in the added rowsets. known maps the number that identifies a
// row in its input to the position found for the row.
func (c *catchUp) find(known map[uint64]outputPosition, number uint64, key func() ([]byte, error)) (outputPosition, error) {
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
			a.Mem = delta.NewMemStore(c.j.t.opts.RowSets.Grow)
		}
		known[number] = outputPosition{a.Mem, row}
		c.growPositions(1)
		return known[number], nil
	}
	return outputPosition{}, fault.Corruptf("key %s was changed but is in no output", c.j.t.KeyText(k))
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
	closeUncommitted(c.files)
	c.growPositions(-c.positions)
}

// uncommittedBlocks are the blocks of a creation that is not committed yet.
type uncommittedBlocks struct{ c *blockmanager.Creation }

func (b uncommittedBlocks) OpenBlock(id block.ID) (rowset.Block, error) { return b.c.OpenBlock(id) }

// openUncommitted opens rowsets that are not committed yet.
func (t *Tablet) openUncommitted(c *blockmanager.Creation, tableSchema *TableSchema, rows []*rowset.Metadata) (*rowset.Tree, error) {
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
