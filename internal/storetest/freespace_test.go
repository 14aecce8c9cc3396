package storetest

import (
	"context"
	"iter"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/vfs"
)

// solidFS is a file system without hole punching that reports removed containers.
type solidFS struct {
	vfs.FS
	once    sync.Once
	removed chan struct{}
}

func newSolidFS(inner vfs.FS) *solidFS { return &solidFS{FS: inner, removed: make(chan struct{})} }

func (s *solidFS) Create(name string) (vfs.File, error) {
	f, err := s.FS.Create(name)
	return solidFile{f}, err
}

func (s *solidFS) Open(name string, write bool) (vfs.File, error) {
	f, err := s.FS.Open(name, write)
	return solidFile{f}, err
}

func (s *solidFS) Remove(name string) error {
	err := s.FS.Remove(name)
	if err == nil && strings.HasSuffix(name, ".data") {
		s.once.Do(func() { close(s.removed) })
	}
	return err
}

type solidFile struct{ vfs.File }

func (solidFile) PunchHole(int64, int64) error { return fault.Unsupportedf("punch hole") }

// The space of a dropped table, and of the blocks that a compaction replaced, is free when the call
// returns, whether holes can be punched or not. Blocks that a scan still reads are freed when it
// ends.
func TestDroppedBlocksAreFreedWhenDropReturns(t *testing.T) {
	for name, fsys := range map[string]vfs.FS{"holes=yes": vfs.OS, "holes=no": newSolidFS(vfs.OS)} {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			dir := filepath.Join(t.TempDir(), "store")
			holes := fsys == vfs.OS
			if holes && !punches(t, dir) {
				t.Skip("no hole punching here")
			}
			store := must.Get(oribi.Open(dir, &oribi.Options{FS: fsys, Manual: true}))(t)
			defer store.Close()
			kept, going := numbersTable(t, store, "kept"), numbersTable(t, store, "going")
			for n := range 3 {
				for _, table := range []*oribi.Table{kept, going} {
					b := store.NewBatch()
					for k := range 3000 {
						b.Insert(table, oribi.Row{"k": 3*k + n, "v": k * k * 77777}) // the rowsets overlap
					}
					must.Get(b.Commit(ctx))(t)
					must.Do(t, table.Flush(ctx))
				}
			}
			before := checkUsage(t, "flushed", dir, store)
			must.Equal(t, before.Dead, 0, "dead bytes")
			must.Do(t, kept.Compact(ctx))
			if u := checkUsage(t, "compacted", dir, store); holes && u.Dead != 0 {
				t.Errorf("after Compact: %d dead bytes", u.Dead)
			}
			must.Do(t, store.DropTable("going"))
			u := checkUsage(t, "dropped", dir, store)
			if holes && u.Dead != 0 {
				t.Errorf("after DropTable: %d dead bytes", u.Dead)
			}
			t.Logf("%d live bytes, %d dead ones", u.Live, u.Dead)
			next, stop := iter.Pull2(kept.Scan(ctx).Rows())
			defer stop()
			if _, err, ok := next(); !ok || err != nil {
				t.Fatalf("no row, %v", err)
			}
			must.Do(t, store.DropTable("kept"))
			if u := checkUsage(t, "dropped while it is read", dir, store); u.Live != 0 || u.Dead == 0 {
				t.Errorf("while a scan runs: %d live bytes, %d dead ones", u.Live, u.Dead)
			}
			rows := 1
			for _, err, ok := next(); ok; _, err, ok = next() {
				must.Do(t, err)
				rows++
			}
			must.Equal(t, rows, 9000, "rows of the scan")
			other := numbersTable(t, store, "other")
			must.Do(t, store.DropTable(other.Name()))
			if u := checkUsage(t, "all dropped", dir, store); u.Live != 0 || u.Dead != 0 {
				t.Errorf("at the end: %d live bytes, %d dead ones", u.Live, u.Dead)
			}
		})
	}
}

// Without hole punching, containers with little live data are emptied in the background, without a
// call by the program.
func TestBackgroundFreesSpaceWithoutHolePunching(t *testing.T) {
	const batches = 4
	ctx := context.Background()
	disk := newSolidFS(vfs.NewMem())
	merged := make(chan struct{}, batches)
	store := must.Get(oribi.Open("/store",
		&oribi.Options{FS: disk, Policy: compaction.Overlap{Depth: 2}, Listener: func(e oribi.Event) {
			if e.Kind == compaction.Merge && !e.Begin {
				merged <- struct{}{}
			}
		}}))(t)
	defer store.Close()
	table := numbersTable(t, store, "numbers")
	rng := rand.New(rand.NewPCG(1, 1))
	for n := range batches {
		b := store.NewBatch()
		for k := range 50_000 {
			// the rowsets overlap, so they are merged
			b.Insert(table, oribi.Row{"k": batches*k + n, "v": int64(rng.Uint64())})
		}
		must.Get(b.Commit(ctx))(t)
		must.Do(t, table.Flush(ctx))
		if n > 0 { // merged one by one, they leave more dead data than live data
			within(t, minute, func() { <-merged })
		}
	}
	within(t, minute, func() { <-disk.removed })
	must.Equal(t, must.Get(table.Count(ctx))(t), batches*50_000, "rows")
}
