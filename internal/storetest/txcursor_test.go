package storetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
)

// cursorKeys is the number of keys of the tests of cursors in transactions: 0, 1, …
const cursorKeys = 60

// txCursorModel is a cursor over a map that changes. at is the key of the current row, −1 before the
// first row, cursorKeys after the last one.
type txCursorModel struct {
	c        *oribi.Cursor
	from, to int64 // half-open
	least    int64 // rows with lower values are not selected
	at       int64
}

// next returns the first selected key in [from, to) or, if back is set, the last one.
func (m *txCursorModel) next(rows map[int64]int64, from, to int64, back bool) (int64, bool) {
	from, to = max(from, m.from), min(to, m.to)
	for i := range max(0, to-from) {
		k := from + i
		if back {
			k = to - 1 - i
		}
		if v, ok := rows[k]; ok && v >= m.least {
			return k, true
		}
	}
	return 0, false
}

// move makes a random move, and records the keys that it reads.
func (m *txCursorModel) move(rng *rand.Rand, rows map[int64]int64, read *[cursorKeys]bool) (name string, got, want bool) {
	key, here := rng.Int64N(cursorKeys), m.at
	from, to, back := int64(0), int64(cursorKeys), false
	switch rng.IntN(10) {
	case 0:
		name, got = "First", m.c.First()
	case 1:
		name, got, back = "Last", m.c.Last(), true
	case 2:
		name, got, from = fmt.Sprint("Seek ", key), m.c.Seek(key), key
	case 3:
		name, got, to, back = fmt.Sprint("SeekBefore ", key), m.c.SeekBefore(key), key, true
	case 4, 5, 6:
		name, got, to, back = "Prev", m.c.Prev(), here, true
	default:
		name, got, from = "Next", m.c.Next(), here+1
	}
	at, want := m.next(rows, from, to, back)
	if from, to = max(from, m.from), min(to, m.to); want && back {
		from = at
	} else if want {
		to = at + 1
	}
	for k := from; k < to; k++ {
		read[k] = true
	}
	switch {
	case want:
		m.at = at
	case back:
		m.at = -1
	default:
		m.at = cursorKeys
	}
	return name, got, want
}

// Cursors of a transaction move as over a map to which all of its writes are applied, each one before
// the next move; and the transaction conflicts exactly with changes of keys that they have passed.
func TestCursorsOfATransactionMoveAsOverAMap(t *testing.T) {
	ctx := context.Background()
	rng := seedtest.Rand(t)
	store, table := txStore(t)
	committed := map[int64]int64{}
	conflicts := 0
	for range seedtest.Rounds(600, 200) {
		if rng.IntN(5) == 0 {
			must.Do(t, table.Flush(ctx))
		}
		rows := map[int64]int64{}
		for range rng.IntN(20) {
			k, v := rng.Int64N(cursorKeys), rng.Int64N(100)
			rows[k], committed[k] = v, v
		}
		put(t, store, table, rows)
		tx := begin(t, store)
		model := maps.Clone(committed)
		var cursors []*txCursorModel
		var read [cursorKeys]bool
		others := map[int64]int64{}
		type saved struct {
			sp   *oribi.Savepoint
			rows map[int64]int64
		}
		var points []saved
		var trace []string
		for range 1 + rng.IntN(1+rng.IntN(100)) {
			k, v := rng.Int64N(cursorKeys), rng.Int64N(100)
			if len(cursors) > 0 && rng.IntN(2) == 0 { // near a cursor
				k = max(0, min(cursors[rng.IntN(len(cursors))].at+rng.Int64N(5)-2, cursorKeys-1))
			}
			did := ""
			switch n := rng.IntN(30); {
			case n == 0 || len(cursors) == 0:
				cursors = append(cursors, newTxCursor(rng, tx, table))
			case n < 4:
				did = fmt.Sprint("upsert ", k, "=", v)
				must.Do(t, tx.Upsert(table, number(k, v)))
				model[k] = v
			case n < 7:
				did = fmt.Sprint("delete ", k)
				must.Do(t, tx.Row(oribi.OpDeleteIgnore, table, oribi.Row{"k": k}))
				delete(model, k)
			case n == 7:
				to := k + rng.Int64N(40)
				did = fmt.Sprint("delete ", k, " to ", to)
				must.Do(t, tx.DeleteRange(table, k, to))
				maps.DeleteFunc(model, func(o, _ int64) bool { return o >= k && o < to })
			case n == 8:
				did = "savepoint"
				points = append(points, saved{must.Get(tx.Savepoint())(t), maps.Clone(model)})
			case n < 11 && len(points) > 0:
				i := rng.IntN(len(points))
				did = fmt.Sprint("roll back to ", i)
				must.Do(t, tx.RollbackTo(points[i].sp))
				model, points = maps.Clone(points[i].rows), points[:i+1]
			case n == 11 && len(others) == 0:
				did = fmt.Sprint("another writer: ", k, "=", v)
				others[k] = v
				put(t, store, table, map[int64]int64{k: v})
			default:
				m := cursors[rng.IntN(len(cursors))]
				before := m.at
				name, got, want := m.move(rng, model, &read)
				did = fmt.Sprintf("%s from %d in [%d, %d)", name, before, m.from, m.to)
				if row := m.c.Row(); got != want || m.c.Err() != nil ||
					want && (row["k"] != m.at || row["v"] != model[m.at] || m.c.Key()[0] != m.at) || !want && row != nil {
					t.Fatalf("after %v: %s: %t, row %v, want %t, %d=%d; %v", trace, did, got, row, want, m.at, model[m.at], m.c.Err())
				}
			}
			trace = append(trace, did)
		}
		if len(cursors) > 1 && rng.IntN(4) == 0 {
			must.Do(t, cursors[0].c.Close())
		}
		conflict := false
		for k := range others {
			conflict = conflict || read[k]
		}
		if len(model) == len(committed) { // it may have no writes, and no conflict then
			must.Do(t, tx.Upsert(table, number(0, 7)))
			model[0] = 7
		}
		ts, err := tx.Commit(oribi.NoSync)
		if conflict != errors.Is(err, oribi.ErrConflict) || !conflict && err != nil {
			t.Fatalf("after %v: commit at %v, %v, want a conflict: %v", trace, ts, err, conflict)
		}
		for k, v := range others {
			committed[k] = v
		}
		if conflict {
			conflicts++
		} else {
			committed = must.Get(numbersOf(table.Scan(ctx).Rows()))(t)
		}
		c := cursors[len(cursors)-1].c
		if c.Row() != nil || c.Next() || c.Prev() || c.Seek(1) || c.First() || !errors.Is(c.Err(), oribi.ErrTxEnded) {
			t.Fatalf("a cursor of an ended transaction: row %v, %v", c.Row(), c.Err())
		}
		must.Fail(t, c.Close(), oribi.ErrTxEnded)
	}
	if conflicts == 0 {
		t.Error("no conflict")
	}
}

// newTxCursor returns a cursor over all rows, or over some.
func newTxCursor(rng *rand.Rand, tx *oribi.Tx, table *oribi.Table) *txCursorModel {
	m := &txCursorModel{to: cursorKeys, at: -1}
	var opts []oribi.TxCursorOption
	if rng.IntN(3) == 0 {
		m.from, m.to = rng.Int64N(30), 20+rng.Int64N(cursorKeys-20)
		opts = append(opts, oribi.From(m.from), oribi.To(m.to))
	}
	if rng.IntN(3) == 0 {
		m.least = rng.Int64N(50)
		opts = append(opts, oribi.Where(oribi.Ge("v", m.least)))
	}
	m.c = tx.Cursor(table, opts...)
	return m
}

// A cursor that deletes what it passes leaves nothing, and takes no more time for it near the end.
func TestACursorDeletesWhatItPasses(t *testing.T) {
	store, table := txStore(t)
	rows := map[int64]int64{}
	for k := range int64(500) {
		rows[k] = k
	}
	put(t, store, table, rows)
	must.Do(t, table.Flush(t.Context()))
	tx := begin(t, store)
	c := tx.Cursor(table, oribi.Columns("v"))
	var got []int64
	for c.Next() {
		got = append(got, c.Row()["v"].(int64))
		must.Do(t, tx.Delete(table, oribi.Row{"k": c.Key()[0]}))
		if k := c.Key()[0].(int64); k < 500 && k%100 == 0 { // after the current row, before the next one
			must.Do(t, tx.Upsert(table, number(1000+k, 1)))
		}
	}
	must.Do(t, c.Close())
	must.Equal(t, got[:500], slices.Sorted(maps.Keys(rows)), "rows")
	must.Equal(t, len(got), 505, "rows with those that were added")
	must.Get(tx.Commit())(t)
	must.Equal(t, must.Get(table.Count(t.Context()))(t), 0, "rows left")
}

// In an exclusive attempt, the state that is read may become a newer one. The cursor goes on in it.
func TestACursorGoesOnInTheNewestState(t *testing.T) {
	ctx := t.Context()
	store, table := txStore(t)
	other := numbersTable(t, store, "other")
	put(t, store, table, map[int64]int64{1: 1, 2: 2, 3: 3})
	must.Do(t, store.Update(ctx, func(tx *oribi.Tx) error {
		c := tx.Cursor(table)
		if !c.Next() || !c.Next() || c.Key()[0] != int64(2) {
			t.Fatal(c.Key(), c.Err())
		}
		put(t, store, other, map[int64]int64{7: 7})
		d := tx.Cursor(other)
		if !d.Last() || d.Key()[0] != int64(7) {
			t.Error("the other table is read at the old state:", d.Key(), d.Err())
		}
		if !c.Next() || c.Key()[0] != int64(3) || c.Next() || !c.Prev() || c.Key()[0] != int64(3) {
			t.Error(c.Key(), c.Err())
		}
		return tx.Upsert(table, number(4, 4))
	}, oribi.Exclusive()))
}

func TestCursorsOfATransactionReturnErrors(t *testing.T) {
	store, table := txStore(t)
	put(t, store, table, map[int64]int64{1: 1})
	tx := begin(t, store)
	for _, test := range []struct {
		c    *oribi.Cursor
		want error
	}{
		{tx.Cursor(table, oribi.Columns("w")), oribi.ErrNoColumn},
		{tx.Cursor(nil), oribi.ErrNoTable},
		{tx.Cursor(table, oribi.From("text")), oribi.ErrRow},
	} {
		if test.c.First() || test.c.Row() != nil || test.c.Next() {
			t.Errorf("a cursor that wants %v moved", test.want)
		}
		must.Fail(t, test.c.Close(), test.want)
	}
	c := tx.Cursor(table)
	if !c.Next() || c.Next() || c.Next() || c.Err() != nil || !c.Prev() {
		t.Error("a cursor after the end:", c.Key(), c.Err())
	}
	must.Do(t, errors.Join(c.Close(), c.Close()))
	if c.First() || c.Err() != nil {
		t.Error("a closed cursor moved")
	}
}

// There is no row before that with the empty key.
func TestACursorOfATransactionOnTheEmptyKey(t *testing.T) {
	store, _ := txStore(t)
	table := tableOf(t, store, "texts", "k*:string v:int64")
	for range 2 { // a row that the transaction has written, and a row that it has not
		tx := begin(t, store)
		must.Do(t, tx.Upsert(table, oribi.Row{"k": "a", "v": 2}))
		if n := must.Get(table.Count(t.Context()))(t); n == 0 {
			must.Do(t, tx.Upsert(table, oribi.Row{"k": "", "v": 1}))
		}
		c := tx.Cursor(table)
		must.Equal(t, []bool{c.Next(), c.Prev(), c.Next(), c.Next(), c.Next(), c.Prev(), c.Prev(), c.Prev(), c.First(), c.SeekBefore("")},
			[]bool{true, false, true, true, false, true, true, false, true, false})
		must.Get(tx.Commit())(t)
	}
}

// A transaction has read what its cursors have passed, up to the end of the range if they have met it.
func TestWhatACursorHasPassedIsRead(t *testing.T) {
	for name, test := range map[string]struct {
		moves func(c *oribi.Cursor)
		want  []int64 // the new keys that conflict
	}{
		"none":   {func(*oribi.Cursor) {}, nil},
		"first":  {func(c *oribi.Cursor) { c.First() }, []int64{5}},
		"seek":   {func(c *oribi.Cursor) { c.Seek(12) }, []int64{15}},
		"before": {func(c *oribi.Cursor) { c.SeekBefore(12) }, nil},
		"next":   {func(c *oribi.Cursor) { c.Seek(20); c.Next(); c.Prev() }, []int64{25}},
		"prev":   {func(c *oribi.Cursor) { c.Seek(20); c.Prev() }, []int64{15}},
		"begin":  {func(c *oribi.Cursor) { c.Seek(20); c.Prev(); c.Prev() }, []int64{5, 15}},
		"end":    {func(c *oribi.Cursor) { c.Seek(20); c.Next(); c.Next() }, []int64{25, 35}},
		"two":    {func(c *oribi.Cursor) { c.Seek(10); c.Seek(30); c.Next() }, []int64{35}},
	} {
		var conflicts []int64
		for _, k := range []int64{5, 15, 25, 35} {
			store, table := txStore(t)
			put(t, store, table, map[int64]int64{10: 1, 20: 2, 30: 3})
			tx := begin(t, store)
			c := tx.Cursor(table)
			test.moves(c)
			must.Do(t, tx.Upsert(table, number(1000, 1)))
			put(t, store, table, map[int64]int64{k: 1})
			if _, err := tx.Commit(); errors.Is(err, oribi.ErrConflict) {
				conflicts = append(conflicts, k)
			} else {
				must.Do(t, err)
			}
			must.Do(t, store.Close())
		}
		must.Equal(t, conflicts, test.want, name)
	}
}

// A transaction conflicts if a row that its cursor was on expires before the commit.
func TestRowsOfCursorsExpire(t *testing.T) {
	for key, want := range map[int]error{1: nil, 2: oribi.ErrConflict} {
		s := newSessions(t, 0)
		s.put(1, 1, time.Hour)
		s.put(2, 2, time.Minute)
		s.put(3, 3, time.Hour)
		tx := begin(t, s.store)
		c := tx.Cursor(s.table, oribi.Columns("v"))
		if !c.Next() || key == 2 && !c.Next() || len(c.Cells()) != 1 {
			t.Fatal(c.Row(), c.Err())
		}
		must.Do(t, tx.Upsert(s.table, s.row(9, 9, 0)))
		s.move(2 * time.Minute)
		must.Fail(t, must.Err(tx.Commit()), want, key)
	}
}
