package arrowio

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/schema"
)

// OpenOptions are options of OpenParquet, OpenArrow, and OpenStream.
type OpenOptions struct {
	Allocator memory.Allocator // nil means memory.DefaultAllocator
}

// File is an open Parquet file, Arrow file, or Arrow stream.
type File struct {
	definition *Definition
	rows       int64
	content    content
	mem        memory.Allocator
	closed     bool
}

// content is an open file of one format.
type content interface {
	// read returns a reader. The caller will change the batches if owned is set.
	read(q *request, owned bool) (batchReader, error)
	close()
}

// request says which columns and rows of a file are to be read.
type request struct {
	columns []schema.Column // which the file has
	filter  *rowFilter      // rows for which it is not true may be skipped; nil selects all rows
	round   bool            // times in nanoseconds down to microseconds
}

// batchReader returns batches with all rows selected. A batch is valid until the next call.
type batchReader interface {
	next() (*batch.RecordBatch, error) // io.EOF at the end
	owned() bool                       // whether the batches belong to the caller
	close()
}

var errReadOnce = fmt.Errorf("the stream was read before: %w", ErrClosed)

// Definition returns the definition of all rows: what the file has of the table from which they
// come, and the columns that Read returns without ReadOptions.Columns. It must not be modified.
func (f *File) Definition() *Definition { return f.definition }

// Rows returns the number of rows in the file as its metadata states it, −1 if it does not.
func (f *File) Rows() int64 { return f.rows }

// Close releases the memory of the file. Rows that were read from it must have been released. It
// does not close the underlying reader. Close may be called twice.
func (f *File) Close() error {
	if !f.closed {
		f.closed = true
		f.content.close()
	}
	return nil
}

// ReadOptions are options of File.Read.
type ReadOptions struct {
	// Columns are the columns to read, in that order; nil means all.
	Columns []string

	// Where selects the rows for which all predicates are true. They may name columns that are not
	// read. Row groups of a Parquet file whose statistics exclude such rows are skipped.
	Where []oribi.Predicate

	// Round has times in nanoseconds rounded down to microseconds, toward the past. Without it, one
	// that is no whole number of microseconds is refused: ErrNanoseconds.
	Round bool
}

// Read returns the rows of the file, in its order. The caller releases them.
//
// Errors: ErrNoColumn for a column that the file does not have; a *ColumnError with ErrUnsupported
// for a file's column that no column of a table can represent; ErrSchema for a predicate that does
// not fit; ErrClosed. Rows.Err also returns errors of the values: a *ColumnError with ErrRow for a
// value that the column cannot represent exactly; ErrCorrupt for a damaged file; errors of the
// underlying reader; ctx.Err().
func (f *File) Read(ctx context.Context, o ReadOptions) (*Rows, error) {
	if f.closed {
		return nil, wrap(ErrClosed)
	}
	d, err := f.definition.project(o.Columns)
	if err != nil {
		return nil, wrap(err)
	}
	filter, columns, err := bindFilter(f.definition, d.Columns, o.Where)
	if err != nil {
		return nil, wrap(err)
	}
	s, err := Schema(d)
	if err != nil {
		return nil, err
	}
	r := &Rows{ctx: ctx, file: f, definition: d, request: request{columns, filter, o.Round}}
	r.begin(s, d.Columns, f.mem)
	return r, nil
}

// rowFilter is a filter of rows by their columns.
type rowFilter struct {
	filter batch.Filter
	first  schema.ColumnID // the ID of column 0
	eval   batch.FilterEval
}

// bindFilter resolves predicates in the columns of a file. It returns the chosen columns and, after
// them, those that only the predicates name. The filter is nil if there are no predicates.
func bindFilter(d *Definition, chosen []schema.Column, where []oribi.Predicate) (*rowFilter, []schema.Column, error) {
	if len(where) == 0 {
		return nil, chosen, nil
	}
	columns, all := slices.Clip(chosen), oribi.And(where...)
	for _, name := range all.Columns() {
		if slices.ContainsFunc(columns, func(c schema.Column) bool { return c.Name == name }) {
			continue
		}
		named, err := d.project([]string{name})
		if err != nil {
			return nil, nil, err
		}
		columns = append(columns, named.Columns...)
	}
	// Only a schema binds predicates, and a schema has a key, which these columns need not have.
	key := schema.Column{Name: "key", Type: schema.Int64}
	for slices.ContainsFunc(columns, func(c schema.Column) bool { return c.Name == key.Name }) {
		key.Name += "_"
	}
	bound := []schema.Column{key}
	for i, c := range columns {
		bound = append(bound, schema.Column{ID: schema.ColumnID(i + 1), Name: c.Name, Type: c.Type, Nullable: true,
			Precision: c.Precision, Scale: c.Scale, Length: c.Length, Element: c.Element})
	}
	s, err := schema.New(bound, 1)
	if err != nil {
		return nil, nil, err
	}
	filter, err := all.Bind(s)
	if err != nil {
		return nil, nil, err
	}
	return &rowFilter{filter: filter, first: 1}, columns, nil
}

// apply clears the bits of the selection for rows for which the filter is not true.
func (f *rowFilter) apply(b *batch.RecordBatch) error {
	return f.eval.Eval(&f.filter, b.Selection, func(p *batch.Predicate, sel batch.Bitmap) error {
		p.Eval(b.Columns[f.column(p)], sel)
		return nil
	})
}

// column returns the index of the column that a predicate tests.
func (f *rowFilter) column(p *batch.Predicate) int { return int(p.ID - f.first) }

// Rows are rows of a File. It is an array.RecordReader. Instead of Next, a caller may use Batches.
// Not safe for concurrent use.
type Rows struct {
	records
	ctx        context.Context
	file       *File
	definition *Definition
	// its columns: the columns of definition, then others that only the filter needs
	request request

	in    batchReader // nil: nothing was read yet
	ended bool
}

var _ array.RecordReader = (*Rows)(nil)

// Definition returns the definition of the columns that are read. It must not be modified.
func (r *Rows) Definition() *Definition { return r.definition }

// Columns returns the columns of the batches. They must not be modified.
func (r *Rows) Columns() []schema.Column { return r.definition.Columns }

// Release removes a reference. With the last reference, all memory is released except the memory of
// retained record batches.
func (r *Rows) Release() {
	if !r.release() {
		return
	}
	if r.in != nil {
		r.in.close()
		r.in = nil
	}
	r.ended = true
}

// fail ends the rows with an error.
func (r *Rows) fail(err error) {
	r.err, r.ended, r.rest = wrap(err), true, nil
}

// step returns the next batch with selected rows, nil at the end and after an error. It has the
// columns of the filter, too.
func (r *Rows) step(owned bool) *batch.RecordBatch {
	if r.in == nil && !r.ended {
		var err error
		if r.in, err = r.file.content.read(&r.request, owned); err != nil {
			r.fail(err)
		}
	}
	for !r.ended && r.err == nil {
		if err := r.ctx.Err(); err != nil {
			r.fail(err)
			break
		}
		b, err := r.in.next()
		if err == nil && r.request.filter != nil {
			err = r.request.filter.apply(b)
		}
		switch {
		case errors.Is(err, io.EOF):
			r.ended = true
		case err != nil:
			r.fail(err)
		case b.Selection.Any():
			return b
		}
	}
	return nil
}

// Batches returns the rows as batches of vectors. The rows of the result are those whose bit in
// Selection is 1. A batch is valid until the next step and must not be modified. Arrays are byte
// strings, as in the batches of a scan, and byte strings may be in dictionary form. An error comes
// as the last step; Err returns it too.
func (r *Rows) Batches() iter.Seq2[*batch.RecordBatch, error] {
	return func(yield func(*batch.RecordBatch, error) bool) {
		for b := r.step(false); b != nil; b = r.step(false) {
			n := len(r.definition.Columns)
			if !yield(&batch.RecordBatch{Schema: r.definition.Columns, Columns: b.Columns[:n], Len: b.Len,
				Selection: b.Selection}, nil) {
				return
			}
		}
		if r.err != nil {
			yield(nil, r.err)
		}
	}
}

// Next moves to the next record batch. It returns false at the end and after an error.
func (r *Rows) Next() bool {
	return r.next(func() *batch.RecordBatch {
		b := r.step(true)
		if b == nil {
			return nil
		}
		n := len(r.definition.Columns)
		return r.dense(&batch.RecordBatch{Schema: r.definition.Columns, Columns: b.Columns[:n],
			Len: b.Len, Selection: b.Selection})
	})
}

// dense returns the selected rows of a batch of step, which owned was set for. Nobody changes them
// afterwards; byte strings may be valid until the next step only.
func (r *Rows) dense(b *batch.RecordBatch) *batch.RecordBatch {
	if r.in.owned() {
		b.Compact()
		return b
	}
	out := batch.New(b.Schema, 0)
	for i, v := range b.Columns {
		out.Columns[i].AppendSelected(v, b.Selection, 0, b.Len)
	}
	out.Len = b.Selected()
	out.Selection = out.Selection.Resize(out.Len)
	out.Selection.SetRange(0, out.Len)
	return out
}
