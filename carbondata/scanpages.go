package carbondata

import (
	"context"
	"slices"
)

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
