package rowset

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/bloom"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/scan"
	"github.com/oribi-db/oribi/schema"
)

func TestFindReturnsTheRowOfEachKey(t *testing.T) {
	withTestRowSets(t, func(t *testing.T, r *rand.Rand, w *testRowSet) {
		for i := range w.rows {
			m := &w.rows[i]
			row, found, err := w.set.Find(bloom.MakeProbe(m.key))
			if err != nil || !found || row != batch.Ordinal(i) {
				t.Fatalf("key %x: row %d, %t, %v, want %d", m.key, row, found, err, i)
			}
			must.Do(t, w.set.CheckKey(m.key, int64(i)))
			_, want := m.at(len(m.events))
			must.Equal(t, must.Get(w.set.Live(row))(t), want, "row", i, "live")
		}
		for range 50 {
			key := w.randomKey(r)
			_, want := w.find(key)
			if _, found, err := w.set.Find(bloom.MakeProbe(key)); err != nil || found != want {
				t.Fatalf("key %x: found %t, %v, want %t", key, found, err, want)
			}
		}
	})
}

// A bound that is shorter or longer than a fixed-width key leads to the first key at or after it,
// which is not an exact match.
func TestSeekAcceptsBoundsThatAreNotKeys(t *testing.T) {
	r := seedtest.Rand(t)
	w := newTestRowSet(t, r, mustSchema([]schema.Column{{ID: 1, Name: "k", Type: schema.Int32}}, 1), 200)
	for i := range w.rows {
		key := w.rows[i].key
		for n := range len(key) + 3 {
			bound := append(bytes.Clone(key), 0, 0xff)[:n]
			want, _ := w.find(bound)
			if got, exact, err := w.set.seek(bound); err != nil || got != batch.Ordinal(want) ||
				exact != (n == len(key)) {
				t.Fatalf("bound %x: row %d, exact %t, %v, want %d", bound, got, exact, err, want)
			}
		}
	}
	if got, _, err := w.set.seek([]byte{0xff, 0xff, 0xff, 0xff, 0}); err != nil || got != batch.Ordinal(len(w.rows)) {
		t.Errorf("above the largest integer: row %d, %v", got, err)
	}
}

// randomKey returns any key of the schema, sometimes an existing one.
func (w *testRowSet) randomKey(r *rand.Rand) []byte {
	var cells [][]byte
	for i := range w.schema.Keys {
		cells = append(cells, randomCell(r, w.schema.Columns[i].Type))
	}
	return w.encoder.AppendKey(nil, cells)
}

func (w *testRowSet) find(key []byte) (int, bool) {
	return slices.BinarySearchFunc(w.rows, key, func(m modelRow, key []byte) int { return bytes.Compare(m.key, key) })
}

func TestRowsReadAtAnySnapshot(t *testing.T) {
	withTestRowSets(t, func(t *testing.T, r *rand.Rand, w *testRowSet) {
		for _, snap := range w.snapshots(r) {
			for range 100 {
				i := r.IntN(len(w.rows))
				m := &w.rows[i]
				want, live := m.at(m.before(snap))
				cols := w.randomColumns(r)
				cells, got := must.Get2(w.set.Get(bloom.MakeProbe(m.key), snap, cols, nil))(t)
				must.Equal(t, got, live, "row", i, "at", snap, "live")
				for k, col := range cols {
					if live && !sameCell(cells[k], want[col]) {
						t.Fatalf("row %d at %d: column %d is %x, want %x", i, snap, col, cells[k], want[col])
					}
				}
			}
		}
	})
}

// randomColumns returns some columns in any order, possibly none, possibly one of them twice.
func (w *testRowSet) randomColumns(r *rand.Rand) []int {
	cols := r.Perm(len(w.schema.Columns))
	cols = cols[:r.IntN(len(cols)+1)]
	if len(cols) > 0 && r.IntN(4) == 0 {
		cols = append(cols, cols[0])
	}
	return cols
}

// randomBound returns nil, a key that exists or not, or bytes that are not a key: shorter, longer,
// off by one.
func (w *testRowSet) randomBound(r *rand.Rand) []byte {
	key := bytes.Clone(w.rows[r.IntN(len(w.rows))].key)
	switch r.IntN(7) {
	case 0:
		return nil
	case 1:
		return w.randomKey(r)
	case 2:
		return key[:r.IntN(len(key)+1):len(key)]
	case 3:
		return append(key, byte(r.IntN(2)*r.IntN(256)))
	case 4:
		return bytes.Repeat([]byte{0xff}, r.IntN(20))
	case 5:
		if len(key) > 0 {
			key[r.IntN(len(key))] += byte(1 + 254*r.IntN(2))
		}
	}
	if key == nil {
		key = []byte{}
	}
	return key
}

func (w *testRowSet) randomRequest(r *rand.Rand, snap mvcc.Snapshot) scan.Options {
	req := scan.Options{Schema: w.schema, Columns: w.randomColumns(r), Snapshot: snap, Keys: r.IntN(2) == 0,
		Descending: r.IntN(2) == 0}
	if r.IntN(3) == 0 {
		req.Rows.From = batch.Ordinal(r.IntN(len(w.rows) + 1))
		if r.IntN(2) == 0 {
			req.Rows.To = req.Rows.From + batch.Ordinal(r.IntN(len(w.rows)+10))
		}
	}
	if r.IntN(2) == 0 {
		req.Lower, req.Upper = w.randomBound(r), w.randomBound(r)
	}
	if r.IntN(2) == 0 { // affects the first batches only
		req.Limit = int64(1 + r.IntN(2*batch.WindowRows)>>r.IntN(13))
	}
	if r.IntN(3) > 0 {
		req.Filter = w.randomFilter(r, 3)
	}
	return req
}

// randomFilter returns a tree of predicates with at most the given number of levels.
func (w *testRowSet) randomFilter(r *rand.Rand, levels int) batch.Filter {
	if levels > 1 && r.IntN(2) == 0 {
		var children []batch.Filter
		for range r.IntN(4) {
			children = append(children, w.randomFilter(r, levels-1))
		}
		switch r.IntN(3) {
		case 0:
			return batch.And(children...)
		case 1:
			return batch.Or(children...)
		}
		return batch.Not(w.randomFilter(r, levels-1))
	}
	c := &w.schema.Columns[r.IntN(len(w.schema.Columns))]
	p := batch.Predicate{Column: c.Name, ID: c.ID, Type: c.Type, Op: batch.Operator(1 + r.IntN(int(batch.NotNull)))}
	if c.Type == schema.Array { // tested for NULL only
		p.Op = batch.IsNull + batch.Operator(r.IntN(2))
	}
	n := 1
	switch p.Op {
	case batch.IsNull, batch.NotNull:
		n = 0
	case batch.In:
		n = r.IntN(4)
	}
	for range n {
		p.Values = append(p.Values, randomCell(r, c.Type))
	}
	if err := p.Prepare(); err != nil {
		panic(err)
	}
	return batch.Test(p)
}

// test returns the filter of a predicate, prepared.
func test(p batch.Predicate) batch.Filter {
	if err := p.Prepare(); err != nil {
		panic(err)
	}
	return batch.Test(p)
}

// newIterator returns the iterator of a new request.
func newIterator(d *DiskRowSet, o scan.Options) (*Iterator, error) {
	req, err := scan.NewRequest(o)
	if err != nil {
		return nil, err
	}
	return d.NewIterator(req)
}

// answer returns the rows that a request should return, by their indexes in the model.
func (w *testRowSet) answer(req scan.Options) (rows []int, cells [][][]byte) {
	for i := range w.rows {
		m := &w.rows[i]
		if at := batch.Ordinal(i); at < req.Rows.From || req.Rows.To != 0 && at >= req.Rows.To {
			continue
		}
		if req.Lower != nil && bytes.Compare(m.key, req.Lower) < 0 ||
			req.Upper != nil && bytes.Compare(m.key, req.Upper) >= 0 {
			continue
		}
		state, live := m.at(m.before(req.Snapshot))
		live = live && req.Filter.EvalRow(func(id schema.ColumnID) []byte { return state[w.schema.IndexID(id)] })
		if live {
			rows, cells = append(rows, i), append(cells, state)
		}
	}
	if req.Descending {
		slices.Reverse(rows)
		slices.Reverse(cells)
	}
	return rows, cells
}

func TestScansMatchTheModel(t *testing.T) {
	withTestRowSets(t, func(t *testing.T, r *rand.Rand, w *testRowSet) {
		for _, snap := range w.snapshots(r) {
			for range 8 {
				req := w.randomRequest(r, snap)
				it := must.Get(newIterator(w.set, req))(t)
				must.Do(t, w.compare(req, it))
				must.Do(t, it.Close())
				must.Equal(t, it.Next(), false, "Next returned true after Close")
			}
		}
	})
}

// A descending scan with a limit begins with few rows at the end of the rowset. Its batches grow
// and do not cross the borders of windows.
func TestDescendingScanBeginsAtTheEnd(t *testing.T) {
	s := mustSchema([]schema.Column{{ID: 1, Name: "k", Type: schema.Int32}}, 1)
	w := newTestRowSet(t, seedtest.Rand(t), s, manyRows)
	it, err := newIterator(w.set,
		scan.Options{Schema: s, Columns: []int{0}, Snapshot: mvcc.Everything, Keys: true, Limit: 1, Descending: true})
	must.Do(t, err)
	defer it.Close()
	end, part := len(w.rows), 16
	for it.Next() {
		from := max(end-part, (end-1)/batch.WindowRows*batch.WindowRows)
		if n := it.Batch().Len; n != end-from || !bytes.Equal(it.Keys()[0], w.rows[end-1].key) ||
			!bytes.Equal(it.Keys()[n-1], w.rows[from].key) {
			t.Fatalf("batch of %d rows, want rows [%d, %d), the last one first", n, from, end)
		}
		end, part = from, it.req.NextRows(part)
	}
	must.Equal(t, end, 0, "the scan ends before row")
}

// compare reads all rows of an iterator. It compares byte strings after reading all of them, since
// they stay valid.
func (w *testRowSet) compare(req scan.Options, it *Iterator) error {
	rows, want := w.answer(req)
	var got [][][]byte
	for it.Next() {
		b := it.Batch()
		if b.Len == 0 || b.Len > batch.WindowRows || b.Selected() == 0 ||
			b.Selection.Count() != b.Selection.CountRange(0, b.Len) {
			return fmt.Errorf("batch of %d rows, %d selected", b.Len, b.Selected())
		}
		if len(b.Columns) != len(req.Columns) || len(b.Schema) != len(req.Columns) ||
			req.Keys && len(it.Keys()) != b.Len {
			return fmt.Errorf("%d columns, %d keys", len(b.Columns), len(it.Keys()))
		}
		for i := b.Selection.Next(0); i >= 0; i = b.Selection.Next(i + 1) {
			if len(got) >= len(rows) {
				return fmt.Errorf("request %+v: more than %d rows", req, len(rows))
			}
			if key := w.rows[rows[len(got)]].key; req.Keys && !bytes.Equal(it.Keys()[i], key) {
				return fmt.Errorf("request %+v: row %d has key %x, want %x", req, len(got), it.Keys()[i], key)
			}
			cells := make([][]byte, len(b.Columns))
			for c, v := range b.Columns {
				if cells[c] = v.Cell(i); !v.Type.Variable() {
					cells[c] = bytes.Clone(cells[c])
				}
			}
			got = append(got, cells)
		}
	}
	if len(got) != len(rows) {
		return fmt.Errorf("request %+v: %d rows, want %d", req, len(got), len(rows))
	}
	for k := range got {
		for c, col := range req.Columns {
			if !sameCell(got[k][c], want[k][col]) {
				return fmt.Errorf("request %+v: row %d: column %d is %x, want %x", req, rows[k], col, got[k][c],
					want[k][col])
			}
		}
	}
	return nil
}

// skips reports whether a Seek to a key skips a row.
func skips(req scan.Options, key, row []byte) bool {
	if req.Descending {
		key, row = row, key
	}
	return bytes.Compare(row, key) < 0
}

// Seek skips rows. It never moves back and never leaves the bounds of the request.
func TestSeeksMatchTheModel(t *testing.T) {
	withTestRowSets(t, func(t *testing.T, r *rand.Rand, w *testRowSet) {
		for range 20 {
			req := w.randomRequest(r, mvcc.Snapshot(r.IntN(int(w.end))))
			req.Keys = true
			it := must.Get(newIterator(w.set, req))(t)
			rows, _ := w.answer(req)
			for more := true; more; {
				if r.IntN(2) == 0 {
					key := w.randomBound(r)
					must.Do(t, it.Seek(key))
					for len(rows) > 0 && skips(req, key, w.rows[rows[0]].key) {
						rows = rows[1:]
					}
				}
				if more = it.Next(); !more {
					break
				}
				sel := it.Batch().Selection
				for i := sel.Next(0); i >= 0; i = sel.Next(i + 1) {
					if len(rows) == 0 || !bytes.Equal(it.Keys()[i], w.rows[rows[0]].key) {
						t.Fatalf("request %+v: key %x, want one of rows %v", req, it.Keys()[i],
							rows[:min(1, len(rows))])
					}
					rows = rows[1:]
				}
			}
			must.Do(t, it.Close())
			must.Equal(t, len(rows), 0, "request", req, "rows are missing")
		}
	})
}

// A scan at a snapshot returns the same rows even if changes at or after the snapshot are applied
// while it runs.
func TestScansDoNotSeeLaterChanges(t *testing.T) {
	r := seedtest.Rand(t)
	s := mustSchema([]schema.Column{{ID: 1, Name: "k", Type: schema.Int32}, {ID: 2, Name: "v", Type: schema.Int64},
		{ID: 3, Name: "s", Type: schema.String, Nullable: true}}, 1)
	w := newTestRowSet(t, r, s, manyRows)
	req := scan.Options{Schema: s, Columns: []int{1, 2}, Snapshot: mvcc.Before(w.end)}
	it := must.Get(newIterator(w.set, req))(t)
	late := change.List(change.AppendColumn(change.AppendUpdateHeader(nil, change.Update), 3, []byte("too late")))
	for i := range w.rows {
		if live, err := w.set.Live(batch.Ordinal(i)); err != nil {
			t.Fatal(err)
		} else if live {
			w.set.Apply(batch.Ordinal(i), w.end, 99, late)
			w.set.Apply(batch.Ordinal(i), w.end+1, 100, change.AppendDelete(nil))
		}
	}
	must.Do(t, w.compare(req, it))
	must.Do(t, it.Close())
	after := must.Get(newIterator(w.set, scan.Options{Schema: s, Columns: []int{1}, Snapshot: mvcc.Everything}))(t)
	must.Equal(t, after.Next(), false, "a row exists after all were deleted")
	after.Close()
}

// Each window is checked after the next one was read, since two are valid.
func TestHistoriesHaveAllVersions(t *testing.T) {
	withTestRowSets(t, func(t *testing.T, r *rand.Rand, w *testRowSet) {
		for _, snap := range w.snapshots(r) {
			h := must.Get(w.set.Histories(snap))(t)
			at := 0
			var last *change.Rows // before at
			for {
				rows := must.Get(h.Next())(t)
				if last != nil {
					w.checkHistories(t, last, at-len(last.Keys), snap)
				}
				if last = rows; rows == nil {
					break
				}
				if n := len(rows.Keys); n == 0 || n != rows.Batch.Len || at+n > len(w.rows) {
					t.Fatalf("%d keys, %d rows at row %d of %d", n, rows.Batch.Len, at, len(w.rows))
				}
				at += len(rows.Keys)
			}
			must.Equal(t, at, len(w.rows), "rows")
		}
	})
}

// checkHistories compares base, undos and redos of rows with the model's, starting at row at.
func (w *testRowSet) checkHistories(t *testing.T, rows *change.Rows, at int, snap mvcc.Snapshot) {
	t.Helper()
	undo, redo := rows.Undo, rows.Redo
	take := func(list *[]change.Delta, i int) (out []change.Delta) {
		for len(*list) > 0 && (*list)[0].Row == uint32(i) {
			out, *list = append(out, (*list)[0]), (*list)[1:]
		}
		return out
	}
	for i, key := range rows.Keys {
		m := &w.rows[at+i]
		base, _ := m.at(m.base)
		must.Equal(t, key, m.key, "row", at+i, "key")
		for c, v := range rows.Batch.Columns {
			must.Equal(t, sameCell(v.Cell(i), base[c]), true, "row", at+i, "base of column", c, v.Cell(i), base[c])
		}
		undos := take(&undo, i)
		must.Equal(t, len(undos), m.base, "row", at+i, "undos")
		for k, d := range undos {
			n := m.base - 1 - k
			must.Equal(t, d.TS, m.events[n].ts, "row", at+i, "undo", k)
			must.Equal(t, d.List, w.undo(m, n), "row", at+i, "undo", k)
		}
		n := m.base
		for _, d := range take(&redo, i) {
			if n >= len(m.events) || !snap.Sees(d.TS) || d.TS != m.events[n].ts || !bytes.Equal(d.List, w.redo(m, n)) {
				t.Fatalf("row %d: redo %x at %d, below %d", at+i, d.List, d.TS, snap)
			}
			n++
		}
		if n < len(m.events) && snap.Sees(m.events[n].ts) {
			t.Fatalf("row %d: the redo at %d is missing", at+i, m.events[n].ts)
		}
	}
	if len(undo)+len(redo) > 0 {
		t.Fatalf("changes of no row: %v %v", undo, redo)
	}
}
