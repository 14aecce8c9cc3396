package scan

import (
	"slices"
	"sync"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/schema"
)

// Part is an input of Merge that is opened when the merge reaches the range of its keys.
type Part struct {
	First, Last []byte // all its keys are in [First, Last]
	Open        Opener
}

// ends returns the bounds of the part's keys in the order of a scan.
func (p *Part) ends(descending bool) (begin, end []byte) {
	if descending {
		return p.Last, p.First
	}
	return p.First, p.Last
}

// Merge merges iterators for r and parts, each in key order, into one iterator in key order, which
// is descending if r is. Each input is a Searcher or returns keys. The result has keys if r asks
// for them; all inputs then return them.
//
// A key must be selected in at most one input. Adjacent rows of one input are copied as a run. A
// batch whose keys all come before the keys of the other inputs is returned without copying. The
// first batch has up to r.FirstRows rows. A part is opened when no row before its range is left; a
// batch ends there.
func Merge(r *Request, inputs []Iterator, parts ...Part) Iterator {
	if len(inputs) == 1 && len(parts) == 0 {
		return inputs[0]
	}
	m := &merge{request: r, columns: r.Projection(), descending: r.Descending(), withKeys: r.Keys(), rows: r.FirstRows(),
		mergeMemory: mergeMemories.Get().(*mergeMemory)}
	m.inputs = append(m.inputs, inputs...)
	m.left = append(m.left, parts...)
	m.parts = m.left
	if len(parts) > 1 {
		slices.SortStableFunc(m.parts, func(a, b Part) int {
			x, _ := a.ends(m.descending)
			y, _ := b.ends(m.descending)
			return compare(x, y, m.descending)
		})
	}
	return m
}

type merge struct {
	request    *Request
	columns    []schema.Column
	descending bool
	withKeys   bool
	rows       int // maximum rows of the next output batch

	// Parts are opened only when the merge reaches their range: a scan of disjoint rowsets in key
	// order has one of them open at a time.
	parts   []Part // not opened yet, in the order of the scan
	seekKey []byte // the furthest key of Seek, for the parts
	started bool   // the inputs have returned their first batches

	// The current batch refers to cells of its inputs. An input whose batch ends with it is advanced
	// at the next call of Next, since that overwrites the cells.
	used        *head
	passThrough bool // the current batch is the batch of used, not out

	err          error
	*mergeMemory // nil after Close
}

// mergeMemory is the memory of a merge. It is kept for later merges: for a short scan, allocating
// it would take longer than the scan.
type mergeMemory struct {
	inputs  []Iterator // nil where an input is closed
	left    []Part
	heads   []*head // inputs with a selected row left, ordered by the key of that row
	made    []*head // all heads; inputs[i] uses made[i]
	out     batch.RecordBatch
	outKeys [][]byte
	vectors []*batch.Vector // out.Columns, and others that earlier merges used
}

var mergeMemories = sync.Pool{New: func() any { return new(mergeMemory) }}

// maxKeptInputs is the number of inputs of the largest merge whose memory is kept.
const maxKeptInputs = 64

// MaxKeptRows is the size of the largest batch whose memory an iterator keeps for later scans.
const MaxKeptRows = 256

// release keeps m for the next merge. Nothing of the last batch is valid from here on, except byte
// strings, which m does not own.
func (m *mergeMemory) release() {
	if len(m.inputs) > maxKeptInputs || m.out.Len > MaxKeptRows || cap(m.outKeys) > MaxKeptRows {
		return
	}
	for _, h := range m.made[:min(len(m.made), len(m.inputs))] {
		*h = head{}
	}
	for _, v := range m.out.Columns {
		v.Drop(MaxKeptRows * 24)
	}
	clear(m.inputs)
	clear(m.left)
	clear(m.heads[:cap(m.heads)])
	clear(m.outKeys[:cap(m.outKeys)])
	*m = mergeMemory{inputs: m.inputs[:0], left: m.left[:0], heads: m.heads[:0], made: m.made, outKeys: m.outKeys[:0],
		out: batch.RecordBatch{Selection: m.out.Selection}, vectors: m.vectors}
	mergeMemories.Put(m)
}

// head returns a head for the input with an index, which is below the number of inputs.
func (m *mergeMemory) head(index int) *head {
	for len(m.made) <= index {
		m.made = append(m.made, new(head))
	}
	h := m.made[index]
	it := m.inputs[index]
	searcher, _ := it.(Searcher)
	*h = head{it: it, index: index, searcher: searcher}
	return h
}

// removeFirst removes the first head.
func (m *mergeMemory) removeFirst() { m.heads = slices.Delete(m.heads, 0, 1) }

// resetOut makes out an empty batch of the given columns.
func (m *mergeMemory) resetOut(columns []schema.Column) {
	if m.out.Columns == nil {
		for len(m.vectors) < len(columns) {
			m.vectors = append(m.vectors, new(batch.Vector))
		}
		m.out.Schema, m.out.Columns = columns, m.vectors[:len(columns)]
		for i, v := range m.out.Columns {
			v.Type = columns[i].Type
		}
	}
	m.out.Reset(0)
	m.outKeys = m.outKeys[:0]
}

// before reports whether key a comes before key b in the order of the merge.
func (m *merge) before(a, b []byte) bool { return before(a, b, m.descending) }

// head is an input and the position in its current batch.
type head struct {
	it       Iterator
	index    int      // index of it in merge.inputs
	searcher Searcher // it; nil if its batches have keys
	b        *batch.RecordBatch
	keys     [][]byte
	row      int    // the next selected row
	key      []byte // its key; nil if not known
}

// load reads the next batch. It returns false at the end of the input.
func (h *head) load() bool {
	if !h.it.Next() {
		return false
	}
	h.b, h.keys = h.it.Batch(), h.it.Keys()
	h.move(h.b.Selection.Next(0))
	return true
}

// move moves h to a row of its batch; −1 is its end.
func (h *head) move(row int) {
	h.row, h.key = row, nil
	if row >= 0 && h.searcher == nil {
		h.key = h.keys[row]
	}
}

// keyOf returns the key of h's row. It sets m.err after an error.
func (m *merge) keyOf(h *head) []byte {
	if h.key == nil && h.searcher != nil {
		key, err := h.searcher.KeyAt(h.row)
		m.fail(err)
		h.key = key
	}
	return h.key
}

func (m *merge) fail(err error) {
	if m.err == nil {
		m.err = err
	}
}

// search returns the index of the first row of h's batch, from h.row on, that is selected and whose
// key is not before key, or the end of the batch. Rows that are not selected may have no key.
func (m *merge) search(h *head, key []byte) int {
	if h.searcher != nil {
		i, err := h.searcher.Search(h.row, key)
		m.fail(err)
		return i
	}
	i := h.row
	for i >= 0 && m.before(h.keys[i], key) {
		i = h.b.Selection.Next(i + 1)
	}
	if i < 0 {
		return h.b.Len
	}
	return i
}

// startsBefore reports whether h's row is before key.
func (m *merge) startsBefore(h *head, key []byte) bool {
	if h.key != nil || h.searcher == nil {
		return m.before(h.key, key)
	}
	return m.search(h, key) > h.row
}

// less reports whether the row of a is before that of b. Their keys differ, since both are
// selected. If the key of one row is known, the other row's key is not made.
func (m *merge) less(a, b *head) bool {
	if b.key == nil && a.key != nil {
		return !m.startsBefore(b, a.key)
	}
	return m.startsBefore(a, m.keyOf(b))
}

func (m *merge) Next() bool {
	if m.err != nil || m.mergeMemory == nil {
		return false
	}
	if !m.started {
		m.started = true
		for i := range m.inputs {
			if !m.reload(m.head(i)) {
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
	if len(m.heads) == 0 || m.err != nil {
		return false
	}
	h := m.heads[0]
	passes := m.passes(h)
	if m.err != nil {
		return false
	}
	if passes {
		m.removeFirst()
		m.used, m.passThrough = h, true
		return true
	}
	return m.fill()
}

// passes reports whether the batch of h, the first of m.heads, is returned without copying.
func (m *merge) passes(h *head) bool {
	return h.row == h.b.Selection.Next(0) && m.runEnd(h) == h.b.Len
}

// reaches reports whether the first part may have the next row.
func (m *merge) reaches() bool {
	if len(m.parts) == 0 {
		return false
	}
	begin, _ := m.parts[0].ends(m.descending)
	return len(m.heads) == 0 || !m.startsBefore(m.heads[0], begin)
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
	return m.reload(m.head(len(m.inputs) - 1))
}

// outBytes is the approximate limit for the byte strings of an output batch. They alias memory of
// the inputs, which stays in use after the inputs have advanced.
const outBytes = 1 << 20

// leastPassed is the least number of rows of a batch that is returned without copying while another
// batch is being filled. That batch then ends early: copying fewer rows takes less time than
// another batch does.
const leastPassed = 256

// fill copies runs of rows to the output batch until it is full, a part has to be opened, or the
// inputs end. It does not read batches that the caller may not need.
func (m *merge) fill() bool {
	m.resetOut(m.columns)
	bytes := 0
	for len(m.heads) > 0 && m.used == nil && m.out.Len < m.rows && bytes < outBytes && !m.reaches() {
		h := m.heads[0]
		if h.b.Len >= leastPassed && m.out.Len > 0 && m.passes(h) {
			break
		}
		end := m.runEnd(h)
		if m.err != nil {
			return false
		}
		bytes += m.copyRun(h, end)
		m.removeFirst()
		h.move(h.b.Selection.Next(end))
		switch {
		case h.row >= 0:
			m.insert(h)
		case m.out.Len >= m.rows:
			m.used = h
		default:
			m.reload(h)
		}
	}
	m.rows = m.request.NextRows(m.rows)
	m.out.Selection = m.out.Selection.Resize(m.out.Len)
	m.out.Selection.SetRange(0, m.out.Len)
	return m.err == nil
}

// copyRun appends the selected rows of h in [h.row, end) to the output batch, and returns the
// length of their byte strings.
func (m *merge) copyRun(h *head, end int) (bytes int) {
	for i, v := range m.out.Columns {
		before := len(v.Bytes)
		v.AppendSelected(h.b.Columns[i], h.b.Selection, h.row, end)
		for _, cell := range v.Bytes[min(before, len(v.Bytes)):] {
			bytes += len(cell)
		}
	}
	m.out.Len += h.b.Selection.CountRange(h.row, end)
	for i := h.row; m.withKeys && i >= 0 && i < end; i = h.b.Selection.Next(i + 1) {
		m.outKeys = append(m.outKeys, h.keys[i])
	}
	return bytes
}

// runEnd returns the end of the run that starts at h.row: the keys of all selected rows in
// [h.row, end) come before the next key of every other input and of every part. h is the first of
// m.heads.
func (m *merge) runEnd(h *head) int {
	var bound []byte
	if len(m.heads) > 1 {
		bound = m.keyOf(m.heads[1])
	}
	if len(m.parts) > 0 {
		if begin, _ := m.parts[0].ends(m.descending); len(m.heads) == 1 || m.before(begin, bound) {
			bound = begin
		}
	} else if len(m.heads) == 1 {
		return h.b.Len
	}
	end := m.search(h, bound)
	if h.b.Selection.Next(end) < 0 {
		return h.b.Len
	}
	return max(end, h.row+1)
}

// insert inserts h into the heads, which are few enough for a linear search.
func (m *merge) insert(h *head) {
	i := 0
	for i < len(m.heads) && m.less(m.heads[i], h) {
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
		return m.err == nil
	}
	m.inputs[h.index] = nil
	m.err = h.it.Close()
	return m.err == nil
}

// Seek skips rows within the current batches of the inputs and seeks only those inputs whose batch
// is exhausted.
func (m *merge) Seek(key []byte) error {
	if m.err != nil || m.mergeMemory == nil {
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
	for m.err == nil && len(m.heads) > 0 && m.startsBefore(m.heads[0], key) {
		h := m.heads[0]
		m.removeFirst()
		h.move(h.b.Selection.Next(m.search(h, key)))
		if h.row >= 0 {
			m.insert(h)
		} else if m.err == nil {
			m.seek(h, key)
		}
	}
	return m.err
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
	return &m.out
}

func (m *merge) Keys() [][]byte {
	if m.passThrough {
		return m.used.keys
	}
	return m.outKeys
}

func (m *merge) Close() error {
	if m.mergeMemory == nil {
		return m.err
	}
	for _, it := range m.inputs {
		if it == nil {
			continue
		}
		if err := it.Close(); m.err == nil {
			m.err = err
		}
	}
	m.release()
	m.mergeMemory, m.parts, m.used = nil, nil, nil
	return m.err
}
