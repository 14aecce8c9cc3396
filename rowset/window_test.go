package rowset

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/scan"
	"github.com/oribi-db/oribi/schema"
)

// Windows of long cells have fewer rows, so that the memory of a window does not grow with the
// length of rows. Columns that are not read do not count, and windows end at the same positions as
// full ones.
func TestWindowsOfLongRowsAreShort(t *testing.T) {
	r := seedtest.Rand(t)
	const rows, long = 300, 30_000
	s := mustSchema([]schema.Column{{ID: 1, Name: "k", Type: schema.Int64}, {ID: 2, Name: "v", Type: schema.Binary}}, 1)
	d := newDisk()
	w := NewRollingWriter(d, s, func() uint64 { return 1 }, 1<<30)
	in := &change.Rows{Batch: batch.New(s.Columns, 0)}
	text := make([]byte, long)
	for i := range rows {
		for k := range text {
			text[k] = byte(r.Uint32())
		}
		in.Batch.Columns[0].AppendCell(binary.LittleEndian.AppendUint64(nil, uint64(i)))
		in.Batch.Columns[1].AppendCell(bytes.Clone(text))
		in.Keys = append(in.Keys, []byte{0x80, 0, 0, 0, 0, 0, byte(i >> 8), byte(i)})
		in.Undo = append(in.Undo, change.Delta{Row: uint32(i), TS: 5, List: change.AppendDelete(nil)})
	}
	in.Batch.Len = rows
	must.Do(t, w.Append(in))
	out := must.Get(w.Finish())(t)
	set := must.Get(Open(s, out[0], Options{Blocks: d}))(t)
	defer set.Unref()

	for _, c := range []struct {
		name    string
		columns []int
		filter  batch.Filter
		keys    bool
		most    int
	}{
		{"both columns", []int{0, 1}, batch.Filter{}, true, windowBytes / long},
		{"a predicate on the long one", []int{0},
			test(batch.Predicate{ID: 2, Type: schema.Binary, Op: batch.NotNull}), false, windowBytes / long},
		{"the short one", []int{0}, batch.Filter{}, true, rows},
	} {
		it := must.Get(newIterator(set, scan.Options{Schema: s, Columns: c.columns, Filter: c.filter, Keys: c.keys,
			Snapshot: mvcc.Everything}))(t)
		at, largest := 0, 0
		for it.Next() {
			b := it.Batch()
			for i := range b.Len {
				must.Equal(t, binary.LittleEndian.Uint64(b.Columns[0].Cell(i)), uint64(at+i), c.name, "row", at+i)
				if len(b.Columns) > 1 && !bytes.Equal(b.Columns[1].Cell(i), in.Batch.Columns[1].Cell(at+i)) {
					t.Fatalf("%s: row %d is wrong", c.name, at+i)
				}
			}
			if b.Len&(b.Len-1) != 0 && at+b.Len < rows {
				t.Errorf("%s: a window of %d rows", c.name, b.Len)
			}
			at, largest = at+b.Len, max(largest, b.Len)
		}
		must.Do(t, it.Close())
		must.Equal(t, at, rows, c.name, "rows")
		if largest > c.most || largest < c.most/2 {
			t.Errorf("%s: windows of up to %d rows, want about %d", c.name, largest, c.most)
		}
	}

	h := must.Get(set.Histories(mvcc.Everything))(t)
	for at := 0; at < rows; {
		got, err := h.Next()
		if err != nil || got == nil || len(got.Keys) > windowBytes/long {
			t.Fatalf("%v after row %d: %v", got, at, err)
		}
		if !bytes.Equal(got.Keys[0], in.Keys[at]) || len(got.Undo) != len(got.Keys) || got.Undo[0].Row != 0 {
			t.Fatalf("after row %d: key %x, %d undos of %d rows", at, got.Keys[0], len(got.Undo), len(got.Keys))
		}
		at += len(got.Keys)
	}
}

// A scan that needs few rows begins with small windows, which grow. It begins at the bound and
// stops at the limit.
func TestWindowsGrow(t *testing.T) {
	r := seedtest.Rand(t)
	s := mustSchema([]schema.Column{{ID: 1, Name: "k", Type: schema.Int32}, {ID: 2, Name: "v", Type: schema.Int64}}, 1)
	w := newTestRowSet(t, r, s, manyRows)
	n := len(w.rows)
	// without a filter, a window has about as many rows as the limit leaves
	everyRow := batch.Predicate{ID: 1, Type: schema.Int32, Op: batch.NotNull}
	must.Do(t, everyRow.Prepare())
	for _, c := range []struct {
		name   string
		limit  int64
		lower  int // rows; −1 = none
		upper  int
		window []int
	}{
		{"a limit of a row", 1, 1000, -1, []int{64, 256, 1024, 4096 - 2344, 4096}},
		{"a limit", 100, 4000, -1, []int{96, 400, 1600, 8192 - 4096 - 2000, 4096}},
		{"a limit beyond a window", 1 << 40, 4000, -1, []int{96, 4096}},
		{"a limit and an upper bound", 100, 1000, 1330, []int{100, 230}},
		{"no upper bound", 0, 10, -1, []int{128, 512, 2048, 4096 - 2698, 4096}},
		{"both bounds", 0, 10, 4500, []int{4086, 404}},
		{"neither", 0, -1, -1, []int{4096, 4096}},
		{"a limit from the start", 500, -1, -1, []int{500, 2000, 4096 - 2500, 4096}},
	} {
		req := scan.Options{Schema: s, Columns: []int{0, 1}, Snapshot: mvcc.Before(w.end), Limit: c.limit,
			Filter: batch.Test(everyRow)}
		if c.lower >= 0 {
			req.Lower = w.rows[c.lower].key
		}
		if c.upper >= 0 {
			req.Upper = w.rows[c.upper].key
		}
		it := must.Get(newIterator(w.set, req))(t)
		at := max(c.lower, 0)
		for i, want := range c.window {
			want = min(want, n-at)
			from := at
			for it.next < batch.Ordinal(at+want) && it.Next() {
			}
			if at = int(it.next); at != from+want {
				t.Errorf("%s: window %d has rows [%d,%d), want %d of them", c.name, i, from, at, want)
				break
			}
		}
		must.Do(t, it.Close())
	}
}

// Without a filter, a scan reads no more than its limit needs, in either direction.
func TestWindowsEndAtTheLimit(t *testing.T) {
	s := mustSchema([]schema.Column{{ID: 1, Name: "k", Type: schema.Int32}}, 1)
	w := newTestRowSet(t, seedtest.Rand(t), s, manyRows)
	for _, descending := range []bool{false, true} {
		const limit = 1000
		it, err := newIterator(w.set,
			scan.Options{Schema: s, Columns: []int{0}, Snapshot: mvcc.Everything, Limit: limit, Descending: descending})
		must.Do(t, err)
		rows, read := 0, 0
		for rows < limit && it.Next() {
			rows += it.Batch().Selected()
			read += it.Batch().Len
		}
		if rows < limit || rows > limit+64 {
			t.Errorf("descending %t: %d rows of %d, limit %d", descending, rows, read, limit)
		}
		must.Do(t, it.Close())
	}
}
