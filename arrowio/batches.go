package arrowio

import (
	"fmt"
	"iter"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/schema"
)

// Batches returns the rows of a reader as batches of the columns that Define returns for its
// schema. Where the layouts agree, vectors alias the arrays. A batch is valid until the next step
// and must not be modified. It ends with the reader's error, or with a *ColumnError for a value
// that the column cannot represent exactly. The reader is not released.
//
// Errors: a *ColumnError with ErrUnsupported for a field of which no column represents each value.
func Batches(r array.RecordReader) ([]schema.Column, iter.Seq2[*batch.RecordBatch, error], error) {
	if rows, ok := r.(*Rows); ok {
		return rows.Columns(), rows.Batches(), nil
	}
	d, err := Define(r.Schema())
	if err == nil {
		d, err = d.project(nil)
	}
	if err != nil {
		return nil, nil, wrap(err)
	}
	im, err := newBatchImporter(d.Columns, r.Schema(), false)
	if err != nil {
		return nil, nil, wrap(err)
	}
	return d.Columns, func(yield func(*batch.RecordBatch, error) bool) {
		for r.Next() {
			b, err := im.batch(r.RecordBatch())
			if !yield(b, wrap(err)) || err != nil {
				return
			}
		}
		if err := r.Err(); err != nil {
			yield(nil, err)
		}
	}, nil
}

// batchImporter makes batches of record batches. Not safe for concurrent use.
type batchImporter struct {
	columns []*importer // by field
	fields  []int       // their indexes in the schema
	out     batch.RecordBatch
	rows    int64 // of all batches so far
}

// newBatchImporter returns an importer of record batches with a schema into columns, which it finds
// by name. round says that times in nanoseconds are rounded down. Errors: a *ColumnError.
func newBatchImporter(columns []schema.Column, s *arrow.Schema, round bool) (*batchImporter, error) {
	b := &batchImporter{out: batch.RecordBatch{Schema: columns, Columns: make([]*batch.Vector, len(columns))}}
	for _, c := range columns {
		fields := s.FieldIndices(c.Name)
		if len(fields) != 1 {
			return nil, columnErrorf(c.Name, "%d fields with this name: %w", len(fields), ErrNoColumn)
		}
		im, err := newImporter(c, s.Field(fields[0]).Type, round)
		if err != nil {
			return nil, in(c.Name, -1, err)
		}
		b.columns, b.fields = append(b.columns, im), append(b.fields, fields[0])
	}
	return b, nil
}

// batch returns the rows of a record batch, valid until the next call.
func (b *batchImporter) batch(rec arrow.RecordBatch) (*batch.RecordBatch, error) {
	n := int(rec.NumRows())
	for i, im := range b.columns {
		v, err := im.vector(rec.Column(b.fields[i]))
		if err == nil && v.Len != n {
			err = corruptf("%d cells in a record batch of %d rows", v.Len, n)
		}
		if err != nil {
			return nil, in(im.column.Name, b.rows, err)
		}
		b.out.Columns[i] = v
	}
	b.out.Len = n
	b.out.Selection = b.out.Selection.Resize(n)
	b.out.Selection.SetRange(0, n)
	b.rows += int64(n)
	return &b.out, nil
}

// matched returns the columns of a table for the fields of a schema, and nil for those that the
// schema does not have: importers by the table's columns. Errors: a *ColumnError.
func matched(s *schema.Schema, fields *arrow.Schema) ([]*importer, []int, error) {
	importers, indexes := make([]*importer, len(s.Columns)), make([]int, len(s.Columns))
	for i, f := range fields.Fields() {
		at := s.Index(f.Name)
		switch {
		case at < 0:
			return nil, nil, columnErrorf(f.Name, "%w in the table", s.NoColumn(f.Name))
		case importers[at] != nil:
			return nil, nil, columnErrorf(f.Name, "two fields with this name: %w", ErrSchema)
		}
		im, err := newImporter(s.Columns[at], f.Type, false)
		if err != nil {
			return nil, nil, in(f.Name, -1, err)
		}
		importers[at], indexes[at] = im, i
	}
	return importers, indexes, nil
}

// vectorsOf returns the vectors for the columns of a table, nil for columns that the record batch
// does not have.
func vectorsOf(importers []*importer, indexes []int, rec arrow.RecordBatch, base int64) ([]*batch.Vector, error) {
	vectors := make([]*batch.Vector, len(importers))
	for i, im := range importers {
		if im == nil {
			continue
		}
		v, err := im.vector(rec.Column(indexes[i]))
		if err != nil {
			return nil, in(im.column.Name, base, err)
		}
		if int64(v.Len) != rec.NumRows() {
			return nil, in(im.column.Name, base,
				fmt.Errorf("%d cells in a record batch of %d rows: %w", v.Len, rec.NumRows(), ErrCorrupt))
		}
		vectors[i] = v
	}
	return vectors, nil
}
