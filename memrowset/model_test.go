package memrowset

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/mvcc"
)

// model is the expected content of a MemRowSet: each key with all its versions, oldest first.
type model map[string][]version

type version struct {
	ts   mvcc.Timestamp
	kind change.Kind
	live bool
	n    int
	s    string // "" = NULL
}

// at returns the newest version below snap.
func (mo model) at(key string, snap mvcc.Snapshot) (v version) {
	for _, w := range mo[key] {
		if snap.Sees(w.ts) {
			v = w
		}
	}
	return v
}

func (v version) String() string {
	switch {
	case !v.live:
		return "absent"
	case v.s == "":
		return fmt.Sprintf("%d/NULL", v.n)
	}
	return fmt.Sprintf("%d/%s", v.n, v.s)
}

// scan returns the expected lines of an iterator: key and row.
func (mo model) scan(snap mvcc.Snapshot, lower, upper *string, descending bool) (lines []string) {
	for key := range mo {
		if v := mo.at(key, snap); v.live && (lower == nil || key >= *lower) && (upper == nil || key < *upper) {
			lines = append(lines, fmt.Sprintf("%q %s", key, v))
		}
	}
	// Quoting keeps the order of these keys, since the only escaped character in them is 00.
	slices.SortFunc(lines, func(a, b string) int { return strings.Compare(unquoteKey(a), unquoteKey(b)) })
	if descending {
		slices.Reverse(lines)
	}
	return lines
}

func unquoteKey(line string) string {
	var key string
	fmt.Sscanf(line, "%q", &key)
	return key
}

// Keys that share prefixes of 8 bytes, are prefixes of each other and end in zeros, so that the
// tree must compare more than its prefixes.
var modelKeys = []string{"", "a", "a\x00", "a\x00\x00", "ab", "abcdefgh", "abcdefgh\x00", "abcdefghi",
	"abcdefghij", "abcdefgi", "b", "b\x00c", "zzzzzzzzzz"}

// history is a MemRowSet and its model after the same operations.
type history struct {
	m  *MemRowSet
	mo model
	ts mvcc.Timestamp
}

func drawHistory(rt *rapid.T, t *testing.T) *history {
	h := &history{m: New(testSchema(t), nil), mo: model{}, ts: 5}
	for range rapid.IntRange(0, 60).Draw(rt, "ops") {
		if rapid.Bool().Draw(rt, "next batch") {
			h.ts += mvcc.Timestamp(rapid.IntRange(1, 3).Draw(rt, "gap"))
		}
		h.step(rt)
	}
	return h
}

// deleteRange deletes the rows in a range of keys.
func (h *history) deleteRange(rt *rapid.T) {
	bound := func(name string) *string {
		if i := rapid.IntRange(-1, len(modelKeys)-1).Draw(rt, name); i >= 0 {
			return &modelKeys[i]
		}
		return nil
	}
	lower, upper := bound("lower"), bound("upper")
	bytesOf := func(bound *string) []byte {
		if bound == nil {
			return nil
		}
		return []byte(*bound)
	}
	n := int64(0)
	for key := range h.mo {
		now := h.mo.at(key, mvcc.Everything)
		if now.live && (lower == nil || key >= *lower) && (upper == nil || key < *upper) {
			h.mo[key] = append(h.mo[key], version{ts: h.ts, kind: change.Delete, n: now.n, s: now.s})
			n++
		}
	}
	if live := h.m.LiveIn(bytesOf(lower), bytesOf(upper)); live != n {
		rt.Fatalf("%d live rows, want %d", live, n)
	}
	if deleted := h.m.DeleteRange(bytesOf(lower), bytesOf(upper), h.ts, lsn.LSN(h.ts)); deleted != n {
		rt.Fatalf("%d rows were deleted, want %d", deleted, n)
	}
}

func (h *history) step(rt *rapid.T) {
	if rapid.IntRange(0, 7).Draw(rt, "range") == 0 {
		h.deleteRange(rt)
		return
	}
	key := rapid.SampledFrom(modelKeys).Draw(rt, "key")
	now := h.mo.at(key, mvcc.Everything)
	next := version{ts: h.ts, live: true, n: rapid.IntRange(0, 9).Draw(rt, "n"),
		s: rapid.SampledFrom([]string{"", "x", "longer"}).Draw(rt, "s")}
	lsn := lsn.LSN(h.ts)
	switch what := rapid.IntRange(0, 3).Draw(rt, "what"); {
	case !now.live && what > 0:
		next.kind = change.Insert
		if len(h.mo[key]) > 0 {
			next.kind = change.Reinsert
		}
		h.m.Insert([]byte(key), h.ts, lsn, image(h.m, key, next.n, next.s))
	case what == 0: // of a live row, or of an absent row
		next = version{ts: h.ts, kind: change.Delete, n: now.n, s: now.s}
		if h.m.Mutate([]byte(key), h.ts, lsn, deletion) != now.live {
			rt.Fatalf("delete of %q: want found = %t", key, now.live)
		}
	default:
		next.kind = change.Update
		list := set(next.n, next.s)
		switch rapid.IntRange(0, 2).Draw(rt, "form") {
		case 0:
			next.s, list = now.s, set(next.n, "-")
		case 1: // also an update of all columns for those who read history
			list = change.AppendReplace(nil, image(h.m, key, next.n, next.s))
		}
		if !h.m.Mutate([]byte(key), h.ts, lsn, list) {
			rt.Fatalf("update of %q: not found", key)
		}
	}
	if now.live || next.live {
		h.mo[key] = append(h.mo[key], next)
	}
}

func (h *history) drawSnap(rt *rapid.T) mvcc.Snapshot {
	return mvcc.Snapshot(rapid.IntRange(0, int(h.ts)+2).Draw(rt, "snap"))
}

func TestPointReadsMatchTheModel(t *testing.T) {
	seedtest.Check(t, func(rt *rapid.T) {
		h := drawHistory(rt, t)
		live := 0
		for _, key := range modelKeys {
			snap := h.drawSnap(rt)
			if got, want := at(h.m, key, snap), h.mo.at(key, snap).String(); got != want {
				rt.Fatalf("%q at %d: %s, want %s", key, snap, got, want)
			}
			newest := h.mo.at(key, mvcc.Everything)
			row, found := h.m.NewestRow([]byte(key))
			if got := show(h.m, row, found); got != newest.String() || h.m.Live([]byte(key)) != newest.live {
				rt.Fatalf("%q now: %s, live %t, want %s", key, got, h.m.Live([]byte(key)), newest)
			}
			if newest.live {
				live++
			}
		}
		if h.m.Len() != len(h.mo) || int(h.m.LiveRows()) != live {
			rt.Fatalf("%d rows, %d live, want %d, %d", h.m.Len(), h.m.LiveRows(), len(h.mo), live)
		}
	})
}

func TestScansMatchTheModel(t *testing.T) {
	seedtest.Check(t, func(rt *rapid.T) {
		h := drawHistory(rt, t)
		snap := h.drawSnap(rt)
		bound := func(name string) (*string, []byte) {
			i := rapid.IntRange(-1, len(modelKeys)-1).Draw(rt, name)
			if i < 0 {
				return nil, nil
			}
			return &modelKeys[i], append([]byte{}, modelKeys[i]...)
		}
		lowerKey, lower := bound("lower")
		upperKey, upper := bound("upper")
		descending := rapid.Bool().Draw(rt, "descending")
		it := h.m.NewIterator(snap, lower, upper, descending)
		if rapid.Bool().Draw(rt, "inserts while iterating") {
			h.m.Insert([]byte("inserted later"), h.ts+5, 99, image(h.m, "inserted later", 1, "x"))
		}
		max := rapid.IntRange(1, 4).Draw(rt, "max")
		var got []string
		for keys, rows := it.Next(max); keys != nil; keys, rows = it.Next(max) {
			if len(keys) > max || len(keys) != len(rows) {
				rt.Fatalf("%d keys, %d rows, at most %d", len(keys), len(rows), max)
			}
			for i := range keys {
				got = append(got, fmt.Sprintf("%q %s", keys[i], show(h.m, rows[i], true)))
			}
		}
		if want := h.mo.scan(snap, lowerKey, upperKey, descending); !slices.Equal(got, want) {
			rt.Fatalf("snap %d [%q, %q) descending %t:\ngot  %q\nwant %q", snap, lower, upper, descending, got, want)
		}
		if keys, rows := it.Next(max); keys != nil || rows != nil {
			rt.Fatal("rows after the end")
		}
	})
}

// Iterators that divide the rows return each of them once, each iterator in key order.
func TestSharesMatchTheModel(t *testing.T) {
	seedtest.Check(t, func(rt *rapid.T) {
		h := drawHistory(rt, t)
		snap := h.drawSnap(rt)
		bounds := rapid.SliceOfN(rapid.IntRange(0, len(modelKeys)-1), 2, 2).Draw(rt, "bounds")
		lower, upper := modelKeys[bounds[0]], modelKeys[bounds[1]]
		shared := h.m.Share(snap, []byte(lower), []byte(upper))
		if rapid.Bool().Draw(rt, "inserts while iterating") {
			h.m.Insert([]byte("inserted later"), h.ts+5, 99, image(h.m, "inserted later", 1, "x"))
		}
		iterators := make([]*Iterator, rapid.IntRange(1, 3).Draw(rt, "iterators"))
		for i := range iterators {
			iterators[i] = shared.NewIterator()
		}
		max := rapid.IntRange(1, 3).Draw(rt, "max")
		var got []string
		for ended := 0; ended < len(iterators); {
			it := iterators[rapid.IntRange(0, len(iterators)-1).Draw(rt, "next")]
			keys, rows := it.Next(max)
			if keys == nil {
				ended++ // no other iterator has rows either
			}
			for i := range keys {
				got = append(got, fmt.Sprintf("%q %s", keys[i], show(h.m, rows[i], true)))
			}
		}
		// They take turns, so together they are in key order too.
		if want := h.mo.scan(snap, &lower, &upper, false); !slices.Equal(got, want) {
			rt.Fatalf("snap %d [%q, %q):\ngot  %q\nwant %q", snap, lower, upper, got, want)
		}
	})
}

// Seek skips rows in either direction; it never goes back, and never leaves the bounds.
func TestSeeksMatchTheModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		h := drawHistory(rt, t)
		snap := h.drawSnap(rt)
		drawKey := func(name string) string { return modelKeys[rapid.IntRange(0, len(modelKeys)-1).Draw(rt, name)] }
		var lower, upper *string
		bound := func(name string) (*string, []byte) {
			if !rapid.Bool().Draw(rt, name+" bound") {
				return nil, nil
			}
			key := drawKey(name)
			return &key, append([]byte{}, key...)
		}
		lower, lowerKey := bound("lower")
		upper, upperKey := bound("upper")
		descending := rapid.Bool().Draw(rt, "descending")
		it := h.m.NewIterator(snap, lowerKey, upperKey, descending)
		want := h.mo.scan(snap, lower, upper, descending)
		for {
			if rapid.Bool().Draw(rt, "seek") {
				key := drawKey("key")
				it.Seek([]byte(key))
				for len(want) > 0 {
					var next string
					must.Get(fmt.Sscanf(want[0], "%q", &next))(rt)
					if !descending && next >= key || descending && next <= key {
						break
					}
					want = want[1:]
				}
			}
			keys, rows := it.Next(rapid.IntRange(1, 3).Draw(rt, "max"))
			if keys == nil {
				break
			}
			for i := range keys {
				got := fmt.Sprintf("%q %s", keys[i], show(h.m, rows[i], true))
				if len(want) == 0 || got != want[0] {
					rt.Fatalf("got %s, want the first of %q", got, want)
				}
				want = want[1:]
			}
		}
		if len(want) > 0 {
			rt.Fatalf("%q are missing", want)
		}
	})
}

// A range can be read in pieces, whose ends move forward, with seeks between them.
func TestRangesInPiecesMatchTheModel(t *testing.T) {
	seedtest.Check(t, func(rt *rapid.T) {
		h := drawHistory(rt, t)
		snap := h.drawSnap(rt)
		descending := rapid.Bool().Draw(rt, "descending")
		ends := rapid.SliceOfN(rapid.IntRange(0, len(modelKeys)-1), 0, 4).Draw(rt, "ends")
		slices.SortFunc(ends, func(a, b int) int { return strings.Compare(modelKeys[a], modelKeys[b]) })
		if descending {
			slices.Reverse(ends)
		}
		it := h.m.NewIterator(snap, nil, nil, descending)
		max := rapid.IntRange(1, 3).Draw(rt, "max")
		var got, want []string
		piece := func(from, to *string) {
			part := h.mo.scan(snap, from, to, descending)
			for keys, rows := it.Next(max); keys != nil; keys, rows = it.Next(max) {
				for i := range keys {
					got = append(got, fmt.Sprintf("%q %s", keys[i], show(h.m, rows[i], true)))
				}
			}
			if want = append(want, part...); !slices.Equal(got, want) {
				rt.Fatalf("snap %d, ends %v, descending %t:\ngot  %q\nwant %q", snap, ends, descending, got, want)
			}
		}
		var begin *string
		for _, i := range ends {
			it.Until([]byte(modelKeys[i]))
			if descending {
				piece(&modelKeys[i], begin)
			} else {
				piece(begin, &modelKeys[i])
			}
			begin = &modelKeys[i]
			if rapid.Bool().Draw(rt, "seek") {
				it.Seek([]byte(*begin)) // which skips nothing
			}
		}
		it.Until(nil)
		if descending {
			piece(nil, begin)
		} else {
			piece(begin, nil)
		}
	})
}

// Histories returns every row from its insertion to any snapshot below the flush.
func TestHistoriesMatchTheModel(t *testing.T) {
	seedtest.Check(t, func(rt *rapid.T) {
		h := drawHistory(rt, t)
		snap := h.drawSnap(rt)
		max := rapid.IntRange(1, 4).Draw(rt, "max")
		it := h.m.Histories(snap)
		seen := map[string]bool{}
		last := ""
		var kept []*change.Rows // the results that are still valid, oldest first
		for {
			rows := must.Get(it.Next(max))(rt)
			if rows != nil {
				if kept = append(kept, rows); len(kept) < it.Keeps() {
					continue
				}
			}
			if len(kept) == 0 {
				break
			}
			ended := rows == nil
			rows, kept = kept[0], kept[1:]
			if rows.Batch.Len > max || len(rows.Keys) != rows.Batch.Len || len(rows.Undo) != rows.Batch.Len {
				rt.Fatalf("%d rows, %d keys, %d undos, at most %d", rows.Batch.Len, len(rows.Keys), len(rows.Undo), max)
			}
			for i, key := range rows.Keys {
				if len(seen) > 0 && string(key) <= last {
					rt.Fatalf("key %q after %q", key, last)
				}
				last = string(key)
				seen[last] = true
				h.checkRow(rt, rows, i, snap)
			}
			if ended {
				break
			}
		}
		for key, versions := range h.mo {
			if want := snap.Sees(versions[0].ts) && !neverSeen(versions, snap); seen[key] != want {
				rt.Fatalf("%q in the output: %t, want %t", key, seen[key], want)
			}
		}
	})
}

// neverSeen reports whether a row, as of snap, was only inserted and deleted within one batch.
func neverSeen(versions []version, snap mvcc.Snapshot) bool {
	last := versions[0]
	for _, v := range versions {
		if snap.Sees(v.ts) {
			last = v
		}
	}
	return last.kind == change.Delete && last.ts == versions[0].ts
}

// checkRow replays row i of rows and compares each step with the model.
func (h *history) checkRow(rt *rapid.T, rows *change.Rows, i int, snap mvcc.Snapshot) {
	key := string(rows.Keys[i])
	versions := h.mo[key]
	var cells [][]byte
	for _, v := range rows.Batch.Columns {
		cells = append(cells, v.Cell(i))
	}
	if string(cells[0]) != key {
		rt.Fatalf("row of key %q has key cell %q", key, cells[0])
	}
	row := h.m.RowFormat().AppendRow(nil, cells)
	if got := show(h.m, row, true); got != versions[0].String() {
		rt.Fatalf("%q: base %s, want %s", key, got, versions[0])
	}
	if u := rows.Undo[i]; u.Row != uint32(i) || u.TS != versions[0].ts || u.List.Kind() != change.Delete {
		rt.Fatalf("%q: undo %+v", key, u)
	}
	step := 1
	for _, d := range rows.Redo {
		if d.Row != uint32(i) {
			continue
		}
		if !snap.Sees(d.TS) {
			rt.Fatalf("%q: change at %d, not below %d", key, d.TS, snap)
		}
		want := versions[step]
		step++
		must.Do(rt, d.List.Check(h.m.Schema()))
		row = h.m.RowFormat().Apply(nil, row, d.List)
		live := d.List.Kind() != change.Delete
		if d.TS != want.ts || d.List.Kind() != want.kind || show(h.m, row, live) != want.String() {
			rt.Fatalf("%q: change %d: %s at %d gives %s, want %s at %d", key, step, d.List, d.TS,
				show(h.m, row, live), want, want.ts)
		}
	}
	if step < len(versions) && snap.Sees(versions[step].ts) {
		rt.Fatalf("%q: %d changes, version at %d is missing", key, step-1, versions[step].ts)
	}
	if !slices.IsSortedFunc(rows.Redo, func(a, b change.Delta) int { return int(a.Row) - int(b.Row) }) {
		rt.Fatal("redo is not in order of rows")
	}
}
