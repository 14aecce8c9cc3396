package arrowio

import (
	"context"
	"fmt"
	"iter"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// Append adds one operation to a write batch for each row of a record batch. op is an insert, an
// upsert, or one of their Ignore kinds. Fields belong to the columns of the same name; columns
// without a field are not set. The write batch does not refer to rec afterwards.
//
// A column takes the values of every type that it can represent exactly: integers, decimals, dates
// and timestamps of another width, scale or unit, dictionaries, views. A row that the table refuses
// fails the commit, as it does for Batch.Vectors.
//
// Errors, after which nothing was added: a *ColumnError with ErrNoColumn for a field without a
// column, with ErrUnsupported or ErrSchema for a type, and with ErrRow for a value that does not
// fit the column; ErrSchema if the write batch has failed or belongs to another store.
func Append(b *oribi.Batch, op oribi.Op, t *oribi.Table, rec arrow.RecordBatch) error {
	s := b.Schema(t)
	if s == nil {
		return wrap(unusable(b))
	}
	importers, indexes, err := matched(s, rec.Schema())
	if err != nil {
		return wrap(err)
	}
	vectors, err := vectorsOf(importers, indexes, rec, 0)
	if err != nil {
		return wrap(err)
	}
	if rec.NumRows() > 0 {
		b.Vectors(op, t, vectors)
	}
	return nil
}

// Ingest inserts the rows of a reader into a table as Table.Ingest does: at one timestamp or none,
// directly into files. Their keys must ascend. Fields belong to the columns of the same name, as in
// Append. The reader is not released; it may read the same store.
//
// Errors: the errors of Append, of the reader, and of Table.Ingest. After an error nothing has
// changed.
func Ingest(ctx context.Context, t *oribi.Table, r array.RecordReader) (ts mvcc.Timestamp, rows int64, err error) {
	s := t.Schema()
	steps, err := vectorSteps(s, r)
	if err != nil {
		return 0, 0, wrap(err)
	}
	return t.Ingest(ctx, func(yield func([]*batch.Vector, error) bool) {
		if t.Schema() != s {
			yield(nil, wrap(fmt.Errorf("the table was altered before the ingest began: %w", ErrConflict)))
			return
		}
		steps(yield)
	})
}

// vectorSteps returns the rows of a reader as vectors for a table, as Table.Ingest takes them.
func vectorSteps(s *schema.Schema, r array.RecordReader) (iter.Seq2[[]*batch.Vector, error], error) {
	if rows, ok := r.(*Rows); ok && !rows.begun() {
		if columns := sameTypes(s, rows.Columns()); columns != nil {
			return rows.steps(len(s.Columns), columns), nil
		}
	}
	importers, indexes, err := matched(s, r.Schema())
	if err != nil {
		return nil, err
	}
	return func(yield func([]*batch.Vector, error) bool) {
		base := int64(0)
		for r.Next() {
			rec := r.RecordBatch()
			if rec.NumRows() == 0 {
				continue
			}
			vectors, err := vectorsOf(importers, indexes, rec, base)
			if !yield(vectors, wrap(err)) || err != nil {
				return
			}
			base += rec.NumRows()
		}
		if err := r.Err(); err != nil {
			yield(nil, err)
		}
	}, nil
}

// sameTypes returns the indexes of a table's columns for columns with the same cells, nil if there
// are others.
func sameTypes(s *schema.Schema, columns []schema.Column) []int {
	indexes := make([]int, len(columns))
	for i := range columns {
		at := s.Index(columns[i].Name)
		if at < 0 || s.Columns[at].Type != columns[i].Type || !sameCells(&s.Columns[at], &columns[i]) {
			return nil
		}
		indexes[i] = at
	}
	return indexes
}

// begun reports whether rows were read.
func (r *Rows) begun() bool { return r.in != nil }

// steps returns the rows as vectors for a table of n columns: column i of r becomes column
// indexes[i]. They are not converted to Arrow first.
func (r *Rows) steps(n int, indexes []int) iter.Seq2[[]*batch.Vector, error] {
	return func(yield func([]*batch.Vector, error) bool) {
		vectors := make([]*batch.Vector, n)
		for b := range r.owned() {
			if b.Selected() < b.Len {
				b = r.dense(b)
			}
			for i, at := range indexes {
				vectors[at] = b.Columns[i]
			}
			if !yield(vectors, nil) {
				return
			}
		}
		if r.err != nil {
			yield(nil, r.err)
		}
	}
}

// owned returns the batches of step. If they do not alias the file, another goroutine reads them.
func (r *Rows) owned() iter.Seq[*batch.RecordBatch] {
	next := func() *batch.RecordBatch { return r.step(true) }
	return func(yield func(*batch.RecordBatch) bool) {
		first := next()
		if first == nil || !yield(first) {
			return
		}
		rest := ahead(next)
		if !r.in.owned() {
			rest = inTurn(next)
		}
		for b := range rest {
			if !yield(b) {
				return
			}
		}
	}
}

// unusable returns why a write batch takes no rows.
func unusable(b *oribi.Batch) error {
	if err := b.Err(); err != nil {
		return err
	}
	return fmt.Errorf("the table belongs to another store: %w", ErrSchema)
}
