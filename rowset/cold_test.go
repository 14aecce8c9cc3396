package rowset

import (
	"sync"
	"testing"
	"testing/synctest"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/bloom"
	"github.com/oribi-db/oribi/cache"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/scan"
	"github.com/oribi-db/oribi/schema"
)

// barrierDisk blocks reads of some blocks until the awaited number of reads has begun.
type barrierDisk struct {
	*disk
	mu    sync.Mutex
	met   map[block.ID]bool // the blocks whose reads are counted
	await int               // reads that must have begun; 0 = none is blocked
	begun chan struct{}
}

type meetingBlock struct {
	Block
	d *barrierDisk
}

func (d *barrierDisk) OpenBlock(id block.ID) (Block, error) {
	b, err := d.disk.OpenBlock(id)
	return &meetingBlock{b, d}, err
}

func (b *meetingBlock) ReadAt(p []byte, off int64) (int, error) {
	b.d.mu.Lock()
	begun := b.d.begun
	wait := b.d.await > 0 && b.d.met[b.ID()]
	if wait {
		if b.d.await--; b.d.await == 0 {
			close(begun)
		}
	}
	b.d.mu.Unlock()
	if wait {
		<-begun
	}
	return b.Block.ReadAt(p, off)
}

// forget removes the counted blocks from the cache, and awaits the given number of their reads.
func (d *barrierDisk) forget(c *cache.Cache, reads int) {
	for id := range d.met {
		c.Evict(uint64(id))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.await, d.begun = reads, make(chan struct{})
}

// If a row, or a scan for few rows, needs several columns that are not in memory, it reads them in
// parallel: no read waits for another to finish, otherwise they would wait forever.
func TestColdColumnsAreReadTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := seedtest.Rand(t)
		s := mustSchema([]schema.Column{{ID: 1, Name: "a", Type: schema.Int16}, {ID: 2, Name: "b", Type: schema.String},
			{ID: 3, Name: "n", Type: schema.Int64, Nullable: true}, {ID: 4, Name: "s", Type: schema.String},
			{ID: 5, Name: "d", Type: schema.Double}}, 2)
		w := newTestRowSet(t, r, s, 200)
		d := &barrierDisk{disk: w.disk, met: map[block.ID]bool{}}
		c := cache.New(16 << 20)
		set := must.Get(Open(s, w.set.Metadata(), Options{Blocks: d, Cache: c}))(t)
		defer set.Unref()
		set.SetStores(set.Metadata(), w.set.Tracker())
		set.directory.off.Store(true) // which reads the key columns too
		for _, b := range set.Metadata().Columns {
			d.met[b.Block] = true
		}
		cols := []int{4, 3, 2, 1, 0} // not a full row, which the cache would keep
		for i := range w.rows {
			m := &w.rows[i]
			want, live := m.at(m.before(mvcc.Before(w.end)))
			if _, found, err := set.Get(bloom.MakeProbe(m.key), mvcc.Before(w.end), cols, nil); err != nil ||
				found != live {
				t.Fatalf("row %d: %t, %v, want %t", i, found, err, live)
			}
			if !live || len(m.events) > m.base {
				continue // cells of changes are in memory
			}
			d.forget(c, len(cols)-s.Keys) // the key has its cells
			cells, _ := must.Get2(set.Get(bloom.MakeProbe(m.key), mvcc.Before(w.end), cols, nil))(t)
			for k, col := range cols {
				must.Equal(t, sameCell(cells[k], want[col]), true, "row", i, "column", col, cells[k], want[col])
			}
		}
		d.forget(c, 0)
		req := scan.Options{Schema: s, Columns: []int{4, 3, 2, 3}, Snapshot: mvcc.Before(w.end), Keys: true, Limit: 1}
		it := must.Get(newIterator(set, req))(t)
		d.forget(c, len(s.Columns))
		must.Do(t, w.compare(req, it))
		must.Do(t, it.Close())
	})
}
