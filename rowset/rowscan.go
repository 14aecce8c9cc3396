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
	images [][]byte
}

// release keeps memory for the next iterator.
func (s *storedRows) release() {
	s.reader.Reset(nil)
	s.cells.Drop(maxKeptVector)
	clear(s.images)
	s.open, s.images = false, s.images[:0]
}

// loadStored loads the columns of rows [from, from+n) that are not loaded yet, and that the window
// returns, from the row file. It does nothing if that is not faster, or if the row file cannot be
// read.
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
		c, v := &it.d.Schema.Columns[col], &it.column(col).vector
		if at := f.column(col); at < 0 {
			v.Type = c.Type
			v.Fill(n, c.ReadDefault)
		} else {
			f.format.Gather(it.stored.images, at, v)
		}
		if it.window.Touches(c.ID) {
			it.window.ApplyColumn(c.ID, v)
		}
		it.column(col).loaded = true
	}
}

// keepsColumns reports whether columns that are read now will probably stay in the cache.
func (it *Iterator) keepsColumns() bool {
	c := it.d.opts.Cache
	return c != nil && !c.Full() && it.req.TableBytes() <= c.Limit()
}

// readStored reads the images of rows [from, from+n) of the row file.
func (it *Iterator) readStored(f *rowFile, from batch.Ordinal, n int) error {
	s := &it.stored
	if !s.open {
		s.reader.Reset(f.file)
		s.cells.Type, s.open = schema.Binary, true
	}
	if err := s.reader.Expect(from, n); err != nil {
		return err
	}
	got, err := s.reader.ReadVector(from, n, &s.cells)
	if err != nil {
		return err
	}
	if got != n {
		return fault.Corruptf("rowset %d: rows [%d,%d) of the row file: only %d can be read",
			it.d.Metadata().ID, from, int(from)+n, got)
	}
	s.images = s.images[:0]
	for i := range n {
		_, image, err := cfile.SplitKeyed(s.cells.Bytes[i])
		if err == nil {
			err = f.format.Check(image)
		}
		if err != nil {
			return fmt.Errorf("rowset %d: row %d of the row file: %w", it.d.Metadata().ID, int(from)+i, err)
		}
		s.images = append(s.images, image)
	}
	return nil
}
