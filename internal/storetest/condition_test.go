package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/vfs"
)

// conditionStore returns a store in memory with a table of key k and value v.
func conditionStore(t *testing.T) (*oribi.Store, *oribi.Table) {
	t.Helper()
	store := must.Get(
		oribi.Open("/c", &oribi.Options{FS: vfs.NewMem(), Manual: true, History: oribi.HistoryForever}))(t)
	t.Cleanup(func() { store.Close() })
	return store, numbersTable(t, store, "numbers")
}

// Every sequence of up to three operations on one key in one batch, on a row that is absent, in
// memory, on disk, or deleted in either: Batch.Get returns before the commit what Table.Get returns
// after it, and both return what assignments to a variable would give; a sequence with a refused
// operation changes nothing. The results are the same after a flush and a compaction, as of the
// commit and as of just before it.
func TestOperationsOnOneKeyTakeEffectInTheirOrder(t *testing.T) {
	ctx := context.Background()
	store, table := conditionStore(t)
	ops := []oribi.Op{oribi.OpInsert, oribi.OpUpsert, oribi.OpUpdate, oribi.OpDelete}
	var sequences [][]oribi.Op
	for _, a := range ops {
		sequences = append(sequences, []oribi.Op{a})
		for _, b := range ops {
			sequences = append(sequences, []oribi.Op{a, b})
			for _, c := range ops {
				sequences = append(sequences, []oribi.Op{a, b, c})
			}
		}
	}
	states := []string{"absent", "on disk", "deleted on disk", "in memory",
		"deleted in memory", "deleted on disk, in memory"}
	b := store.NewBatch()
	commit := func() mvcc.Timestamp {
		t.Helper()
		return must.Get(b.Commit(ctx, oribi.NoSync))(t)
	}
	key := func(state, seq int) int { return state*1000 + seq }
	each := func(op oribi.Op, v int, in ...int) {
		for _, state := range in {
			for seq := range sequences {
				row := oribi.Row{"k": key(state, seq)}
				if op != oribi.OpDelete {
					row["v"] = v
				}
				b.Row(op, table, row)
			}
		}
		commit()
	}
	each(oribi.OpInsert, -1, 1, 2, 5)
	must.Do(t, table.Flush(ctx))
	each(oribi.OpDelete, 0, 2, 5)
	each(oribi.OpInsert, -1, 3, 4)
	each(oribi.OpInsert, -2, 5)
	each(oribi.OpDelete, 0, 4)
	type result struct {
		key           int
		before, after any // values of v; nil = no row
		ts            mvcc.Timestamp
		name          string
	}
	value := func(row oribi.Row, err error) any {
		if err != nil {
			return nil
		}
		return row["v"]
	}
	var results []result
	for state, name := range states {
		for seq, asked := range sequences {
			r := result{key: key(state, seq), name: fmt.Sprintf("%v %s", asked, name)}
			r.before = value(table.Get(ctx, r.key))
			now, refused := r.before, false
			for i, op := range asked {
				there := now != nil
				switch {
				case op == oribi.OpInsert && there, (op == oribi.OpUpdate || op == oribi.OpDelete) && !there:
					refused = true
				case op == oribi.OpDelete:
					now = nil
				default:
					now = int64(i)
				}
				row := oribi.Row{"k": r.key}
				if op != oribi.OpDelete {
					row["v"] = i
				}
				b.Row(op, table, row)
				if refused {
					break
				}
			}
			row, err := b.Get(ctx, table, r.key)
			switch {
			case refused && !errors.Is(err, oribi.ErrRow):
				t.Fatalf("%s: Batch.Get: %v, %v, want a refused row", r.name, row, err)
			case !refused && value(row, err) != now:
				t.Fatalf("%s: Batch.Get: %v, %v, want %v", r.name, row, err, now)
			}
			r.ts, err = b.Commit(ctx, oribi.NoSync)
			if refused != errors.Is(err, oribi.ErrRow) || !refused && err != nil {
				t.Fatalf("%s: %v", r.name, err)
			}
			if r.after = now; refused {
				r.after, r.ts = r.before, store.Visible()
				b.Reset()
			}
			results = append(results, r)
		}
	}
	check := func(when string) {
		t.Helper()
		for _, r := range results {
			must.Equal(t, value(table.Get(ctx, r.key)), r.after, when, r.name)
			must.Equal(t, value(table.Get(ctx, r.key, oribi.AsOf(r.ts))), r.after, when, r.name, "as of its commit")
			if got := value(table.Get(ctx, r.key, oribi.AsOf(r.ts-1))); r.after != r.before && got != r.before {
				t.Fatalf("%s, %s, as of before its commit: %v, want %v", when, r.name, got, r.before)
			}
			changed := false
			for v := range table.History(ctx, r.key) {
				changed = changed || v.Timestamp == r.ts
			}
			must.Equal(t, changed, r.before != r.after,
				when, r.name, "from", r.before, "to", r.after, "the history reports a change")
		}
	}
	check("applied")
	must.Do(t, table.Flush(ctx))
	check("flushed")
	must.Do(t, table.Compact(ctx))
	check("compacted")
}

// Many goroutines increment one row by compare-and-set: no increment is lost, and a goroutine that
// loses the race gets ErrConflict.
func TestBatchIfIsACompareAndSet(t *testing.T) {
	ctx := context.Background()
	store, table := conditionStore(t)
	putNumber(t, store, table, 1, 0)
	const workers, steps = 8, 40
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			b := store.NewBatch()
			for done := 0; done < steps; {
				row, err := table.Get(ctx, 1)
				if err != nil {
					t.Error(err)
					return
				}
				v := int(row["v"].(int64))
				b.Reset() // a batch that failed keeps its operations
				b.If(table, oribi.Row{"k": 1}, oribi.Eq("v", v))
				b.Update(table, oribi.Row{"k": 1, "v": v + 1})
				_, err = b.Commit(ctx, oribi.NoSync)
				switch {
				case err == nil:
					done++
				case !errors.Is(err, oribi.ErrConflict):
					t.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	wantValue(t, table, workers*steps)
}

// With AllowPartial the rows that do not fit and those that are refused are left out and reported,
// and the others are committed atomically; without it the first of them ends the batch.
func TestAllowPartialLeavesRefusedRowsOut(t *testing.T) {
	ctx := context.Background()
	store, table := conditionStore(t)
	putNumber(t, store, table, 1, 10)
	fill := func(b *oribi.Batch) {
		b.Insert(table, oribi.Row{"k": 5, "v": 5})     // 0
		b.Insert(table, oribi.Row{"k": 1, "v": 11})    // 1: exists
		b.Insert(table, oribi.Row{"k": 6, "v": "six"}) // 2: not a number
		b.Update(table, oribi.Row{"k": 7, "v": 7})     // 3: absent
		vectors := []*batch.Vector{batch.NewVector(table.Schema().Columns[0].Type, 3),
			batch.NewVector(table.Schema().Columns[1].Type, 3)}
		for i := range 3 {
			batch.Values[int64](vectors[0])[i] = int64(8 + i)
		}
		vectors[1].SetCell(1, nil)
		b.Vectors(oribi.OpInsert, table, vectors)   // 4, 5: NULL, 6
		b.Upsert(table, oribi.Row{"k": 1, "v": 12}) // 7
	}
	b := store.NewBatch()
	fill(b)
	var first *oribi.RowError
	if _, err := b.Commit(ctx); !errors.As(err, &first) || first.Row != 2 {
		t.Fatalf("without AllowPartial: %v", err)
	}
	wantValue(t, table, 10)
	ts := must.Get(b.CommitPartial(ctx))(t)
	var rows []int
	for _, r := range b.Refused() {
		rows = append(rows, r.Row)
	}
	if fmt.Sprint(rows) != "[1 2 3 5]" || !errors.Is(b.Refused()[0], oribi.ErrKeyExists) ||
		!errors.Is(b.Refused()[2], oribi.ErrNotFound) {
		t.Errorf("refused: %v", b.Refused())
	}
	wantValue(t, table, 12)
	keys := map[any]bool{}
	for d := range must.All(t, table.Diff(ctx, ts-1, ts)) {
		keys[d.KeyRow()["k"]] = true
	}
	must.Equal(t, fmt.Sprint(keys), "map[1:true 5:true 8:true 10:true]", "changed by the batch")
	b.Reset()
	if _, err := b.Commit(ctx); err != nil || len(b.Refused()) != 0 {
		t.Errorf("an empty batch: %v, refused %v", err, b.Refused())
	}
}
