package carbondata

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
