package arrowio

import (
	"encoding/binary"
	"math"

	"github.com/apache/arrow-go/v18/parquet/metadata"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/cfile"
	"github.com/oribi-db/oribi/keyenc"
	"github.com/oribi-db/oribi/schema"
)

// mayMatch reports whether the filter may be true for a row of a row group. It uses the predicates
// that must all be true, and the statistics of their columns.
func (r *parquetReader) mayMatch(group *metadata.RowGroupMetaData) bool {
	for f := range r.filter.filter.Conjuncts() {
		p := f.Predicate()
		if p == nil {
			continue
		}
		c := r.columns[r.filter.column(p)]
		if c.leaf.list {
			continue
		}
		chunk, err := group.ColumnChunk(c.leaf.index)
		if err != nil {
			continue // reading it returns the error
		}
		statistics, err := chunk.Statistics()
		if err != nil || statistics == nil || r.halfBounded(c.leaf.index) {
			continue
		}
		if !statisticsMayMatch(&c.column, c.values, statistics, group.NumRows(), p) {
			return false
		}
	}
	return true
}

// halfBounded reports whether the statistics of a column chunk of the row group have just one
// bound: writers leave out long ones. For arrow-go the other one is 0 or empty then.
func (r *parquetReader) halfBounded(leaf int) bool {
	s := r.file.metadata.RowGroups[r.group-1].Columns[leaf].MetaData.Statistics
	return s.IsSetMin() != s.IsSetMax() || s.IsSetMinValue() != s.IsSetMaxValue()
}

// statisticsMayMatch reports whether a predicate may be true for one of rows cells of a column with
// statistics.
func statisticsMayMatch(c *schema.Column, d decoder, s metadata.TypedStatistics, rows int64, p *batch.Predicate) bool {
	if rows > math.MaxInt32 || !s.HasNullCount() || s.NullCount() < 0 || s.NullCount() > rows {
		return true
	}
	z := cfile.ZoneMap{Type: c.Type, Entries: []cfile.ZoneEntry{{Rows: int(rows), Nulls: int(s.NullCount())}}}
	e := &z.Entries[0]
	switch {
	case p.Op == batch.IsNull || p.Op == batch.NotNull || e.Nulls == e.Rows:
		return z.MayMatch(0, p)
	case !s.HasMinMax():
		return true
	}
	low, high, ok := extremes(c, d, s)
	if !ok {
		return true
	}
	// Writers may store a bound instead of the lowest and the greatest value, and do not count
	// NaNs.
	e.HasNaN, e.MinCut = c.Type == schema.Float || c.Type == schema.Double, true
	e.Min, e.Max = sortable(c.Type, low), sortable(c.Type, high)
	return z.MayMatch(0, p)
}

// sortable returns a cell as bytes that sort as the values do.
func sortable(t schema.Type, cell []byte) []byte {
	if t.Variable() {
		return append([]byte{}, cell...)
	}
	return keyenc.AppendComparable([]byte{}, t, cell)
}

// extremes returns the cells of the lowest and the greatest value in statistics, false if they are
// no values of the column.
func extremes(c *schema.Column, d decoder, s metadata.TypedStatistics) (low, high []byte, ok bool) {
	v := batch.NewVector(c.Type, 2)
	var err error
	switch s := s.(type) {
	case *metadata.BooleanStatistics:
		err = decoded(d, v, s.Min(), s.Max())
	case *metadata.Int32Statistics:
		err = decoded(d, v, s.Min(), s.Max())
	case *metadata.Int64Statistics:
		err = decoded(d, v, s.Min(), s.Max())
	case *metadata.Float32Statistics:
		err = decoded(d, v, s.Min(), s.Max())
	case *metadata.Float64Statistics:
		err = decoded(d, v, s.Min(), s.Max())
	case *metadata.ByteArrayStatistics:
		if c.Type.Decimal() {
			return nil, nil, false // writers compare them in different ways
		}
		err = decoded(d, v, s.Min(), s.Max())
	default: // those of Int96 have no order; of fixed length are decimals
		return nil, nil, false
	}
	if err != nil {
		return nil, nil, false
	}
	low, high = v.Cell(0), v.Cell(1)
	return low, high, !notANumber(c.Type, low) && !notANumber(c.Type, high) && batch.Compare(c.Type, low, high) <= 0
}

// notANumber reports whether a cell is a NaN.
func notANumber(t schema.Type, cell []byte) bool {
	switch t {
	case schema.Float:
		return math.IsNaN(float64(math.Float32frombits(binary.LittleEndian.Uint32(cell))))
	case schema.Double:
		return math.IsNaN(math.Float64frombits(binary.LittleEndian.Uint64(cell)))
	}
	return false
}

// decoded sets the cells of v to values.
func decoded[R any](d decoder, v *batch.Vector, values ...R) error {
	t, ok := d.(*typed[R])
	if !ok {
		return ErrSchema
	}
	if t.direct != nil {
		copy(t.direct(v), values)
		return nil
	}
	return t.convert(v, values)
}
