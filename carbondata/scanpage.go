package carbondata

import (
	"context"

	"github.com/oribi-db/oribi/batch"
)

// pages reads the columns of a scan, page by page, and selects rows. It reads the columns of the
// filter before the others, and the others only if the filter selects rows of the page.
type pages struct {
	table   *Table
	filter  *boundFilter  // nil: none
	pruner  pruner        // if there is a filter
	columns []*scanColumn // those of the filter first; each once
	tested  int           // how many are those of the filter
	result  []*scanColumn // the columns of the result
	stats   *ScanStats

	nextFile int
	file     *tableFile // nil: none is open
	fileRead bool       // counted in stats
	blocklet int        // of file; −1 before the first
	page     int        // of the blocklet; −1 before the first

	rows      int          // of the page
	selection batch.Bitmap // of the page's rows

	limit   int      // memory of the file
	headers int      // what the headers and dictionaries of the blocklet have left of it
	memory  memory   // of the page
	scratch []byte   // a page as it is in the file
	others  [][]byte // the same for goroutines
	eval    batch.FilterEval
	window  int // rows that the filter is evaluated on at once
}

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
	s := &pages{table: t, stats: o.Stats}
	if s.stats == nil {
		s.stats = new(ScanStats)
	}
	*s.stats = t.extent()
	if s.filter, err = t.bind(o.Filter); err != nil {
		return nil, err
	}
	in := map[int]*scanColumn{}
	add := func(place int) *scanColumn {
		if in[place] == nil {
			in[place] = &scanColumn{column: &t.columns[place], place: place}
			s.columns = append(s.columns, in[place])
		}
		return in[place]
	}
	if s.filter != nil {
		for _, place := range s.filter.columns {
			add(place)
		}
	}
	if s.tested = len(s.columns); s.filter != nil {
		s.pruner = newPruner(s.filter)
		s.pruner.disabled = o.noPruning
		if err := t.checkedIndex(); err != nil {
			return nil, err
		}
	}
	for _, place := range places {
		s.result = append(s.result, add(place))
	}
	if s.filter != nil {
		for _, l := range s.filter.leaves {
			s.columns[l.column].vector.Type = l.test.Type
		}
		s.window = windowRows(s.columns[:s.tested])
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
	s.limit = f.memoryLimit()
	for _, c := range s.columns {
		c.cells, c.missing = nil, s.table.missing[c.place]
		if k := f.columns[c.place]; k >= 0 {
			c.cells = newCells(&f.File.columns[k])
		}
	}
}

// nextPage moves to the next page of the file, or closes the file after the last one. It reports
// whether rows of the page are selected.
func (s *pages) nextPage() (selected bool, err error) {
	if s.page++; s.blocklet < 0 || s.page == s.file.blocklets[s.blocklet].pages {
		if s.blocklet++; s.blocklet == len(s.file.blocklets) {
			s.file = nil
			return false, nil
		}
		s.page = -1
		return false, s.openBlocklet()
	}
	s.rows = s.file.blocklets[s.blocklet].pageRows[s.page]
	s.selection = s.selection.Resize(s.rows)
	s.selection.SetRange(0, s.rows)
	s.file.deleted.remove(pagePlace{s.blocklet, s.page}, s.selection)
	if !s.selection.Any() {
		return false, nil
	}
	s.beginPage()
	if err := s.selectRows(); err != nil || !s.selection.Any() {
		return false, err
	}
	if err := s.openColumns(&s.memory, s.columns[s.tested:]); err != nil {
		return false, err
	}
	if err := s.readColumns(s.result); err != nil {
		return false, err
	}
	return true, nil
}

// openBlocklet reads the headers of the filter's columns, unless the bounds of the blocklet say that
// no row is selected. Then it skips the blocklet.
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
func (s *pages) openColumns(m *memory, columns []*scanColumn) error {
	before := m.left
	for _, c := range columns {
		if c.open || c.cells == nil {
			continue
		}
		c.open = true
		if err := c.cells.open(s.file.File, &s.file.blocklets[s.blocklet], m); err != nil {
			return inside(err, "column %q", c.column.Name)
		}
	}
	s.headers -= before - m.left
	return nil
}

// beginPage prepares the columns for a page. Memory of former pages is used again unless it is so
// much that a page with other long columns could take too much with it.
func (s *pages) beginPage() {
	s.memory.left = s.headers
	held := cap(s.scratch)
	for _, b := range s.others {
		held += cap(b)
	}
	for _, c := range s.columns {
		c.read = false
		if c.cells != nil {
			held += c.cells.size()
		}
	}
	if held > s.limit/8 {
		s.scratch, s.others = nil, nil
		for _, c := range s.columns {
			if c.cells != nil {
				c.cells.release()
			}
		}
	}
}

// readColumn reads the current page of a column, unless that has been done.
func (s *pages) readColumn(c *scanColumn) error {
	if c.read || c.cells == nil {
		return nil
	}
	c.read = true
	return c.cells.readPage(s.file.File, s.page, s.rows, &s.memory, &s.scratch)
}

// value returns the value of a row, see cells.value.
func (c *scanColumn) value(row int, budget *int) (any, error) {
	if c.cells == nil {
		return c.missing, nil
	}
	v, err := c.cells.value(row, budget)
	return v, inside(err, "column %q", c.column.Name)
}
