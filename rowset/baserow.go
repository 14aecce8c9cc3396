package rowset

import (
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/cache"
	"github.com/oribi-db/oribi/internal/change"
)

// A row that was read whole is kept in the cache in one piece: its base cells as a row image, which deltas never change. Read again,
// it takes one look-up instead of two for each column; and where many rows are read again and again, spread over the rowset,
// their images take a few hundred bytes each, the decoded chunks of their cells 8 KiB for each column.

// rowPart is the part under which the cache keeps base rows: block is the newest of the base columns', since a rewrite of any of them makes
// another base, offset the row ID. cfile counts chunks from 1 and has no part but this far up.
const rowPart = 1<<32 - 2

// maxBaseRow is the largest image that is kept, bytes.
const maxBaseRow = 4 << 10

// baseRow is what the cache holds. Immutable.
type baseRow struct {
	layout *change.Layout // of the schema by which the image was made
	image  []byte
}

// baseRowBytes is what a base row takes beside its image.
const baseRowBytes = 48

func (d *DiskRowSet) rowKey(row batch.Ordinal) cache.Key {
	return cache.Key{Block: uint64(d.newest), Offset: uint64(row), Part: rowPart}
}

// baseRow is the image of a row's base cells, nil if the cache has none.
func (d *DiskRowSet) baseRow(row batch.Ordinal) []byte {
	if d.opts.Cache == nil {
		return nil
	}
	if v, ok := d.opts.Cache.Get(d.rowKey(row)); ok {
		if b := v.(*baseRow); b.layout == d.layout {
			return b.image
		}
	}
	return nil
}

// keepRow offers the base cells of a row, all columns in schema order, to the cache. They are copied.
func (d *DiskRowSet) keepRow(row batch.Ordinal, cells [][]byte) {
	if d.opts.Cache == nil {
		return
	}
	size := 0
	for i, cell := range cells {
		if w := d.Schema.Columns[i].Type.Width(); cell != nil && w > 0 && len(cell) != w {
			return // no row that has an image
		}
		size += len(cell)
	}
	if size > maxBaseRow {
		return
	}
	b := &baseRow{layout: d.layout, image: d.layout.AppendRow(nil, cells)}
	d.opts.Cache.Put(d.rowKey(row), b, int64(cap(b.image))+baseRowBytes)
}

// isWhole tells whether cols are all columns in schema order.
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
