package rowset

import (
	"slices"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/cache"
	"github.com/oribi-db/oribi/delta"
	"github.com/oribi-db/oribi/internal/rowpage"
	"github.com/oribi-db/oribi/scan"
	"github.com/oribi-db/oribi/schema"
)

// overlayPart is the part number in the cache of the overlay of deleted rows; the overlay of the
// column with ID n has the part n + 1 after it. The block of the key is the newest block of the columns
// and of the redos: a change of either makes a new one. The offset is the version of the delta mem
// store. cfile has low and high part numbers, none of them from overlayPart to maxOverlayID after it.
const (
	overlayPart  = 1 << 31
	maxOverlayID = 1 << 30
)

// overlayShare is the number of rows of a rowset for each change, at least, if it has overlays: with
// more changes, scans do not compute with stored values.
const overlayShare = 8

// overlayScan is a scan that has found no overlays.
type overlayScan struct {
	version uint64
	newest  block.ID
	share   *scan.RowShare // nil if the scan is not divided
}

// useOverlays makes the window use overlays of the columns that it reads, from the cache. If they
// are missing, the second scan of the same state makes them. It does nothing for scans of some rows,
// and if a changed column does not have a fixed width. It is called for scans that visit all rows,
// since a consumer is offered them or they are only counted.
func (it *Iterator) useOverlays() error {
	d := it.d
	if d.opts.Cache == nil || it.span != nil || it.req.Descending() ||
		it.low > 0 || int64(it.high) < d.Metadata().Rows {
		return nil
	}
	version, changed, changes, ok := it.window.Settled(it.ids)
	if !ok || changes*overlayShare > int64(it.high) && !rowpage.Eager.Load() {
		return nil
	}
	newest := d.newest
	for _, f := range it.deltas.Redo {
		newest = max(newest, f.ID)
	}
	key := func(id schema.ColumnID) cache.Key {
		return cache.Key{Block: uint64(newest), Offset: version, Part: overlayPart + uint32(id+1)}
	}
	const deleted = -1 // no column has this ID
	all, missing := make([]*delta.Overlay, len(changed)+1), false
	for i, id := range append(changed, deleted) {
		if id != deleted && (id >= maxOverlayID || d.Schema.Columns[d.Schema.IndexID(id)].Type.Variable()) {
			return nil
		}
		if v, ok := d.opts.Cache.Get(key(id)); ok {
			all[i] = v.(*delta.Overlay)
		} else {
			missing = true
		}
	}
	if missing {
		pay := it.counting == nil && d.overlaysPay(overlayScan{version, newest, it.req.Share()})
		if !pay || !d.overlayMu.TryLock() {
			return nil
		}
		defer d.overlayMu.Unlock()
		made, err := it.makeOverlays(changed)
		if err != nil {
			return err
		}
		for i, id := range append(changed, deleted) {
			if all[i] == nil {
				all[i] = made[i]
				d.opts.Cache.Put(key(id), made[i], made[i].Bytes())
			}
		}
	}
	it.window.Overlay(changed, all[:len(changed)], all[len(changed)])
	return nil
}

// overlaysPay reports whether the last scan that found no overlays was another one of the same
// state.
func (d *DiskRowSet) overlaysPay(s overlayScan) bool {
	last := d.overlayScan.Load()
	if last != nil && last.version == s.version && last.newest == s.newest {
		return s.share == nil || s.share != last.share
	}
	if rowpage.Eager.Load() {
		return true
	}
	d.overlayScan.Store(&s)
	return false
}

// makeOverlays returns the overlays of columns and then the overlay of the deleted rows.
func (it *Iterator) makeOverlays(columns []schema.ColumnID) ([]*delta.Overlay, error) {
	makers := make([]overlayMaker, len(columns))
	for i, id := range columns {
		makers[i].init(it.d.Schema.IndexID(id), it.d.Schema)
	}
	var w delta.Window
	w.Reset(it.deltas, it.req.Snapshot(), columns)
	var deleted []uint32
	var live, touched batch.Bitmap
	for from := batch.Ordinal(0); from < it.high; from += batch.WindowRows {
		n := int(min(batch.WindowRows, it.high-from))
		if err := w.Prepare(from, n); err != nil {
			return nil, err
		}
		if w.Empty() {
			continue
		}
		live = live.Resize(n)
		live.SetRange(0, n)
		if w.ApplyDeletes(live) {
			for i := range n {
				if !live.Get(i) {
					deleted = append(deleted, uint32(from)+uint32(i))
				}
			}
		}
		for i, id := range columns {
			if w.Touches(id) {
				touched = touched.Resize(n)
				w.AddTouched(id, touched)
				touched.And(live)
				if err := makers[i].add(it, &w, from, n, touched); err != nil {
					return nil, err
				}
			}
		}
	}
	var all []*delta.Overlay
	for i := range makers {
		all = append(all, makers[i].finish(it.d.Metadata().Rows))
	}
	return append(all, delta.NewOverlay(slices.Clip(deleted), nil, nil, it.d.Metadata().Rows)), nil
}

// overlayMaker makes the overlay of a column.
type overlayMaker struct {
	col         int
	integers    bool
	rows        []uint32
	cells, base batch.Vector // of rows
	window, old batch.Vector // cells of a window
}

func (m *overlayMaker) init(col int, s *schema.Schema) {
	m.col = col
	switch s.Columns[col].Type.Physical() {
	case schema.Int8, schema.Int16, schema.Int32, schema.Int64,
		schema.Uint8, schema.Uint16, schema.Uint32, schema.Uint64:
		m.integers = true
	}
	for _, v := range []*batch.Vector{&m.cells, &m.base, &m.window, &m.old} {
		v.Type = s.Columns[col].Type
		v.Reset(0)
	}
}

// add adds the touched rows of a window.
func (m *overlayMaker) add(it *Iterator, w *delta.Window, from batch.Ordinal, n int, touched batch.Bitmap) error {
	c := &it.d.Schema.Columns[m.col]
	m.window.Reset(n)
	w.ApplyColumn(c.ID, &m.window)
	if m.integers {
		if err := it.base(m.col, c, from, n, &m.old); err != nil {
			return err
		}
	}
	for i := touched.Next(0); i >= 0; i = touched.Next(i + 1) {
		m.rows = append(m.rows, uint32(from)+uint32(i))
		m.cells.AppendRun(&m.window, i, i+1)
		if m.integers {
			m.base.AppendRun(&m.old, i, i+1)
		}
	}
	return nil
}

func (m *overlayMaker) finish(total int64) *delta.Overlay {
	base := &m.base
	if !m.integers {
		base = nil
	}
	m.cells.Data = slices.Clip(m.cells.Data)
	return delta.NewOverlay(slices.Clip(m.rows), &m.cells, base, total)
}
