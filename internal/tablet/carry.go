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
	"github.com/oribi-db/oribi/internal/meta"
	"github.com/oribi-db/oribi/memrowset"
	"github.com/oribi-db/oribi/rowset"
)

const (
	// The last round is made with writers held, a few µs a change: so few make it as short as the
	// commit behind it.
	lastRound = 256
	// Where writers are as fast as the carrying over, it never gets to so few; then so many rounds
	// are enough.
	maxRounds = 12
)

// finish makes what was written part of the table, with what came meanwhile. Writers are held from
// the last round to the end.
func (r *rewrite) finish(ctx context.Context) error {
	if err := r.creation.Sync(); err != nil {
		return err
	}
	for _, d := range r.in {
		d.OpenFiles() // for readers that hold the old layout and have not needed each file yet
	}
	inputs := r.rewriteInputs()
	for round := 0; ; round++ {
		n, err := catchUp(inputs)
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("table %q: %w", r.t.Name(), err)
		}
		if n <= lastRound || round == maxRounds {
			break
		}
	}
	if err := r.blockWriters(); err != nil {
		return err
	}
	if _, err := catchUp(inputs); err != nil {
		return fmt.Errorf("table %q: %w", r.t.Name(), err)
	}
	r.closeFiles()
	return r.commit()
}

// source is a store whose changes behind the rewrite's moment have to get to the stores that take
// its place.
type rewriteInput struct {
	next  int // the first change that was not carried over
	apply func(from int) (next int, err error)
}

// carry carries over what has come to the sources since the last round.
func catchUp(inputs []rewriteInput) (n int, err error) {
	for i := range inputs {
		s := &inputs[i]
		from := s.next
		s.next, err = s.apply(from)
		if n += s.next - from; err != nil {
			return n, err
		}
	}
	return n, nil
}

// sources are the stores that note changes. Where the row IDs are other ones in the outputs, rows
// are looked up by their keys, each once.
//
//	frozen MemRowSet                  key           → row in an output
//	delta mem store of an input       row → key     → row in an output
//	delta mem store that is flushed   row           → the same row, in the store that takes its place
//
// A row that has such a change was live at the moment, since no ghost is ever changed, so it was
// written, and once.
func (r *rewrite) rewriteInputs() (list []rewriteInput) {
	if r.frozen != nil {
		m, known := r.frozen.mem, map[uint64]outputPosition{}
		list = append(list, rewriteInput{apply: func(from int) (int, error) {
			return m.LoggedChanges(from, func(n memrowset.LoggedChange) error {
				at, err := r.find(known, n.Row, func() ([]byte, error) { return n.Key, nil })
				if err == nil {
					at.mem.Apply(at.row, n.TS, n.LSN, n.List)
				}
				return err
			})
		}})
	}
	for i, d := range r.in {
		m, known := r.logging[i], map[uint64]outputPosition{}
		list = append(list, rewriteInput{apply: func(from int) (int, error) {
			return m.LoggedChanges(from, func(n delta.LoggedChange) error {
				at, err := r.find(known, uint64(n.Row), func() ([]byte, error) { return d.Key(n.Row) })
				if err == nil {
					at.mem.Apply(at.row, n.TS, n.LSN, n.List)
				}
				return err
			})
		}})
	}
	for i := range r.flushed {
		f := &r.flushed[i]
		list = append(list, rewriteInput{apply: func(from int) (int, error) {
			return f.from.LoggedChanges(from, func(n delta.LoggedChange) error {
				if f.mem == nil {
					f.mem = delta.NewMemStore(r.t.opts.RowSets.Grow)
				}
				f.mem.Apply(n.Row, n.TS, n.LSN, n.List)
				return nil
			})
		}})
	}
	return list
}

// spot is where an output takes changes of a row.
type outputPosition struct {
	mem *delta.MemStore
	row batch.Ordinal
}

// spotBytes is about what a map takes for a spot.
const positionBytes = 64

func (r *rewrite) growPositions(n int64) {
	r.positions += n
	r.t.opts.RowSets.Grow(n * positionBytes)
}

// find tells where the outputs have a row, which known knows by some number once it was found.
func (r *rewrite) find(known map[uint64]outputPosition, number uint64, key func() ([]byte, error)) (outputPosition, error) {
	if at, ok := known[number]; ok {
		return at, nil
	}
	k, err := key()
	if err == nil && r.files == nil {
		r.files, err = r.t.openNew(r.creation, r.old.shape, r.out)
	}
	if err != nil {
		return outputPosition{}, err
	}
	var few [1]*rowset.DiskRowSet
	for _, d := range r.files.Candidates(few[:0], k) {
		row, found, err := d.Find(bloom.MakeProbe(k))
		if err != nil {
			return outputPosition{}, err
		}
		if !found {
			continue
		}
		id := d.Metadata().ID
		if r.caughtUp[id] == nil {
			r.caughtUp[id] = delta.NewMemStore(r.t.opts.RowSets.Grow)
		}
		known[number] = outputPosition{r.caughtUp[id], row}
		r.growPositions(1)
		return known[number], nil
	}
	return outputPosition{}, fault.Corruptf("key %s was changed and is in no output", r.t.KeyText(k))
}

func (r *rewrite) closeFiles() {
	closeNew(r.files)
	r.files = nil
}

// newBlocks are the blocks of a creation that is not committed yet.
type newBlocks struct{ c *blockmanager.Creation }

func (b newBlocks) OpenBlock(id block.ID) (rowset.Block, error) { return b.c.OpenBlock(id) }

// openNew opens rowsets that are not committed yet.
func (t *Tablet) openNew(c *blockmanager.Creation, shape *Shape, rows []*meta.RowSet) (*rowset.Tree, error) {
	o := t.opts.RowSets
	o.Blocks = newBlocks{c}
	var sets []*rowset.DiskRowSet
	for _, m := range rows {
		d, err := rowset.Open(shape.Schema, m, o)
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

// closeNew gives back what openNew opened; nil is nothing.
func closeNew(tree *rowset.Tree) {
	if tree == nil {
		return
	}
	for _, d := range tree.Sets {
		d.Unref()
	}
}
