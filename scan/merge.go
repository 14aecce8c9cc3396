package scan

import (
	"slices"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/schema"
)

// Part is an input of Merge that is opened when the merge reaches the range of its keys.
type Part struct {
	First, Last []byte // all its keys are in [First, Last]
	Open        func() (Iterator, error)
}

// ends returns the bounds of the part's keys in the order of a scan.
func (p *Part) ends(descending bool) (begin, end []byte) {
	if descending {
		return p.Last, p.First
	}
	return p.First, p.Last
}

// Merge merges iterators for r and parts, each in key order and with keys, into one iterator in key
// order, which is descending if r is.
//
// A key must be selected in at most one input. Adjacent rows of one input are copied as a run. A
// batch whose keys all come before those of the other inputs is returned without copying. The first
// batch has up to r.FirstRows rows. A part is opened when no row before its range is left; a batch
// ends there.
func Merge(r *Request, inputs []Iterator, parts ...Part) Iterator {
	if len(inputs) == 1 && len(parts) == 0 {
		return inputs[0]
	}
	m := &merge{columns: r.Projection(), descending: r.Descending(), rows: r.FirstRows(), inputs: slices.Clone(inputs), parts: slices.Clone(parts)}
	slices.SortStableFunc(m.parts, func(a, b Part) int {
		x, _ := a.ends(m.descending)
		y, _ := b.ends(m.descending)
		return compare(x, y, m.descending)
	})
	return m
}

type merge struct {
	columns     []schema.Column
	descending  bool
	rows        int        // maximum rows of the next output batch
	inputs      []Iterator // nil where an input is closed
	parts       []Part     // not opened yet, in the order of the scan
	seekKey     []byte     // the furthest key of Seek, for the parts
	started     bool       // the inputs have returned their first batches
	heads       []*head    // inputs with a selected row left, ordered by the key of that row
	out         *batch.RecordBatch
	outKeys     [][]byte
	used        *head // input whose batch ends with the current batch
	passThrough bool  // the current batch is the batch of used, not out
	err         error
	closed      bool
}

// before reports whether key a comes before key b in the order of the merge.
func (m *merge) before(a, b []byte) bool { return before(a, b, m.descending) }

// head is an input and the position in its current batch.
type head struct {
	it    Iterator
	index int // index of it in merge.inputs
	b     *batch.RecordBatch
	keys  [][]byte
	row   int // the next selected row
}

func (h *head) key() []byte { return h.keys[h.row] }

// load reads the next batch. It returns false at the end of the input.
func (h *head) load() bool {
	if !h.it.Next() {
		return false
	}
	h.b, h.keys = h.it.Batch(), h.it.Keys()
	h.row = h.b.Selection.Next(0)
	return true
}

func (m *merge) Next() bool {
	if m.err != nil || m.closed {
		return false
	}
	if !m.started {
		m.started = true
		for i, it := range m.inputs {
			if !m.reload(&head{it: it, index: i}) {
				return false
			}
		}
	}
	if h := m.used; h != nil {
		m.used, m.passThrough = nil, false
		if !m.reload(h) {
			return false
		}
	}
	for m.reaches() {
		if !m.open() {
			return false
		}
	}
	if len(m.heads) == 0 {
		return false
	}
	if h := m.heads[0]; h.row == h.b.Selection.Next(0) && m.runEnd(h) == h.b.Len {
		m.heads, m.used, m.passThrough = m.heads[1:], h, true
		return true
	}
	return m.fill()
}

// reaches reports whether the first part may have the next row.
func (m *merge) reaches() bool {
	if len(m.parts) == 0 {
		return false
	}
	begin, _ := m.parts[0].ends(m.descending)
	return len(m.heads) == 0 || !m.before(m.heads[0].key(), begin)
}

// open opens the first part, unless Seek has passed over it. It returns false after an error.
func (m *merge) open() bool {
	p := m.parts[0]
	m.parts = m.parts[1:]
	if _, end := p.ends(m.descending); m.seekKey != nil && m.before(end, m.seekKey) {
		return true
	}
	it, err := p.Open()
	if err == nil {
		m.inputs = append(m.inputs, it)
		if m.seekKey != nil {
			err = it.Seek(m.seekKey)
		}
	}
	if err != nil {
		m.err = err
		return false
	}
	return m.reload(&head{it: it, index: len(m.inputs) - 1})
}

// outBytes is the approximate limit for the byte strings of an output batch. They alias memory of
// the inputs, which stays in use after the inputs have advanced.
const outBytes = 1 << 20

// fill copies runs of rows to the output batch until it is full, a part has to be opened, or the
// inputs end. It does not read batches that the caller may not need.
func (m *merge) fill() bool {
	if m.out == nil {
		m.out = batch.New(m.columns, 0)
	}
	m.out.Reset(0)
	m.outKeys = m.outKeys[:0]
	bytes := 0
	for len(m.heads) > 0 && m.used == nil && len(m.outKeys) < m.rows && bytes < outBytes && !m.reaches() {
		h := m.heads[0]
		end := m.runEnd(h)
		for i, v := range m.out.Columns {
			before := len(v.Bytes)
			v.AppendSelected(h.b.Columns[i], h.b.Selection, h.row, end)
			for _, cell := range v.Bytes[min(before, len(v.Bytes)):] {
				bytes += len(cell)
			}
		}
		for i := h.row; i >= 0 && i < end; i = h.b.Selection.Next(i + 1) {
			m.outKeys = append(m.outKeys, h.keys[i])
		}
		m.heads = m.heads[1:]
		switch h.row = h.b.Selection.Next(end); {
		case h.row >= 0:
			m.insert(h)
		case len(m.outKeys) >= m.rows:
			m.used = h
		case !m.reload(h):
			return false
		}
	}
	m.rows = NextRows(m.rows)
	m.out.Len = len(m.outKeys)
	m.out.Selection = m.out.Selection.Resize(m.out.Len)
	m.out.Selection.SetRange(0, m.out.Len)
	return true
}

// runEnd returns the end of the run that starts at h.row: the keys of all selected rows in
// [h.row, end) come before the next key of every other input and of every part. h is the first of
// m.heads.
func (m *merge) runEnd(h *head) int {
	var bound []byte
	if len(m.heads) > 1 {
		bound = m.heads[1].key()
	}
	if len(m.parts) > 0 {
		if begin, _ := m.parts[0].ends(m.descending); len(m.heads) == 1 || m.before(begin, bound) {
			bound = begin
		}
	} else if len(m.heads) == 1 {
		return h.b.Len
	}
	end := h.row
	for i := h.row; i >= 0 && m.before(h.keys[i], bound); i = h.b.Selection.Next(i + 1) {
		end = i + 1
	}
	if h.b.Selection.Next(end) < 0 {
		return h.b.Len
	}
	return max(end, h.row+1)
}

// insert inserts h into the heads, which are few enough for a linear search.
func (m *merge) insert(h *head) {
	i := 0
	for i < len(m.heads) && m.before(m.heads[i].key(), h.key()) {
		i++
	}
	m.heads = append(m.heads, nil)
	copy(m.heads[i+1:], m.heads[i:])
	m.heads[i] = h
}

// reload reads h's next batch and inserts h into the heads, or closes h at its end. It returns
// false after an error.
func (m *merge) reload(h *head) bool {
	if h.load() {
		m.insert(h)
		return true
	}
	m.inputs[h.index] = nil
	m.err = h.it.Close()
	return m.err == nil
}

// Seek skips rows within the current batches of the inputs and seeks only those inputs whose batch
// is exhausted.
func (m *merge) Seek(key []byte) error {
	if m.err != nil || m.closed {
		return m.err
	}
	m.seekKey = further(m.seekKey, key, m.descending)
	if !m.started {
		for _, it := range m.inputs {
			if m.err = it.Seek(key); m.err != nil {
				return m.err
			}
		}
		return nil
	}
	if h := m.used; h != nil {
		m.used, m.passThrough = nil, false
		if m.seek(h, key); m.err != nil {
			return m.err
		}
	}
	for len(m.heads) > 0 && m.before(m.heads[0].key(), key) {
		h := m.heads[0]
		m.heads = m.heads[1:]
		for h.row >= 0 && m.before(h.key(), key) {
			h.row = h.b.Selection.Next(h.row + 1)
		}
		if h.row >= 0 {
			m.insert(h)
		} else if m.seek(h, key); m.err != nil {
			return m.err
		}
	}
	return nil
}

// seek moves h, whose batch has no row left, to the first batch with a key at or after key.
func (m *merge) seek(h *head, key []byte) {
	if m.err = h.it.Seek(key); m.err == nil {
		m.reload(h)
	}
}

func (m *merge) Batch() *batch.RecordBatch {
	if m.passThrough {
		return m.used.b
	}
	return m.out
}

func (m *merge) Keys() [][]byte {
	if m.passThrough {
		return m.used.keys
	}
	return m.outKeys
}

func (m *merge) Close() error {
	m.closed, m.parts = true, nil
	for _, it := range m.inputs {
		if it == nil {
			continue
		}
		if err := it.Close(); m.err == nil {
			m.err = err
		}
	}
	m.inputs = nil
	return m.err
}
