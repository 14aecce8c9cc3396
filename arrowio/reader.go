package arrowio

import (
	"fmt"
	"iter"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/schema"
)

// ReaderOptions are options of NewReader.
type ReaderOptions struct {
	// Allocator allocates the memory of cells that are copied. nil means memory.DefaultAllocator.
	Allocator memory.Allocator

	// Dictionary names string, varchar, and binary columns that become dictionary arrays, with
	// indexes of type int32. The dictionary may differ from one record batch to the next, which
	// Arrow streams support and Arrow files do not.
	Dictionary []string
}

// NewReader returns the rows of a scan, of a table or in a transaction, as record batches in the
// order of the scan. The caller releases the reader; until then it keeps the history that it sees,
// as a running scan does. A record batch stays valid for as long as it is retained, also after the
// reader is released.
//
// The schema has the definition of the table in its metadata (see Define). Cells are copied only
// where Arrow has another layout: bools, decimals of up to 18 digits, byte strings, and arrays.
//
// Errors: a *ColumnError with ErrUnsupported for an int128 column; ErrSchema and ErrNoColumn for a
// name in Dictionary, or in the scan's options. Err returns the errors of the scan, and ErrConflict
// if the table was altered before the first call of Next.
func NewReader(scan *oribi.Scan, o ReaderOptions) (array.RecordReader, error) {
	r, err := newReader(scan, o)
	if err != nil {
		return nil, wrap(err)
	}
	return r, nil
}

func newReader(scan *oribi.Scan, o ReaderOptions) (*scanReader, error) {
	columns, err := scan.Columns()
	if err != nil {
		return nil, err
	}
	s, err := Schema(definitionOf(scan.Table(), columns))
	if err != nil {
		return nil, err
	}
	if s, err = withDictionaries(s, o.Dictionary); err != nil {
		return nil, err
	}
	r := &scanReader{scan: scan, columns: columns}
	r.begin(s, columns, allocator(o.Allocator))
	return r, nil
}

// withDictionaries returns s with dictionaries for the named columns.
func withDictionaries(s *arrow.Schema, names []string) (*arrow.Schema, error) {
	fields := s.Fields()
	for _, name := range names {
		i := slices.IndexFunc(fields, func(f arrow.Field) bool { return f.Name == name })
		if i < 0 {
			return nil, columnErrorf(name, "no such column in the scan: %w", ErrNoColumn)
		}
		switch fields[i].Type.ID() {
		case arrow.STRING, arrow.BINARY:
			fields[i].Type = &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: fields[i].Type}
		case arrow.DICTIONARY:
		default:
			return nil, columnErrorf(name,
				"a dictionary of type %s, want strings or binary: %w", fields[i].Type, ErrSchema)
		}
	}
	metadata := s.Metadata()
	return arrow.NewSchema(fields, &metadata), nil
}

// scanReader is an array.RecordReader over a scan.
type scanReader struct {
	records
	scan    *oribi.Scan
	columns []schema.Column

	begun bool
	pull  func() (*batch.RecordBatch, error, bool)
	stop  func()
}

func (r *scanReader) Release() {
	if !r.release() {
		return
	}
	if r.stop != nil {
		r.stop()
	}
	r.begun, r.pull = true, nil
}

// run runs the scan. The batches belong to the reader if owned is set; otherwise each is valid
// until the next one.
func (r *scanReader) run(owned bool) {
	batches := r.scan.Batches
	if owned {
		batches = r.scan.OwnedBatches
	}
	r.begun = true
	r.pull, r.stop = iter.Pull2(batches())
}

// step returns the next batch of the scan, nil at the end and after an error.
func (r *scanReader) step() *batch.RecordBatch {
	if r.err != nil || r.pull == nil {
		return nil
	}
	b, err, ok := r.pull()
	switch {
	case !ok:
		return nil
	case err == nil && !sameColumns(b.Schema, r.columns):
		err = fmt.Errorf("arrowio: table %q was altered before the scan began: %w", r.scan.Table().Name(), ErrConflict)
	}
	if err != nil {
		r.err = err
		return nil
	}
	return b
}

// sameColumns reports whether a scan that returns columns a has the names and types of b.
func sameColumns(a, b []schema.Column) bool {
	return len(a) > 0 && len(b) > 0 && &a[0] == &b[0] ||
		slices.EqualFunc(a, b, func(a, b schema.Column) bool {
			return a.Name == b.Name && a.Type == b.Type && a.Nullable == b.Nullable && sameCells(&a, &b)
		})
}

func (r *scanReader) Next() bool {
	if !r.begun {
		r.run(true)
	}
	return r.next(func() *batch.RecordBatch {
		for {
			b := r.step()
			if b == nil {
				return nil
			}
			if b.Compact(); b.Len > 0 {
				return b
			}
		}
	})
}
