package oribi

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/oribi-db/oribi/internal/cell"
	"github.com/oribi-db/oribi/internal/celltext"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/tablet"
	"github.com/oribi-db/oribi/schema"
)

// SetType changes the type of a column that is not in the key, in all rows and all their versions: a
// read as of an earlier time returns the value of that time, in the new type. Of to, only Type,
// Element, Precision, Scale, and Length count: the column keeps its name, its place, its nullability,
// and the rest.
//
// Each value of each version that the table's history keeps must fit exactly. Otherwise Alter changes
// nothing and returns ErrRow, with the key, the time, and the value of the first row that does not
// fit. Numbers become numbers of the same value. A date becomes the timestamp of its midnight in UTC,
// and such a timestamp becomes a date. A string becomes a value of any type by the rules of a field of
// a CSV file, and a value of any type becomes the string that the command prints. Arrays change element
// by element. Other pairs of types are ErrUnsupported. Rows must not expire by the column, also not in the
// table's history.
//
// Alter compacts the table while writers continue, and then rewrites all rows while writers wait. Until
// it ends it needs the space of the table twice. Operations that were added to a write batch or a
// transaction before it fail with ErrConflict. The struct type of a TableOf must have the new type:
// call Typed again.
func SetType(column string, to schema.Column) Change {
	return func(d *draft) error {
		if err := d.keepsExpiry(column); err != nil {
			return err
		}
		var convert tablet.Conversion
		before, after, err := d.schema.Retype(column, to, func(from, to *schema.Column) (err error) {
			if convert, err = conversion(from, to); err != nil || from.Default == nil {
				return err
			}
			if to.Default, err = convert([]byte{}, from.Default); err != nil {
				return fmt.Errorf("the default does not fit %s: %w: %w", to.TypeName(), err, fault.ErrSchema)
			}
			return nil
		})
		if err != nil || before == after {
			return err
		}
		for i := range d.retypes {
			if r := &d.retypes[i]; r.To == before { // by an earlier change of the same Alter
				first := r.Convert
				r.To, r.Convert = after, func(dst, cell []byte) ([]byte, error) {
					between, err := first([]byte{}, cell)
					if err != nil {
						return dst, err
					}
					return convert(dst, between)
				}
				return nil
			}
		}
		d.retypes = append(d.retypes, tablet.Retype{From: before, To: after, Convert: convert})
		return nil
	}
}

// conversion returns the conversion of the cells of column from to those of column to. Errors:
// ErrUnsupported.
func conversion(from, to *schema.Column) (tablet.Conversion, error) {
	a, b := *from, *to // the columns may change before the conversion is called
	from, to = &a, &b
	number := func(t schema.Type) bool {
		return t != schema.Bool && t != schema.Date && t != schema.Timestamp && !t.Variable()
	}
	switch {
	case isText(from.Type):
		return func(dst, text []byte) ([]byte, error) {
			if to.Type == schema.String || to.Type == schema.Varchar {
				return append(dst, text...), checkText(to, text)
			}
			return cell.FromField(dst, to, text)
		}, nil
	case isText(to.Type):
		return func(dst, value []byte) ([]byte, error) {
			text := celltext.AppendText(nil, from, value)
			return append(dst, text...), checkText(to, text)
		}, nil
	case from.Type == schema.Array && to.Type == schema.Array:
		fromElement, toElement := from.Elements(), to.Elements()
		convert, err := conversion(&fromElement, &toElement)
		if err != nil {
			return nil, err
		}
		return func(dst, value []byte) ([]byte, error) {
			elements, err := schema.ArrayElements(nil, from.Element, value)
			if err != nil {
				return dst, err
			}
			for i, e := range elements {
				if e == nil {
					continue
				}
				if elements[i], err = convert([]byte{}, e); err != nil {
					return dst, fmt.Errorf("element %d: %w", i, err)
				}
			}
			return schema.AppendArray(dst, to.Element, elements), nil
		}, nil
	case from.Type == to.Type && !from.Type.Decimal():
		return func(dst, value []byte) ([]byte, error) { return append(dst, value...), nil }, nil
	case from.Type == schema.Bool && number(to.Type):
		return func(dst, value []byte) ([]byte, error) { return appendValue(dst, to, int64(value[0])) }, nil
	case number(from.Type) && to.Type == schema.Bool:
		zero, one := []byte{0}, []byte{1}
		return func(dst, value []byte) ([]byte, error) {
			n, err := convertNumber(nil, from, &schema.Column{Type: schema.Int8}, value)
			if err == nil && !bytes.Equal(n, zero) && !bytes.Equal(n, one) {
				err = errors.New("only 0 and 1 are bool values")
			}
			return append(dst, n...), err
		}, nil
	case number(from.Type) && number(to.Type):
		return func(dst, value []byte) ([]byte, error) { return convertNumber(dst, from, to, value) }, nil
	case from.Type == schema.Date && to.Type == schema.Timestamp:
		return func(dst, value []byte) ([]byte, error) { return appendTime(dst, to.Type, timeOf(from.Type, value)) }, nil
	case from.Type == schema.Timestamp && to.Type == schema.Date:
		return func(dst, value []byte) ([]byte, error) {
			t := timeOf(from.Type, value)
			if !t.Equal(t.Truncate(24 * time.Hour)) {
				return dst, errors.New("its time of day is not midnight")
			}
			return appendTime(dst, to.Type, t)
		}, nil
	}
	return nil, fault.Unsupportedf("a change from %s to %s", from.TypeName(), to.TypeName())
}

// convertNumber appends the cell of a number that has the value exactly.
func convertNumber(dst []byte, from, to *schema.Column, value []byte) ([]byte, error) {
	v := valueOf(from, value)
	if d, ok := v.(Decimal); ok && isFloat(to.Type) {
		// The float that stands for the same decimal number.
		f := d.float()
		out, err := appendFloat(dst, to.Type, f)
		if err != nil {
			return dst, err
		}
		size := 64
		if to.Type == schema.Float {
			size = 32
		}
		near, err := shortestDecimal(f, size)
		if err == nil {
			var back Int128
			if back, err = near.rescale(d.Scale); err == nil && back != d.Unscaled {
				err = fmt.Errorf("%v cannot be represented as %s", d, to.TypeName())
			}
		}
		return out, err
	}
	if d, ok := v.(Decimal); ok && !to.Type.Decimal() {
		whole, err := d.rescale(0)
		if err != nil {
			return dst, err
		}
		v = whole
	}
	if f, ok := v.(float64); ok && to.Type == schema.Float {
		if float64(float32(f)) != f && f == f {
			return dst, fmt.Errorf("%v cannot be represented exactly as %s", f, to.TypeName())
		}
		return binary.LittleEndian.AppendUint32(dst, math.Float32bits(float32(f))), nil
	}
	return appendValue(dst, to, v)
}
