package storetest

import (
	"context"
	"fmt"
	"strconv"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
	"github.com/oribi-db/oribi/vfs/crashfs"
)

// A crash at any step of SetType leaves the table with one of the two types, in all rows and in all
// versions that history keeps.
func TestCrashDuringSetTypeLeavesOneType(t *testing.T) {
	ctx, r := context.Background(), seedtest.Rand(t)
	disk := crashfs.New(vfs.NewMem())
	open := func(fsys vfs.FS) (*oribi.Store, error) {
		return oribi.Open("/alter", &oribi.Options{FS: fsys, Clock: mvcc.NewLogicalClock(mvcc.Min),
			History: oribi.HistoryForever, Manual: true})
	}
	store := must.Get(open(disk))(t)
	table := tableOf(t, store, "t", "k*:int64 s:string")
	putRow(t, store, table, oribi.OpInsert, oribi.Row{"k": 1, "s": "10"})
	first := putRow(t, store, table, oribi.OpInsert, oribi.Row{"k": 2, "s": "20"})
	must.Do(t, table.Flush(ctx))
	putRow(t, store, table, oribi.OpUpdate, oribi.Row{"k": 1, "s": "11"})
	last := putRow(t, store, table, oribi.OpInsert, oribi.Row{"k": 3, "s": "30"})

	check := func(at string, image *vfs.Mem) (converted bool) {
		store, err := open(image)
		must.Do(t, err, at)
		defer store.Close()
		table, err := store.Table("t")
		must.Do(t, err, at)
		converted = table.Schema().Columns[1].Type == schema.Int16
		row := func(k, n int64) oribi.Row {
			if converted {
				return oribi.Row{"k": k, "s": int16(n)}
			}
			return oribi.Row{"k": k, "s": strconv.FormatInt(n, 10)}
		}
		wantRows(t, at+", first", table, []oribi.Row{row(1, 10), row(2, 20)}, oribi.AsOf(first))
		wantRows(t, at+", last", table, []oribi.Row{row(1, 11), row(2, 20), row(3, 30)}, oribi.AsOf(last))
		found := func(f oribi.Finding) { t.Errorf("%s: %+v", at, f) }
		must.Do(t, store.VerifyDeep(ctx, found), at)
		return converted
	}
	states := [2]int{}
	crash := func(at string, point *crashfs.Point) (converted, strings int) {
		for s := range point.States(r.Uint64(), seedtest.Rounds(4, 2)) {
			if s.FlushForgotten {
				continue
			}
			if check(at+", "+s.Name, s.Image) {
				converted++
			} else {
				strings++
			}
		}
		states[0], states[1] = states[0]+strings, states[1]+converted
		return converted, strings
	}
	disk.OnOperation(func(c crashfs.Operation) error {
		crash(fmt.Sprintf("before %s of %s", c.Op, c.Name), c.Point())
		return nil
	})
	err := table.Alter(ctx, oribi.SetType("s", schema.Column{Type: schema.Int16}))
	disk.OnOperation(nil)
	must.Do(t, err)
	before := states
	if _, strings := crash("after Alter", disk.Point()); strings > 0 {
		t.Errorf("after Alter, %d of the states have the old type", strings)
	}
	t.Logf("states during Alter: %d with the old type, %d with the new one", before[0], before[1])
	if before[0] == 0 || before[1] == 0 {
		t.Error("no crash came before, or none came after the metadata commit")
	}
	must.Do(t, store.Close())
}

// Operations that were added before the change are refused, wherever they are; reads that run
// continue with the old type.
func TestSetTypeAndOpenBatches(t *testing.T) {
	ctx := context.Background()
	store, table, _ := alterStore(t)
	putRow(t, store, table, oribi.OpInsert, oribi.Row{"k": 1, "n": 1})
	putRow(t, store, table, oribi.OpInsert, oribi.Row{"k": 2, "n": 2})
	typed := must.Get(oribi.Typed[struct {
		K int64 `oribi:"k"`
		N int32 `oribi:"n"`
	}](table))(t)
	b := store.NewBatch()
	b.Row(oribi.OpUpdate, table, oribi.Row{"k": 1, "n": 7})
	tx := must.Get(store.Begin(ctx))(t)
	defer tx.Rollback()
	tx.Row(oribi.OpUpdate, table, oribi.Row{"k": 2, "n": 8})
	sn := must.Get(store.Snapshot(ctx))(t)
	defer sn.Close()

	rows := 0
	for row, err := range table.Scan(ctx).Rows() {
		if rows == 0 {
			alter(t, table, oribi.SetType("n", schema.Column{Type: schema.String}))
		}
		if rows++; err != nil || row["n"] != int32(rows) {
			t.Fatalf("a scan that was running: %v, %v", row, err)
		}
	}
	must.Fail(t, must.Err(b.Get(ctx, table, 1)), oribi.ErrConflict, "Batch.Get")
	must.Fail(t, must.Err(b.Commit(ctx)), oribi.ErrConflict, "Batch.Commit")
	must.Fail(t, must.Err(tx.Get(table, 2)), oribi.ErrConflict, "Tx.Get")
	must.Fail(t, must.Err(tx.Commit()), oribi.ErrConflict, "Tx.Commit")
	must.Refuse(t, must.Err(typed.Get(ctx, 1)), "a TableOf with the old type reads the column")
	want := []oribi.Row{{"k": int64(1), "n": "1", "s": nil}, {"k": int64(2), "n": "2", "s": nil}}
	wantRows(t, "now", table, want)
	wantRows(t, "snapshot", table, want, oribi.At(sn))
	putRow(t, store, table, oribi.OpUpdate, oribi.Row{"k": 1, "n": "seven"})
}

// A follower, a subscription to changes from before, a checkpoint, and the store that Salvage makes
// without metadata have the column with its new type and all versions.
func TestSetTypeIsSeenOutsideTheTable(t *testing.T) {
	needFollowers(t)
	ctx := context.Background()
	mem := vfs.NewMem()
	store := must.Get(oribi.Open("/store", &oribi.Options{FS: mem, Manual: true, History: oribi.HistoryForever}))(t)
	defer store.Close()
	table := tableOf(t, store, "t", "k*:int64 v:string? w:int8")
	first := putRow(t, store, table, oribi.OpInsert, oribi.Row{"k": 1, "v": "10", "w": 1})
	must.Do(t, table.Flush(ctx))
	follower := must.Get(oribi.Open("/store", &oribi.Options{FS: mem, ReadOnly: true, Follow: true}))(t)
	defer follower.Close()
	second := putRow(t, store, table, oribi.OpUpdate, oribi.Row{"k": 1, "v": "11"})
	alter(t, table, oribi.SetType("v", schema.Column{Type: schema.Int32}))
	last := putRow(t, store, table, oribi.OpInsert, oribi.Row{"k": 2, "v": 20, "w": 2})

	one := func(v any) oribi.Row { return oribi.Row{"k": int64(1), "v": v, "w": int8(1)} }
	two := oribi.Row{"k": int64(2), "v": int32(20), "w": int8(2)}
	check := func(what string, table *oribi.Table) {
		t.Helper()
		wantRows(t, what+", first", table, []oribi.Row{one(int32(10))}, oribi.AsOf(first))
		wantRows(t, what+", second", table, []oribi.Row{one(int32(11))}, oribi.AsOf(second))
		wantRows(t, what+", last", table, []oribi.Row{one(int32(11)), two}, oribi.AsOf(last))
	}
	check("writer", table)
	must.Do(t, follower.Refresh(ctx))
	followed := must.Get(follower.Table("t"))(t)
	check("follower", followed)

	var events [][][]byte
	for b := range must.All(t, store.Subscribe(ctx, first-1, last)) {
		for _, c := range b.Changes {
			events = append(events, c.After)
		}
	}
	key := func(k byte) []byte { return []byte{k, 0, 0, 0, 0, 0, 0, 0} }
	want := [][][]byte{{key(1), {10, 0, 0, 0}, {1}}, {key(1), {11, 0, 0, 0}, {1}}, {key(2), {20, 0, 0, 0}, {2}}}
	must.Equal(t, events, want, "events")

	must.Get(store.Checkpoint(ctx, "/checkpoint"))(t)
	must.Do(t, store.Close())
	for _, gone := range []string{"/store/meta", "/store/ANCHOR"} {
		must.Do(t, vfs.RemoveAll(mem, gone))
	}
	saved, losses := salvaged(t, mem)
	for _, l := range losses {
		if l.Rows != -1 { // else it is about a file of the metadata
			t.Errorf("loss %+v", l)
		}
	}
	copied := must.Get(openCopy(mem, "/checkpoint"))(t)
	defer copied.Close()
	for name, s := range map[string]*oribi.Store{"salvaged": saved, "checkpoint": copied} {
		table := must.Get(s.Table("t"))(t)
		check(name, table)
	}
}

// Rows that exist when an Alter adds a column, changes its default, and gives it another type have the first
// default, or NULL without one.
func TestSetTypeOfAnAddedColumn(t *testing.T) {
	ctx := context.Background()
	store := must.Get(oribi.Open("/store", &oribi.Options{FS: vfs.NewMem(), Manual: true}))(t)
	defer store.Close()
	table := numbersTable(t, store, "t")
	fillNumbers(t, store, table, 0, 1)
	must.Do(t, table.Alter(ctx, oribi.AddColumn(schema.Column{Name: "n", Type: schema.Int32}, 126),
		oribi.SetDefault("n", 24), oribi.SetType("n", schema.Column{Type: schema.Int64}),
		oribi.AddColumn(schema.Column{Name: "s", Type: schema.Int8, Nullable: true}),
		oribi.SetDefault("s", 7), oribi.SetType("s", schema.Column{Type: schema.String})))
	b := store.NewBatch()
	b.Insert(table, oribi.Row{"k": 1, "v": 1})
	must.Get(b.Commit(ctx))(t)
	for range 2 {
		must.Equal(t, must.Get(table.Get(ctx, 0, oribi.Columns("n", "s")))(t), oribi.Row{"n": int64(126), "s": nil})
		must.Equal(t, must.Get(table.Get(ctx, 1, oribi.Columns("n", "s")))(t), oribi.Row{"n": int64(24), "s": "7"})
		must.Do(t, table.Compact(ctx))
	}
}
