package carbondata

import (
	"fmt"

	"github.com/oribi-db/oribi/batch"
)

// AppendBatch adds the selected rows of a batch. Its columns are the Writer's columns, in their
// order, with types that have the same values, see Column.TableType; integers may be narrower, and
// may be unsigned. It retains nothing of b.
//
// Errors: a *RowError for a value that Append refuses, after which the writer takes no more rows;
// the other errors of Append.
func (w *Writer) AppendBatch(b *batch.RecordBatch) error {
	if w.err != nil {
		return w.err
	}
	if err := w.appendBatch(b); err != nil {
		return w.fail(err)
	}
	return nil
}

func (w *Writer) appendBatch(b *batch.RecordBatch) error {
	if len(b.Columns) != len(w.columns) {
		return fmt.Errorf("%d columns, want %d", len(b.Columns), len(w.columns))
	}
	rows := make([]int, 0, b.Len)
	for i := range b.Rows() {
		rows = append(rows, i)
	}
	sources := make([]source, len(b.Columns))
	for i, v := range b.Columns {
		var err error
		if sources[i], err = newSource(&w.columns[i], b.Schema[i], v); err != nil {
			return fmt.Errorf("column %q: %w", w.columns[i].Name, err)
		}
	}
	for len(rows) > 0 {
		if w.sorter != nil {
			return w.sortBatch(sources, rows)
		}
		n, err := w.room(sources, rows)
		if err != nil {
			return err
		}
		if err := eachColumn(w.schema.columns, n, func(i int) error {
			if err := sources[i].add(w.schema.columns[i], rows[:n]); err != nil {
				return inColumn(w.columns[i].Name, err)
			}
			return nil
		}); err != nil {
			return err
		}
		from := w.rows
		w.rows += n
		rows = rows[n:]
		if !w.inOrder(from) {
			if err := w.sortRows(); err != nil {
				return err
			}
		} else if w.pageFull() {
			if err := w.endPage(false); err != nil {
				return err
			}
		}
	}
	return nil
}

// sortBatch gives rows to the sorter.
func (w *Writer) sortBatch(sources []source, rows []int) error {
	row := make([]any, len(sources))
	for _, r := range rows {
		for i := range sources {
			if err := sources[i].checkUnsigned(r); err != nil {
				return &RowError{r, w.columns[i].Name, err}
			}
			row[i] = sources[i].value(r)
		}
		if column, err := w.check(row); err != nil {
			return &RowError{r, column, err}
		}
		if err := w.sorter.add(row); err != nil {
			return err
		}
	}
	return nil
}

// room returns how many of the rows, at least one, fit into the page, the last one perhaps only in
// part. It refuses a row that is too large.
func (w *Writer) room(sources []source, rows []int) (int, error) {
	n := min(len(rows), w.o.PageRows-w.rows)
	memory := w.pageMemory()
	for i, r := range rows[:n] {
		memory += w.schema.rowMemory
		var size rowSize
		for _, c := range w.schema.texts {
			sources[c.Ordinal].addSize(r, &size)
			if err := size.check(); err != nil {
				return 0, &RowError{r, w.columns[c.Ordinal].Name, err}
			}
		}
		if memory += size.bytes + size.values*nestedBytes; memory >= maxPageMemory {
			return i + 1, nil
		}
	}
	return n, nil
}
