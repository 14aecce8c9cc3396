package arrowio

import (
	"bytes"
	"encoding/binary"
	"math"

	"github.com/apache/arrow-go/v18/parquet"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/cfile"
	"github.com/oribi-db/oribi/keyenc"
	"github.com/oribi-db/oribi/schema"
)

// Statistics of column chunks are used only where what they mean is certain:
//
//   - A count of NULLs that is absent is not 0. Some writers count none in chunks with dictionaries,
//     so only the counts of this package are used.
//   - The bounds min_value and max_value are in the order of the type if the file says so
//     (column_orders). The older min and max are in the order of signed integers and of floats;
//     their order for byte strings and unsigned integers was not defined.
//   - Some writers let NaN be a bound, or both: then there are none. −0 and +0 are equal.
//   - A bound may be absent, shortened, or of another type than the values.

// mayMatch reports whether the filter may be true for a row of a row group. It uses the predicates
// that must all be true, and the statistics of their columns.
func (r *parquetReader) mayMatch(group int) bool {
	for f := range r.filter.filter.Conjuncts() {
		p := f.Predicate()
		if p == nil {
			continue
		}
		c := r.columns[r.filter.column(p)]
		if !c.leaf.list && !r.file.chunkMayMatch(group, c, p) {
			return false
		}
	}
	return true
}

// chunkMayMatch reports whether a predicate may be true for a cell of a column chunk.
func (p *parquetSource) chunkMayMatch(group int, c *leafReader, test *batch.Predicate) bool {
	rows := p.metadata.RowGroups[group].NumRows
	if rows < 0 || rows > math.MaxInt32 {
		return true
	}
	z := cfile.ZoneMap{Type: c.column.Type, Entries: []cfile.ZoneEntry{{Rows: int(rows)}}}
	e := &z.Entries[0]
	s := p.metadata.RowGroups[group].Columns[c.leaf.index].MetaData.Statistics
	counted := !c.leaf.nullable
	if !counted && s != nil && s.IsSetNullCount() && p.metadata.GetCreatedBy() == createdBy {
		n := s.GetNullCount()
		counted = n >= 0 && n <= rows
		e.Nulls = int(n)
	}
	switch {
	case test.Op == batch.IsNull || test.Op == batch.NotNull:
		return !counted || z.MayMatch(0, test)
	case counted && e.Nulls == e.Rows:
		return false // NULL matches nothing else
	case s == nil:
		return true
	}
	least, most := s.MinValue, s.MaxValue
	if s.Min != nil && s.Max != nil && least == nil && most == nil && signedOrder(&c.column) {
		least, most = s.Min, s.Max
	} else if !p.ordered(c) {
		return true
	}
	if least == nil || most == nil {
		return true
	}
	low, high, ok := extremes(c, least, most)
	if !ok {
		return true
	}
	// Bounds need not be values, and writers do not count NaNs.
	e.Nulls, e.HasNaN, e.MinCut = 0, c.column.Type == schema.Float || c.column.Type == schema.Double, true
	e.Min, e.Max = sortable(c.column.Type, low), sortable(c.column.Type, high)
	return z.MayMatch(0, test)
}

// signedOrder reports whether the values of a column are in the order that min and max always had.
func signedOrder(c *schema.Column) bool {
	switch c.Type {
	case schema.Uint8, schema.Uint16, schema.Uint32, schema.Uint64:
		return false
	}
	return !c.Type.Variable()
}

// ordered reports whether min_value and max_value of a column are in the order of its type.
func (p *parquetSource) ordered(c *leafReader) bool {
	orders := p.metadata.ColumnOrders
	if c.leaf.index >= len(orders) {
		return false
	}
	order := orders[c.leaf.index]
	total := c.column.Type == schema.Float || c.column.Type == schema.Double // as in IEEE 754
	return order.IsSetTYPE_ORDER() || total && order.IsSetIEEE_754_TOTAL_ORDER()
}

// sortable returns a cell as bytes that sort as the values do.
func sortable(t schema.Type, cell []byte) []byte {
	if t.Variable() {
		return append([]byte{}, cell...)
	}
	return keyenc.AppendComparable([]byte{}, t, cell)
}

// extremes returns two bounds of a column chunk as cells: no value is lower or greater. It returns
// false if they are none.
func extremes(c *leafReader, least, most []byte) (low, high []byte, ok bool) {
	t := c.column.Type
	v := batch.NewVector(t, 2)
	var err error
	switch physical := c.leaf.node.PhysicalType(); {
	case physical == parquet.Types.ByteArray && t.Variable():
		return least, most, bytes.Compare(least, most) <= 0
	case len(least) != plainWidths[physical] || len(most) != len(least):
		return nil, nil, false
	case physical == parquet.Types.Boolean:
		err = decoded(c.values, v, least[0]&1 != 0, most[0]&1 != 0)
	case physical == parquet.Types.Int32:
		err = decoded(c.values, v, int32(binary.LittleEndian.Uint32(least)), int32(binary.LittleEndian.Uint32(most)))
	case physical == parquet.Types.Int64:
		err = decoded(c.values, v, int64(binary.LittleEndian.Uint64(least)), int64(binary.LittleEndian.Uint64(most)))
	case physical == parquet.Types.Float:
		err = decoded(c.values, v, math.Float32frombits(binary.LittleEndian.Uint32(least)),
			math.Float32frombits(binary.LittleEndian.Uint32(most)))
	case physical == parquet.Types.Double:
		err = decoded(c.values, v, math.Float64frombits(binary.LittleEndian.Uint64(least)),
			math.Float64frombits(binary.LittleEndian.Uint64(most)))
	}
	if err != nil {
		return nil, nil, false
	}
	low, high = v.Cell(0), v.Cell(1)
	return low, high, !notANumber(t, low) && !notANumber(t, high) && batch.Compare(t, low, high) <= 0
}

// plainWidths are the bytes of a bound, by its type. Bounds of other types are not used: Int96 had
// no defined order, and writers compare decimals that are byte strings in different ways.
var plainWidths = map[parquet.Type]int{
	parquet.Types.Boolean: 1, parquet.Types.Int32: 4, parquet.Types.Int64: 8,
	parquet.Types.Float: 4, parquet.Types.Double: 8,
	parquet.Types.Int96: -1, parquet.Types.ByteArray: -1, parquet.Types.FixedLenByteArray: -1,
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
