package storetest

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/vfs"
)

// Transactions that delete ranges see what a map has, after each step, and so does the table when they are
// committed.
func TestRangesDeletedInTransactions(t *testing.T) {
	ctx := context.Background()
	rng := seedtest.Rand(t)
	o := &oribi.Options{FS: vfs.NewMem(), Manual: true, RowSetBytes: 1 << 12}
	store := must.Get(oribi.Open("/tx", o))(t)
	table := numbersTable(t, store, "numbers")
	defer func() { store.Close() }()
	const keys = 60
	committed := map[int64]int64{}
	for range 150 {
		if rng.IntN(10) == 0 { // most of the log is replayed
			must.Do(t, store.Close())
			store = must.Get(oribi.Open("/tx", o))(t)
			table = must.Get(store.Table("numbers"))(t)
			must.Equal(t, must.Get(numbersOf(table.Scan(ctx).Rows()))(t), committed, "rows after opening")
		}
		if rng.IntN(5) == 0 {
			must.Do(t, table.Flush(ctx))
		}
		rows := map[int64]int64{}
		for range rng.IntN(20) {
			k, v := rng.Int64N(keys), rng.Int64N(100)
			rows[k], committed[k] = v, v
		}
		put(t, store, table, rows)
		tx := must.Get(store.Begin(ctx))(t)
		model := maps.Clone(committed)
		type saved struct {
			sp   *oribi.Savepoint
			rows map[int64]int64
		}
		var points []saved
		bound := func() (any, func(k int64, below bool) bool) {
			if rng.IntN(6) == 0 {
				return nil, func(int64, bool) bool { return true }
			}
			b := rng.Int64N(keys + 1)
			return b, func(k int64, below bool) bool { return k < b == below }
		}
		for range 1 + rng.IntN(12) {
			k, v := rng.Int64N(keys), rng.Int64N(100)
			old, there := model[k]
			switch rng.IntN(9) {
			case 0, 1:
				from, above := bound()
				to, below := bound()
				must.Do(t, tx.DeleteRange(table, from, to))
				maps.DeleteFunc(model, func(k, _ int64) bool { return above(k, false) && below(k, true) })
			case 2:
				if err := tx.Insert(table, number(k, v)); errors.Is(err, oribi.ErrKeyExists) != there {
					t.Fatalf("insert of key %d: %v, there %v", k, err, there)
				}
				if !there {
					model[k] = v
				}
			case 3:
				must.Do(t, tx.Upsert(table, number(k, v)))
				model[k] = v
			case 4:
				if err := tx.Update(table, number(k, old+1)); errors.Is(err, oribi.ErrNotFound) == there {
					t.Fatalf("update of key %d: %v, there %v", k, err, there)
				}
				if there {
					model[k] = old + 1
				}
			case 5:
				if err := tx.Delete(table, oribi.Row{"k": k}); errors.Is(err, oribi.ErrNotFound) == there {
					t.Fatalf("delete of key %d: %v, there %v", k, err, there)
				}
				delete(model, k)
			case 6:
				points = append(points, saved{must.Get(tx.Savepoint())(t), maps.Clone(model)})
			case 7:
				if n := len(points); n > 0 {
					i := rng.IntN(n)
					must.Do(t, tx.RollbackTo(points[i].sp))
					model, points = maps.Clone(points[i].rows), points[:i+1]
				}
			case 8:
				row, err := tx.Get(table, k)
				if errors.Is(err, oribi.ErrNotFound) == there || err == nil && row["v"].(int64) != old {
					t.Fatalf("key %d: %v, %v, want %d, %v", k, row, err, old, there)
				}
			}
			must.Equal(t, must.Get(tx.Has(table, k))(t), hasKey(model, k), "has key", k)
			order := []oribi.RowsOption{}
			if rng.IntN(2) == 0 {
				order = append(order, oribi.Desc())
			}
			must.Equal(t, must.Get(numbersOf(tx.Scan(table, order...).Rows()))(t), model, "rows in the transaction")
			first := slices.Sorted(maps.Keys(model))
			n := 0
			for row := range must.All(t, tx.Scan(table, oribi.Limit(3)).Rows()) {
				must.Equal(t, row["k"].(int64), first[n], "row", n)
				n++
			}
			must.Equal(t, n, min(3, len(first)), "rows up to a limit")
		}
		if rng.IntN(6) == 0 {
			tx.Rollback()
		} else {
			must.Get(tx.Commit(oribi.NoSync))(t)
			committed = model
		}
		must.Equal(t, must.Get(numbersOf(table.Scan(ctx).Rows()))(t), committed, "rows")
	}
}

func hasKey(m map[int64]int64, k int64) bool { _, ok := m[k]; return ok }

// The delete of a range does not read: rows that another writer adds to it before the commit are no
// conflict, and are deleted.
func TestRangesAreDeletedAsOfTheCommit(t *testing.T) {
	ctx := context.Background()
	store, table := txStore(t)
	put(t, store, table, map[int64]int64{1: 1, 2: 2, 9: 9})
	tx := must.Get(store.Begin(ctx))(t)
	must.Do(t, tx.DeleteRange(table, 1, 5))
	must.Do(t, tx.Insert(table, number(2, 20)))
	put(t, store, table, map[int64]int64{3: 3, 8: 8})
	must.Get(tx.Commit())(t)
	must.Equal(t, must.Get(numbersOf(table.Scan(ctx).Rows()))(t), map[int64]int64{2: 20, 8: 8, 9: 9})

	reader := must.Get(store.Begin(ctx))(t)
	must.Get(reader.Has(table, 8))(t)
	must.Do(t, reader.Upsert(table, number(100, 1)))
	tx = must.Get(store.Begin(ctx))(t)
	must.Do(t, tx.DeleteRange(table, 8, nil))
	must.Get(tx.Commit())(t)
	must.Fail(t, must.Err(reader.Commit()), oribi.ErrConflict, "a row that was read is deleted with its range")
	must.Fail(t, tx.DeleteRange(table, nil, nil), oribi.ErrTxEnded)
	tx = must.Get(store.Begin(ctx))(t)
	defer tx.Rollback()
	must.Fail(t, tx.DeleteRange(table, "x", nil), oribi.ErrRow)
	must.Equal(t, len(must.Get(numbersOf(tx.Scan(table).Rows()))(t)), 1, "rows after a refused call")
}

// Rows that expire are deleted one by one.
func TestRangesOfRowsThatExpireAreDeletedInTransactions(t *testing.T) {
	s := newSessions(t, 0)
	for k := range 10 {
		s.put(k, k, 0)
	}
	must.Do(t, s.store.Update(context.Background(), func(tx *oribi.Tx) error { return tx.DeleteRange(s.table, 2, 9) }))
	must.Equal(t, s.content(), "0=0 1=1 9=9 ")
}

// Operands before a delete of their range meet the rows that it deletes; rows that others add there are deleted.
func TestOperandsBeforeADeleteOfTheirRange(t *testing.T) {
	ctx := t.Context()
	store, table := txStore(t)
	put(t, store, table, map[int64]int64{1: 10, 2: 20})
	tx := begin(t, store)
	must.Do(t, tx.Update(table, oribi.Row{"k": 1, "v": oribi.Add(5)}))
	must.Do(t, tx.Upsert(table, oribi.Row{"k": 2, "v": oribi.Max(21)}))
	must.Do(t, tx.Upsert(table, number(6, 1)))
	must.Do(t, tx.DeleteRange(table, 0, 9))
	must.Do(t, tx.Upsert(table, oribi.Row{"k": 2, "v": oribi.Add(7)}))
	must.Equal(t, must.Get(numbersOf(tx.Scan(table).Rows()))(t), map[int64]int64{2: 7})
	put(t, store, table, map[int64]int64{2: 30, 5: 50, 6: 60})
	must.Fail(t, must.Err(tx.Commit()), oribi.ErrConflict, "row 2 was read")

	tx = begin(t, store)
	must.Do(t, tx.Update(table, oribi.Row{"k": 1, "v": oribi.Add(5)}))
	must.Do(t, tx.Upsert(table, oribi.Row{"k": 2, "v": oribi.Max(21)}))
	must.Do(t, tx.Upsert(table, number(6, 1)))
	must.Do(t, tx.DeleteRange(table, 0, 9))
	must.Do(t, tx.Upsert(table, oribi.Row{"k": 2, "v": oribi.Add(7)}))
	put(t, store, table, map[int64]int64{2: 31, 5: 50, 7: 70, 9: 90})
	must.Get(tx.Commit())(t)
	must.Equal(t, tx.Results(), []oribi.Result{{Row: 0, Column: "v", Value: int64(15)}, {Row: 1, Column: "v", Value: int64(31)},
		{Row: 3, Column: "v", Value: int64(7)}})
	must.Equal(t, must.Get(numbersOf(table.Scan(ctx).Rows()))(t), map[int64]int64{2: 7, 9: 90})
}
