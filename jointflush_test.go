package oribi

import (
	"fmt"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
)

// smallTables opens a store with n tables, each with some rows of 1 KiB.
func smallTables(t *testing.T, o *Options, n, rows int) *Store {
	t.Helper()
	o.FS, o.Manual = vfs.NewMem(), true
	store := must.Get(Open("/store", o))(t)
	t.Cleanup(func() { store.Close() })
	columns := must.Get(
		schema.New([]schema.Column{{Name: "k", Type: schema.Int64}, {Name: "v", Type: schema.String}}, 1))(t)
	var list []NewTable
	for i := range n {
		list = append(list, NewTable{Name: fmt.Sprint("t", i), Columns: columns})
	}
	for _, table := range must.Get(store.CreateTables(list...))(t) {
		b := store.NewBatch()
		for k := range rows {
			b.Insert(table, Row{"k": k, "v": strings.Repeat("v", 1<<10)})
		}
		must.Get(b.Commit(t.Context(), NoSync))(t)
	}
	return store
}

// stepFlushes carries out what is due, and returns the number of flushes, and of the tables that
// they have left with rows in memory.
func stepFlushes(t *testing.T, store *Store) (flushes, left int) {
	t.Helper()
	for ran := true; ran; {
		var op BackgroundOp
		op, ran = must.Get2(store.StepBackgroundWork(t.Context()))(t)
		if op.Kind == "flush" {
			flushes++
		}
	}
	for _, table := range store.Tables() {
		if must.Get(table.Stats(false))(t).MemBytes > 0 {
			left++
		}
	}
	return flushes, left
}

// When the log is long, the small tables that keep most of it are flushed together. Others, which keep
// the newer part of it, keep their rows in memory.
func TestSmallTablesThatKeepALongLogAreFlushedTogether(t *testing.T) {
	store := smallTables(t, &Options{LogSegmentBytes: 8 << 10, logLimit: 256 << 10}, 40, 8) // 320 KiB of log
	flushes, left := stepFlushes(t, store)
	if flushes != 1 || left < 10 || left > 20 {
		t.Errorf("%d flushes, after which %d tables have rows in memory", flushes, left)
	}
	if n := store.core.Writer.Log.Bytes(); n > 200<<10 {
		t.Errorf("%d bytes of log are left", n)
	}
}

// When memory is short and no table has much of it, many are flushed together.
func TestSmallTablesAreFlushedTogetherWhenMemoryIsShort(t *testing.T) {
	store := smallTables(t, &Options{MemoryLimit: 16 << 20}, 100, 48)
	flushes, left := stepFlushes(t, store)
	if flushes != 1 || left > 0 {
		t.Errorf("%d flushes, after which %d tables have rows in memory", flushes, left)
	}
}

// A schedule of the caller chooses among the flushes of single tables.
func TestScheduleFlushesSingleTables(t *testing.T) {
	o := &Options{LogSegmentBytes: 8 << 10, logLimit: 256 << 10}
	o.Schedule = func(ops []BackgroundOp) int {
		for i, op := range ops {
			if op.Kind == "flush" && op.Log > 200<<10 {
				return i
			}
		}
		return -1
	}
	store := smallTables(t, o, 40, 8)
	if flushes, left := stepFlushes(t, store); flushes < 5 || flushes+left != 40 {
		t.Errorf("%d flushes, after which %d tables have rows in memory", flushes, left)
	}
}
