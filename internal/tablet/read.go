package tablet

import (
	"context"
	"fmt"
	"slices"

	"github.com/oribi-db/oribi/bloom"
	"github.com/oribi-db/oribi/internal/expiry"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/rowset"
	"github.com/oribi-db/oribi/scan"
)

// Snapshot selects the state of a table that a read sees.
type Snapshot struct {
	At     mvcc.Snapshot
	Latest bool // At is the newest published state, which is never too old
}

// snapshot returns the timestamps that a read below the history floor sees. The newest state may be
// older than the floor: it then equals the state at the floor, since nothing was published in between.
func (st *tabletState) snapshot(table string, snap Snapshot) (mvcc.Snapshot, error) {
	if snap.Latest {
		return mvcc.AsOf(st.floor), nil
	}
	return 0, fmt.Errorf("table %q: read at %v: history begins at %v: %w", table, snap.At.Newest(), st.floor,
		fault.ErrTooOld)
}

// View is a reader's reference to one state of the table, which it reads as of one snapshot.
// Columns are given by their indexes in TableSchema's schema. The reader calls Release, or Close of
// the iterator that Scan returns.
type View struct {
	*TableSchema
	of    *Tablet
	state *tabletState
	snap  mvcc.Snapshot

	// Near is set by a reader that calls Get for several keys in ascending order; nil otherwise.
	Near *rowset.Near

	expires bool        // some rows may be expired as of snap: those for which expired is true
	expired expiry.Test // on column clock
	clock   int
}

// View acquires the current state of the table. The snapshot must have been taken before: a later
// one would include changes in stores that are not part of the state. Errors: ErrTooOld; ErrNoTable
// if the table was dropped; ErrClosed.
func (t *Tablet) View(at Snapshot) (View, error) {
	var v View
	err := t.SetView(&v, at)
	return v, err
}

// SetView is View for a caller that has the memory: to allocate a View would take as long as the
// rest of a read of one row.
func (t *Tablet) SetView(v *View, at Snapshot) error {
	st, err := t.acquire()
	if err != nil {
		return err
	}
	snap := at.At
	if !snap.Sees(st.floor) && !t.opts.Store.Retains(t, snap.Newest()) {
		if snap, err = st.snapshot(t.Name(), at); err != nil {
			st.release()
			return err
		}
	}
	v.TableSchema, v.of, v.state, v.snap = st.schema, t, st, snap
	v.setExpired()
	return nil
}

// Ref returns another reference to the state, which is released separately.
func (v View) Ref() View {
	v.state.refs.Add(1)
	return v
}

// Release releases the state.
func (v *View) Release() { v.state.release() }

// Get appends the cells cols of the row with an encoded key to dst. If there is no such row, found
// is false and dst is returned unchanged. Cells are never overwritten; a nil cell is NULL.
func (v *View) Get(key []byte, cols []int, dst [][]byte) (cells [][]byte, found bool, err error) {
	if !v.expires {
		return v.stored(key, cols, dst)
	}
	cells, _, found, err = v.GetUntil(key, cols, dst)
	return cells, found, err
}

// stored is Get of a row that may be expired.
func (v *View) stored(key []byte, cols []int, dst [][]byte) (cells [][]byte, found bool, err error) {
	st := v.state
	for _, m := range st.mems {
		if row, live := m.Get(key, v.snap, nil); live {
			dst = slices.Grow(dst, len(cols))
			for _, c := range cols {
				dst = append(dst, v.RowFormat.Cell(row, c))
			}
			return dst, true, nil
		}
	}
	var buf [8]*rowset.DiskRowSet
	sets := st.tree.Candidates(buf[:0], key)
	if len(sets) == 0 {
		return dst, false, nil
	}
	p := bloom.MakeProbe(key)
	for _, d := range sets {
		if cells, found, err = d.GetNear(p, v.snap, cols, dst, v.Near); err != nil {
			return dst, false, fmt.Errorf("table %q: %w", v.of.Name(), err)
		}
		if found {
			return cells, true, nil
		}
	}
	return dst, false, nil
}

// Has reports whether there is a row with an encoded key. It reads no columns except the key and
// the column by which rows expire, and allocates nothing if no row has the key.
func (v *View) Has(key []byte) (bool, error) {
	if v.expires {
		_, _, found, err := v.GetUntil(key, nil, nil)
		return found, err
	}
	st := v.state
	for _, m := range st.mems {
		if m.Has(key, v.snap) {
			return true, nil
		}
	}
	var buf [8]*rowset.DiskRowSet
	sets := st.tree.Candidates(buf[:0], key)
	if len(sets) == 0 {
		return false, nil
	}
	p := bloom.MakeProbe(key)
	for _, d := range sets {
		found, err := d.Has(p, v.snap)
		if err != nil {
			return false, fmt.Errorf("table %q: %w", v.of.Name(), err)
		}
		if found {
			return true, nil
		}
	}
	return false, nil
}

// Explain does what Get does for columns cols, and returns its steps. When ctx ends, it returns the
// steps up to then with the context's error. It also returns the errors of Get.
func (v View) Explain(ctx context.Context, key []byte, cols []int) (tr rowset.Trace, err error) {
	st := v.state
	sets := st.tree.Candidates(nil, key)
	tr.RowSets, tr.Outside = len(st.tree.Sets), len(st.tree.Sets)-len(sets)
	for _, m := range st.mems {
		step := rowset.MemTrace{Rows: m.Len()}
		row, live := m.Get(key, v.snap, nil)
		inserted, _, changes := m.History(key, v.snap)
		step.Found, step.Live, step.Changes = inserted != nil, live, len(changes)
		tr.Memory = append(tr.Memory, step)
		if live {
			tr.InMemory, tr.Expired = true, v.expires && v.expired.Expired(v.RowFormat.Cell(row, v.clock))
			return tr, nil
		}
	}
	at := slices.Index(cols, v.clock)
	if v.expires && at < 0 {
		at, cols = len(cols), append(slices.Clip(cols), v.clock)
	}
	p := bloom.MakeProbe(key)
	for _, d := range sets {
		if err := ctx.Err(); err != nil {
			return tr, err
		}
		step, cells, err := d.Explain(p, v.snap, cols)
		if err != nil {
			return tr, err
		}
		step.Expired = step.Live && v.expires && v.expired.Expired(cells[at])
		tr.Steps = append(tr.Steps, step)
		if step.Live {
			return tr, nil
		}
	}
	return tr, nil
}

// Scan returns the rows of a request: if ordered, in key order over all stores, which may descend;
// otherwise one store after the other. The iterator releases v at Close. Rows that are expired are
// among them, unless the filter excludes them (see Alive).
//
// Scan uses the schema and the snapshot of v and ignores the ones in the options. v is released if
// Scan returns an error. It returns the errors of scan.NewRequest. A range of row IDs is refused,
// because row IDs number the rows of a single DiskRowSet.
func (v View) Scan(o scan.Options, ordered bool) (scan.Iterator, error) {
	if o.Rows != (scan.RowRange{}) {
		v.Release()
		return nil, fmt.Errorf("table %q: a scan of rows [%d, %d): row IDs identify rows of a single "+
			"rowset: use bounds on keys", v.of.Name(), o.Rows.From, o.Rows.To)
	}
	st := v.state
	o.Schema, o.Snapshot, o.TableBytes = v.Schema, v.snap, st.tree.Bytes
	r, err := scan.NewRequest(o)
	if err != nil {
		v.Release()
		return nil, fmt.Errorf("table %q: %w", v.of.Name(), err)
	}
	if o.Only != nil {
		return newKeyScan(r, &v, &o, true), nil
	}
	if o.Stats != nil {
		o.Stats.Layout = st.union().Layout(o.Lower, o.Upper)
	}
	u := st.union()
	if u.InMemory() == 0 {
		if sets, ok := st.tree.Disjoint(o.Lower, o.Upper); ok {
			return newSetScan(r, sets, st), nil
		}
	}
	return &stateIterator{Iterator: u.Scan(r, ordered), state: st}, nil
}

// stateIterator is an iterator over a state, which it releases at Close.
type stateIterator struct {
	scan.Iterator
	state *tabletState
}

func (h *stateIterator) Close() error {
	err := h.Iterator.Close()
	if h.state != nil {
		h.state.release()
		h.state = nil
	}
	return err
}
