package carbondata

import (
	"errors"
	"fmt"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/schema"
)

// source is a vector of a batch as values of a column.
type source struct {
	column *Column
	typ    schema.Type // of the vector
	v      *batch.Vector
	array  *source // of the elements, if v is in array form
}

func newSource(c *Column, t schema.Column, v *batch.Vector) (source, error) {
	s := source{column: c, typ: t.Type, v: v}
	if t.Type == schema.Array && c.Type == Array {
		if len(c.Children) != 1 {
			return s, fmt.Errorf("%s", c.TypeName())
		}
		if v.Elements == nil { // packed cells
			unpacked := batch.NewArrays(t.Element)
			if err := unpacked.AppendUnpacked(v, 0, v.Len); err != nil {
				return s, err
			}
			s.v = unpacked
		}
		elements, err := newSource(&c.Children[0], t.Elements(), s.v.Elements)
		if err != nil {
			return s, fmt.Errorf("elements: %w", err)
		}
		s.array = &elements
		return s, nil
	}
	ok := false
	switch c.Type {
	case Boolean:
		ok = t.Type == schema.Bool
	case Byte:
		ok = t.Type == schema.Int8
	case Short:
		ok = t.Type == schema.Int8 || t.Type == schema.Uint8 || t.Type == schema.Int16
	case Int:
		ok = t.Type == schema.Int16 || t.Type == schema.Uint16 || t.Type == schema.Int32
	case Long:
		ok = t.Type == schema.Int32 || t.Type == schema.Uint32 || t.Type == schema.Int64 || t.Type == schema.Uint64
	case Float:
		ok = t.Type == schema.Float
	case Double:
		ok = t.Type == schema.Double
	case Decimal:
		ok = t.Type.Decimal() && t.Precision <= c.Precision && t.Scale == c.Scale
	case Date:
		ok = t.Type == schema.Date
	case Timestamp:
		ok = t.Type == schema.Timestamp
	case String, Varchar:
		ok = t.Type == schema.String || t.Type == schema.Varchar
	case Binary:
		ok = t.Type == schema.Binary
	}
	if !ok {
		return s, fmt.Errorf("values of type %s for %s", t.TypeName(), c.TypeName())
	}
	return s, nil
}

// addSize adds the size of a row to n.
func (s *source) addSize(r int, n *rowSize) {
	switch {
	case s.array != nil:
		from, to := s.v.Array(r)
		n.values += to - from
		for e := from; e < to && s.array.typ.Variable(); e++ {
			n.bytes += len(s.array.v.Cell(e))
		}
	case s.typ.Variable():
		n.bytes += len(s.v.Cell(r))
	}
}

// add adds the values of rows to c.
func (s *source) add(c *columnWriter, rows []int) error {
	if s.array != nil {
		return s.addArrays(c, rows)
	}
	switch s.typ.Width() {
	case 0:
		return s.addTexts(c, rows)
	case 16:
		return s.addDecimals(c, rows)
	}
	switch s.typ {
	case schema.Float:
		return addFloats[float32](s, c, rows)
	case schema.Double:
		return addFloats[float64](s, c, rows)
	case schema.Bool, schema.Uint8:
		return addInts[uint8](s, c, rows)
	case schema.Int8:
		return addInts[int8](s, c, rows)
	case schema.Int16:
		return addInts[int16](s, c, rows)
	case schema.Uint16:
		return addInts[uint16](s, c, rows)
	case schema.Uint32:
		return addInts[uint32](s, c, rows)
	case schema.Uint64:
		return addInts[uint64](s, c, rows)
	}
	if s.typ.Width() == 4 {
		return addInts[int32](s, c, rows)
	}
	return addInts[int64](s, c, rows)
}

// null adds the NULL of row r.
func (s *source) null(c *columnWriter, r int) error {
	if err := c.checkNull(); err != nil {
		return &refusedValue{r, err}
	}
	c.addNull()
	return nil
}

// addInts adds integers of type T as values of an integer type, BOOLEAN, DATE, TIMESTAMP, or
// DECIMAL.
func addInts[T int8 | uint8 | int16 | uint16 | int32 | uint32 | int64 | uint64](
	s *source, c *columnWriter, rows []int,
) error {
	values := batch.Values[T](s.v)
	for _, r := range rows {
		if s.v.IsNull(r) {
			if err := s.null(c, r); err != nil {
				return err
			}
			continue
		}
		n, err := s.int(int64(values[r]))
		if err != nil {
			return &refusedValue{r, err}
		}
		if c.Type == Decimal {
			c.addDecimal(batch.Int128Of(n))
		} else {
			c.addInt(n)
		}
	}
	return nil
}

// int checks an integer, and returns it as addInt takes it.
func (s *source) int(n int64) (int64, error) {
	switch s.column.Type {
	case Date, Timestamp:
		return storedInt(s.column.Type, n)
	case Decimal:
		return n, checkDecimal(s.column, batch.Int128Of(n))
	case Long:
		if s.typ == schema.Uint64 && n < 0 {
			return 0, fmt.Errorf("%d is out of the range of LONG", uint64(n))
		}
	}
	return n, nil
}

func addFloats[T float32 | float64](s *source, c *columnWriter, rows []int) error {
	values := batch.Values[T](s.v)
	for _, r := range rows {
		if s.v.IsNull(r) {
			if err := s.null(c, r); err != nil {
				return err
			}
			continue
		}
		c.addFloat(float64(values[r]))
	}
	return nil
}

func (s *source) addDecimals(c *columnWriter, rows []int) error {
	values := batch.Values[batch.Int128](s.v)
	for _, r := range rows {
		if s.v.IsNull(r) {
			if err := s.null(c, r); err != nil {
				return err
			}
			continue
		}
		if err := checkDecimal(s.column, values[r]); err != nil {
			return &refusedValue{r, err}
		}
		c.addDecimal(values[r])
	}
	return nil
}

func (s *source) addTexts(c *columnWriter, rows []int) error {
	for _, r := range rows {
		if s.v.IsNull(r) {
			if err := s.null(c, r); err != nil {
				return err
			}
			continue
		}
		b := s.v.Cell(r)
		if err := checkText(s.column, b); err != nil {
			return &refusedValue{r, err}
		}
		c.addBytes(b)
	}
	return nil
}

func (s *source) addArrays(c *columnWriter, rows []int) error {
	var elements []int
	for _, r := range rows {
		if s.v.IsNull(r) {
			c.addNull()
			continue
		}
		from, to := s.v.Array(r)
		if to-from == 1 && s.array.v.IsNull(from) {
			return &refusedValue{r, errOneNull(Array)}
		}
		elements = elements[:0]
		for e := from; e < to; e++ {
			elements = append(elements, e)
		}
		c.addElements(len(elements))
		if err := s.array.add(c.children[0], elements); err != nil {
			if bad, ok := errors.AsType[*refusedValue](err); ok {
				err = fmt.Errorf("element %d: %w", bad.row-from, bad.error)
			}
			return &refusedValue{r, err}
		}
	}
	return nil
}

// value returns the value of a row as Append takes it.
func (s *source) value(r int) any {
	if s.v.IsNull(r) {
		return nil
	}
	if s.array != nil {
		from, to := s.v.Array(r)
		list := make([]any, 0, to-from)
		for e := from; e < to; e++ {
			list = append(list, s.array.value(e))
		}
		return list
	}
	switch s.column.Type {
	case String, Varchar:
		return string(s.v.Cell(r))
	case Binary:
		return s.v.Cell(r)
	case Float:
		return batch.Values[float32](s.v)[r]
	case Double:
		return batch.Values[float64](s.v)[r]
	case Decimal:
		switch s.typ.Width() {
		case 4:
			return batch.Int128Of(int64(batch.Values[int32](s.v)[r]))
		case 8:
			return batch.Int128Of(batch.Values[int64](s.v)[r])
		}
		return batch.Values[batch.Int128](s.v)[r]
	}
	return ofNumber(s.column.Type, s.number(r))
}

// number returns an integer of the vector.
func (s *source) number(r int) int64 {
	switch s.typ {
	case schema.Bool, schema.Uint8:
		return int64(batch.Values[uint8](s.v)[r])
	case schema.Int8:
		return int64(batch.Values[int8](s.v)[r])
	case schema.Int16:
		return int64(batch.Values[int16](s.v)[r])
	case schema.Uint16:
		return int64(batch.Values[uint16](s.v)[r])
	case schema.Uint32:
		return int64(batch.Values[uint32](s.v)[r])
	case schema.Uint64:
		return int64(batch.Values[uint64](s.v)[r])
	case schema.Int32, schema.Date:
		return int64(batch.Values[int32](s.v)[r])
	}
	return batch.Values[int64](s.v)[r]
}

// checkUnsigned refuses a number that no LONG holds.
func (s *source) checkUnsigned(r int) error {
	if s.typ != schema.Uint64 || s.v.IsNull(r) {
		return nil
	}
	_, err := s.int(s.number(r))
	return err
}
