package storetest

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/invariant"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/prooftest/history"
	"github.com/oribi-db/oribi/vfs"
)

// sized is a row of the tables of TestSizing.
type sized struct {
	K int64  `oribi:"k,key"`
	A int64  `oribi:"a"`
	B int32  `oribi:"b"`
	S string `oribi:"s"`
}

// The formulas of docs/limits.md, at three sizes: what a table takes on disk; what is read by an open, by
// the first reads of rows, and by later ones; and how much memory an open store has that grows with
// the table.
func TestSizing(t *testing.T) {
	const limit = 16 << 20 // of which the cache takes a half
	history.Usual()
	ctx := context.Background()
	sizes := []int64{100_000, 400_000, 1_600_000}
	if invariant.Race { // which adds nothing at the others
		sizes = sizes[:1]
	}
	for _, rows := range sizes {
		t.Run(fmt.Sprint(rows), func(t *testing.T) {
			mem := vfs.NewMem()
			sets := sizedStore(t, mem, rows)
			before := heap()
			fsys := &readsFS{FS: mem, pages: map[string]bool{}}
			store := must.Get(oribi.Open("/sized", &oribi.Options{FS: fsys, ReadOnly: true, MemoryLimit: limit}))(t)
			defer store.Close()
			table := must.Get(oribi.OpenTable[sized](store, "t"))(t)
			atMost(t, "reads of blocks by Open", fsys.reads, 3+3*sets)

			fsys.reads = 0
			r := rand.New(rand.NewPCG(2, 2))
			const gets = 5000
			for range gets {
				must.Get(table.Get(ctx, 2*r.Int64N(rows)))(t)
			}
			// The ends of the files of each rowset, and the page and the string of each row. Until
			// the cache is full, cblocks of the key column are read too.
			atMost(t, "reads of blocks by gets", fsys.reads, 20*sets+2*gets+int(rows/16384))
			atMost(t, "bytes of memory", int(heap()-before), limit/2+4<<20+int(rows/10))
		})
	}
}

// sizedStore writes a table, compares its size with the formula, and returns the number of rowsets.
func sizedStore(t *testing.T, fsys vfs.FS, rows int64) (sets int) {
	store := must.Get(oribi.Open("/sized", &oribi.Options{FS: fsys, Manual: true}))(t)
	table := must.Get(oribi.OpenTable[sized](store, "t"))(t)
	var all iter.Seq[sized] = func(yield func(sized) bool) {
		r := rand.New(rand.NewPCG(1, 1))
		for i := range rows {
			if !yield(sized{2 * i, r.Int64N(1e6), r.Int32N(1000), fmt.Sprintf("%016x%08x", r.Uint64(), i)}) {
				return
			}
		}
	}
	_, _, err := table.Ingest(context.Background(), all)
	must.Do(t, err)
	stats := must.Get(table.Table.Stats(true))(t)
	use := must.Get(store.DiskUsage())(t)
	must.Do(t, store.Close())
	want := int64(2.4*float64(rows)) + stats.RowFileBytes
	for _, c := range stats.Columns {
		want += c.Bytes
	}
	if diff := use.Live - want; diff*100 > want || -diff*100 > want {
		t.Errorf("%d bytes of blocks, want %d within 1 %%", use.Live, want)
	}
	atMost(t, "bytes of row files in percent of all", int(100*stats.RowFileBytes/use.Live), 25)
	return int(stats.RowSets)
}

// atMost reports a figure that is larger than its bound.
func atMost(t *testing.T, what string, got, bound int) {
	t.Helper()
	if got > bound {
		t.Errorf("%d %s, want at most %d", got, what, bound)
	}
	t.Logf("%d %s, bound %d", got, what, bound)
}

// heap returns the bytes of live objects.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
