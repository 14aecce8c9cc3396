package rowset

import (
	"bytes"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/bloom"
	"github.com/oribi-db/oribi/cache"
	"github.com/oribi-db/oribi/change"
)

// After a full-row read, the row is kept in the cache as one piece, under its key: its row ID and
// its base cells as a row image, neither of which deltas change. The next read then needs one cache
// lookup instead of lookups of the bloom file, of the key index and of each column. If many
// scattered rows of a rowset are read repeatedly (a full cache keeps a row at its second read),
// each of them takes a few hundred bytes instead of a decoded chunk of 8 KiB per column.

// rowPart is the part number of base rows in the cache. The block of the key is the newest of the
// base columns', since a rewrite of any of them makes a new base; the offset is the hash of the
// row's key. cfile counts chunks from 1 and uses no part number this high.
const rowPart = 1<<32 - 2

// maxBaseRow is the maximum size in bytes of a cached image.
const maxBaseRow = 4 << 10

// baseRow is a cached row. It is immutable.
type baseRow struct {
	rowFormat *change.RowFormat // of the image's schema
	row       batch.Ordinal
	key       []byte
	image     []byte // in one allocation with key
}

// baseRowBytes is the size of a base row without its key and image.
const baseRowBytes = 96

// imageFor returns the image if it has the given format, else nil.
func (b *baseRow) imageFor(l *change.RowFormat) []byte {
	if b.rowFormat != l {
		return nil
	}
	return b.image
}

// rowKey returns the cache key of the row with a key. The entry may belong to another key with the
// same hash.
func (d *DiskRowSet) rowKey(p bloom.Probe) cache.Key {
	return cache.Key{Block: uint64(d.newest), Offset: p.Hash(), Part: rowPart}
}

// cachedRow returns the cached row with a key, or nil if the cache does not have it.
func (d *DiskRowSet) cachedRow(p bloom.Probe) *baseRow {
	if d.opts.Cache == nil {
		return nil
	}
	if v, ok := d.opts.Cache.Get(d.rowKey(p)); ok {
		if b := v.(*baseRow); bytes.Equal(b.key, p.Key) {
			return b
		}
	}
	return nil
}

// keepRow adds a row to the cache: its base cells, all columns in schema order. It copies the cells
// and the key.
func (d *DiskRowSet) keepRow(p bloom.Probe, row batch.Ordinal, cells [][]byte) {
	if d.opts.Cache == nil {
		return
	}
	for i, cell := range cells {
		if w := d.Schema.Columns[i].Type.Width(); cell != nil && w > 0 && len(cell) != w {
			return // no row that has an image
		}
	}
	size := len(p.Key) + d.rowFormat.RowSize(cells)
	if size > maxBaseRow {
		return
	}
	d.keepBaseRow(p, row, d.rowFormat.AppendRow(append(make([]byte, 0, size), p.Key...), cells))
}

// keepBaseRow adds a row to the cache. all is its key and its image.
func (d *DiskRowSet) keepBaseRow(p bloom.Probe, row batch.Ordinal, all []byte) {
	c, key, n := d.opts.Cache, d.rowKey(p), len(p.Key)
	if c != nil && cap(all) <= maxBaseRow && c.Admits(key, int64(cap(all))+baseRowBytes) {
		b := &baseRow{rowFormat: d.rowFormat, row: row, key: all[:n:n], image: all[n:]}
		c.Put(key, b, int64(cap(all))+baseRowBytes)
	}
}

// isWhole reports whether cols are all columns in schema order.
func (d *DiskRowSet) isWhole(cols []int) bool {
	if len(cols) != len(d.columns) {
		return false
	}
	for i, col := range cols {
		if i != col {
			return false
		}
	}
	return true
}
