package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/prooftest/followers"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/vfs"
	"github.com/oribi-db/oribi/vfs/crashfs"
	"github.com/oribi-db/oribi/vfs/faultfs"
)

const manyTables = 6

func manyNames() (names []string) {
	for i := range manyTables {
		names = append(names, fmt.Sprint("t", i))
	}
	return names
}

func newTables(t *testing.T) (list []oribi.NewTable) {
	t.Helper()
	columns := must.Get(parseSchema(strings.Fields("k*:int64 v:int64")))(t)
	for _, name := range manyNames() {
		list = append(list, oribi.NewTable{Name: name, Columns: columns})
	}
	return list
}

// putMany changes the tables in one write batch: an upsert of some rows with the value v, and a
// delete.
func putMany(t *testing.T, store *oribi.Store, tables []*oribi.Table, v int) {
	t.Helper()
	b := store.NewBatch()
	for i, table := range tables {
		for k := range 3 + i {
			b.Upsert(table, oribi.Row{"k": k, "v": v})
		}
		b.Row(oribi.OpDeleteIgnore, table, oribi.Row{"k": v % 3})
	}
	must.Do(t, must.Err(b.Commit(t.Context())))
}

// manyStore opens a store with one more table, "other", which has a row.
func manyStore(t *testing.T, fsys vfs.FS) *oribi.Store {
	t.Helper()
	store := must.Get(openMany(fsys))(t)
	numbersTable(t, store, "other")
	other := must.Get(store.Table("other"))(t)
	putRow(t, store, other, oribi.OpInsert, oribi.Row{"k": 1, "v": 2})
	return store
}

func openMany(fsys vfs.FS) (*oribi.Store, error) {
	return oribi.Open("/many", &oribi.Options{FS: fsys, Clock: mvcc.NewLogicalClock(mvcc.Min), Manual: true})
}

// eachCrash calls do, and at each of its file operations opens the states that a crash may leave.
// classify returns the kind of such a state; it returns how often each kind was found before do had
// returned, and after it.
func eachCrash(
	t *testing.T, disk *crashfs.FS, do func(), classify func(*oribi.Store) string,
) (during, after map[string]int) {
	t.Helper()
	r := seedtest.Rand(t)
	crash := func(at string, point *crashfs.Point, found map[string]int) {
		for s := range point.States(r.Uint64(), seedtest.Rounds(4, 2)) {
			if s.FlushForgotten {
				continue
			}
			store, err := openMany(s.Image)
			must.Do(t, err, at, s.Name)
			found[classify(store)]++
			must.Do(t, store.VerifyDeep(context.Background(),
				func(f oribi.Finding) { t.Errorf("%s, %s: %+v", at, s.Name, f) }), at, s.Name)
			must.Do(t, store.Close())
		}
	}
	during, after = map[string]int{}, map[string]int{}
	disk.OnOperation(func(c crashfs.Operation) error {
		crash(fmt.Sprintf("before %s of %s", c.Op, c.Name), c.Point(), during)
		return nil
	})
	do()
	disk.OnOperation(nil)
	crash("after the call", disk.Point(), after)
	return during, after
}

// checkAllOrNone reports states other than the one before a call and the one after it, the first of
// which must not occur after the call.
func checkAllOrNone(t *testing.T, during, after map[string]int, before, then string) {
	t.Helper()
	must.Equal(t, len(during), 2, "states", during)
	if during[before] == 0 || during[then] == 0 || len(after) != 1 || after[then] == 0 {
		t.Errorf("during the call %v, after it %v", during, after)
	}
}

// A crash during CreateTables leaves all of the tables or none, and all once it has returned.
func TestCrashDuringCreateTablesLeavesAllOrNone(t *testing.T) {
	disk := crashfs.New(vfs.NewMem())
	store := manyStore(t, disk)
	list := newTables(t)
	during, after := eachCrash(t, disk, func() {
		tables := must.Get(store.CreateTables(list...))(t)
		for i, table := range tables {
			must.Equal(t, table.Name(), list[i].Name)
		}
	}, func(s *oribi.Store) string { return must.Get(followers.Content(s))(t) })
	const none = "other: 1=2; "
	all := none + "t0:; t1:; t2:; t3:; t4:; t5:; "
	checkAllOrNone(t, during, after, none, all)
	must.Do(t, store.Close())
}

// A crash during DropTables leaves all of the tables, with their rows in files and in memory, or none.
func TestCrashDuringDropTablesLeavesAllOrNone(t *testing.T) {
	disk := crashfs.New(vfs.NewMem())
	store := manyStore(t, disk)
	tables := must.Get(store.CreateTables(newTables(t)...))(t)
	putMany(t, store, tables, 7)
	must.Do(t, store.FlushTables(t.Context(), tables[:4]...))
	putMany(t, store, tables, 8)
	all := must.Get(followers.Content(store))(t)
	during, after := eachCrash(t, disk, func() { must.Do(t, store.DropTables(manyNames()...)) },
		func(s *oribi.Store) string { return must.Get(followers.Content(s))(t) })
	const none = "other: 1=2; "
	checkAllOrNone(t, during, after, all, none)
	must.Do(t, store.Close())
}

// A crash during FlushTables loses no row, and leaves the tables of one metadata commit flushed or in
// the log together.
func TestCrashDuringFlushTablesLosesNothing(t *testing.T) {
	disk := crashfs.New(vfs.NewMem())
	store := manyStore(t, disk)
	tables := must.Get(store.CreateTables(newTables(t)...))(t)
	putMany(t, store, tables, 7)
	must.Do(t, store.FlushTables(t.Context(), tables[1:]...))
	putMany(t, store, tables, 8) // table 0 has rows in memory, the others changes of rows on disk too
	want := must.Get(followers.Content(store))(t)
	during, after := eachCrash(t, disk, func() { must.Do(t, store.FlushTables(t.Context(), store.Tables()...)) },
		func(s *oribi.Store) string {
			must.Equal(t, must.Get(followers.Content(s))(t), want)
			flushed := 0
			for _, table := range s.Tables() {
				if must.Get(table.Stats(false))(t).MemBytes == 0 {
					flushed++
				}
			}
			return fmt.Sprint(flushed, " flushed")
		})
	all := fmt.Sprint(manyTables+1, " flushed")
	must.Equal(t, len(during), 2, "states", during)
	if during["0 flushed"] == 0 || during[all] == 0 || len(after) != 1 || after[all] == 0 {
		t.Errorf("during the call %v, after it %v", during, after)
	}
	must.Do(t, store.Close())
}

// Rows that are written while FlushTables runs, and changes of rows that it is writing, are in the
// store afterwards, also after a kill.
func TestFlushTablesWithConcurrentWriters(t *testing.T) {
	disk := crashfs.New(vfs.NewMem())
	store := must.Get(openMany(disk))(t)
	tables := must.Get(store.CreateTables(newTables(t)...))(t)
	done := make(chan struct{})
	var writers sync.WaitGroup
	last := make([]int, 2)
	for w := range last {
		writers.Go(func() {
			for v := 1; ; v++ {
				b := store.NewBatch()
				for _, table := range tables {
					b.Upsert(table, oribi.Row{"k": w, "v": v})     // changes a row that is in files
					b.Upsert(table, oribi.Row{"k": 2 * v, "v": v}) // inserts rows, and changes a few
				}
				if _, err := b.Commit(context.Background(), oribi.NoSync); err != nil {
					t.Error(err)
					return
				}
				last[w] = v
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	for range seedtest.Rounds(60, 20) {
		must.Do(t, store.FlushTables(t.Context(), tables...))
	}
	close(done)
	writers.Wait()
	want := must.Get(followers.Content(store))(t)
	must.Do(t, must.Err(store.NewBatch().Commit(t.Context()))) // syncs the log
	for _, table := range tables {
		for w := range last {
			row := must.Get(table.Get(t.Context(), oribi.Row{"k": w}))(t)
			must.Equal(t, row["v"].(int64), int64(last[w]), table.Name(), "key", w)
		}
	}
	for s := range disk.Point().States(1, 1) {
		if s.FlushForgotten {
			continue
		}
		killed := must.Get(openMany(s.Image))(t)
		if got := must.Get(followers.Content(killed))(t); got != want {
			t.Errorf("%s: got %s\nwant %s", s.Name, got, want)
		}
		must.Do(t, killed.Close())
	}
	must.Do(t, store.Close())
}

// A FlushTables that fails leaves all rows readable, and the next one flushes them.
func TestFlushTablesAfterAFailure(t *testing.T) {
	disk := faultfs.New(vfs.NewMem())
	store := manyStore(t, disk)
	tables := must.Get(store.CreateTables(newTables(t)...))(t)
	putMany(t, store, tables, 7)
	failures := 0
	for fail := 0; ; fail++ {
		putMany(t, store, tables, fail)
		want := must.Get(followers.Content(store))(t)
		fault := disk.Fail(faultfs.Rule{Ops: []faultfs.Op{faultfs.Write}, Name: "data/*", Skip: fail,
			Err: syscall.ENOSPC})
		err := store.FlushTables(t.Context(), tables...)
		disk.Heal()
		if fault.Failures() == 0 {
			must.Do(t, err)
			break
		}
		failures++
		must.Fail(t, err, oribi.ErrNoSpace, fail)
		putMany(t, store, tables[:1], fail) // next to what the failed flush has left
		putMany(t, store, tables[:1], fail)
		must.Equal(t, must.Get(followers.Content(store))(t), want)
		must.Do(t, store.FlushTables(t.Context(), tables...))
		must.Equal(t, must.Get(followers.Content(store))(t), want)
		for _, table := range tables {
			must.Equal(t, must.Get(table.Stats(false))(t).MemBytes, 0, table.Name())
		}
	}
	if failures < 2 {
		t.Errorf("%d failures", failures)
	}
	must.Do(t, store.Close())
}

// CreateTables and DropTables check all arguments before they change anything.
func TestManyTablesAllOrNone(t *testing.T) {
	store := manyStore(t, vfs.NewMem())
	defer store.Close()
	list := newTables(t)
	for _, bad := range []struct {
		table oribi.NewTable
		want  error
	}{
		{oribi.NewTable{Name: "other", Columns: list[0].Columns}, oribi.ErrExists},
		{oribi.NewTable{Name: "t0", Columns: list[0].Columns}, oribi.ErrExists},
		{oribi.NewTable{Name: "no columns"}, oribi.ErrSchema},
		{oribi.NewTable{Name: "", Columns: list[0].Columns}, oribi.ErrSchema},
	} {
		_, err := store.CreateTables(append(newTables(t), bad.table)...)
		must.Fail(t, err, bad.want)
		if want := fmt.Sprintf("create table %q", bad.table.Name); !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not contain %s", err, want)
		}
		must.Equal(t, len(store.Tables()), 1)
	}
	must.Equal(t, len(must.Get(store.CreateTables())(t)), 0)
	must.Do(t, store.DropTables())
	must.Do(t, must.Err(store.CreateTables(list...)))
	for _, names := range [][]string{{"t1", "none"}, {"t2", "t3", "t2"}} {
		err := store.DropTables(names...)
		must.Fail(t, err, oribi.ErrNoTable)
		if want := fmt.Sprintf("drop table %q", names[len(names)-1]); !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not contain %s", err, want)
		}
		must.Equal(t, len(store.Tables()), 1+manyTables)
	}
	must.Do(t, store.DropTables("t5", "t0", "t3"))
	must.Equal(t, len(store.Tables()), manyTables-2)
	another := manyStore(t, vfs.NewMem())
	defer another.Close()
	must.Fail(t, another.FlushTables(t.Context(), store.Tables()...), oribi.ErrNoTable)
}

// Calls on overlapping sets of tables, in different orders, do not wait for each other in a circle.
func TestManyTablesConcurrently(t *testing.T) {
	store := manyStore(t, vfs.NewMem())
	names := manyNames()
	var calls sync.WaitGroup
	for i := range 4 {
		calls.Go(func() {
			for n := range seedtest.Rounds(60, 15) {
				list := newTables(t)[i : i+3]
				if i%2 == 1 {
					list[0], list[2] = list[2], list[0]
				}
				tables, err := store.CreateTables(list...)
				if err != nil && !errors.Is(err, oribi.ErrExists) {
					t.Error(err)
				}
				b := store.NewBatch()
				for _, table := range tables {
					b.Upsert(table, oribi.Row{"k": n, "v": n})
				}
				if _, err := b.Commit(t.Context(), oribi.NoSync); err != nil && !errors.Is(err, oribi.ErrNoTable) {
					t.Error(err)
				}
				if err := store.FlushTables(t.Context(), store.Tables()...); err != nil {
					t.Error(err)
				}
				err = store.DropTables(names[(i+n)%manyTables], names[(i+n+2)%manyTables], names[(i+n+1)%manyTables])
				if err != nil && !errors.Is(err, oribi.ErrNoTable) {
					t.Error(err)
				}
			}
		})
	}
	within(t, minute, calls.Wait)
	must.Do(t, store.VerifyDeep(t.Context(), func(f oribi.Finding) { t.Errorf("%+v", f) }))
	must.Do(t, store.Close())
}

// A follower sees tables that were created, flushed, and dropped together.
func TestFollowerOfManyTables(t *testing.T) {
	needFollowers(t)
	mem := vfs.NewMem()
	store := manyStore(t, mem)
	defer store.Close()
	follower := must.Get(oribi.Open("/many", &oribi.Options{FS: mem, Follow: true}))(t)
	defer follower.Close()
	same := func(what string) {
		t.Helper()
		must.Do(t, follower.Refresh(t.Context()))
		must.Equal(t, must.Get(followers.Content(follower))(t), must.Get(followers.Content(store))(t), what)
	}
	tables := must.Get(store.CreateTables(newTables(t)...))(t)
	same("created")
	putMany(t, store, tables, 7)
	same("written")
	must.Do(t, store.FlushTables(t.Context(), tables...))
	same("flushed")
	for _, table := range follower.Tables() {
		if table.Name() != "other" {
			must.Equal(t, len(table.RowSets()), 1, table.Name())
		}
	}
	putMany(t, store, tables, 8)
	must.Do(t, store.FlushTables(t.Context(), tables[2:]...))
	same("flushed again")
	must.Do(t, store.DropTables(manyNames()[1:]...))
	same("dropped")
}
