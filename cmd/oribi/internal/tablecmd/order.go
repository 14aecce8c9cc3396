package tablecmd

import (
	"cmp"
	"container/heap"
	"fmt"
	"slices"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/cmd/oribi/internal/console"
	"github.com/oribi-db/oribi/cmd/oribi/internal/exit"
	"github.com/oribi-db/oribi/cmd/oribi/internal/flags"
	"github.com/oribi-db/oribi/cmd/oribi/internal/output"
	"github.com/oribi-db/oribi/internal/aggregate"
	"github.com/oribi-db/oribi/schema"
)

// maxFirstBytes bounds the memory of these rows.
const maxFirstBytes = 64 << 20

// orderColumn returns the column that --order names.
func orderColumn(s *schema.Schema, name string) (*schema.Column, error) {
	i := s.Index(name)
	if i < 0 {
		return nil, exit.Usage(fmt.Errorf("--order: want key, any, or a column: %q: %w", name, s.NoColumn(name)))
	}
	if c := &s.Columns[i]; c.Type != schema.Array {
		return c, nil
	}
	return nil, exit.Usage(fmt.Errorf("--order: column %q: type %s has no order", name, s.Columns[i].TypeName()))
}

// printFirst prints the first rows of a scan in key order, in the order of the column by.
func printFirst(a *console.Console,
	f *flags.Select, by *schema.Column, form output.Format, columns []schema.Column,
	scan func(columns []string) *oribi.Scan,
) error {
	read := flags.Names(columns)
	at := slices.Index(read, by.Name)
	if at < 0 {
		at, read = len(read), append(read, by.Name)
	}
	first := firstRows{typ: by.Type, descending: f.Desc, limit: int(f.Limit), bytes: maxFirstBytes}
	for b, err := range scan(read).Batches() {
		if err == nil {
			err = first.add(b, at, len(columns))
		}
		if err != nil {
			return err
		}
	}
	w := a.Writer(form, columns)
	for rows := range slices.Chunk(first.sorted(), 1024) {
		b := batch.New(columns, len(rows))
		for i, r := range rows {
			for k, cell := range r.cells {
				b.Columns[k].SetCell(i, cell)
			}
		}
		if err := w.Write(b); err != nil {
			return err
		}
	}
	return w.Close()
}

// firstRows keeps the first rows, in the order of a column, of those added. NULLs are last; rows
// that are equal stay in the order in which they were added. It is a heap with the last row on top.
type firstRows struct {
	typ        schema.Type
	descending bool
	limit      int   // rows
	bytes      int64 // that may still be taken

	rows []firstRow
	next int64
}

// firstRow is a row that is kept.
type firstRow struct {
	number int64    // of the row among all added
	by     []byte   // the cell of the column that orders; nil for NULL
	cells  [][]byte // those to print
}

// size returns about how much memory a row takes.
func (r *firstRow) size() int64 {
	const perRow, perCell = 64, 32
	n := int64(perRow + len(r.by) + perCell*len(r.cells))
	for _, c := range r.cells {
		n += int64(len(c))
	}
	return n
}

// add adds the selected rows of a batch, which are ordered by column by. Of those that are kept,
// the first columns are copied.
func (f *firstRows) add(b *batch.RecordBatch, by, columns int) error {
	for i := range b.Rows() {
		f.next++
		r := firstRow{number: f.next, by: b.Columns[by].Cell(i)}
		full := len(f.rows) == f.limit
		if full && f.compare(&r, &f.rows[0]) >= 0 {
			continue
		}
		r.by = slices.Clone(r.by)
		r.cells = make([][]byte, columns)
		for k := range r.cells {
			r.cells[k] = slices.Clone(b.Columns[k].Cell(i))
		}
		f.bytes -= r.size()
		if full {
			f.bytes += f.rows[0].size()
			f.rows[0] = r
			heap.Fix(f, 0)
		} else {
			heap.Push(f, r)
		}
		if f.bytes < 0 {
			return fmt.Errorf("the first %d rows take more than %d MiB: lower --limit %d, or print fewer --columns",
				len(f.rows), maxFirstBytes>>20, f.limit)
		}
	}
	return nil
}

// sorted returns the rows in order.
func (f *firstRows) sorted() []firstRow {
	slices.SortFunc(f.rows, func(x, y firstRow) int { return f.compare(&x, &y) })
	return f.rows
}

func (f *firstRows) compare(x, y *firstRow) int {
	return cmp.Or(compareOrder(f.typ, x.by, y.by, f.descending), cmp.Compare(x.number, y.number))
}

func (f *firstRows) Len() int           { return len(f.rows) }
func (f *firstRows) Less(i, j int) bool { return f.compare(&f.rows[i], &f.rows[j]) > 0 }
func (f *firstRows) Swap(i, j int)      { f.rows[i], f.rows[j] = f.rows[j], f.rows[i] }
func (f *firstRows) Push(r any)         { f.rows = append(f.rows, r.(firstRow)) }
func (f *firstRows) Pop() any           { panic("tablecmd: rows are only replaced") }

// compareOrder compares two cells for an order of rows: NULL, a nil cell, is after all others in
// both directions, and NaN above +Inf, as in aggregates.
func compareOrder(t schema.Type, a, b []byte, descending bool) int {
	if descending && a != nil && b != nil {
		a, b = b, a
	}
	return aggregate.Compare(t, a, b)
}
