package rowset

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/delta"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/rowpage"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/keyenc"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// disk stores blocks in memory: a Creation to write them, Blocks to read them. It counts open
// blocks, and reads.
type disk struct {
	blocks map[block.ID]*block.Memory
	last   block.ID
	open   atomic.Int64
	reads  atomic.Int64
}

func newDisk() *disk { return &disk{blocks: map[block.ID]*block.Memory{}, last: 100} }

func (d *disk) Create() (block.Sink, error) {
	d.last++
	return &block.Memory{Number: d.last}, nil
}

func (d *disk) Finish(s block.Sink) error {
	m := s.(*block.Memory)
	if d.blocks[m.Number] != nil {
		return fmt.Errorf("block %d is finished twice", m.Number)
	}
	d.blocks[m.Number] = m
	return nil
}

func (d *disk) OpenBlock(id block.ID) (Block, error) {
	m := d.blocks[id]
	if m == nil {
		return nil, fmt.Errorf("block %d: %w", id, fault.ErrNotFound)
	}
	d.open.Add(1)
	return &opened{m, d, false}, nil
}

type opened struct {
	*block.Memory
	disk   *disk
	closed bool
}

func (o *opened) ReadAt(b []byte, off int64) (int, error) {
	o.disk.reads.Add(1)
	return o.Memory.ReadAt(b, off)
}

func (o *opened) Close() error {
	if o.closed {
		return fmt.Errorf("block %d is closed twice", o.Number)
	}
	o.closed = true
	o.disk.open.Add(-1)
	return nil
}

var keyTypes = []schema.Type{schema.Int8, schema.Int16, schema.Int32, schema.Int64, schema.Uint8, schema.Uint16,
	schema.Uint32, schema.Uint64,
	schema.Int128, schema.String, schema.Binary, schema.Varchar, schema.Timestamp, schema.Date,
	schema.Decimal32, schema.Decimal64, schema.Decimal128}

var allTypes = append([]schema.Type{schema.Bool, schema.Float, schema.Double, schema.Array, schema.Array}, keyTypes...)

// elementTypes are the types of the elements of arrays.
var elementTypes = []schema.Type{schema.Bool, schema.Uint8, schema.Int16, schema.Int32, schema.Int64,
	schema.Double, schema.String, schema.Varchar, schema.Decimal64}

// randomColumn returns a column of type t with settings that make many small cblocks.
func randomColumn(r *rand.Rand, name string, t schema.Type) schema.Column {
	c := schema.Column{Name: name, Type: t, BlockBytes: []int32{0, 512, 512, 2048}[r.IntN(4)],
		Compression: schema.Compression(r.IntN(5))}
	if t == schema.Array {
		c.Element = elementTypes[r.IntN(len(elementTypes))]
	}
	if c.Encoding = schema.Encoding(r.IntN(7)); !c.Encoding.Allowed(c.Stored()) {
		c.Encoding = schema.Auto
	}
	switch c.Stored() {
	case schema.Varchar:
		c.Length = 100
	case schema.Decimal32:
		c.Precision = 9
	case schema.Decimal64:
		c.Precision = 18
	case schema.Decimal128:
		c.Precision = 38
	}
	return c
}

// randomSchema returns a schema with the given key and up to four other columns.
func randomSchema(r *rand.Rand, key ...schema.Type) *schema.Schema {
	var columns []schema.Column
	for i, t := range key {
		columns = append(columns, randomColumn(r, fmt.Sprint("k", i), t))
	}
	for i := range r.IntN(5) {
		c := randomColumn(r, fmt.Sprint("v", i), allTypes[r.IntN(len(allTypes))])
		c.Nullable = r.IntN(2) == 0
		columns = append(columns, c)
	}
	for i := range columns {
		columns[i].ID = schema.ColumnID(10 + 3*i)
	}
	return mustSchema(columns, len(key))
}

func mustSchema(columns []schema.Column, keys int) *schema.Schema {
	s, err := schema.New(columns, keys)
	if err != nil {
		panic(err)
	}
	return s
}

// randomCell returns a cell, mostly one of a few values, so that predicates match.
func randomCell(r *rand.Rand, t schema.Type) []byte {
	rare := r.IntN(3) == 0
	switch t.Physical() {
	case schema.Bool:
		return []byte{byte(r.IntN(2))}
	case schema.Float:
		return binary.LittleEndian.AppendUint32(nil,
			math.Float32bits([]float32{0, 1, -1.5, float32(math.Inf(1)), float32(math.NaN())}[r.IntN(5)]))
	case schema.Double:
		return binary.LittleEndian.AppendUint64(nil,
			math.Float64bits([]float64{0, 1, -1.5, math.Inf(-1), math.NaN()}[r.IntN(5)]))
	case schema.Binary:
		if !rare {
			return [][]byte{{}, []byte("a"), []byte("ab"), []byte("b\x00"), []byte("some longer text")}[r.IntN(5)]
		}
		text := []byte{}
		for range r.IntN(12) {
			text = append(text, "\x00\x01ab\xff"[r.IntN(5)])
		}
		return text
	}
	var b [16]byte
	small := int64(r.IntN(9)) - 4
	binary.LittleEndian.PutUint64(b[:], uint64(small))
	binary.LittleEndian.PutUint64(b[8:], uint64(small>>63))
	if rare {
		binary.LittleEndian.PutUint64(b[:], r.Uint64())
		binary.LittleEndian.PutUint64(b[8:], r.Uint64())
	}
	return bytes.Clone(b[:t.Width()])
}

func randomOrNull(r *rand.Rand, c *schema.Column) []byte {
	if c.Nullable && r.IntN(3) == 0 {
		return nil
	}
	if c.Type == schema.Array {
		return randomArray(r, c)
	}
	return randomCell(r, c.Type)
}

// randomArray returns a few elements, some of them NULL; sometimes so many that they fill a cblock.
func randomArray(r *rand.Rand, c *schema.Column) []byte {
	n := r.IntN(4)
	if r.IntN(50) == 0 {
		n = r.IntN(300)
	}
	elements := make([][]byte, n)
	for i := range elements {
		if r.IntN(4) > 0 {
			elements[i] = randomCell(r, c.Element)
		}
	}
	return schema.AppendArray([]byte{}, c.Element, elements)
}

// event is one operation on a row: insert, update, delete or reinsert. cells is by index in the
// schema; an update uses only those in set.
type event struct {
	ts    mvcc.Timestamp
	kind  change.Kind
	cells [][]byte
	set   []int
}

// modelRow is the history of one row, oldest event first, and the number of events that the base
// cells include.
type modelRow struct {
	key    []byte // encoded
	events []event
	base   int
}

// at returns the row after its first n events.
func (m *modelRow) at(n int) (cells [][]byte, live bool) {
	for _, e := range m.events[:n] {
		live = e.kind != change.Delete
		switch e.kind {
		case change.Insert, change.Reinsert:
			cells = slices.Clone(e.cells)
		case change.Update:
			for _, c := range e.set {
				cells[c] = e.cells[c]
			}
		}
	}
	return cells, live
}

// before returns the number of events below snap.
func (m *modelRow) before(snap mvcc.Snapshot) int {
	n := 0
	for n < len(m.events) && snap.Sees(m.events[n].ts) {
		n++
	}
	return n
}

// testRowSet is a rowset and its model.
type testRowSet struct {
	rowFile schema.RowFile // of write; schema.AutoRowFile stands for any
	schema  *schema.Schema
	encoder *keyenc.Encoder
	rows    []modelRow // by key
	end     mvcc.Timestamp
	disk    *disk
	set     *DiskRowSet
}

// randomLife returns the events of a row before and after the base. The base is the row at some
// time at which it exists.
func randomLife(r *rand.Rand, s *schema.Schema, key [][]byte, end mvcc.Timestamp) (events []event, base int) {
	ts := mvcc.Timestamp(1 + r.IntN(int(end)/2))
	whole := func() [][]byte {
		cells := slices.Clone(key)
		for i := s.Keys; i < len(s.Columns); i++ {
			cells = append(cells, randomOrNull(r, &s.Columns[i]))
		}
		return cells
	}
	events = []event{{ts: ts, kind: change.Insert, cells: whole()}}
	base = 1
	frozen := false // no reinserts after the base
	for range r.IntN(3) * r.IntN(5) {
		last := events[len(events)-1]
		e := event{ts: last.ts + mvcc.Timestamp(r.IntN(6))}
		switch {
		case last.kind == change.Delete && frozen:
			return events, base
		case last.kind == change.Delete:
			e.kind, e.cells = change.Reinsert, whole()
		case r.IntN(4) == 0 || s.Keys == len(s.Columns):
			e.kind = change.Delete
		default:
			e.kind, e.cells = change.Update, whole()
			for i := s.Keys; i < len(s.Columns); i++ {
				if r.IntN(2) == 0 {
					e.set = append(e.set, i)
				}
			}
			if len(e.set) == 0 {
				e.set = []int{len(s.Columns) - 1}
			}
		}
		if e.ts >= end {
			break
		}
		events = append(events, e)
		if !frozen && e.kind != change.Delete {
			base = len(events)
			frozen = r.IntN(3) == 0
		}
	}
	return events, base
}

// redo returns the n-th event as a redo.
func (w *testRowSet) redo(m *modelRow, n int) change.List {
	e := m.events[n]
	switch e.kind {
	case change.Delete:
		return change.AppendDelete(nil)
	case change.Update:
		return w.list(change.Update, e.cells, e.set)
	}
	panic("no redo")
}

// undo returns the n-th event as an undo.
func (w *testRowSet) undo(m *modelRow, n int) change.List {
	before, _ := m.at(n)
	switch e := m.events[n]; e.kind {
	case change.Delete:
		var all []int
		for i := w.schema.Keys; i < len(w.schema.Columns); i++ {
			all = append(all, i)
		}
		return w.list(change.Reinsert, before, all)
	case change.Update:
		return w.list(change.Update, before, e.set)
	}
	return change.AppendDelete(nil)
}

func (w *testRowSet) list(kind change.Kind, cells [][]byte, set []int) change.List {
	l := change.AppendUpdateHeader(nil, kind)
	for _, i := range set {
		l = change.AppendColumn(l, w.schema.Columns[i].ID, cells[i])
	}
	return l
}

// newTestRowSet writes a rowset of up to n rows: undos and some redos are written with it, some
// redos are flushed to a file later, some are in memory.
func newTestRowSet(t testing.TB, r *rand.Rand, s *schema.Schema, n int) *testRowSet {
	t.Helper()
	w := &testRowSet{schema: s, encoder: keyenc.NewEncoder(s), end: 60, disk: newDisk()}
	seen := map[string]bool{}
	for range n {
		var key [][]byte
		for i := range s.Keys {
			key = append(key, randomCell(r, s.Columns[i].Type))
		}
		m := modelRow{key: w.encoder.AppendKey(nil, key)}
		if seen[string(m.key)] {
			continue
		}
		seen[string(m.key)] = true
		m.events, m.base = randomLife(r, s, key, w.end)
		w.rows = append(w.rows, m)
	}
	slices.SortFunc(w.rows, func(a, b modelRow) int { return bytes.Compare(a.key, b.key) })

	born := mvcc.Timestamp(r.IntN(int(w.end) + 1)) // redos below are written with the rowset
	flushed := born + mvcc.Timestamp(r.IntN(30))   // redos below are in a file
	row := w.write(t, r, born)
	row = w.flush(t, row, born, flushed)
	var err error
	w.set, err = Open(s, row, Options{Blocks: w.disk})
	must.Do(t, err)
	w.apply(r, flushed)
	return w
}

// write writes the rowset in some number of Appends.
func (w *testRowSet) write(t testing.TB, r *rand.Rand, born mvcc.Timestamp) *Metadata {
	t.Helper()
	out := must.Get(NewWriter(w.disk, w.schema, 17))(t)
	switch mode := w.rowFile; {
	case mode != schema.AutoRowFile:
		out.AddRowFile(mode)
	case r.IntN(2) == 0:
		rowpage.Eager.Store(true)
		out.AddRowFile(schema.RowFile(r.IntN(3)))
	}
	for from := 0; from < len(w.rows); {
		to := min(len(w.rows), from+1+r.IntN(r.IntN(2)*5000+20))
		must.Do(t, out.Append(w.chunk(from, to, born)))
		from = to
	}
	row := must.Get(out.Finish())(t)
	row.IncludedLSN = 5
	return row
}

// chunk returns rows [from, to) in the form that a Writer takes.
func (w *testRowSet) chunk(from, to int, born mvcc.Timestamp) *change.Rows {
	rows := &change.Rows{Batch: batch.New(w.schema.Columns, 0)}
	for i := from; i < to; i++ {
		m := &w.rows[i]
		cells, _ := m.at(m.base)
		for c, v := range rows.Batch.Columns {
			v.AppendCell(cells[c])
		}
		rows.Keys = append(rows.Keys, m.key)
		for n := m.base - 1; n >= 0; n-- {
			rows.Undo = append(rows.Undo, change.Delta{Row: uint32(i - from), TS: m.events[n].ts, List: w.undo(m, n)})
		}
		for n := m.base; n < len(m.events) && m.events[n].ts < born; n++ {
			rows.Redo = append(rows.Redo, change.Delta{Row: uint32(i - from), TS: m.events[n].ts, List: w.redo(m, n)})
		}
	}
	rows.Batch.Len = to - from
	return rows
}

// flush writes the redos in [from, to) to a separate file.
func (w *testRowSet) flush(t testing.TB, row *Metadata, from, to mvcc.Timestamp) *Metadata {
	t.Helper()
	sink, _ := w.disk.Create()
	out := must.Get(delta.NewWriter(sink, false))(t)
	for i := range w.rows {
		m := &w.rows[i]
		for n := m.base; n < len(m.events); n++ {
			e := m.events[n]
			if e.ts < from || e.ts >= to {
				continue
			}
			must.Do(t, out.Append(change.Delta{Row: uint32(i), TS: e.ts, List: w.redo(m, n)}))
			if e.kind == change.Delete {
				row.LiveRows--
			}
		}
	}
	if out.Len() == 0 {
		return row
	}
	must.Get(out.Finish())(t)
	must.Do(t, w.disk.Finish(sink))
	row.Redo = append(row.Redo, sink.ID())
	return row
}

// apply applies the redos from a timestamp on to the delta mem store, rows in any order.
func (w *testRowSet) apply(r *rand.Rand, from mvcc.Timestamp) {
	for _, i := range r.Perm(len(w.rows)) {
		m := &w.rows[i]
		for n := m.base; n < len(m.events); n++ {
			if e := m.events[n]; e.ts >= from {
				w.set.Apply(batch.Ordinal(i), e.ts, lsn.LSN(e.ts), w.redo(m, n))
			}
		}
	}
}

// manyRows is more than a window, even without duplicate keys.
const manyRows = 7 * batch.WindowRows / 2

// withTestRowSets calls test with rowsets of every keyable type and of compound keys: small ones,
// and some with more rows than a window.
func withTestRowSets(t *testing.T, test func(t *testing.T, r *rand.Rand, w *testRowSet)) {
	r := seedtest.Rand(t)
	rounds := seedtest.Rounds(3, 1)
	var keys [][]schema.Type
	for _, typ := range keyTypes {
		keys = append(keys, []schema.Type{typ})
	}
	for range 8 {
		var key []schema.Type
		for range 2 + r.IntN(3) {
			key = append(key, keyTypes[r.IntN(len(keyTypes))])
		}
		keys = append(keys, key)
	}
	for _, key := range keys {
		t.Run(fmt.Sprint("key=", key), func(t *testing.T) {
			for range rounds {
				test(t, r, newTestRowSet(t, r, randomSchema(r, key...), 1+r.IntN(300)))
			}
		})
	}
	t.Run("windows", func(t *testing.T) {
		key := [][]schema.Type{{schema.Int32}, {schema.Int16, schema.String}}[r.IntN(2)]
		w := newTestRowSet(t, r, randomSchema(r, key...), manyRows)
		if len(w.rows) <= batch.WindowRows {
			t.Fatalf("%d rows are one window", len(w.rows))
		}
		test(t, r, w)
	})
}

// snapshots returns relevant snapshots: before and after everything, at and between events.
func (w *testRowSet) snapshots(r *rand.Rand) []mvcc.Snapshot {
	return []mvcc.Snapshot{mvcc.Nothing, mvcc.Everything, mvcc.Before(w.end), mvcc.Snapshot(r.IntN(int(w.end))),
		mvcc.Snapshot(r.IntN(int(w.end)))}
}

func sameCell(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }
