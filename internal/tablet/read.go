package tablet

import (
	"fmt"
	"slices"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/bloom"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/memrowset"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/rowset"
	"github.com/oribi-db/oribi/scan"
)

// Snapshot selects the state of a table that a read sees.
type Snapshot struct {
	At     mvcc.Snapshot
	Latest bool // At is the newest published state, which is never too old
}

// snapshot returns the timestamps that a read sees, after a check against the history floor. The
// newest state may be older than the floor: it then equals the state at the floor, since nothing
// was published in between.
func (st *tabletState) snapshot(table string, snap Snapshot) (mvcc.Snapshot, error) {
	switch {
	case snap.At.Sees(st.floor):
		return snap.At, nil
	case snap.Latest:
		return mvcc.AsOf(st.floor), nil
	}
	return 0, fmt.Errorf("table %q: read at %v: history begins at %v: %w", table, snap.At.Newest(), st.floor, fault.ErrTooOld)
}

// View is a reader's reference to one state of the table, which it reads as of one snapshot.
// Columns are given by their indexes in TableSchema's schema. The reader calls Release, or Close of
// the iterator that Scan returns.
type View struct {
	*TableSchema
	table string
	state *tabletState
	snap  mvcc.Snapshot
}

// View acquires the current state of the table. The snapshot must have been taken before: a later
// one would include changes in stores that are not part of the state. Errors: ErrTooOld; ErrNoTable
// if the table was dropped; ErrClosed.
func (t *Tablet) View(at Snapshot) (View, error) {
	st, err := t.acquire()
	if err != nil {
		return View{}, err
	}
	snap, err := st.snapshot(t.Name(), at)
	if err != nil {
		st.release()
		return View{}, err
	}
	return View{TableSchema: st.schema, table: t.Name(), state: st, snap: snap}, nil
}

// Release releases the state.
func (v View) Release() { v.state.release() }

// Get appends the cells cols of the row with an encoded key to dst. If there is no such row, found
// is false and dst is returned unchanged. Cells are never overwritten; a nil cell is NULL.
func (v View) Get(key []byte, cols []int, dst [][]byte) (cells [][]byte, found bool, err error) {
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
		if cells, found, err = d.Get(p, v.snap, cols, dst); err != nil {
			return dst, false, fmt.Errorf("table %q: %w", v.table, err)
		}
		if found {
			return cells, true, nil
		}
	}
	return dst, false, nil
}

// Explain does what Get does and returns its steps.
func (v View) Explain(key []byte) (rowset.Trace, error) {
	var tr rowset.Trace
	for _, m := range v.state.mems {
		if _, tr.InMemory = m.Get(key, v.snap, nil); tr.InMemory {
			return tr, nil
		}
	}
	p := bloom.MakeProbe(key)
	for _, d := range v.state.tree.Candidates(nil, key) {
		step := rowset.TraceStep{RowSet: d.Metadata().ID}
		filter, err := d.Filter()
		if err != nil {
			return tr, err
		}
		if step.Filter, err = filter.MayContain(p); err != nil {
			return tr, err
		}
		if step.Filter {
			if step.Row, step.Found, err = d.Find(p); err != nil {
				return tr, err
			}
		}
		if step.Found {
			if _, step.Live, err = d.Get(p, v.snap, nil, nil); err != nil {
				return tr, err
			}
		}
		tr.Steps = append(tr.Steps, step)
	}
	return tr, nil
}

// Scan returns the rows of a request: if ordered, in key order over all stores, which may descend;
// otherwise one store after the other. The iterator releases v at Close.
//
// Scan uses the schema and the snapshot of v and ignores those in the options. v is released if
// Scan returns an error. Errors: those of scan.NewRequest. A range of row IDs is refused, because
// row IDs number the rows of a single DiskRowSet.
func (v View) Scan(o scan.Options, ordered bool) (scan.Iterator, error) {
	if o.Rows != (scan.RowRange{}) {
		v.Release()
		return nil, fmt.Errorf("table %q: a scan of rows [%d, %d): row IDs identify rows of a single rowset: use bounds on keys", v.table, o.Rows.From, o.Rows.To)
	}
	st := v.state
	o.Schema, o.Snapshot = v.Schema, v.snap
	groups := [][]*rowset.DiskRowSet{}
	for _, d := range st.tree.Range(nil, o.Lower, o.Upper) {
		groups = append(groups, []*rowset.DiskRowSet{d})
	}
	var r *scan.Request
	var newMems []func() scan.Iterator
	for _, m := range st.mems {
		if m.Len() > 0 {
			newMems = append(newMems, func() scan.Iterator { return st.newMemIterator(m, r) })
		}
	}
	if ordered {
		groups = overlapping(groups, len(newMems) > 0)
		if len(newMems) > 0 && len(groups) == 0 {
			groups = append(groups, nil)
		}
	}
	var chain []func() (scan.Iterator, error)
	if !ordered {
		for _, newMem := range newMems {
			chain = append(chain, func() (scan.Iterator, error) { return newMem(), nil })
		}
		newMems = nil
	}
	open := func(d *rowset.DiskRowSet) (scan.Iterator, error) { return d.NewIterator(r) }
	for _, g := range groups {
		o.Keys = o.Keys || len(g)+len(newMems) > 1
		chain = append(chain, func() (scan.Iterator, error) { return merge(g, newMems, open, r), nil })
	}
	if o.Descending {
		slices.Reverse(chain)
	}
	var err error
	if r, err = scan.NewRequest(o); err != nil {
		v.Release()
		return nil, fmt.Errorf("table %q: %w", v.table, err)
	}
	return &stateIterator{Iterator: scan.Concat(r, chain...), state: st}, nil
}

// overlapping joins rowsets that overlap into groups, which are in key order. With rows in memory,
// which may have any key, all rowsets are one group.
func overlapping(sets [][]*rowset.DiskRowSet, withMem bool) [][]*rowset.DiskRowSet {
	var out [][]*rowset.DiskRowSet
	var reach []byte
	for _, g := range sets {
		m := g[0].Metadata()
		if len(out) > 0 && (withMem || string(m.MinKey) <= string(reach)) {
			out[len(out)-1] = append(out[len(out)-1], g[0])
		} else {
			out = append(out, g)
		}
		if string(m.MaxKey) > string(reach) {
			reach = m.MaxKey
		}
	}
	return out
}

// merge scans a group of rowsets, and MemRowSets, in the order of r. Rowsets of the group that do
// not overlap are concatenated, so the number of inputs of the merge is the group's height.
func merge(group []*rowset.DiskRowSet, newMems []func() scan.Iterator, open func(*rowset.DiskRowSet) (scan.Iterator, error), r *scan.Request) scan.Iterator {
	var inputs []scan.Iterator
	for _, newMem := range newMems {
		inputs = append(inputs, newMem())
	}
	for _, lane := range lanes(group) {
		var chain []func() (scan.Iterator, error)
		for _, d := range lane {
			chain = append(chain, func() (scan.Iterator, error) { return open(d) })
		}
		if r.Descending() {
			slices.Reverse(chain)
		}
		inputs = append(inputs, scan.Concat(r, chain...))
	}
	return scan.Merge(r, inputs)
}

// lanes divides rowsets, sorted by first key, into as few lists as possible without overlaps.
func lanes(group []*rowset.DiskRowSet) [][]*rowset.DiskRowSet {
	var out [][]*rowset.DiskRowSet
next:
	for _, d := range group {
		for i, lane := range out {
			if string(lane[len(lane)-1].Metadata().MaxKey) < string(d.Metadata().MinKey) {
				out[i] = append(lane, d)
				continue next
			}
		}
		out = append(out, []*rowset.DiskRowSet{d})
	}
	return out
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

// memIterator returns the rows of a MemRowSet in batches.
type memIterator struct {
	format *change.RowFormat
	req    *scan.Request
	it     *memrowset.Iterator
	out    *batch.RecordBatch
	images [][]byte // of the current batch's rows
	eval   batch.FilterEval
	test   func(*batch.Predicate, batch.Bitmap) error // filter
	tested []*batch.Vector                            // by index in the schema: cells that the filter read
	loaded []bool                                     // by index in the schema: tested was filled for the current batch
	keys   [][]byte
	rows   int // of the next batch, at most
}

func (st *tabletState) newMemIterator(mem *memrowset.MemRowSet, req *scan.Request) *memIterator {
	lower, upper := req.Bounds()
	m := &memIterator{format: st.schema.RowFormat, req: req, rows: req.FirstRows(), it: mem.NewIterator(req.Snapshot(), lower, upper, req.Descending()), out: batch.New(req.Projection(), 0)}
	if !req.Filter().All() {
		n := len(req.Schema().Columns)
		m.tested, m.loaded, m.test = make([]*batch.Vector, n), make([]bool, n), m.filter
	}
	return m
}

func (m *memIterator) Next() bool {
	for {
		keys, rows := m.it.Next(m.rows)
		m.rows = scan.NextRows(m.rows)
		if len(rows) == 0 {
			return false
		}
		n := len(rows)
		sel := m.out.Selection.Resize(n)
		sel.SetRange(0, n)
		m.out.Selection, m.out.Len, m.keys = sel, n, keys
		m.images = rows
		clear(m.loaded)
		m.eval.Eval(m.req.Filter(), sel, m.test) // reads memory: no error
		if !sel.Any() {
			continue
		}
		for i, col := range m.req.Columns() {
			m.format.Gather(rows, col, m.out.Columns[i])
		}
		return true
	}
}

// filter clears the bits of the current batch's rows for which p is not true.
func (m *memIterator) filter(p *batch.Predicate, sel batch.Bitmap) error {
	col := m.req.Schema().IndexID(p.ID)
	if m.tested[col] == nil {
		m.tested[col] = &batch.Vector{Type: p.Type}
	}
	if !m.loaded[col] {
		m.format.Gather(m.images, col, m.tested[col])
		m.loaded[col] = true
	}
	p.Eval(m.tested[col], sel)
	return nil
}

func (m *memIterator) Batch() *batch.RecordBatch { return m.out }
func (m *memIterator) Keys() [][]byte            { return m.keys }
func (m *memIterator) Close() error              { return nil }

func (m *memIterator) Seek(key []byte) error {
	m.it.Seek(key)
	return nil
}
