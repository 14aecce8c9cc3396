package rowunion

import (
	"bytes"
	"sync"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/memrowset"
	"github.com/oribi-db/oribi/scan"
)

// MemIterator returns the rows of a MemRowSet in batches, with their keys. It is a scan.Iterator.
type MemIterator struct {
	format  *change.RowFormat
	req     *scan.Request
	it      *memrowset.Iterator
	out     batch.RecordBatch
	vectors []*batch.Vector // out.Columns, and others that earlier scans used
	images  [][]byte        // of the current batch's rows
	eval    batch.FilterEval
	test    func(*batch.Predicate, batch.Bitmap) error // filter
	tested  []*batch.Vector                            // by index in the schema: cells that the filter read
	// loaded reports, by index in the schema, whether tested was filled for the current batch.
	loaded []bool
	keys   [][]byte
	rows   int          // of the next batch, at most
	counts *scan.Counts // nil: nothing is counted
}

// keptMems are MemIterators that release has kept with their memory, for later scans.
var keptMems = sync.Pool{New: func() any { return &MemIterator{it: new(memrowset.Iterator)} }}

// NewMemIterator returns the rows of it, whose images are in format, for a request.
func NewMemIterator(format *change.RowFormat, it *memrowset.Iterator, req *scan.Request) *MemIterator {
	return (&MemIterator{it: it}).begin(format, req)
}

// begin makes m an iterator for a request over the rows of m.it.
func (m *MemIterator) begin(format *change.RowFormat, req *scan.Request) *MemIterator {
	m.format, m.req, m.rows, m.test = format, req, req.FirstRows(), nil
	for len(m.vectors) < len(req.Columns()) {
		m.vectors = append(m.vectors, new(batch.Vector))
	}
	m.out.Schema, m.out.Columns = req.Projection(), m.vectors[:len(req.Columns())]
	if !req.Filter().All() {
		n := len(req.Schema().Columns)
		m.tested, m.loaded, m.test = make([]*batch.Vector, n), make([]bool, n), m.filter
	}
	if m.counts = req.NewCounts(); m.counts != nil && m.test != nil {
		m.test = m.countedFilter
	}
	return m
}

// release keeps m for a later scan. Nothing of its last batch is valid from here on, except byte
// strings, which are never overwritten.
func (m *MemIterator) release() {
	if m.out.Len > scan.MaxKeptRows || cap(m.keys) > scan.MaxKeptRows {
		return
	}
	for _, v := range m.out.Columns {
		v.Drop(scan.MaxKeptRows * 24)
	}
	m.it.Reset(nil, 0, nil, nil, false)
	*m = MemIterator{it: m.it, vectors: m.vectors, out: batch.RecordBatch{Selection: m.out.Selection}, eval: m.eval}
	keptMems.Put(m)
}

// startSmall makes the first batches small, for a scan that expects to find most rows elsewhere.
func (m *MemIterator) startSmall() { m.rows = min(m.rows, smallBatch) }

// smallBatch is the number of rows in the first batch of a MemRowSet next to rowsets: reading a row
// takes a few cache misses, and of a short scan most rows are on disk.
const smallBatch = 4

// Next implements scan.Iterator.
func (m *MemIterator) Next() bool {
	for {
		keys, rows := m.it.Next(m.rows)
		if len(rows) == 0 {
			return false // at the end of a range of keys: the next batch is not larger
		}
		m.rows = m.req.NextRows(m.rows)
		n := len(rows)
		sel := m.out.Selection.Resize(n)
		sel.SetRange(0, n)
		m.out.Selection, m.out.Len, m.keys = sel, n, keys
		m.images = rows
		clear(m.loaded)
		m.eval.Eval(m.req.Filter(), sel, m.test) // reads memory: no error
		if m.counts != nil {
			m.count(sel)
		}
		if !sel.Any() {
			continue
		}
		for i, col := range m.req.Columns() {
			m.format.Gather(rows, col, m.out.Columns[i])
		}
		return true
	}
}

// until moves the end of the range to key, or to the end of the request's range if key is nil or
// outside of it. See memrowset.Iterator.Until.
func (m *MemIterator) until(key []byte) {
	lower, upper := m.req.Bounds()
	switch {
	case m.req.Descending() && (key == nil || lower != nil && bytes.Compare(lower, key) > 0):
		key = lower
	case !m.req.Descending() && (key == nil || upper != nil && bytes.Compare(upper, key) < 0):
		key = upper
	}
	m.it.Until(key)
}

// filter clears the bits of the current batch's rows for which p is not true.
func (m *MemIterator) filter(p *batch.Predicate, sel batch.Bitmap) error {
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

// countedFilter is filter for an iterator that counts.
func (m *MemIterator) countedFilter(p *batch.Predicate, sel batch.Bitmap) error {
	t, rests := m.counts.Test(p)
	n := int64(sel.Count())
	t.Tested += n
	if rests {
		t.Untested += n
	} else {
		t.Memory += n
	}
	err := m.filter(p, sel)
	t.Passed += int64(sel.Count())
	return err
}

// count counts the rows of the current batch, of which those in sel passed the filter.
func (m *MemIterator) count(sel batch.Bitmap) {
	n, selected := int64(m.out.Len), int64(sel.Count())
	c := &m.counts.Rows
	c.Memory += n
	c.Excluded += n - selected
	c.Selected += selected
}

// Batch implements scan.Iterator.
func (m *MemIterator) Batch() *batch.RecordBatch { return &m.out }

// Keys implements scan.Iterator.
func (m *MemIterator) Keys() [][]byte { return m.keys }

// Close may be followed by further calls of Next: a scan in key order closes m after each range of
// keys.
func (m *MemIterator) Close() error {
	if m.counts != nil {
		m.counts.Add()
	}
	return nil
}

// Seek implements scan.Iterator.
func (m *MemIterator) Seek(key []byte) error {
	m.it.Seek(key)
	return nil
}
