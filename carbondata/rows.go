package carbondata

import (
	"context"
	"errors"
	"iter"
)

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
