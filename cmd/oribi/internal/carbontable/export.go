package carbontable

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/carbondata"
	"github.com/oribi-db/oribi/internal/nearest"
	"github.com/oribi-db/oribi/schema"
)

// Columns returns the columns of CarbonData for the columns of a table. String columns that long
// names become VARCHAR. Errors: a column of a type that CarbonData does not have; a name in long
// that is not the name of a string column.
func Columns(table []schema.Column, long []string) ([]carbondata.Column, error) {
	columns := make([]carbondata.Column, len(table))
	names := make([]string, len(table))
	for i := range table {
		var ok bool
		if columns[i], ok = carbondata.ColumnOf(table[i]); !ok {
			return nil, fmt.Errorf("column %q: CarbonData has no type for %s", table[i].Name, table[i].TypeName())
		}
		names[i] = table[i].Name
	}
	for _, name := range long {
		i := slices.Index(names, name)
		switch {
		case i < 0:
			return nil,
				&LongColumnError{fmt.Errorf("column %q: no such column in the export%s",
					name, nearest.Hint(name, names))}
		case columns[i].Type != carbondata.String && columns[i].Type != carbondata.Varchar:
			return nil, &LongColumnError{fmt.Errorf("column %q: %s is not a string", name, table[i].TypeName())}
		}
		columns[i].Type = carbondata.Varchar
	}
	return columns, nil
}

// LongColumnError is the error of a name in a list of long string columns.
type LongColumnError struct{ error }

// SortColumns returns the names of the columns by which rows in the order of the table's key are
// sorted: of the key columns, as many of the first as are exported and have a type by which
// CarbonData sorts.
func SortColumns(s *schema.Schema, columns []carbondata.Column) []string {
	var names []string
	for _, key := range s.Columns[:s.Keys] {
		i := slices.IndexFunc(columns, func(c carbondata.Column) bool { return c.Name == key.Name })
		if i < 0 || !columns[i].Type.Sortable() {
			break
		}
		names = append(names, key.Name)
	}
	return names
}

// keyProperty is the entry of a data file's footer with the key columns of the table from which
// the rows come: their names as a JSON array.
const keyProperty = "oribi.key" // file format: never change

// KeyProperties returns the properties of data files of a table with these key columns.
func KeyProperties(names []string) map[string]string {
	text, err := json.Marshal(names)
	if err != nil {
		panic(err) // strings have no errors
	}
	return map[string]string{keyProperty: string(text)}
}

// Key returns the key columns that the data files name, or nil if they do not, or not the same.
func Key(t *carbondata.Table) []string {
	var key []string
	for i, file := range t.Files() {
		var names []string
		if json.Unmarshal([]byte(file.Properties[keyProperty]), &names) != nil || i > 0 && !slices.Equal(names, key) {
			return nil
		}
		key = names
	}
	return key
}

// Rounder rounds the timestamps of batches to milliseconds, toward the past.
type Rounder struct {
	columns []int
	vectors []*batch.Vector
	out     batch.RecordBatch
}

// NewRounder returns a rounder of batches with the given columns.
func NewRounder(columns []schema.Column) *Rounder {
	r := &Rounder{}
	for i, c := range columns {
		if c.Stored() == schema.Timestamp {
			v := batch.NewVector(schema.Timestamp, 0)
			if c.Type == schema.Array {
				v = batch.NewArrays(schema.Timestamp)
			}
			r.columns, r.vectors = append(r.columns, i), append(r.vectors, v)
		}
	}
	return r
}

// Round returns a batch with the rows of b, which a table's scan returned. It shares the columns of
// b, except for timestamps, and is valid until the next call. Errors: ErrCorrupt for an array that
// is none.
func (r *Rounder) Round(b *batch.RecordBatch) (*batch.RecordBatch, error) {
	r.out = *b
	r.out.Columns = slices.Clone(b.Columns)
	for i, k := range r.columns {
		v, from := r.vectors[i], b.Columns[k]
		if b.Schema[k].Type == schema.Array {
			v.ResetArrays(0)
			if err := v.AppendUnpacked(from, 0, from.Len); err != nil {
				return nil, err
			}
			round(batch.Values[int64](v.Elements))
		} else {
			v.Reset(from.Len)
			copy(v.Data, from.Data)
			v.Present = from.Present
			round(batch.Values[int64](v))
		}
		r.out.Columns[k] = v
	}
	return &r.out, nil
}

func round(micros []int64) {
	for i, t := range micros {
		rest := t % 1000
		if rest < 0 {
			rest += 1000
		}
		if t >= math.MinInt64+rest { // no time is before the others
			micros[i] = t - rest
		}
	}
}
