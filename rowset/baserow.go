package rowset

import (
	"bytes"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/bloom"
	"github.com/oribi-db/oribi/cache"
	"github.com/oribi-db/oribi/change"
)

// A row that was read whole is kept in the cache in one piece, under its key: its row ID, and its
// base cells as a row image, neither of which deltas ever change. Read again, it takes one look-up
// instead of those of bloom file, key index and each column; and where many rows are read again and
// again, spread over the rowset, they take a few hundred bytes each, the decoded chunks of their
// cells 8 KiB for each column.

// rowPart is the part under which the cache keeps base rows: block is the newest of the base
// columns', since a rewrite of any of them makes another base, offset the hash of the key. cfile
// counts chunks from 1 and has no part but this far up.
const rowPart = 1<<32 - 2

// maxBaseRow is the largest image that is kept, bytes.
const maxBaseRow = 4 << 10

// baseRow is what the cache holds. Immutable.
type baseRow struct {
	rowFormat *change.RowFormat // of the schema by which the image was made
	row       batch.Ordinal
	key       []byte
	image     []byte // after key in memory
}

// baseRowBytes is what a base row takes beside its key and image.
const baseRowBytes = 96

// imageFor is the image for readers of a format's schema, nil if it is of another.
func (b *baseRow) imageFor(l *change.RowFormat) []byte {
	if b.rowFormat != l {
		return nil
	}
	return b.image
}

// rowKey is where the cache keeps the row with a key. Another key with the same hash may be there
// instead.
func (d *DiskRowSet) rowKey(p bloom.Probe) cache.Key {
	return cache.Key{Block: uint64(d.newest), Offset: p.Hash(), Part: rowPart}
}

// cachedRow is what the cache holds of the row with a key, nil if that is nothing.
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

// keepRow offers a row to the cache: base cells, all columns in schema order. They are copied, and
// so is the key.
func (d *DiskRowSet) keepRow(p bloom.Probe, row batch.Ordinal, cells [][]byte) {
	if d.opts.Cache == nil {
		return
	}
	size := len(p.Key)
	for i, cell := range cells {
		if w := d.Schema.Columns[i].Type.Width(); cell != nil && w > 0 && len(cell) != w {
			return // no row that has an image
		}
		size += len(cell)
	}
	if size > maxBaseRow {
		return
	}
	all := d.rowFormat.AppendRow(bytes.Clone(p.Key), cells)
	n := len(p.Key)
	d.opts.Cache.Put(d.rowKey(p), &baseRow{rowFormat: d.rowFormat, row: row, key: all[:n:n], image: all[n:]}, int64(cap(all))+baseRowBytes)
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
