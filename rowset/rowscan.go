package rowset

import (
	"fmt"
	"slices"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/cfile"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/schema"
)

// maxStoredRows is the number of rows of a window up to which a scan of most columns reads them
// from the row file: one cblock for several rows, instead of one for each column. For more rows,
// decoding columns takes less time than reading rows. If the cache has room for the table, so do
// fewer: the cblocks of the columns stay in memory for the next scan.
const maxStoredRows = 256

// storedRows is the memory of loadStored.
type storedRows struct {
	reader cfile.ColumnReader
	open   bool // reader reads the row file
	cells  batch.Vector
	pages  []storedPage
}

// release keeps memory for the next iterator.
func (s *storedRows) release() {
	s.reader.Reset(nil)
	s.cells.Drop(maxKeptVector)
	for i := range s.pages {
		s.pages[i].key, s.pages[i].image = nil, nil
	}
	if cap(s.pages) > maxKeptPages {
		s.pages = nil
	}
	s.open, s.pages = false, s.pages[:0]
}

// maxKeptPages is the number of parsed pages whose memory is kept.
const maxKeptPages = 4

// loadStored loads the columns of rows [from, from+n) that are not loaded yet, and that the window
// returns, from the row file, as far as its pages have them. It does nothing if that is not faster,
// or if the row file cannot be read.
func (it *Iterator) loadStored(from batch.Ordinal, n int) {
	if it.d.Metadata().RowFile == 0 || n > maxStoredRows || it.counting != nil || it.keepsColumns() {
		return
	}
	if it.addAllCold(from, n) != nil || len(it.cold) < 2 || 2*len(it.cold) < len(it.d.columns) {
		return // fetch returns the error
	}
	if keys := it.d.Schema.Keys; keys < len(it.d.columns) && slices.Max(it.cold) < keys {
		return // the other columns are not worth reading for the keys
	}
	f := it.d.openStored()
	if f == nil {
		return
	}
	if err := it.readStored(f, from, n); err != nil {
		it.d.noteDamage(err)
		return
	}
	for _, col := range it.cold {
		loaded, err := it.gatherStored(f, col, from, n)
		if err != nil {
			it.d.noteDamage(fmt.Errorf("rowset %d: row %d of the row file: %w", it.d.Metadata().ID, from, err))
			return
		}
		if !loaded {
			continue
		}
		if id := it.d.Schema.Columns[col].ID; it.window.Touches(id) {
			it.window.ApplyColumn(id, &it.column(col).vector)
		}
		it.column(col).loaded = true
	}
}

// gatherStored sets the vector of a column to rows [from, from+n) of the pages, or to the pieces of
// the column's file to which they refer; ok is false if one of the pages lacks the column.
func (it *Iterator) gatherStored(f *rowFile, col int, from batch.Ordinal, n int) (ok bool, err error) {
	c, v := &it.d.Schema.Columns[col], &it.column(col).vector
	v.Type = c.Type
	at := f.column(col)
	switch at {
	case usesDefault:
		v.Fill(n, c.ReadDefault)
		return true, nil
	case stale:
		return false, nil
	}
	for i := range it.stored.pages {
		if !it.stored.pages[i].has(at) {
			return it.gatherFar(f, col, from, n)
		}
	}
	v.Reset(n)
	skip, done := int(from)%f.pageRows, 0
	for i := range it.stored.pages {
		p := &it.stored.pages[i]
		to := min(p.rowCount(), skip+n-done)
		if err := p.gather(v, done, at, skip, to); err != nil {
			return false, err
		}
		done, skip = done+to-skip, 0
	}
	if v.Present != nil && !c.Nullable {
		return false, fault.Corruptf("column %q has NULL", c.Name)
	}
	for i := 0; c.Type == schema.Array && i < n; i++ {
		if cell := v.Cell(i); cell != nil {
			if err := schema.CheckArray(c.Element, cell); err != nil {
				return false, err
			}
		}
	}
	return true, nil
}

// gatherFar sets the vector of a column of byte strings to rows [from, from+n), read from the pieces
// to which the pages refer; ok is false if one of the pages does not say where they are, or if they
// cannot be read there.
func (it *Iterator) gatherFar(f *rowFile, col int, from batch.Ordinal, n int) (ok bool, err error) {
	c, v := &it.d.Schema.Columns[col], &it.column(col).vector
	file, err := it.d.File(col)
	if err != nil || file == nil {
		return false, nil
	}
	at := f.column(col)
	v.Reset(n)
	skip, done := int(from)%f.pageRows, 0
	for i := range it.stored.pages {
		p := &it.stored.pages[i]
		if p.images != nil {
			return false, nil
		}
		to := min(p.Rows(), skip+n-done)
		ok, err := p.GatherFar(v, done, at, skip, to, file.ReadPieces)
		if err != nil || !ok {
			return false, nil
		}
		done, skip = done+to-skip, 0
	}
	return v.Present == nil || c.Nullable, nil
}

// keepsColumns reports whether columns that are read now will probably stay in the cache.
func (it *Iterator) keepsColumns() bool {
	c := it.d.opts.Cache
	return c != nil && !c.Full() && it.req.TableBytes() <= c.Limit()
}

// readStored reads the pages of rows [from, from+n) of the row file.
func (it *Iterator) readStored(f *rowFile, from batch.Ordinal, n int) error {
	s := &it.stored
	if !s.open {
		s.reader.Reset(f.file)
		s.cells.Type, s.open = schema.Binary, true
	}
	first := from / batch.Ordinal(f.pageRows)
	count := int((from+batch.Ordinal(n)-1)/batch.Ordinal(f.pageRows)-first) + 1
	if err := s.reader.Expect(first, count); err != nil {
		return err
	}
	got, err := s.reader.ReadVector(first, count, &s.cells)
	if err != nil {
		return err
	}
	if got != count {
		return fault.Corruptf("rowset %d: rows [%d,%d) of the row file: only %d of %d pages can be read",
			it.d.Metadata().ID, from, int(from)+n, got, count)
	}
	s.pages = slices.Grow(s.pages[:0], count)[:count]
	for i := range count {
		key, value, err := cfile.SplitKeyed(s.cells.Bytes[i])
		if err == nil {
			err = f.parse(&s.pages[i], first+batch.Ordinal(i), key, value, it.d.Metadata().Rows)
		}
		if err != nil {
			return fmt.Errorf("rowset %d: page %d of the row file: %w", it.d.Metadata().ID, int(first)+i, err)
		}
	}
	return nil
}
