package carbondata

import (
	"slices"

	"github.com/oribi-db/oribi/batch"
)

// readAhead gives the next pages to the readers that are free, each with a goroutine of its own.
// That keeps all CPUs busy: within a page, one column may take longer than all others together, and
// the filter's columns come before the rest.
//
// The readers share the headers and dictionaries of the blocklet, which do not change once all
// columns are open. Nothing is read ahead before that, nor in files where the memory of a page is
// not known before it is read: all pages together must fit in the limit for one page.
func (s *pages) readAhead() {
	first := s.readers[0]
	count := s.file.blocklets[s.blocklet].pages
	// If only one page is left, its columns are read together.
	for s.last+1 < count && (len(s.ahead) > 0 || s.last+2 < count) {
		need, ok := first.need(s.last + 1)
		sum := need
		for _, r := range s.readers {
			sum += r.taken
		}
		if !ok || sum > first.headers {
			return
		}
		r := s.freeReader()
		if r == nil {
			return
		}
		s.last++
		r.follow(first, s.last)
		r.procs, r.taken, r.keep = 1, need, first.limit/keptShare/len(s.readers)
		s.ahead = append(s.ahead, r)
		r.running.Go(func() { r.err = r.read() })
	}
}

// stop waits for the readers.
func (s *pages) stop() {
	for _, r := range s.ahead {
		r.running.Wait()
	}
	s.ahead = nil
}

// freeReader returns a reader that does nothing, or nil if there are as many as may be.
func (s *pages) freeReader() *pageReader {
	most := procs()
	if most == 1 {
		return nil
	}
	if n := len(s.free); n > 0 {
		r := s.free[n-1]
		s.free = s.free[:n-1]
		return r
	}
	if len(s.readers) >= most {
		return nil
	}
	first := s.readers[0]
	r := &pageReader{filter: first.filter, pruner: first.pruner, tested: first.tested, window: first.window}
	r.pruner.page = make([]verdict, len(first.pruner.page)) // the others are shared: they are of the blocklet
	for _, c := range first.columns {
		r.columns = append(r.columns, &scanColumn{column: c.column, place: c.place, open: true,
			vector: batch.Vector{Type: c.vector.Type}})
	}
	for _, c := range first.result {
		r.result = append(r.result, r.columns[slices.Index(first.columns, c)])
	}
	s.readers = append(s.readers, r)
	return r
}

// need returns a limit of the memory that page i of the blocklet takes, and whether it is known and
// all columns are open.
func (r *pageReader) need(i int) (bytes int, known bool) {
	for _, c := range r.columns {
		if c.cells == nil {
			continue
		}
		if !c.open {
			return 0, false
		}
		n, ok := c.cells.need(i, r.file.blocklets[r.blocklet].pageRows[i])
		if !ok {
			return 0, false
		}
		bytes += n
	}
	return bytes, true
}

// follow makes r ready to read a page of the blocklet that first has open.
func (r *pageReader) follow(first *pageReader, page int) {
	r.page = page
	if r == first {
		return
	}
	r.file, r.blocklet, r.limit, r.headers = first.file, first.blocklet, first.limit, first.headers
	r.memory.work = first.memory.work
	for i, c := range r.columns {
		from := first.columns[i]
		if c.missing = from.missing; from.cells == nil {
			c.cells = nil
			continue
		}
		if c.cells == nil {
			c.cells = new(cells)
		}
		c.cells.column, c.cells.chunk, c.cells.dict = from.cells.column, from.cells.chunk, from.cells.dict
	}
}
