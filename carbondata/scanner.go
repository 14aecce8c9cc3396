package carbondata

import (
	"context"
	"errors"
	"math/bits"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/schema"
)

// Scanner reads the rows of a scan in batches:
//
//	s, err := t.Scan(ctx, carbondata.ScanOptions{})
//	defer s.Close()
//	for s.Next() {
//		use(s.Batch()) // valid until the next call of Next
//	}
//	return s.Err()
//
// It is not safe for concurrent use. It uses the table, which must not be closed before.
type Scanner struct {
	ctx    context.Context
	pages  *pages
	batch  *batch.RecordBatch
	values [][]any // of the columns without a type of a table
	nested bool    // there are such columns, or arrays
	rows   int     // most rows of a batch
	before int     // rows of the batches before this one
	next   int     // row of the page; −1: there is no page
	runs   []run
	closed bool
	err    error
}

// run is rows [from, to) of a page.
type run struct{ from, to int }

// Scan begins to read the rows that Rows returns, as batches. Errors: the errors of Rows.
//
// Memory: as Rows, and a batch of at most 4 MiB.
func (t *Table) Scan(ctx context.Context, o ScanOptions) (*Scanner, error) {
	p, err := t.pages(o)
	if err != nil {
		return nil, inside(err, "carbondata")
	}
	s := &Scanner{ctx: ctx, pages: p, next: -1, values: make([][]any, len(p.result))}
	columns := make([]schema.Column, len(p.result))
	width := 1
	for i, c := range p.result {
		var ok bool
		if columns[i], ok = c.column.TableType(); !ok {
			columns[i] = schema.Column{Name: c.column.Name, Type: schema.Array, Nullable: true}
			s.values[i] = []any{}
		}
		if columns[i].Type == schema.Array {
			s.nested = true
		}
		width += cellBytes(columns[i].Type)
	}
	s.rows = max(1, min(maxBatchRows, maxBatchBytes/width))
	s.batch = batch.New(columns, 0)
	return s, nil
}

// Next moves to the next batch, which has at least one row. It returns false after the last one and
// after an error.
func (s *Scanner) Next() bool {
	if s.err != nil || s.closed {
		return false
	}
	for {
		if s.next < 0 {
			more, err := s.pages.next(s.ctx)
			if err != nil || !more {
				s.err = inside(err, "carbondata")
				return false
			}
			s.next = 0
		}
		if n := s.chooseRows(); n > 0 {
			s.before += s.batch.Len
			if err := s.fill(n); err != nil {
				s.err = inside(s.pages.inside(inside(err, "page %d", s.pages.page)), "carbondata")
				return false
			}
			return true
		}
		s.next = -1
	}
}

// chooseRows sets runs to the next selected rows of the page and returns how many these are.
func (s *Scanner) chooseRows() (n int) {
	s.runs = s.runs[:0]
	selected := s.pages.selection
	for n < s.rows {
		from := selected.Next(s.next)
		if from < 0 {
			break
		}
		to := min(runEnd(selected, from, s.pages.rows), from+s.rows-n)
		s.runs = append(s.runs, run{from, to})
		n += to - from
		s.next = to
	}
	return n
}

// runEnd returns the first position after i, at most n, whose bit is 0.
func runEnd(b batch.Bitmap, i, n int) int {
	for i < n {
		ones := bits.TrailingZeros64(^(b[i/64] >> (i % 64)))
		if i += ones; ones < 64-(i-ones)%64 {
			break
		}
	}
	return min(i, n)
}

// fill decodes the rows of runs, n of them, or the first ones if all are too large for a batch.
func (s *Scanner) fill(n int) error {
	if s.nested {
		var err error
		if n, err = s.fillValues(); err != nil {
			return err
		}
	}
	b := s.batch
	b.Reset(n)
	for i, c := range s.pages.result {
		v := b.Columns[i]
		if s.values[i] != nil {
			clear(v.Bytes)
			v.ZeroPresent()
			continue
		}
		c.begin(v, n)
		at := 0
		for _, r := range s.runs {
			if err := c.fill(v, at, r.from, r.to); err != nil {
				return c.inColumn(s.before, err)
			}
			at += r.to - r.from
		}
		if err := gregorianCells(v, n); err != nil {
			return c.inColumn(s.before, err)
		}
	}
	return nil
}

// fillValues decodes the columns without a type of a table. It ends, and shortens runs, after the
// row with which arrays and values take the memory of a batch. It returns how many rows there are.
func (s *Scanner) fillValues() (n int, err error) {
	for i := range s.values {
		if s.values[i] != nil {
			clear(s.values[i])
			s.values[i] = s.values[i][:0]
		}
	}
	left := maxBatchBytes / elementBytes
	for k, r := range s.runs {
		for row := r.from; row < r.to; row++ {
			if left <= 0 {
				s.next = row
				s.runs[k].to = row
				s.runs = s.runs[:k+1]
				return n, nil
			}
			for i, c := range s.pages.result {
				if s.values[i] == nil {
					n := c.arrayMemory(row)
					if n > s.pages.memory.elements() {
						return 0, inside(errLargeRow, "column %q: row %d", c.column.Name, row)
					}
					left -= n
					continue
				}
				budget := s.pages.memory.elements()
				before := budget
				v, err := c.value(row, &budget)
				if err == nil {
					v, err = gregorian(v)
				}
				if bad, ok := errors.AsType[*unheld](err); ok {
					return 0, c.inColumn(s.before, &refusedValue{n, bad})
				}
				if err != nil {
					return 0, inside(err, "row %d", row)
				}
				left -= before - budget
				s.values[i] = append(s.values[i], v)
			}
			n++
		}
	}
	return n, nil
}

// arrayMemory returns the memory of a row of a column of arrays, as memory.elements counts, else 0.
func (c *scanColumn) arrayMemory(row int) int {
	if c.cells == nil || c.cells.page.form != formElements {
		return 0
	}
	first, count := c.cells.page.element(row)
	if count == 0 { // begins anywhere
		return 0
	}
	bytes := 0
	switch p := &c.cells.children[0].page; p.form {
	case formStrings:
		bytes = int(p.offsets[first+count] - p.offsets[first])
	case formSurrogates:
		for i := first; i < first+count; i++ {
			if code, err := p.code(i); err == nil { // or fill fails
				bytes += len(p.dict.words.Words[code])
			}
		}
	}
	return count + bytes/elementBytes
}

// Batch returns the current batch. All its rows are selected; column i is column i of the scan. A
// column without a type of a table, see Column.TableType, has the type NESTED and only NULLs there;
// Values has its values. Strings of a page with a dictionary are in the dictionary form. The batch,
// and byte strings in it, are valid until the next call of Next.
func (s *Scanner) Batch() *batch.RecordBatch { return s.batch }

// Values returns the values of column i in the rows of the batch if it has no type of a table, else
// nil. The slice is valid until the next call of Next, the values in it belong to the caller.
func (s *Scanner) Values(i int) []any { return s.values[i] }

// Err returns the error that ended the scan, or nil.
func (s *Scanner) Err() error { return s.err }

// Stats says how much the scan has read up to now.
func (s *Scanner) Stats() ScanStats { return *s.pages.stats }

// Close ends the scan and frees its memory. It returns the error that ended the scan, or nil, and
// may be called twice.
func (s *Scanner) Close() error {
	s.closed = true
	s.pages.stop()
	s.pages = &pages{stats: s.pages.stats}
	return s.err
}
