package rowset

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/scan"
	"github.com/oribi-db/oribi/schema"
)

// aheadColumns are the columns of rows without changes. Row i has i and one of seven words.
var aheadColumns = []schema.Column{{ID: 1, Name: "k", Type: schema.Int64},
	{ID: 2, Name: "word", Type: schema.String, Encoding: schema.Dictionary}}

func aheadCell(row int, id schema.ColumnID) []byte {
	if id == 1 {
		return binary.LittleEndian.AppendUint64(nil, uint64(row))
	}
	return fmt.Appendf(nil, "word %d", row%7)
}

// aheadSet writes n rows.
func aheadSet(t *testing.T, n int) *DiskRowSet {
	t.Helper()
	d, s := newDisk(), mustSchema(aheadColumns, 1)
	w := must.Get(NewWriter(d, s, 17))(t)
	rows := &change.Rows{Batch: batch.New(s.Columns, n)}
	for i := range n {
		for c, v := range rows.Batch.Columns {
			v.SetCell(i, aheadCell(i, aheadColumns[c].ID))
		}
		rows.Keys = append(rows.Keys, binary.BigEndian.AppendUint64(nil, uint64(i)|1<<63))
	}
	must.Do(t, w.Append(rows))
	row := must.Get(w.Finish())(t)
	set := must.Get(Open(s, row, Options{Blocks: d}))(t)
	t.Cleanup(set.Unref)
	return set
}

// A consumer is offered many rows at once. Those that it does not take are offered again in
// windows, and those that it does not take then are read. A filter that needs decoded cells is
// tested in windows.
func TestConsumersSeeEachRowOnce(t *testing.T) {
	const n = aheadRows + 3*batch.WindowRows/2
	set, r := aheadSet(t, n), seedtest.Rand(t)
	compare := func(op batch.Operator, id schema.ColumnID, rows ...int) batch.Filter {
		p := batch.Predicate{ID: id, Type: aheadColumns[id-1].Type, Op: op}
		for _, row := range rows {
			p.Values = append(p.Values, aheadCell(row, id))
		}
		return test(p)
	}
	cells := make([][2][]byte, n)
	for i := range cells {
		cells[i] = [2][]byte{aheadCell(i, 1), aheadCell(i, 2)}
	}
	many := r.Perm(n)[:200] // more than are compared with stored values
	sizes := map[string]int{}
	for round := range 35 {
		filter := []batch.Filter{
			{},
			compare(batch.Ge, 1, r.IntN(n)),
			batch.And(compare(batch.Lt, 1, r.IntN(n)), compare(batch.Ne, 2, r.IntN(7))),
			batch.Or(compare(batch.In, 1, r.IntN(n), r.IntN(n), r.IntN(n)), batch.Not(compare(batch.Le, 2, r.IntN(7)))),
			compare(batch.In, 1, many...),
			batch.And(compare(batch.Eq, 2, r.IntN(7)), compare(batch.In, 1, many...)),
			compare(batch.Lt, 1, 0),
			batch.And(compare(batch.Ge, 1, r.IntN(n)), compare(batch.Ne, 2, r.IntN(7)),
				compare(batch.Lt, 1, r.IntN(n))),
		}[round%8]
		req := scan.Options{Schema: set.Schema, Columns: []int{0}, Filter: filter, Snapshot: mvcc.Everything}
		if r.IntN(3) > 0 {
			req.Rows = scan.RowRange{From: batch.Ordinal(r.IntN(n)), To: n - batch.Ordinal(r.IntN(100))}
			req.Rows.To = max(req.Rows.To, req.Rows.From)
		}
		it := must.Get(newIterator(set, req))(t)
		seen, taking := batch.MakeBitmap(n), r.IntN(4)
		see := func(from batch.Ordinal, sel batch.Bitmap) {
			for i := sel.Next(0); i >= 0; i = sel.Next(i + 1) {
				must.Equal(t, seen.Get(int(from)+i), false, "round", round, "row", int(from)+i, "twice")
				seen.Set(int(from) + i)
			}
		}
		it.Offer(func(w scan.Window) (bool, error) {
			taken := taking > 1 || taking == 1 && r.IntN(2) == 0
			switch {
			case it.n > batch.WindowRows:
				sizes["many rows"]++
				taken = taken && taking < 3
			case taken:
				sizes["taken windows"]++
			}
			if taken {
				see(it.from, w.Selection())
			}
			return taken, nil
		})
		for it.Next() {
			b := it.Batch()
			if b.Len > batch.WindowRows {
				t.Fatalf("a batch of %d rows", b.Len)
			}
			for i := b.Selection.Next(0); i >= 0; i = b.Selection.Next(i + 1) {
				must.Equal(t, binary.LittleEndian.Uint64(b.Columns[0].Cell(i)), uint64(it.from)+uint64(i),
					"round", round, "row", int(it.from)+i)
			}
			see(it.from, b.Selection)
			sizes["batches"]++
		}
		if it.ahead.off {
			sizes["filters that need cells"]++
		}
		must.Do(t, it.Close())
		for i := range n {
			want := i >= int(req.Rows.From) && (req.Rows.To == 0 || i < int(req.Rows.To)) &&
				filter.EvalRow(func(id schema.ColumnID) []byte { return cells[i][id-1] })
			must.Equal(t, seen.Get(i), want, "round", round, "rows", req.Rows, "row", i, "is selected")
		}
	}
	for _, what := range []string{"many rows", "taken windows", "batches", "filters that need cells"} {
		if sizes[what] == 0 {
			t.Errorf("no %s", what)
		}
	}
	t.Log(sizes)
}
