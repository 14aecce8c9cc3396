// Package carbontable maps CarbonData to tables, and tables to CarbonData.
package carbontable

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/carbondata"
	"github.com/oribi-db/oribi/internal/nearest"
	"github.com/oribi-db/oribi/schema"
)

// ErrNoColumn means that the CarbonData does not have a column.
var ErrNoColumn = errors.New("no such column")

// Refused is a column of CarbonData of a type that tables do not have.
type Refused struct{ Column, Type string }

func (e *Refused) Error() string {
	return fmt.Sprintf("column %q: %s: %v", e.Column, e.Why(), carbondata.ErrUnsupported)
}

func (e *Refused) Unwrap() error { return carbondata.ErrUnsupported }

// Why returns the message without the column.
func (e *Refused) Why() string { return "tables have no type for " + e.Type }

// Fields returns the columns of a table for the named columns of CarbonData, for all of them if
// names is nil, and those among them that tables cannot have. Errors: ErrNoColumn.
func Fields(columns []carbondata.Column, names []string) (fields []schema.Column, refused []*Refused, err error) {
	if names == nil {
		names = make([]string, len(columns))
		for i := range columns {
			names[i] = columns[i].Name
		}
	}
	for _, name := range names {
		c, err := find(columns, name)
		if err != nil {
			return nil, nil, err
		}
		if field, ok := c.TableType(); ok {
			fields = append(fields, field)
		} else {
			refused = append(refused, &Refused{name, c.TypeName()})
		}
	}
	return fields, refused, nil
}

func find(columns []carbondata.Column, name string) (*carbondata.Column, error) {
	names := make([]string, len(columns))
	for i := range columns {
		if names[i] = columns[i].Name; names[i] == name {
			return &columns[i], nil
		}
	}
	return nil, fmt.Errorf("column %q: %w in the CarbonData%s", name, ErrNoColumn, nearest.Hint(name, names))
}

// Batches returns the rows of a scan whose columns are those that Fields returned. A batch is valid
// until the next one.
func Batches(ctx context.Context, t *carbondata.Table, o carbondata.ScanOptions) iter.Seq2[*batch.RecordBatch, error] {
	return func(yield func(*batch.RecordBatch, error) bool) {
		s, err := t.Scan(ctx, o)
		if err != nil {
			yield(nil, err)
			return
		}
		defer s.Close()
		for s.Next() {
			if !yield(s.Batch(), nil) {
				return
			}
		}
		if err := s.Err(); err != nil {
			yield(nil, err)
		}
	}
}
