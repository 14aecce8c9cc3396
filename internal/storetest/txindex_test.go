package storetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/vfs"
)

// write does a random operation in a transaction and in rows, unless rows of the model would collide.
func (p *people) write(tx *oribi.Tx, rows map[int64]person) {
	rng, k := p.rng, p.rng.Int64N(12)
	old, there := rows[k]
	next := person{place: fmt.Sprint("place ", rng.IntN(3)), v: rng.Int64N(4)}
	if rng.IntN(4) > 0 {
		next.email = fmt.Sprint(rng.IntN(8), "@example")
	}
	free := func(r person) bool { o := owner(rows, r.email); return o < 0 || o == k }
	switch rng.IntN(4) {
	case 0:
		if old.v = next.v; there {
			must.Do(p.t, tx.Update(p.table, oribi.Row{"k": k, "v": next.v}))
			rows[k] = old
		}
	case 1:
		if old.email = next.email; there && free(old) {
			must.Do(p.t, tx.Update(p.table, oribi.Row{"k": k, "email": orNull(next.email)}))
			rows[k] = old
		}
	case 2:
		must.Do(p.t, tx.Row(oribi.OpDeleteIgnore, p.table, oribi.Row{"k": k}))
		delete(rows, k)
	default:
		if free(next) {
			must.Do(p.t, tx.Upsert(p.table, oribi.Row{"k": k, "email": orNull(next.email), "place": next.place, "v": next.v}))
			rows[k] = next
		}
	}
}

// checkTx compares reads of a transaction by indexes with rows.
func (p *people) checkTx(tx *oribi.Tx, rows map[int64]person) {
	p.t.Helper()
	for i := range 8 {
		email := fmt.Sprint(i, "@example")
		row, err := tx.GetBy(p.table, "by_email", email)
		if want := owner(rows, email); want < 0 {
			must.Fail(p.t, err, oribi.ErrNotFound, email)
		} else {
			must.Do(p.t, err)
			must.Equal(p.t, row, oribi.Row{"k": want, "email": email, "place": rows[want].place, "v": rows[want].v})
		}
	}
	p.compareOrder(func(opts ...oribi.RowsOption) *oribi.Scan { return tx.Scan(p.table, opts...) }, rows)
	opts := []oribi.RowsOption{oribi.Where(p.predicate())}
	if p.rng.IntN(2) == 0 {
		opts = append(opts, oribi.Desc())
	}
	if p.rng.IntN(2) == 0 {
		opts = append(opts, oribi.Limit(p.rng.Int64N(4)))
	}
	e := must.Get(tx.Scan(p.table, opts...).Explain())(p.t)
	if e.Index != "" {
		p.chosen++
	}
	got := slices.Collect(must.All(p.t, tx.Scan(p.table, opts...).Rows()))
	want := slices.Collect(must.All(p.t, tx.Scan(p.table, append(opts, oribi.NoIndex())...).Rows()))
	must.Equal(p.t, fmt.Sprint(got), fmt.Sprint(want), e.Where)
}

// Transactions read by indexes what they have written, also after they were rolled back to a savepoint.
func TestTransactionsReadTheirWritesByIndexes(t *testing.T) {
	ctx := context.Background()
	p := newPeople(t)
	defer func() { p.store.Close() }()
	for range 150 {
		p.commit()
		if p.rng.IntN(8) == 0 {
			must.Do(t, p.table.Flush(ctx))
		}
		tx := must.Get(p.store.Begin(ctx))(t)
		rows, saved := maps.Clone(p.rows), maps.Clone(p.rows)
		var sp *oribi.Savepoint
		for range p.rng.IntN(12) {
			switch p.rng.IntN(6) {
			case 0:
				sp, saved = must.Get(tx.Savepoint())(t), maps.Clone(rows)
			case 1:
				if sp != nil {
					must.Do(t, tx.RollbackTo(sp))
					rows = maps.Clone(saved)
				}
			default:
				p.write(tx, rows)
			}
			if p.rng.IntN(2) == 0 {
				p.checkTx(tx, rows)
			}
		}
		p.checkTx(tx, rows)
		if p.rng.IntN(2) == 0 {
			tx.Rollback()
			continue
		}
		must.Get(tx.Commit(oribi.NoSync))(t)
		p.rows = rows
		p.check(rows)
	}
	p.verify()
	if p.chosen < 100 {
		t.Errorf("%d scans used an index", p.chosen)
	}
}

// After a rollback to a savepoint, reads by an index find the rows of the writes before it, wherever later writes
// have moved them: a write that was replaced, a write that was followed, and a new write.
func TestReadsByIndexesAfterARollback(t *testing.T) {
	store := must.Get(oribi.Open("/back", &oribi.Options{FS: vfs.NewMem(), Manual: true}))(t)
	defer store.Close()
	table := tableOf(t, store, "t", "k*:int64 a:string b:int64", oribi.Unique("by_a", "a"), oribi.Index("by_b", "b"))
	b := store.NewBatch()
	b.Insert(table, oribi.Row{"k": 3, "a": "three", "b": 3})
	must.Get(b.Commit(t.Context()))(t)
	tx := begin(t, store)
	check := func(want ...string) {
		t.Helper()
		var got []string
		for _, a := range []string{"one", "two", "three", "1", "2", "3"} {
			if row, err := tx.GetBy(table, "by_a", a); err == nil {
				got = append(got, fmt.Sprint(row["k"], a))
			}
		}
		for row := range must.All(t, tx.Scan(table, oribi.Where(oribi.Between("b", 1, 3)), oribi.Using("by_b")).Rows()) {
			got = append(got, fmt.Sprint(row["k"]))
		}
		must.Equal(t, got, want)
	}
	must.Do(t, tx.Insert(table, oribi.Row{"k": 1, "a": "one", "b": 1}))
	must.Do(t, tx.Insert(table, oribi.Row{"k": 2, "a": "two", "b": 2}))
	sp := must.Get(tx.Savepoint())(t)
	must.Do(t, tx.Upsert(table, oribi.Row{"k": 1, "a": "1", "b": 11}))            // moves in the unique index: follows
	must.Do(t, tx.Update(table, oribi.Row{"k": 2, "b": 12}))                      // replaces
	must.Do(t, tx.Update(table, oribi.Row{"k": 3, "a": "3", "b": oribi.Add(10)})) // is new
	check("2two", "11", "33")
	must.Do(t, tx.RollbackTo(sp))
	check("1one", "2two", "3three", "1", "2", "3")
	must.Get(tx.Commit())(t)
}

// A transaction that has read by an index conflicts with what changes the result, and with nothing else.
func TestConflictsOfReadsByAnIndex(t *testing.T) {
	ctx := context.Background()
	store := must.Get(oribi.Open("/conflicts", &oribi.Options{FS: vfs.NewMem(), Manual: true}))(t)
	defer store.Close()
	log := tableOf(t, store, "log", "k*:int64")
	number := 0
	getBy := func(email string) func(*oribi.Tx, *oribi.Table) error {
		return func(tx *oribi.Tx, table *oribi.Table) error {
			if _, err := tx.GetBy(table, "by_email", email); !errors.Is(err, oribi.ErrNotFound) {
				return err
			}
			return nil
		}
	}
	scan := func(rows int, opts ...oribi.RowsOption) func(*oribi.Tx, *oribi.Table) error {
		return func(tx *oribi.Tx, table *oribi.Table) error {
			n := 0
			for _, err := range tx.Scan(table, opts...).Rows() {
				if n++; err != nil || n == rows {
					return err
				}
			}
			return nil
		}
	}
	upsert := func(k int, row oribi.Row) func(*oribi.Table) error {
		row["k"] = k
		return func(table *oribi.Table) error {
			b := store.NewBatch()
			b.Upsert(table, row)
			_, err := b.Commit(ctx)
			return err
		}
	}
	many := func(k int, email string) func(*oribi.Table) error { // so many that keys are not listed
		return func(table *oribi.Table) error {
			b := store.NewBatch()
			for i := range 20_000 {
				b.Insert(table, oribi.Row{"k": 1000 + i, "email": fmt.Sprint("many", i), "place": "z", "v": 0})
			}
			b.Upsert(table, oribi.Row{"k": k, "email": email, "place": "z", "v": 0})
			_, err := b.Commit(ctx)
			return err
		}
	}
	ingest := func(email string) func(*oribi.Table) error {
		return func(table *oribi.Table) error {
			rb := batch.New(table.Schema().Columns, 0)
			rb.Columns[0].AppendCell([]byte{99, 0, 0, 0, 0, 0, 0, 0})
			rb.Columns[1].AppendCell([]byte(email))
			rb.Columns[2].AppendCell([]byte("z"))
			rb.Columns[3].AppendCell(make([]byte, 8))
			rb.Len = 1
			_, _, err := table.Ingest(ctx, func(yield func([]*batch.Vector, error) bool) { yield(rb.Columns, nil) })
			return err
		}
	}
	drop := func(table *oribi.Table) error { return table.Alter(ctx, oribi.DropIndex("by_email")) }
	byPlace := oribi.OrderBy("by_place")
	a := oribi.Where(oribi.Eq("place", "a"))
	for _, c := range []struct {
		name     string
		read     func(*oribi.Tx, *oribi.Table) error
		other    func(*oribi.Table) error
		conflict bool
	}{
		{"the row gets other values", getBy("1@"), upsert(1, oribi.Row{"email": "one@"}), true},
		{"another column of the row", getBy("1@"), upsert(1, oribi.Row{"v": 9}), true},
		{"the value appears", getBy("new@"), upsert(7, oribi.Row{"email": "new@", "place": "a", "v": 0}), true},
		{"another value appears", getBy("new@"), upsert(7, oribi.Row{"email": "other@", "place": "a", "v": 0}), false},
		{"the value appears among many", getBy("new@"), many(8, "new@"), true},
		{"another value appears among many", getBy("new@"), many(8, "other@"), false},
		{"the value appears in an ingest", getBy("new@"), ingest("new@"), true},
		{"another value appears in an ingest", getBy("new@"), ingest("other@"), false},
		{"the index is dropped", getBy("new@"), drop, true},
		{"a row enters the values of a scan", scan(0, a), upsert(3, oribi.Row{"place": "a"}), true},
		{"a row of a scan leaves", scan(0, a), upsert(2, oribi.Row{"place": "z"}), true},
		{"a row of a scan changes", scan(0, a), upsert(2, oribi.Row{"v": 7}), true},
		{"a row enters other values", scan(0, a), upsert(3, oribi.Row{"place": "c"}), false},
		{"a row that a predicate excludes changes", scan(0, a, oribi.Where(oribi.Ne("v", 2))), upsert(2, oribi.Row{"v": 3}), true},
		{"before the end of a page", scan(0, byPlace, oribi.Limit(2)), upsert(9, oribi.Row{"email": "9@", "place": "a", "v": 0}), true},
		{"after the end of a page", scan(0, byPlace, oribi.Limit(2)), upsert(9, oribi.Row{"email": "9@", "place": "b", "v": 9}), false},
		{"the row after a page", scan(0, byPlace, oribi.Limit(2)), upsert(3, oribi.Row{"v": 8}), false},
		{"after a row at which a loop ends", scan(1, byPlace), upsert(2, oribi.Row{"v": 3}), false},
		{"before a row at which a loop ends", scan(1, byPlace), upsert(9, oribi.Row{"email": "9@", "place": "A", "v": 9}), true},
		{"backward, before the end of a page", scan(0, byPlace, oribi.Desc(), oribi.Limit(2)),
			upsert(9, oribi.Row{"email": "9@", "place": "a", "v": 9}), false},
		{"backward, after it", scan(0, byPlace, oribi.Desc(), oribi.Limit(2)),
			upsert(9, oribi.Row{"email": "9@", "place": "z", "v": 9}), true},
		{"a list above a row", scan(0, byPlace, oribi.Above(oribi.Key{"a", 2})), upsert(1, oribi.Row{"v": 2}), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			number++
			table := tableOf(t, store, fmt.Sprint("t", number), peopleColumns, oribi.Unique("by_email", "email"),
				oribi.Index("by_place", "place", "v"))
			b := store.NewBatch()
			for i, place := range []string{"", "a", "a", "b", "c"} {
				if place != "" {
					b.Insert(table, oribi.Row{"k": i, "email": fmt.Sprint(i, "@"), "place": place, "v": i})
				}
			}
			must.Get(b.Commit(ctx))(t)
			for _, alone := range []bool{true, false} {
				tx := must.Get(store.Begin(ctx))(t)
				defer tx.Rollback()
				must.Do(t, c.read(tx, table))
				must.Do(t, tx.Upsert(log, oribi.Row{"k": number}))
				if alone {
					must.Get(tx.Commit())(t)
					continue
				}
				must.Do(t, c.other(table))
				_, err := tx.Commit()
				if c.conflict {
					must.Fail(t, err, oribi.ErrConflict)
				} else {
					must.Do(t, err)
				}
			}
		})
	}
}

// Rows that a loop moves in the order of the index by which it reads keep their places: the loop ends.
func TestRowsMoveDuringAScanByTheirIndex(t *testing.T) {
	ctx := context.Background()
	store := must.Get(oribi.Open("/moves", &oribi.Options{FS: vfs.NewMem(), Manual: true}))(t)
	defer store.Close()
	table := tableOf(t, store, "t", "k*:int64 v:int64", oribi.Index("by_v", "v"))
	b := store.NewBatch()
	for k := range 10 {
		b.Insert(table, oribi.Row{"k": k, "v": k})
	}
	must.Get(b.Commit(ctx))(t)
	must.Do(t, store.Update(ctx, func(tx *oribi.Tx) error {
		for k := range 5 {
			must.Do(t, tx.Insert(table, oribi.Row{"k": 10 + k, "v": k}))
		}
		n := 0
		for row, err := range tx.Scan(table, oribi.OrderBy("by_v")).Rows() {
			must.Do(t, err)
			must.Do(t, tx.Update(table, oribi.Row{"k": row["k"], "v": row["v"].(int64) + 3}))
			if n++; n > 15 {
				break
			}
		}
		must.Equal(t, n, 15)
		return nil
	}))
	must.Equal(t, must.Get(table.Count(ctx, oribi.Where(oribi.Ge("v", 3)), oribi.Using("by_v")))(t), 15)
}
