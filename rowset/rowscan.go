package rowset

import (
	"fmt"
	"slices"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/cfile"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/rowpage"
	"github.com/oribi-db/oribi/schema"
)

// maxStoredRows is the number of rows of a window up to which a scan of most columns reads them
// from the row file: one page for several rows, instead of one cblock for each column. For more rows,
// decoding columns takes less time than reading rows. If the cache has room for the table, so do
// fewer: the cblocks of the columns stay in memory for the next scan.
const maxStoredRows = 256

// storedRows is the pages of the row file that an iterator has read last, and the memory of
// loadStored.
type storedRows struct {
	f     *rowFile // that run reads; nil before the first pages
	run   cfile.CellRun
	near  nearPages
	pages []storedPage // of the window

	// Byte strings that are not in the pages.
	pieces []rowpage.FarPiece // of all pages, those of page i up to ends[i]
	ends   []int
	reads  []cfile.Piece
}

// use makes s read a row file.
func (s *storedRows) use(f *rowFile) {
	if s.f != f {
		s.f = f
		s.run.Reset(f.file)
	}
}

// has reports whether the pages of rows [from, from+n) were read.
func (s *storedRows) has(from batch.Ordinal, n int) bool {
	if s.f == nil {
		return false
	}
	first, count := s.f.pagesOf(from, n)
	return s.run.Has(first, count)
}

// pagesOf returns the pages of rows [from, from+n).
func (f *rowFile) pagesOf(from batch.Ordinal, n int) (first batch.Ordinal, count int) {
	first = from / batch.Ordinal(f.pageRows)
	return first, int((from+batch.Ordinal(n)-1)/batch.Ordinal(f.pageRows)-first) + 1
}

// release keeps memory for the next iterator.
func (s *storedRows) release() {
	s.f, s.near = nil, nearPages{}
	s.run.Reset(nil)
	for i := range s.pages {
		s.pages[i].key, s.pages[i].image = nil, nil
	}
	if cap(s.pages) > maxKeptPages {
		s.pages = nil
	}
	s.pages = s.pages[:0]
}

// maxKeptPages is the number of parsed pages whose memory is kept.
const maxKeptPages = 4

// nearPages are pages of an iterator that are read together with the page of a key: those that the
// first window will need.
type nearPages struct {
	s    *storedRows
	end  []byte // no page is read after that of this key, unless it is nil
	rows int    // of the window, from the key on; or up to the key, if they are negative

}

// pagesFrom returns the pages to read from the lower bound of a scan on.
func (it *Iterator) pagesFrom(upper []byte) *nearPages {
	it.stored.near = nearPages{s: &it.stored, end: upper}
	if rows := it.req.FirstRows(); !it.req.Descending() && (rows <= maxStoredRows || upper != nil) {
		it.stored.near.rows = min(rows, maxStoredRows)
	}
	return &it.stored.near
}

// pagesTo returns the pages to read up to the upper bound of a scan.
func (it *Iterator) pagesTo() *nearPages {
	it.stored.near = nearPages{s: &it.stored}
	if rows := it.req.FirstRows(); it.req.Descending() && rows <= maxStoredRows {
		it.stored.near.rows = -rows
	}
	return &it.stored.near
}

// seek calls visit with the page of a key; it does not if the key comes before all pages.
func (p *nearPages) seek(f *rowFile, key []byte, visit func(number batch.Ordinal, at, value []byte) error) error {
	p.s.use(f)
	if p.rows == 0 {
		return p.s.run.VisitFloor(key, visit)
	}
	pages := (max(p.rows, -p.rows) + f.pageRows - 1) / f.pageRows
	if p.rows < 0 {
		return p.s.run.Seek(key, pages, 0, nil, visit)
	}
	return p.s.run.Seek(key, 0, pages, p.end, visit)
}

// loadStored loads the columns of rows [from, from+n) that are not loaded yet, and that the window
// returns, from the row file, as far as its pages have them. It does nothing if that is not faster,
// or if the row file cannot be read.
func (it *Iterator) loadStored(from batch.Ordinal, n int) {
	if n > maxStoredRows || it.counting != nil || !it.d.mayHaveRowFile() {
		return
	}
	s := &it.stored
	if !s.has(from, n) {
		if !it.wantsPages(from, n) {
			return
		}
		f := it.d.openStored()
		if f == nil {
			return
		}
		s.use(f)
	}
	err := it.readStored(from, n)
	for _, col := range it.req.Columns() {
		if err == nil {
			err = it.loadColumn(col, from, n)
		}
	}
	for col := 0; err == nil && it.req.Keys() && col < it.d.Schema.Keys; col++ {
		err = it.loadColumn(col, from, n)
	}
	it.d.noteDamage(err)
}

// wantsPages reports whether pages that were not read yet are worth reading for a window.
func (it *Iterator) wantsPages(from batch.Ordinal, n int) bool {
	if it.keepsColumns() {
		return false
	}
	it.cold = it.cold[:0]
	for _, col := range it.req.Columns() {
		if it.addCold(col, from, n) != nil {
			return false // fetch returns the error
		}
		if it.coldSuffice() {
			return true
		}
	}
	for col := 0; it.req.Keys() && col < it.d.Schema.Keys; col++ {
		if it.addCold(col, from, n) != nil {
			return false
		}
	}
	return it.coldSuffice()
}

// coldSuffice reports whether reading pages takes less time than reading the columns in it.cold.
func (it *Iterator) coldSuffice() bool {
	all, keys := len(it.d.columns), it.d.Schema.Keys
	if len(it.cold) < 2 || 2*len(it.cold) < all {
		return false
	}
	return keys == all || slices.Max(it.cold) >= keys // the other columns are not worth reading for the keys
}

// loadColumn loads a column of the window from the pages, unless it is loaded, or the pages do not
// have it.
func (it *Iterator) loadColumn(col int, from batch.Ordinal, n int) error {
	c := it.column(col)
	if c.loaded {
		return nil
	}
	loaded, err := it.gatherStored(col, from, n)
	if err != nil {
		return fmt.Errorf("rowset %d: row %d of the row file: %w", it.d.Metadata().ID, from, err)
	}
	if !loaded {
		return nil
	}
	if id := it.d.Schema.Columns[col].ID; it.window.Touches(id) {
		it.window.ApplyColumn(id, &c.vector)
	}
	c.loaded = true
	return nil
}

// gatherStored sets the vector of a column to rows [from, from+n) of the pages, or to the pieces of
// the column's file to which they refer; ok is false if one of the pages lacks the column.
func (it *Iterator) gatherStored(col int, from batch.Ordinal, n int) (ok bool, err error) {
	s := &it.stored
	c, v := &it.d.Schema.Columns[col], &it.column(col).vector
	v.Type = c.Type
	at := s.f.column(col)
	switch at {
	case usesDefault:
		v.Fill(n, c.ReadDefault)
		return true, nil
	case stale:
		return false, nil
	}
	for i := range s.pages {
		p := &s.pages[i]
		if !p.has(at) {
			return it.gatherFar(col, from, n)
		}
		if c.Type.Width() == 0 && (p.images != nil || p.Aliased(at)) {
			s.run.Keep()
		}
	}
	v.Reset(n)
	skip, done := int(from)%s.f.pageRows, 0
	for i := range s.pages {
		p := &s.pages[i]
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
func (it *Iterator) gatherFar(col int, from batch.Ordinal, n int) (ok bool, err error) {
	c, v, s := &it.d.Schema.Columns[col], &it.column(col).vector, &it.stored
	at := s.f.column(col)
	b := it.readFar(col, at, from, n)
	if b == nil {
		return false, nil
	}
	v.Reset(n)
	skip, done, piece := int(from)%s.f.pageRows, 0, 0
	for i := range s.pages {
		p := &s.pages[i]
		to := min(p.Rows(), skip+n-done)
		for ; piece < s.ends[i]; piece++ {
			size := s.pieces[piece].Size
			if err := p.GatherFar(v, done, at, skip, to, &s.pieces[piece], b[:size:size]); err != nil {
				return false, nil
			}
			b = b[size:]
		}
		done, skip = done+to-skip, 0
	}
	return v.Present == nil || c.Nullable, nil
}

// readFar sets s.pieces to the pieces of column at of the pages for rows [from, from+n), and returns
// their bytes; nil if the pages do not say where they are, or if they cannot be read there. Damage is
// that of the column's file, or of the row file; a read of the column tells which.
func (it *Iterator) readFar(col, at int, from batch.Ordinal, n int) []byte {
	s := &it.stored
	s.pieces, s.ends, s.reads = s.pieces[:0], s.ends[:0], s.reads[:0]
	skip, size := int(from)%s.f.pageRows, 0
	for i := range s.pages {
		p := &s.pages[i]
		if p.images != nil {
			return nil
		}
		to, ok, err := min(p.Rows(), skip+n), false, error(nil)
		if s.pieces, ok, err = p.AppendFar(s.pieces, at, skip, to); err != nil || !ok {
			return nil
		}
		s.ends = append(s.ends, len(s.pieces))
		n, skip = n-(to-skip), 0
	}
	for i := range s.pieces {
		p := &s.pieces[i]
		s.reads, size = append(s.reads, cfile.Piece{Offset: p.Offset, Size: p.Size, CRC: p.CRC}), size+p.Size
	}
	file, err := it.d.File(col)
	if err != nil || file == nil {
		return nil
	}
	b := make([]byte, size)
	if file.ReadPieces(b, s.reads) != nil {
		return nil
	}
	return b
}

// keepsColumns reports whether columns that are read now will probably stay in the cache.
func (it *Iterator) keepsColumns() bool {
	c := it.d.opts.Cache
	return c != nil && !c.Full() && it.req.TableBytes() <= c.Limit()
}

// readStored reads the pages of rows [from, from+n) of the row file, unless the iterator has them.
func (it *Iterator) readStored(from batch.Ordinal, n int) error {
	s := &it.stored
	first, count := s.f.pagesOf(from, n)
	if err := s.run.Read(first, count); err != nil {
		return err
	}
	s.pages = slices.Grow(s.pages[:0], count)[:count]
	for i := range count {
		key, value, err := cfile.SplitKeyed(s.run.Cell(first + batch.Ordinal(i)))
		if err == nil {
			err = s.f.parse(&s.pages[i], first+batch.Ordinal(i), key, value, it.d.Metadata().Rows)
		}
		if err != nil {
			return fmt.Errorf("rowset %d: page %d of the row file: %w", it.d.Metadata().ID, int(first)+i, err)
		}
	}
	return nil
}
