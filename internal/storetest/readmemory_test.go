package storetest

import (
	"context"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/vfs"
)

// yieldingFS lets other goroutines run during each read of a container, and records how many bytes
// are being read at once, and how many bytes of the heap are live then.
type yieldingFS struct {
	vfs.FS
	reading, most, heap atomic.Int64
}

type yieldingFile struct {
	vfs.File
	fs *yieldingFS
}

func (f *yieldingFS) Open(name string, write bool) (vfs.File, error) {
	file, err := f.FS.Open(name, write)
	if err != nil || filepath.Ext(name) != ".data" {
		return file, err
	}
	return &yieldingFile{file, f}, nil
}

func (f *yieldingFile) ReadAt(p []byte, off int64) (int, error) {
	s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	now := f.fs.reading.Add(int64(len(p)))
	defer f.fs.reading.Add(-int64(len(p)))
	for range 8 {
		runtime.Gosched()
	}
	metrics.Read(s)
	storeMax(&f.fs.most, now)
	storeMax(&f.fs.heap, int64(s[0].Value.Uint64()))
	return f.File.ReadAt(p, off)
}

func storeMax(v *atomic.Int64, n int64) {
	for old := v.Load(); n > old && !v.CompareAndSwap(old, n); old = v.Load() {
	}
}

// Sixty-four readers of rows with four cells in cblocks of a MiB that are not in memory: the blocks
// that are read at once are within a share of the memory limit, and so are all readers together.
func TestConcurrentColdReadsAreBounded(t *testing.T) {
	const readers, limit, block = 64, 16 << 20, 1 << 20
	defer debug.SetGCPercent(debug.SetGCPercent(25)) // so that live bytes are counted often
	ctx := context.Background()
	mem := wideStore(t, wide{rows: 96, columns: 4, cell: 32 << 10, block: block})
	fsys := &yieldingFS{FS: mem}
	store := must.Get(oribi.Open("/wide", &oribi.Options{FS: fsys, ReadOnly: true, MemoryLimit: limit}))(t)
	defer store.Close()
	table := must.Get(store.Table("wide"))(t)
	runtime.GC()
	s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(s)
	before := int64(s[0].Value.Uint64()) // of other tests too
	var wg sync.WaitGroup
	for i := range readers {
		wg.Go(func() {
			for k := range 2 {
				if _, cells, err := table.GetCells(ctx, oribi.Key{(i*7 + k*48) % 96}); err != nil ||
					len(cells[3]) != 32<<10 {
					t.Errorf("reader %d: %d cells, %v", i, len(cells), err)
				}
			}
		})
	}
	wg.Wait()
	// One block above its share of 1 MiB, and small reads.
	if n := fsys.most.Load(); n > limit/16+block+readers*4*(16<<10) {
		t.Errorf("%d bytes were read at once", n)
	}
	// What is allocated while the collector marks counts as live.
	if n := fsys.heap.Load() - before; n > limit+256<<20 {
		t.Errorf("%d bytes more were live", n)
	}
	t.Logf("%d bytes were read at once, %d were live, before %d", fsys.most.Load(), fsys.heap.Load(), before)
}
