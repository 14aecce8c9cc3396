package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/vfs/crashfs"
)

// A rowset whose rows are deleted is removed as soon as its history ends, although the deletes are in
// memory only. After a power failure the rows are there, or the write batch that deleted them.
func TestDeadRowSetsAreRemoved(t *testing.T) {
	ctx := context.Background()
	wall := newFakeWall()
	disk := crashfs.New(wall.mem)
	store := must.Get(oribi.Open("/store", &oribi.Options{FS: disk, Manual: true, History: time.Hour,
		Clock: mvcc.NewHybridClock(wall.time)}))(t)
	defer store.Close()
	queue, other := numbersTable(t, store, "queue"), numbersTable(t, store, "other")
	const rows = 50
	put := func(table *oribi.Table, from, n int) {
		b := store.NewBatch()
		for k := range n {
			b.Insert(table, oribi.Row{"k": from + k, "v": k})
		}
		must.Get(b.Commit(ctx))(t)
	}
	put(queue, 0, rows)
	must.Do(t, queue.Flush(ctx))
	put(queue, rows, 1)
	step := func() {
		t.Helper()
		for ran := true; ran; {
			var err error
			_, ran, err = store.StepBackgroundWork(ctx)
			must.Do(t, err)
		}
	}
	rowsets := func() int { return len(queue.RowSets()) }
	step()
	b := store.NewBatch()
	for k := range rows {
		b.Delete(queue, oribi.Row{"k": k})
	}
	b.Insert(other, oribi.Row{"k": 1, "v": 1})
	must.Get(b.Commit(ctx, oribi.NoSync))(t)
	step()
	must.Equal(t, rowsets(), 1, "rowsets while their history is kept")
	wall.move(2 * time.Hour)
	step()
	must.Equal(t, rowsets(), 0, "rowsets after their history")
	for state := range disk.Point().States(seedtest.Seed(t), 0) {
		s, err := oribi.Open("/store", &oribi.Options{FS: state.Image, ReadOnly: true})
		if err != nil {
			t.Errorf("%s: %v", state.Name, err)
			continue
		}
		n := must.Get(must.Get(s.Table("queue"))(t).Count(ctx))(t)
		deleted := must.Get(hasNumber(s, "other", 1))(t)
		if want := map[bool]int64{true: 1, false: rows + 1}[deleted]; n != want {
			t.Errorf("%s: %d rows, want %d; deleted: %t", state.Name, n, want, deleted)
		}
		s.Close()
	}
}
