package carbondata

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/oribi-db/oribi/batch"
)

// pages reads the columns of a scan, page by page, and selects rows.
type pages struct {
	table       *Table
	stats       *ScanStats
	nextFile    int
	fileRead    bool // counted in stats
	*pageReader      // reads the current page

	// See readAhead.
	readers []*pageReader // all; the first reads headers and dictionaries
	free    []*pageReader // of them: without a page
	ahead   []*pageReader // of them: with the pages after the current one, in order
	last    int           // the last page that a reader was given
}

// pageReader reads one page after another of a scan's columns, and selects rows. It reads the
// columns of the filter before the others, and the others only if the filter selects rows of the
// page.
type pageReader struct {
	filter  *boundFilter  // nil without a filter
	pruner  pruner        // if there is a filter
	columns []*scanColumn // the filter's columns first; each once
	tested  int           // how many are the filter's
	result  []*scanColumn // the columns of the result

	file     *tableFile // nil before the first file is opened
	blocklet int        // of file; −1 before the first
	page     int        // of the blocklet; −1 before the first

	rows      int          // of the page
	selection batch.Bitmap // of the page's rows
	judged    bool         // the page's bounds do not say that no row is selected

	limit   int      // memory of the file
	keep    int      // memory of former pages that may be used again
	headers int      // what the headers and dictionaries of the blocklet have left of the limit
	memory  memory   // of the page
	scratch []byte   // a page as it is in the file
	others  [][]byte // the same for goroutines
	procs   int      // goroutines that read columns, at most
	eval    batch.FilterEval
	window  int // rows that the filter is evaluated on at once

	running sync.WaitGroup // a goroutine that reads the page
	taken   int            // memory that the page takes, at most
	err     error          // of the page
}

// keptShare is the part of the limit that memory of former pages may take.
const keptShare = 8

// scanColumn is a column of a scan.
type scanColumn struct {
	column *Column // of the table
	place  int     // in the table's schema
	cells  *cells  // nil: the file does not have the column, but missing in each row
	open   bool    // cells has the headers of the blocklet
	read   bool    // cells has the current page
	need   int     // memory of the page, see readColumns

	missing any

	vector batch.Vector // of the filter: cells of the window
	filled bool
}

// pages begins a scan.
func (t *Table) pages(o ScanOptions) (*pages, error) {
	places, err := t.project(o)
	if err != nil {
		return nil, err
	}
	r := new(pageReader)
	s := &pages{table: t, stats: o.Stats, pageReader: r, readers: []*pageReader{r}}
	if s.stats == nil {
		s.stats = new(ScanStats)
	}
	*s.stats = t.extent()
	if r.filter, err = t.bind(o.Filter); err != nil {
		return nil, err
	}
	in := map[int]*scanColumn{}
	add := func(place int) *scanColumn {
		if in[place] == nil {
			in[place] = &scanColumn{column: &t.columns[place], place: place}
			r.columns = append(r.columns, in[place])
		}
		return in[place]
	}
	if r.filter != nil {
		for _, place := range r.filter.columns {
			add(place)
		}
	}
	if r.tested = len(r.columns); r.filter != nil {
		r.pruner = newPruner(r.filter)
		r.pruner.disabled = o.noPruning
		if err := t.checkedIndex(); err != nil {
			return nil, err
		}
	}
	for _, place := range places {
		r.result = append(r.result, add(place))
	}
	if r.filter != nil {
		for _, l := range r.filter.leaves {
			r.columns[l.column].vector.Type = l.test.Type
		}
		r.window = windowRows(r.columns[:r.tested])
	}
	return s, nil
}

// extent returns the size of the table.
func (t *Table) extent() ScanStats {
	n := ScanStats{Files: int64(len(t.files))}
	for _, f := range t.files {
		n.Blocklets += int64(len(f.blocklets))
		for i := range f.blocklets {
			n.Pages += int64(f.blocklets[i].pages)
		}
	}
	return n
}

// inside adds the place of the scan to an error.
func (s *pages) inside(err error) error {
	if s.file == nil {
		return err
	}
	if s.blocklet >= 0 {
		err = inside(err, "blocklet %d", s.blocklet)
	}
	if s.file.path != "" {
		err = inside(err, "%s", s.file.path)
	}
	return err
}

// next moves to the next page of which rows are selected, and reads it. It returns false after the
// last one.
func (s *pages) next(ctx context.Context) (bool, error) {
	for {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		if s.file == nil {
			if s.nextFile == len(s.table.files) {
				return false, nil
			}
			s.openFile(&s.table.files[s.nextFile])
			s.nextFile++
		}
		selected, err := s.nextPage()
		if err != nil {
			s.stop()
			return false, s.inside(err)
		}
		if selected {
			return true, nil
		}
	}
}

// openFile begins to read a file.
func (s *pages) openFile(f *tableFile) {
	s.file, s.fileRead, s.blocklet, s.page = f, false, -1, -1
	s.limit, s.memory.work = f.memoryLimit(), f.newWork()
	s.keep = s.limit / keptShare / len(s.readers)
	for _, c := range s.columns {
		c.cells, c.missing = nil, s.table.missing[c.place]
		if k := f.columns[c.place]; k >= 0 {
			c.cells = newCells(&f.File.columns[k])
		}
	}
}

// nextPage moves to the next page of the file, or to the next blocklet, or closes the file after
// the last one. It reports whether rows of the page are selected.
func (s *pages) nextPage() (selected bool, err error) {
	if s.blocklet < 0 || s.page == s.file.blocklets[s.blocklet].pages-1 {
		return false, s.nextBlocklet()
	}
	s.free, s.taken = append(s.free, s.pageReader), 0
	s.readAhead()
	if len(s.ahead) > 0 {
		s.pageReader = s.ahead[0]
		s.ahead = slices.Delete(s.ahead, 0, 1)
		s.running.Wait()
	} else {
		s.free = s.free[:len(s.free)-1]
		s.last++
		s.page, s.procs = s.last, procs()
		s.err = s.read()
	}
	s.taken = s.headers - s.memory.left
	if s.judged {
		s.stats.PagesRead++
	}
	return s.selection.Any(), s.err
}

// nextBlocklet moves to the next blocklet of the file, or closes the file after the last one.
func (s *pages) nextBlocklet() error {
	file, blocklet := s.file, s.blocklet+1
	s.pageReader = s.readers[0]
	s.free = append(s.free[:0], s.readers[1:]...)
	s.file, s.blocklet, s.page, s.last = file, blocklet, -1, -1
	if s.blocklet == len(s.file.blocklets) {
		s.file = nil
		return nil
	}
	return s.openBlocklet()
}

// read reads the page if rows of it are selected.
func (r *pageReader) read() error {
	r.rows = r.file.blocklets[r.blocklet].pageRows[r.page]
	r.selection = r.selection.Resize(r.rows)
	r.selection.SetRange(0, r.rows)
	r.judged = false
	r.file.deleted.remove(pagePlace{r.blocklet, r.page}, r.selection)
	if !r.selection.Any() {
		return nil
	}
	r.beginPage()
	if err := r.selectRows(); err != nil || !r.selection.Any() {
		return err
	}
	if err := r.openColumns(&r.memory, r.columns[r.tested:]); err != nil {
		return err
	}
	return r.readColumns(r.result)
}

// openBlocklet reads the headers of the filter's columns, unless the bounds of the blocklet say
// that no row is selected. Then it skips the blocklet.
func (s *pages) openBlocklet() error {
	b := &s.file.blocklets[s.blocklet]
	s.headers = s.limit
	for _, c := range s.columns {
		c.open = false
	}
	if s.filter != nil && s.pruner.bounds(s.columns, b) == none {
		s.page = b.pages - 1
		return nil
	}
	s.stats.BlockletsRead++
	if !s.fileRead {
		s.fileRead = true
		s.stats.FilesRead++
	}
	s.memory.left = s.headers
	if err := s.openColumns(&s.memory, s.columns[:s.tested]); err != nil {
		return err
	}
	if s.filter != nil && s.pruner.dictionaries(s.columns) == none {
		s.page = b.pages - 1
	}
	return nil
}

// openColumns reads the headers and dictionaries of columns in the blocklet, unless that has been
// done.
func (r *pageReader) openColumns(m *memory, columns []*scanColumn) error {
	for _, c := range columns {
		if c.open || c.cells == nil {
			continue
		}
		c.open = true
		before := m.left
		if err := c.cells.open(r.file.File, &r.file.blocklets[r.blocklet], m); err != nil {
			return inside(err, "column %q", c.column.Name)
		}
		r.headers -= before - m.left
	}
	return nil
}

// beginPage prepares the columns for a page. Memory of former pages is used again unless it is so
// much that a page with other long columns could take too much with it.
func (r *pageReader) beginPage() {
	r.memory.left = r.headers
	held := cap(r.scratch)
	for _, b := range r.others {
		held += cap(b)
	}
	for _, c := range r.columns {
		c.read = false
		if c.cells != nil {
			held += c.cells.size()
		}
	}
	if held > r.keep {
		r.scratch, r.others = nil, nil
		for _, c := range r.columns {
			if c.cells != nil {
				c.cells.release()
			}
		}
	}
}

// readColumn reads the current page of a column, unless that has been done.
func (r *pageReader) readColumn(c *scanColumn) error {
	if c.read || c.cells == nil {
		return nil
	}
	c.read = true
	return c.cells.readPage(r.file.File, r.page, r.rows, &r.memory, &r.scratch)
}

// inColumn adds the column to an error, and the row to an error about one value. before is the
// number of rows before the row with number 0 in the error.
func (c *scanColumn) inColumn(before int, err error) error {
	if bad, ok := errors.AsType[*refusedValue](err); ok {
		return &RowError{before + bad.row, c.column.Name, bad.error}
	}
	return inside(err, "column %q", c.column.Name)
}

// value returns the value of a row, see cells.value.
func (c *scanColumn) value(row int, budget *int) (any, error) {
	if c.cells == nil {
		return c.missing, nil
	}
	v, err := c.cells.value(row, budget)
	return v, inside(err, "column %q", c.column.Name)
}
