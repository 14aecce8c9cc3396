package storetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/vfs"
)

// cursorModel is a cursor over a sorted slice: at is the index of the current row, −1 before the
// first row, len(rows) after the last one.
type cursorModel struct {
	rows []visit
	at   int
	back bool // random moves go to previous rows, until they turn
}

func compareVisits(a, b visit) int {
	return cmp.Or(strings.Compare(a.Host, b.Host), cmp.Compare(a.N, b.N))
}

// seek returns the index of the first row at or above a key, which may be only a host.
func (m *cursorModel) seek(key oribi.Key) int {
	at := visit{Host: key[0].(string), N: -1 << 63}
	if len(key) > 1 {
		at.N = key[1].(int64)
	}
	i, _ := slices.BinarySearchFunc(m.rows, at, compareVisits)
	return i
}

func (m *cursorModel) move(to int) bool {
	m.at = max(-1, min(to, len(m.rows)))
	return m.at >= 0 && m.at < len(m.rows)
}

// randomMove makes the same move of a cursor and of its model, and returns what they return.
func (m *cursorModel) randomMove(r *rand.Rand, c *oribi.CursorOf[visit]) (name string, got, want bool) {
	key := oribi.Key{fmt.Sprint("host", r.IntN(4)), int64(r.IntN(7400))}
	if m.at >= 0 && m.at < len(m.rows) && r.IntN(2) == 0 { // near the current row
		key = oribi.Key{m.rows[m.at].Host, m.rows[m.at].N + int64(r.IntN(30)-15)}
	}
	key = key[:1+min(1, r.IntN(8))]
	if r.IntN(15) == 0 {
		m.back = !m.back
	}
	switch k := r.IntN(300); {
	case k == 0:
		return "First", c.First(), m.move(0)
	case k == 1:
		return "Last", c.Last(), m.move(len(m.rows) - 1)
	case k < 7:
		return fmt.Sprint("Seek ", key), c.Seek(key...), m.move(m.seek(key))
	case k < 12:
		return fmt.Sprint("SeekBefore ", key), c.SeekBefore(key), m.move(m.seek(key) - 1)
	case m.back:
		return "Prev", c.Prev(), m.move(m.at - 1)
	}
	return "Next", c.Next(), m.move(m.at + 1)
}

// Random moves over overlapping rowsets with changes, deletes and rows in memory, at all times, are
// those over a sorted slice of the rows that a scan returns in no order.
func TestCursorMovesAsOverASortedSlice(t *testing.T) {
	r := seedtest.Rand(t)
	visits, times := visitsTable(t, r)
	options := [][]oribi.CursorOption{nil, {oribi.Prefix("host1")},
		{oribi.From(oribi.Key{"host0", 17}), oribi.To(oribi.Key{"host1", 99})},
		{oribi.Where(oribi.Lt("size", 200))}, {oribi.From("host2"), oribi.To("host1")},
		{oribi.To(oribi.Key{"host0", 9})}}
	for _, at := range append([]mvcc.Timestamp{times[0] - 1}, times...) {
		opts := options[r.IntN(len(options))]
		if at == times[len(times)-1] {
			opts = nil
		}
		scanned := []oribi.ScanOption{oribi.AsOf(at), oribi.AnyOrder()}
		for _, o := range opts {
			scanned = append(scanned, o.(oribi.ScanOption))
		}
		m := &cursorModel{at: -1}
		for row := range must.All(t, visits.Scan(t.Context(), scanned...)) {
			m.rows = append(m.rows, row)
		}
		slices.SortFunc(m.rows, compareVisits)
		c := visits.Cursor(t.Context(), append(opts, oribi.AsOf(at))...)
		moves := seedtest.Rounds(6000, 2000)
		for i := range moves {
			before := m.at
			name, got, want := m.randomMove(r, c)
			if got != want || c.Err() != nil {
				t.Fatalf("at %v: %s from row %d of %d: %t, want %t, %v", at, name, before,
					len(m.rows), got, want, c.Err())
			}
			switch row := c.Row(); {
			case !want && (row != visit{} || c.Key() != nil):
				t.Fatalf("%s: row %v, key %v, want none", name, row, c.Key())
			case want && row.String() != m.rows[m.at].String():
				t.Fatalf("at %v, move %d: %s from row %d of %d: row %v, want %v", at, i, name, before,
					len(m.rows), row, m.rows[m.at])
			case want && !slices.Equal(c.Key(), oribi.Key{row.Host, row.N}):
				t.Fatalf("key %v of row %v", c.Key(), row)
			}
		}
		must.Do(t, errors.Join(c.Close(), c.Close()))
		if c.First() || c.Next() || c.Prev() || c.Seek("host0") {
			t.Fatal("a closed cursor moved")
		}
	}
}

// A cursor sees the state of its first move, and columns that are not the key.
func TestCursorSeesOneState(t *testing.T) {
	store, table := floorStore(t, newFakeWall())
	defer store.Close()
	commit := func(fill func(b *oribi.Batch)) {
		b := store.NewBatch()
		fill(b)
		must.Get(b.Commit(t.Context()))(t)
	}
	commit(func(b *oribi.Batch) {
		for k := range 100 {
			b.Insert(table, oribi.Row{"k": k, "v": 10 * k})
		}
	})
	c := table.Cursor(t.Context(), oribi.Columns("v"))
	defer c.Close()
	if c.Row() != nil || c.Cells() != nil || c.Cell(0) != nil || c.Prev() || !c.Next() {
		t.Fatal("a new cursor is not before the first row")
	}
	commit(func(b *oribi.Batch) {
		for k := range 100 {
			b.Delete(table, oribi.Row{"k": k})
		}
	})
	must.Do(t, table.Flush(t.Context()))
	for k := range int64(100) {
		if row := c.Row(); len(row) != 1 || row["v"] != 10*k || c.Key()[0] != k || len(c.Cells()) != 1 || string(c.Cell(0)) != string(c.Cells()[0]) {
			t.Fatalf("row %d: %v, key %v", k, row, c.Key())
		}
		if c.Next() != (k < 99) {
			t.Fatal(c.Err())
		}
	}
}

func TestCursorEndsWithErrors(t *testing.T) {
	w := newFakeWall()
	store, table := floorStore(t, w)
	w.move(120 * minute)
	b := store.NewBatch()
	for k := range 50 {
		b.Insert(table, oribi.Row{"k": k, "v": k})
	}
	must.Get(b.Commit(t.Context()))(t)
	ctx, cancel := context.WithCancel(t.Context())
	for _, test := range []struct {
		c    *oribi.Cursor
		end  func(c *oribi.Cursor)
		want error
	}{
		{table.Cursor(ctx, oribi.Columns("w")), nil, oribi.ErrNoColumn},
		{table.Cursor(ctx, oribi.Where(oribi.Eq("v", "text"))), nil, oribi.ErrSchema},
		{table.Cursor(ctx, oribi.AsOf(1)), nil, oribi.ErrTooOld},
		{table.Cursor(ctx), func(c *oribi.Cursor) { c.Seek("text") }, oribi.ErrRow},
		{table.Cursor(ctx), func(c *oribi.Cursor) { c.SeekBefore() }, oribi.ErrRow},
		{table.Cursor(ctx), func(*oribi.Cursor) { cancel() }, context.Canceled},
		{table.Cursor(t.Context()), func(*oribi.Cursor) { store.Close() }, oribi.ErrClosed},
		{table.Cursor(t.Context()), nil, oribi.ErrClosed},
	} {
		if test.end != nil {
			if !test.c.Seek(7) || test.c.Row()["v"] != int64(7) {
				t.Fatal(test.c.Err())
			}
			test.end(test.c)
		}
		if test.c.Next() || test.c.Row() != nil || !errors.Is(test.c.Err(), test.want) {
			t.Errorf("row %v, error %v, want %v", test.c.Row(), test.c.Err(), test.want)
		}
		must.Fail(t, test.c.Close(), test.want, "Close")
	}
}

// The encoded key of "" has no bytes, which is a bound nevertheless: in memory and on disk, with
// and without such a row.
func TestCursorAtTheEmptyKey(t *testing.T) {
	type word struct {
		W string `oribi:"w,key"`
	}
	store := must.Get(oribi.Open("/words", &oribi.Options{FS: vfs.NewMem(), Manual: true}))(t)
	defer store.Close()
	for _, words := range [][]string{{"a", "b"}, {"", "a", "b"}} {
		table := must.Get(oribi.OpenTable[word](store, fmt.Sprint("words", len(words))))(t)
		for _, w := range words {
			mustPut(t, table, word{w})
		}
		for _, place := range []string{"memory", "disk"} {
			typed, plain := table.Cursor(t.Context()), table.Table.Cursor(t.Context())
			if typed.SeekBefore("") || plain.SeekBefore("") {
				t.Errorf("%q in %s: SeekBefore the empty key is at %v and %v", words, place, typed.Row(), plain.Row())
			}
			if !plain.Next() || plain.Key()[0] != words[0] || plain.Prev() {
				t.Errorf("%q in %s: after the first row is %v", words, place, plain.Row())
			}
			if !plain.Seek("") || plain.Key()[0] != words[0] || plain.Prev() {
				t.Errorf("%q in %s: Seek the empty key, then Prev, is at %v", words, place, plain.Row())
			}
			must.Do(t, errors.Join(typed.Close(), plain.Close(), table.Table.Flush(t.Context())))
		}
	}
}

// An index of the column of a predicate changes no move of a cursor, in a transaction or not.
func TestCursorsOfTablesWithIndexes(t *testing.T) {
	store, _ := txStore(t)
	table := tableOf(t, store, "parity", "k*:int64 v:int64", oribi.Index("by_v", "v"))
	b := store.NewBatch()
	for k := range 10 {
		b.Insert(table, oribi.Row{"k": k, "v": k % 2})
	}
	must.Get(b.Commit(t.Context()))(t)
	odd := oribi.Where(oribi.Eq("v", 1))
	tx := begin(t, store)
	for _, c := range []*oribi.Cursor{table.Cursor(t.Context(), odd), tx.Cursor(table, odd)} {
		var got []any
		for ok := c.Last(); ok; ok = c.Prev() {
			got = append(got, c.Key()[0])
		}
		for ok := c.Seek(4); ok; ok = c.Next() {
			got = append(got, c.Key()[0])
		}
		for ok := c.SeekBefore(6); ok; ok = c.Prev() {
			got = append(got, c.Key()[0])
		}
		must.Do(t, c.Close())
		must.Equal(t, fmt.Sprint(got), "[9 7 5 3 1 5 7 9 5 3 1]")
	}
}
