package rowset

import (
	"bytes"
	"encoding/binary"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/bloom"
	"github.com/oribi-db/oribi/cache"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// slowDisk takes a time for each read, and counts those that are made at a time.
type slowDisk struct {
	*disk
	delay     atomic.Int64
	now, most atomic.Int64
}

type slowBlock struct {
	Block
	d *slowDisk
}

func (d *slowDisk) OpenBlock(id block.ID) (Block, error) {
	b, err := d.disk.OpenBlock(id)
	return &slowBlock{b, d}, err
}

func (b *slowBlock) ReadAt(p []byte, off int64) (int, error) {
	n := b.d.now.Add(1)
	defer b.d.now.Add(-1)
	for most := b.d.most.Load(); n > most && !b.d.most.CompareAndSwap(most, n); most = b.d.most.Load() {
	}
	time.Sleep(time.Duration(b.d.delay.Load()))
	return b.Block.ReadAt(p, off)
}

// Parts of cblocks are read one after the other while that takes no longer than a read of the system's
// memory, and in parallel from a disk.
func TestPartsAreReadInParallelFromASlowDisk(t *testing.T) {
	const rows, columns = 12000, 6
	r := seedtest.Rand(t)
	cols := []schema.Column{{ID: 1, Name: "k", Type: schema.Int64}}
	for i := range schema.ColumnID(columns) {
		cols = append(cols, schema.Column{ID: 2 + i, Name: string(rune('a' + i)), Type: schema.Int64})
	}
	s := mustSchema(cols, 1)
	data := &change.Rows{Batch: batch.New(s.Columns, rows)}
	for i := range rows {
		data.Batch.Columns[0].SetCell(i, binary.LittleEndian.AppendUint64(nil, uint64(i)))
		for c := range columns {
			data.Batch.Columns[1+c].SetCell(i, binary.LittleEndian.AppendUint64(nil, r.Uint64()))
		}
		data.Keys = append(data.Keys, binary.BigEndian.AppendUint64(nil, uint64(i)|1<<63))
	}
	d := &slowDisk{disk: newDisk()}
	w := must.Get(NewWriter(d, s, 1))(t)
	must.Do(t, w.Append(data))
	meta := must.Get(w.Finish())(t)

	for _, delay := range []time.Duration{0, time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			c := cache.New(96 << 10) // has room for indexes and marks, but for no cblock: those take 94 KiB
			set := must.Get(Open(s, meta, Options{Blocks: d, Cache: c}))(t)
			defer set.Unref()
			get := func(row int, delay time.Duration) (most int64) {
				t.Helper()
				d.delay.Store(int64(delay))
				d.most.Store(0)
				cells, found, err := set.Get(bloom.MakeProbe(data.Keys[row]), mvcc.Before(mvcc.Max), allOf(s), nil)
				if err != nil || !found {
					t.Fatalf("row %d: %t, %v", row, found, err)
				}
				for c, v := range data.Batch.Columns {
					must.Equal(t, bytes.Equal(cells[c], v.Cell(row)), true, "row", row, "column", c)
				}
				return d.most.Load()
			}
			get(0, 0) // makes the marks
			must.Equal(t, c.Parts(), 0, "parts before")
			most := get(rows-1, delay)
			must.Equal(t, most > 1, delay > 0, "several reads at a time with a delay of ", delay)
			must.Equal(t, c.Parts(), columns, "parts")
		})
	}
}
