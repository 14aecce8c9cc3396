package carbondata

import (
	"context"
	"errors"
	"iter"

	"github.com/oribi-db/oribi/batch"
)

// cells reads the values of one column of a file, page by page.
type cells struct {
	column *Column
	chunk  chunk
	dict   *dictionary
	page   page

	children []*cells
	elements *batch.Vector // of an array, see fillArrays
	parts    [][]byte      // the same
	packed   []byte        // the arrays of a vector
}

func newCells(col *Column) *cells {
	c := &cells{column: col}
	for i := range col.Children {
		c.children = append(c.children, newCells(&col.Children[i]))
	}
	return c
}

// open reads the headers and the dictionaries of the column and its children in a blocklet.
func (c *cells) open(f *File, b *blocklet, m *memory) (err error) {
	c.dict = nil
	if c.chunk, err = f.readChunk(b, c.column.first, m); err != nil {
		return err
	}
	if c.chunk.dictionary != nil {
		if c.dict, err = readDictionary(&c.chunk, c.column.Type, m); err != nil {
			return inside(err, "dictionary")
		}
	}
	for _, child := range c.children {
		if err := child.open(f, b, m); err != nil {
			return inside(err, "column %q", child.column.Name)
		}
	}
	return nil
}

// size returns the memory of the pages of the column and its children.
func (c *cells) size() int {
	n := c.page.buffers.size()
	for _, child := range c.children {
		n += child.size()
	}
	return n
}

// release frees the memory of the pages.
func (c *cells) release() {
	c.page = page{}
	for _, child := range c.children {
		child.release()
	}
}

// Rows returns the rows in the order of the file, each with the values of the columns of Schema;
// see Type for their Go types. A row belongs to the caller. The first error ends the iteration.
func (f *File) Rows(ctx context.Context) iter.Seq2[[]any, error] {
	t := &Table{columns: f.Schema(), files: []tableFile{{File: f}}}
	if err := t.match(); err != nil {
		return func(yield func([]any, error) bool) { yield(nil, inside(err, "carbondata")) }
	}
	return t.Rows(ctx, ScanOptions{})
}

// Rows returns the rows of all files that the filter selects and that are not deleted, in the order
// of Files, each with the values of the scan's columns; see Type for their Go types. Columns that a
// file does not have have their default, or are nil. A row belongs to the caller. The first error
// ends the iteration: ErrNoColumn for a name that is not in the schema, ErrSchema for a value of a
// filter that is not of its column's type, a *RowError with ErrRow for a date that only the Julian
// calendar has, ErrCorrupt, ErrUnsupported, errors of package os and of ctx.
//
// Memory: a page of each column, up to four pages where CPUs read ahead, and headers and
// dictionaries of one blocklet; at most 32 times the largest file and 32 MiB. Time: a file whose
// pages become more than 1024 times its size, 1 GiB, and 64 bytes for each cell is ErrUnsupported.
func (t *Table) Rows(ctx context.Context, o ScanOptions) iter.Seq2[[]any, error] {
	return func(yield func([]any, error) bool) {
		if err := t.rows(ctx, o, yield); err != nil {
			yield(nil, inside(err, "carbondata"))
		}
	}
}

func (t *Table) rows(ctx context.Context, o ScanOptions, yield func([]any, error) bool) error {
	s, err := t.pages(o)
	if err != nil {
		return err
	}
	defer s.stop()
	n := 0
	for {
		if more, err := s.next(ctx); err != nil || !more {
			return err
		}
		for row := s.selection.Next(0); row >= 0; row = s.selection.Next(row + 1) {
			values := make([]any, len(s.result))
			budget := s.memory.elements()
			for i, c := range s.result {
				if values[i], err = c.value(row, &budget); err == nil {
					values[i], err = gregorian(values[i])
				}
				if bad, ok := errors.AsType[*unheld](err); ok {
					return s.inside(c.inColumn(n, &refusedValue{0, bad}))
				}
				if err != nil {
					return s.inside(inside(err, "page %d: row %d", s.page, row))
				}
			}
			n++
			if !yield(values, nil) {
				return nil
			}
		}
	}
}
