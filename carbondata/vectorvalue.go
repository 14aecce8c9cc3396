package carbondata

import (
	"errors"
	"unsafe"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/schema"
)

// inCell adds the row of a page to an error, or the cell of a vector to an error about one value.
func inCell(err error, cell, row int) error {
	if bad, ok := errors.AsType[*unheld](err); ok {
		return &refusedValue{cell, bad}
	}
	return inside(err, "row %d", row)
}

// setValue sets a cell to a value as Rows returns it.
func setValue(v *batch.Vector, i int, value any) error {
	switch x := value.(type) {
	case nil:
		setNull(v, i)
	case bool:
		b := batch.Raw[uint8](v)
		if b[i] = 0; x {
			b[i] = 1
		}
	case int8:
		batch.Raw[int8](v)[i] = x
	case int16:
		batch.Raw[int16](v)[i] = x
	case int32:
		batch.Raw[int32](v)[i] = x
	case Days:
		batch.Raw[int32](v)[i] = int32(x)
	case int64:
		batch.Raw[int64](v)[i] = x
	case Micros:
		batch.Raw[int64](v)[i] = int64(x)
	case float32:
		batch.Raw[float32](v)[i] = x
	case float64:
		batch.Raw[float64](v)[i] = x
	case string:
		v.Bytes[i] = unsafe.Slice(unsafe.StringData(x), len(x))
	case []byte:
		v.Bytes[i] = x
	case batch.Int128:
		setDecimal(v, i, x)
	default:
		return fault.Unsupportedf("a value of type %T", value)
	}
	return nil
}

// setDecimal sets a cell to a DECIMAL, which has no more digits than the column.
func setDecimal(v *batch.Vector, i int, x batch.Int128) {
	switch v.Type {
	case schema.Decimal32:
		batch.Raw[int32](v)[i] = int32(x.Lo)
	case schema.Decimal64:
		batch.Raw[int64](v)[i] = int64(x.Lo)
	default:
		batch.Raw[batch.Int128](v)[i] = x
	}
}

func setNull(v *batch.Vector, i int) {
	v.NeedPresent().Clear(i)
	if v.Dict == nil && v.Type.Variable() {
		v.Bytes[i] = nil
	}
}

// markNulls makes the cells NULL whose null bits are set.
func (p *page) markNulls(v *batch.Vector, at, from, to int) {
	for row := from; row < min(to, 8*len(p.nulls)); row++ {
		if p.nulls[row/8] == 0 {
			row |= 7 // the other rows of this byte are not null either
			continue
		}
		if p.isNull(row) {
			setNull(v, at+row-from)
		}
	}
}

// fillValues decodes values one by one.
func (p *page) fillValues(v *batch.Vector, at, from, to int) error {
	for row := from; row < to; row++ {
		value, err := p.value(row)
		if err == nil {
			err = setValue(v, at+row-from, value)
		}
		if err != nil {
			return inCell(err, at+row-from, row)
		}
	}
	return nil
}
