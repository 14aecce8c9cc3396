package scan

import (
	"bytes"
	"slices"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/schema"
)

// Merge joins iterators, each in key order and all with keys, into one in key order.
//
// A key is visible in one input at most, so that no two selected rows have equal keys. Rows that
// follow one another in one input are copied as a run; a batch that lies wholly before all other
// inputs is handed on as it is. The first batch is complete with as many rows as r's FirstRows.
func Merge(r *Request, inputs []Iterator) Iterator {
	if len(inputs) == 1 {
		return inputs[0]
	}
	return &merge{columns: r.Projection(), rows: r.FirstRows(), inputs: slices.Clone(inputs)}
}

type merge struct {
	columns []schema.Column
	rows    int        // with which the next output batch is complete
	inputs  []Iterator // nil where an input is closed
	begun   bool       // the inputs were asked for their first batches
	heads   []*head    // inputs with a selected row left, by the key of that row
	out     *batch.RecordBatch
	outKeys [][]byte
	used    *head // an input whose batch is used up with the current one
	through bool  // the current batch is that of used, handed on as it is
	err     error
	closed  bool
}

// head is an input and its place in its current batch.
type head struct {
	it    Iterator
	place int // of it among the inputs
	b     *batch.RecordBatch
	keys  [][]byte
	row   int // the next selected row
}

func (h *head) key() []byte { return h.keys[h.row] }

// load takes the next batch; false at the end of the input.
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
	if !m.begun {
		m.begun = true
		for i, it := range m.inputs {
			if !m.reload(&head{it: it, place: i}) {
				return false
			}
		}
	}
	if h := m.used; h != nil {
		m.used, m.through = nil, false
		if !m.reload(h) {
			return false
		}
	}
	if len(m.heads) == 0 {
		return false
	}
	if h := m.heads[0]; h.row == h.b.Selection.Next(0) && m.runEnd(h) == h.b.Len {
		m.heads, m.used, m.through = m.heads[1:], h, true
		return true
	}
	return m.fill()
}

// outBytes is about what the byte strings of an output batch may take. They are the inputs', which
// have long gone on by then.
const outBytes = 1 << 20

// fill copies runs of rows into the output batch until it is full or the inputs are at their end.
// No input is asked for a batch that may not be wanted any more.
func (m *merge) fill() bool {
	if m.out == nil {
		m.out = batch.New(m.columns, 0)
	}
	m.out.Reset(0)
	m.outKeys = m.outKeys[:0]
	bytes := 0
	for len(m.heads) > 0 && m.used == nil && len(m.outKeys) < m.rows && bytes < outBytes {
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

// runEnd is the row of h's batch before which all selected rows from h.row on have keys below the
// other inputs' next ones. h is the first of m.heads.
func (m *merge) runEnd(h *head) int {
	if len(m.heads) == 1 {
		return h.b.Len
	}
	bound := m.heads[1].key()
	end := h.row
	for i := h.row; i >= 0 && bytes.Compare(h.keys[i], bound) < 0; i = h.b.Selection.Next(i + 1) {
		end = i + 1
	}
	if h.b.Selection.Next(end) < 0 {
		return h.b.Len
	}
	return max(end, h.row+1)
}

// insert puts h in its place among the heads.
func (m *merge) insert(h *head) {
	i := 0
	for i < len(m.heads) && bytes.Compare(m.heads[i].key(), h.key()) < 0 {
		i++
	}
	m.heads = append(m.heads, nil)
	copy(m.heads[i+1:], m.heads[i:])
	m.heads[i] = h
}

// reload takes h's next batch and puts h among the heads, or closes it at its end; false after an
// error.
func (m *merge) reload(h *head) bool {
	if h.load() {
		m.insert(h)
		return true
	}
	m.inputs[h.place] = nil
	m.err = h.it.Close()
	return m.err == nil
}

func (m *merge) Batch() *batch.RecordBatch {
	if m.through {
		return m.used.b
	}
	return m.out
}

func (m *merge) Keys() [][]byte {
	if m.through {
		return m.used.keys
	}
	return m.outKeys
}

func (m *merge) Close() error {
	m.closed = true
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
