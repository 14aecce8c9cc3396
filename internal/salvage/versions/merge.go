// Package versions puts together the versions of rows from rowsets that may be damaged and from the
// operations of a log with holes.
package versions

import (
	"bytes"
	"container/heap"
	"context"
	"fmt"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/salvage/damaged"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/rowset"
	"github.com/oribi-db/oribi/schema"
)

// Options are the options of a Merge.
type Options struct {
	FillNull bool           // replace unreadable cells of nullable columns by NULL
	Floor    mvcc.Timestamp // no read is below it
}

// LoggedOp is an operation of the log on one row. Its key and body fit the schema.
type LoggedOp struct {
	Kind      change.Kind // Insert, Update, Delete or Replace
	Key, Body []byte
	TS        mvcc.Timestamp
	LSN       lsn.LSN
}

// LogGap is a range of records that the log should have, and does not.
type LogGap struct {
	From, To lsn.LSN        // inclusive
	Before   mvcc.Timestamp // of the last record before it
}

// Conflict is a time in which a row may or may not have existed: one source has its older version
// without an end, another one a newer version. The merge lets the older one end at From.
type Conflict struct {
	Key          []byte
	From, To     mvcc.Timestamp // the older version ended in it: To is when the newer one began
	Older, Newer string         // the sources
}

// Merge puts together the rows of rowsets that may be damaged and of the log that belongs to
// them. Each key has one sequence of versions: at no time are there two.
//
// Of a rowset, each version of a row is kept whose cells can be read. Between two versions that are
// kept, the times of those that are not look as if the row did not exist:
//
//	versions   ├─ a=1 ──┼─ a=? ──┼─ a=3 ──▶
//	kept       ├─ a=1 ──┤        ├─ a=3 ──▶
//
// If a key exists in two sources at a time, the deletion of the version that began earlier is lost:
// it ended when the other began, or before. It is kept up to the last time of which it is known that
// it existed, and the time from there on is reported:
//
//	rowset 1   ├─ a=1 ── ─ ─ ─ ─ ─▶
//	rowset 2                ├─ a=3 ──▶
//	kept       ├─ a=1 ──┤   ├─ a=3 ──▶
type Merge struct {
	Schema     *schema.Schema
	Options    Options
	Sets       []*damaged.RowSet
	Ops        []LoggedOp // by key; the operations of a key in the order of the log
	Ranges     *Ranges    // deletes of ranges; nil = none
	Gaps       []LogGap   // ascending
	Flushed    lsn.LSN    // rowsets contain the inserts up to it // inclusive
	Incomplete bool       // rowsets, records of the log or metadata are missing

	Use      func(rows *change.Rows) error       // takes rows in key order, which are valid during the call
	Lost     func(set *rowset.Metadata, l *Lost) // is called for each block on account of which versions are lost
	Conflict func(c *Conflict)                   // is called for each contradiction
	// is called for each operation of which it is not known what the row was before it
	Dropped  func(op *LoggedOp)
	Progress func(bytes int64) // is called for each rowset that was read

	format *change.RowFormat
	heads  readerHeap
	out    output
	rows   []*history // of the current key
	spans  []span
	runs   []run
	pieces []piece
}

// Run merges all rows. It takes the memory of a window of rows of each rowset, and of the versions
// of a row. Errors: ctx.Err(); the errors of Use; errors of reading that are not damage.
func (m *Merge) Run(ctx context.Context) error {
	m.format = change.NewRowFormat(m.Schema)
	m.out.init(m.Schema)
	all := make([]*rowSetReader, 0, len(m.Sets))
	for _, d := range m.Sets {
		r, err := newRowSetReader(d, &m.Options, m.window(d.Metadata))
		if err != nil {
			return err
		}
		all = append(all, r)
		if err := m.advance(r); err != nil {
			return err
		}
	}
	for ops := m.Ops; len(m.heads) > 0 || len(ops) > 0; {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := m.step(&ops); err != nil {
			return err
		}
	}
	if err := m.flush(); err != nil {
		return err
	}
	for _, r := range all {
		for _, l := range r.inOrder() {
			m.Lost(r.set, l)
		}
	}
	return nil
}

// windowBytes is the approximate limit for the stored bytes of a window.
const windowBytes = 1 << 20

// leastWindow is the minimum number of rows of a window.
const leastWindow = 16

// window returns the number of rows of a window. All windows together take about as much memory as
// full ones of eight rowsets.
func (m *Merge) window(set *rowset.Metadata) int {
	n := batch.WindowRows
	for n > leastWindow && set.Bytes/max(set.Rows, 1)*int64(n) > windowBytes {
		n /= 2
	}
	for k := len(m.Sets); k > 8 && n > leastWindow; k /= 2 {
		n /= 2
	}
	return n
}

// advance adds a reader to the heap at its next row, if it has one.
func (m *Merge) advance(r *rowSetReader) error {
	more, err := r.advance()
	if err != nil {
		return err
	}
	if more {
		heap.Push(&m.heads, r)
	} else if m.Progress != nil {
		m.Progress(r.set.Bytes)
	}
	return nil
}

// step merges all versions of the next key, and removes its operations from ops.
func (m *Merge) step(ops *[]LoggedOp) error {
	var key []byte
	if len(m.heads) > 0 {
		key = m.heads[0].key
	}
	if len(*ops) > 0 && (key == nil || bytes.Compare((*ops)[0].Key, key) < 0) {
		key = (*ops)[0].Key
	}
	var from []*rowSetReader
	m.rows = m.rows[:0]
	for len(m.heads) > 0 && bytes.Equal(m.heads[0].key, key) {
		r := heap.Pop(&m.heads).(*rowSetReader)
		from, m.rows = append(from, r), append(m.rows, &r.history)
	}
	n := 0
	for n < len(*ops) && bytes.Equal((*ops)[n].Key, key) {
		n++
	}
	m.key(key, m.Ranges.add(key, (*ops)[:n], m.rows))
	*ops = (*ops)[n:]
	if m.out.full() {
		if err := m.flush(); err != nil {
			return err
		}
	}
	for _, r := range from {
		if r.ended() { // rows that are not written yet refer to its window
			if err := m.flush(); err != nil {
				return err
			}
		}
		if err := m.advance(r); err != nil {
			return err
		}
	}
	return nil
}

func (m *Merge) flush() error {
	if len(m.out.Keys) == 0 {
		return nil
	}
	err := m.Use(m.out.window())
	m.out.reset()
	return err
}

// readerHeap has readers by the keys of their current rows.
type readerHeap []*rowSetReader

func (h readerHeap) Len() int           { return len(h) }
func (h readerHeap) Less(i, j int) bool { return bytes.Compare(h[i].key, h[j].key) < 0 }
func (h readerHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *readerHeap) Push(x any)        { *h = append(*h, x.(*rowSetReader)) }

func (h *readerHeap) Pop() any {
	last := len(*h) - 1
	r := (*h)[last]
	*h = (*h)[:last]
	return r
}

// output is a window of merged rows.
type output struct {
	change.Rows
	schema *schema.Schema
	batch  batch.RecordBatch
	all    []int // the non-key columns

	present, based bool // of the current row: at the current time; its base data was written
}

func (o *output) init(s *schema.Schema) {
	o.schema = s
	for i := range s.Columns {
		o.batch.Columns = append(o.batch.Columns, &batch.Vector{Type: s.Columns[i].Type})
		if i >= s.Keys {
			o.all = append(o.all, i)
		}
	}
	o.reset()
}

func (o *output) reset() {
	o.Keys, o.Undo, o.Redo = o.Keys[:0], o.Undo[:0], o.Redo[:0]
	for _, v := range o.batch.Columns {
		v.Reset(batch.WindowRows)
	}
}

func (o *output) full() bool { return len(o.Keys) == batch.WindowRows }

// window returns the rows.
func (o *output) window() *change.Rows {
	for _, v := range o.batch.Columns {
		short := &batch.Vector{Type: v.Type}
		short.AppendRun(v, 0, len(o.Keys))
		*v = *short
	}
	o.batch.Len = len(o.Keys)
	o.Batch = &o.batch
	return &o.Rows
}

// write appends the row that consists of pieces, newest first.
func (o *output) write(key []byte, pieces []piece) {
	o.present, o.based = false, false
	for i := range pieces {
		p := &pieces[i]
		p.seek()
		o.older(key, p.src, p.to, o.all)
		for {
			var touched []int
			if p.src.next == len(p.src.steps) || p.src.steps[p.src.next].ts <= p.from {
				break
			}
			ts, _ := p.src.earlier(&touched)
			o.older(key, p.src, ts, touched)
		}
		if joined := i+1 < len(pieces) && pieces[i+1].to == p.from; !joined && p.from > mvcc.Min {
			o.undo(p.from, change.AppendDelete(nil))
			o.present = false
		}
	}
}

// older makes the current row, before ts, the state of s, of which the columns in touched may be
// different from the state after ts.
func (o *output) older(key []byte, s *history, ts mvcc.Timestamp, touched []int) {
	switch {
	case !o.based:
		row := len(o.Keys)
		o.Keys = append(o.Keys, key)
		for c, v := range o.batch.Columns {
			v.SetCell(row, s.cell(c))
		}
		if ts != mvcc.Max {
			o.Redo = append(o.Redo, change.Delta{Row: uint32(row), TS: ts, List: change.AppendDelete(nil)})
		}
	case !o.present:
		o.undo(ts, s.list(change.Reinsert, o.all))
	case len(touched) > 0:
		o.undo(ts, s.list(change.Update, touched))
	}
	o.present, o.based = true, true
}

func (o *output) undo(ts mvcc.Timestamp, list change.List) {
	o.Undo = append(o.Undo, change.Delta{Row: uint32(len(o.Keys) - 1), TS: ts, List: list})
}

// source describes where a row is.
func (s *history) source() string {
	if s.set == nil {
		return "the log"
	}
	return fmt.Sprintf("rowset %d", s.set.ID)
}
