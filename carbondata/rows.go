package carbondata

import (
	"context"
	"iter"
)

// cells reads the values of one column of a blocklet, page by page.
type cells struct {
	column *Column
	chunk  chunk
	dict   *dictionary
	page   *page

	children []*cells
}

func (f *File) openCells(col *Column, b *blocklet) (*cells, error) {
	c := &cells{column: col}
	var err error
	if c.chunk, err = f.readChunk(b, col.first); err != nil {
		return nil, err
	}
	if c.chunk.dictionary != nil {
		if c.dict, err = readDictionary(&c.chunk, f.textLimit()/2); err != nil {
			return nil, inside(err, "dictionary")
		}
	}
	for i := range col.Children {
		child, err := f.openCells(&col.Children[i], b)
		if err != nil {
			return nil, inside(err, "column %q", col.Children[i].Name)
		}
		c.children = append(c.children, child)
	}
	return c, nil
}

// Rows returns the rows in the order of the file, each with the values of the columns of Schema;
// see Type for their Go types. A row belongs to the caller. The first error ends the iteration.
func (f *File) Rows(ctx context.Context) iter.Seq2[[]any, error] {
	return func(yield func([]any, error) bool) {
		columns := f.Schema()
		for row, err := range f.rowsOf(ctx, columns, nil) {
			if err != nil {
				yield(nil, inside(err, "carbondata"))
				return
			}
			if !yield(row, nil) {
				return
			}
		}
	}
}

// rowsOf returns the values of some of the file's columns, in rows that are not deleted.
func (f *File) rowsOf(ctx context.Context, columns []Column, deleted deletedRows) iter.Seq2[[]any, error] {
	return func(yield func([]any, error) bool) {
		for i := range f.blocklets {
			more, err := f.blockletRows(ctx, i, columns, deleted, yield)
			if err != nil {
				yield(nil, inside(err, "blocklet %d", i))
				return
			}
			if !more {
				return
			}
		}
	}
}

// blockletRows yields the rows of one blocklet. It reports whether the caller wants more.
func (f *File) blockletRows(ctx context.Context, number int, columns []Column, deleted deletedRows, yield func([]any, error) bool) (more bool, err error) {
	b := &f.blocklets[number]
	list := make([]*cells, len(columns))
	for i := range columns {
		if list[i], err = f.openCells(&columns[i], b); err != nil {
			return false, inside(err, "column %q", columns[i].Name)
		}
	}
	for p, n := range b.pageRows {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		for _, c := range list {
			if err := c.readPage(f, p, n); err != nil {
				return false, err
			}
		}
		for row := range n {
			if deleted.has(pagePlace{number, p}, row) {
				continue
			}
			values := make([]any, len(list))
			budget := f.rowLimit()
			for i, c := range list {
				if values[i], err = c.value(row, &budget); err != nil {
					return false, inside(err, "column %q: page %d: row %d", c.column.Name, p, row)
				}
			}
			if !yield(values, nil) {
				return false, nil
			}
		}
	}
	return true, nil
}
