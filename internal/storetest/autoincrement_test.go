package storetest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
	"github.com/oribi-db/oribi/vfs/faultfs"
)

const autoName = schema.AutoIncrementName

// autoStore returns a store in memory and its table with key (host, auto_incrementing_id) and value
// v. reopen opens what a kill leaves.
func autoStore(t *testing.T) (store *oribi.Store, table *oribi.Table, reopen func() (*oribi.Store, *oribi.Table)) {
	t.Helper()
	mem := vfs.NewMem()
	// While one batch is in the critical section of its commit, others run until they block.
	yield := func(c faultfs.Call) error {
		for range 100 {
			if c.Changes() {
				runtime.Gosched()
			}
		}
		return nil
	}
	open := func() {
		var err error
		disk := faultfs.New(mem)
		disk.Watch(yield)
		store, err = oribi.Open("/auto",
			&oribi.Options{FS: disk, Manual: true, Clock: mvcc.NewLogicalClock(mvcc.Min),
				History: oribi.HistoryForever})
		must.Do(t, err)
		t.Cleanup(func() { store.Close() })
	}
	open()
	table = tableOf(t, store, "t", "host*:string "+autoName+"*:int64 v:int64?")
	return store, table, func() (*oribi.Store, *oribi.Table) {
		mem = mem.Clone()
		open()
		table := must.Get(store.Table("t"))(t)
		return store, table
	}
}

// assigned returns the values that a commit assigned.
func assigned(b *oribi.Batch) (values []int64) {
	for _, a := range b.Assigned() {
		values = append(values, a.Value)
	}
	return values
}

func insertAuto(t *testing.T, store *oribi.Store, table *oribi.Table, hosts ...string) []int64 {
	t.Helper()
	b := store.NewBatch()
	for _, h := range hosts {
		b.Insert(table, oribi.Row{"host": h})
	}
	must.Get(b.Commit(context.Background(), oribi.NoSync))(t)
	return assigned(b)
}

func wantValues(t *testing.T, what string, got []int64, want ...int64) {
	t.Helper()
	must.Equal(t, got, want, what, "values")
}

// autoRow is a row whose number inserts do not set.
type autoRow struct {
	Host string
	ID   int64  `oribi:"auto_incrementing_id"`
	V    *int64 `oribi:"v"`
}

func TestAutoIncrementValuesAscendForAllFormsOfInserts(t *testing.T) {
	ctx := context.Background()
	store, table, _ := autoStore(t)
	other := numbersTable(t, store, "numbers")
	typed := must.Get(oribi.Typed[autoRow](table))(t)
	b := store.NewBatch()
	hosts := batch.NewVector(schema.String, 2)
	hosts.SetCell(0, []byte("c"))
	hosts.SetCell(1, []byte("a"))
	b.Insert(table, oribi.Row{"host": "b", "v": 1})
	b.InsertIgnore(table, oribi.Row{"host": "b"})
	b.Insert(other, oribi.Row{"k": 1, "v": 1})
	b.Cells(oribi.OpInsert, table, [][]byte{[]byte("a"), nil, nil}, nil)
	b.Vectors(oribi.OpInsert, table, []*batch.Vector{hosts, nil, nil})
	b.Upsert(table, oribi.Row{"host": "d", autoName: 10})
	typed.InBatch(b).Insert(autoRow{Host: "e", ID: 77})
	must.Get(b.Commit(ctx))(t)
	want := []oribi.Assigned{{Row: 0, Value: 1}, {Row: 1, Value: 2}, {Row: 3, Value: 3}, {Row: 4, Value: 4},
		{Row: 5, Value: 5}, {Row: 7, Value: 11}}
	must.Equal(t, b.Assigned(), want, "assigned")
	var got []string
	for row := range must.All(t, typed.Scan(ctx)) {
		got = append(got, fmt.Sprint(row.Host, row.ID))
	}
	must.Equal(t, got, []string{"a3", "a5", "b1", "b2", "c4", "d10", "e11"}, "rows")
	if row, err := table.Get(ctx, oribi.Row{"host": "b", autoName: 1}); err != nil || row["v"] != int64(1) {
		t.Errorf("got %v, %v", row, err)
	}
	typed.InBatch(b).Delete(autoRow{Host: "e", ID: 11})
	if _, err := b.Commit(ctx); err != nil || len(b.Assigned()) > 0 {
		t.Errorf("a batch without inserts: %v, %v", b.Assigned(), err)
	}
}

// An operation refused because of the column refuses the whole batch in every form of commit, and a
// other inserts are assigned their values at about this time
func TestAutoIncrementColumnsAreValidated(t *testing.T) {
	ctx := context.Background()
	store, table, _ := autoStore(t)
	insertAuto(t, store, table, "a", "a")
	id := batch.NewVector(schema.Int64, 1)
	host := batch.NewVector(schema.String, 1)
	host.SetCell(0, []byte("a"))
	row := func(op oribi.Op, values oribi.Row) func(*oribi.Batch) {
		return func(b *oribi.Batch) { b.Row(op, table, values) }
	}
	cases := []struct {
		name    string
		add     func(b *oribi.Batch)
		refused bool
	}{
		{"insert with a value", row(oribi.OpInsert, oribi.Row{"host": "a", autoName: 9}), true},
		{"insert_ignore with a value", row(oribi.OpInsertIgnore, oribi.Row{"host": "a", autoName: 9}), true},
		{"insert of a vector", func(b *oribi.Batch) {
			b.Vectors(oribi.OpInsert, table, []*batch.Vector{host, id, nil})
		}, true},
		{"upsert without a value", row(oribi.OpUpsert, oribi.Row{"host": "a"}), true},
		{"upsert of vectors without", func(b *oribi.Batch) {
			b.Vectors(oribi.OpUpsert, table, []*batch.Vector{host, nil, nil})
		}, true},
		{"upsert_ignore without a value", row(oribi.OpUpsertIgnore, oribi.Row{"host": "a"}), true},
		{"upsert below 0", row(oribi.OpUpsert, oribi.Row{"host": "a", autoName: -1}), true},
		{"upsert of 0", row(oribi.OpUpsert, oribi.Row{"host": "a", autoName: 0}), false},
		{"upsert of a vector", func(b *oribi.Batch) {
			b.Vectors(oribi.OpUpsert, table, []*batch.Vector{host, id, nil})
		}, false},
		{"update", row(oribi.OpUpdate, oribi.Row{"host": "a", autoName: 2, "v": 1}), false},
		{"delete", row(oribi.OpDelete, oribi.Row{"host": "a", autoName: 2}), false},
	}
	for _, c := range cases {
		b := store.NewBatch()
		b.Insert(table, oribi.Row{"host": "left out?"})
		c.add(b)
		_, err := b.CommitPartial(ctx)
		var re *oribi.RowError
		if c.refused && (!errors.As(err, &re) || re.Row != 1) || !c.refused && err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	b := store.NewBatch()
	b.Insert(table, oribi.Row{"host": "a"})
	b.If(table, oribi.Row{"host": "a", autoName: 1000})
	if _, err := b.Commit(ctx); !errors.Is(err, oribi.ErrConflict) || len(b.Assigned()) > 0 {
		t.Errorf("a condition that is not met: %v, %v", err, b.Assigned())
	}
	wantValues(t, "after refusals", insertAuto(t, store, table, "a"), 7) // four of the inserts above were not refused
}

// With concurrent inserts, upserts with explicit values, and flushes, no insert finds its key
// taken, and a row with a higher number is never older than one with a lower number, except for
// upserted rows.
func TestAutoIncrementValuesAscendWithTimestamps(t *testing.T) {
	ctx := context.Background()
	store, table, reopen := autoStore(t)
	const writers, batches = 4, 60
	type given struct {
		ts     mvcc.Timestamp
		values []int64
	}
	all := make([][]given, writers)
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			b := store.NewBatch()
			for i := range batches {
				for range 1 + (w+i)%5 {
					b.Insert(table, oribi.Row{"host": fmt.Sprint("h", i%3)})
				}
				if i%10 == w+1 {
					near := all[w][i-1].values[0] + 5 // others are assigned it at about this time
					b.Upsert(table, oribi.Row{"host": fmt.Sprint("h", i%3), autoName: near})
					b.Insert(table, oribi.Row{"host": "h0"})
				}
				ts, err := b.Commit(ctx, oribi.NoSync)
				if err != nil {
					t.Error(err)
					return
				}
				all[w] = append(all[w], given{ts, assigned(b)})
				if i%20 == 7 {
					if err := table.Flush(ctx); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	group.Wait()
	one := slices.Concat(all...)
	slices.SortFunc(one, func(a, b given) int { return int(a.ts) - int(b.ts) })
	last := int64(0)
	for _, g := range one {
		for _, v := range g.values {
			if v <= last {
				t.Fatalf("timestamp %d has value %d, one before has %d", g.ts, v, last)
			}
			last = v
		}
	}
	store, table = reopen()
	if got := insertAuto(t, store, table, "h"); got[0] <= last {
		t.Errorf("value %d after %d", got[0], last)
	}
}
