// Package operand computes the new cell of a column from the one before and an operand, as a write
// batch does for a column that has an operand instead of a value.
//
// All operands have one rule for NULL: the result is the operand. So the result does not depend on
// the order of additions, minima, and maxima, where they are exact. Functions are safe for
// concurrent use.
package operand

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/celltext"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/schema"
)

// Kind is what an operand does.
type Kind uint8

// The kinds of operands.
const (
	Add        Kind = iota + 1 // the sum
	Min                        // the lesser one
	Max                        // the greater one
	SetIfNull                  // the value before, unless it is NULL
	Append                     // the bytes before, then those of the operand
	AddCounter                 // the sum, of a binary column with counters of CounterBytes
)

var kindNames = [...]string{0: "Operand", Add: "Add", Min: "Min", Max: "Max", SetIfNull: "SetIfNull", Append: "Append",
	AddCounter: "Add"}

func (k Kind) String() string { return kindNames[k] }

// CounterBytes is the length of a counter in a binary column: an int64, big-endian.
const CounterBytes = 8

// ErrNotCounter is the error of AddCounter for a value of another length.
var ErrNotCounter = errors.New("the value is not a counter of 8 bytes")

// Operand is an operand for a column.
type Operand struct {
	Kind   Kind
	Column schema.ColumnID
	// Cell is a cell of the column; of Add to integers and decimals, 16 bytes with an Int128, since
	// what is added may be out of the column's range, as −1 is for unsigned integers. It is not NULL.
	Cell []byte
}

// Takes returns an error if an operand of kind k cannot be used with a column.
func (k Kind) Takes(c *schema.Column) error {
	t := c.Type
	ok := true
	switch k {
	case Add:
		ok = !t.Variable() && t != schema.Bool && t != schema.Date && t != schema.Timestamp
	case Append:
		ok = t.Variable() && t != schema.Array
	case Min, Max:
		ok = t != schema.Array
	case AddCounter:
		ok = t == schema.Binary
	}
	if !ok {
		return fmt.Errorf("%v does not take a column of type %s", k, c.TypeName())
	}
	return nil
}

// Wide reports whether the operand's cell is an Int128 although the column's may be smaller.
func (k Kind) Wide(t schema.Type) bool { return k == Add && !t.Float() }

// Apply returns the cell of column c after the operand: before itself, or the operand's own, or new
// memory; never nil. before is nil for NULL. No string or binary becomes longer than limit. Errors:
// ErrOverflow if the column cannot represent the result; ErrNotCounter.
func (o *Operand) Apply(c *schema.Column, before []byte, limit int) ([]byte, error) {
	switch {
	case o.Kind.Wide(c.Type):
		return o.addInteger(c, before)
	case o.Kind == AddCounter:
		return o.addCounter(before)
	case before == nil:
		return o.Cell, nil
	case o.Kind == Add:
		return o.addFloat(c, before)
	case o.Kind == Append:
		cell := append(append(make([]byte, 0, len(before)+len(o.Cell)), before...), o.Cell...)
		return cell, checkLength(c, cell, limit)
	case o.Kind == Min && order(c.Type, o.Cell, before) < 0, o.Kind == Max && order(c.Type, o.Cell, before) > 0:
		return o.Cell, nil
	}
	return before, nil
}

func checkLength(c *schema.Column, cell []byte, limit int) error {
	if len(cell) > limit {
		return fault.Reworded(fault.ErrOverflow, "Append: %v", fault.CellTooLong(len(cell), limit))
	}
	if err := celltext.CheckLength(c, cell); err != nil {
		return fault.Reworded(fault.ErrOverflow, "Append: the result %v", err)
	}
	return nil
}

// overflow returns the error for a sum that is out of range.
func overflow(c *schema.Column, before, operand any) error {
	return fault.Reworded(fault.ErrOverflow, "%v + %v is out of range for %s", before, operand, c.TypeName())
}

func (o *Operand) addInteger(c *schema.Column, before []byte) ([]byte, error) {
	var v batch.Int128
	if before != nil {
		v = batch.Int128OfCell(c.Type, before)
	}
	x := batch.Int128OfCell(schema.Int128, o.Cell)
	sum, ok := v.Add(x)
	width := c.Type.Width()
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:], sum.Lo)
	binary.LittleEndian.PutUint64(b[8:], uint64(sum.Hi))
	switch {
	case !c.Type.Decimal():
		if !ok || batch.Int128OfCell(c.Type, b[:width]) != sum {
			return nil, overflow(c, v, x)
		}
	case !ok || !sum.FitsDigits(c.Precision):
		return nil, overflow(c, batch.Decimal{Unscaled: v, Scale: c.Scale}, batch.Decimal{Unscaled: x, Scale: c.Scale})
	}
	return b[:width:width], nil
}

// addFloat adds numbers as the processor does. A sum of finite numbers that is not finite is an
// error. A sum that is NaN is math.NaN: which NaN a processor returns depends on its kind, and on the
// order in which the compiler has put the two numbers.
func (o *Operand) addFloat(c *schema.Column, before []byte) ([]byte, error) {
	le := binary.LittleEndian
	var v, x, sum float64
	var cell []byte
	if c.Type == schema.Float {
		a, b := math.Float32frombits(le.Uint32(before)), math.Float32frombits(le.Uint32(o.Cell))
		s := a + b
		if s != s {
			s = float32(math.NaN())
		}
		cell = le.AppendUint32(nil, math.Float32bits(s))
		v, x, sum = float64(a), float64(b), float64(s)
	} else {
		v, x = math.Float64frombits(le.Uint64(before)), math.Float64frombits(le.Uint64(o.Cell))
		if sum = v + x; sum != sum {
			sum = math.NaN()
		}
		cell = le.AppendUint64(nil, math.Float64bits(sum))
	}
	if math.IsInf(sum, 0) && !math.IsInf(v, 0) && !math.IsInf(x, 0) {
		return nil, overflow(c, v, x)
	}
	return cell, nil
}

func (o *Operand) addCounter(before []byte) ([]byte, error) {
	var v int64
	switch {
	case len(before) == CounterBytes:
		v = int64(binary.BigEndian.Uint64(before))
	case before != nil:
		return nil, fault.Reworded(ErrNotCounter, "a value of %d bytes: %v", len(before), ErrNotCounter)
	}
	x := int64(binary.BigEndian.Uint64(o.Cell))
	sum := v + x
	if (sum > v) != (x > 0) {
		return nil, fault.Reworded(fault.ErrOverflow, "%d + %d is out of range for a counter", v, x)
	}
	return binary.BigEndian.AppendUint64(nil, uint64(sum)), nil
}

// order compares cells in a total order: of floats, −0 is below +0, and NaN above +Inf.
func order(t schema.Type, a, b []byte) int {
	if !t.Float() {
		return batch.Compare(t, a, b)
	}
	x, y := rank(t, a), rank(t, b)
	switch {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

// rank returns a number for a float that sorts in the order of floats.
func rank(t schema.Type, cell []byte) int64 {
	var f float64
	if t == schema.Float {
		f = float64(math.Float32frombits(binary.LittleEndian.Uint32(cell)))
	} else {
		f = math.Float64frombits(binary.LittleEndian.Uint64(cell))
	}
	if f != f {
		return math.MaxInt64
	}
	bits := int64(math.Float64bits(f))
	return bits ^ bits>>63&math.MaxInt64
}

// Join returns the operand that does what o and then next do, on any cell, and whether that exists: sums of
// integers are exact, and of two numbers of one sign one is out of range if the sum of both is.
func (o *Operand) Join(next *Operand, c *schema.Column) (Operand, bool) {
	if o.Kind != next.Kind || o.Column != next.Column || !o.Kind.Wide(c.Type) {
		return Operand{}, false
	}
	a, b := batch.Int128OfCell(schema.Int128, o.Cell), batch.Int128OfCell(schema.Int128, next.Cell)
	sum, ok := a.Add(b)
	if !ok || a.Negative() != b.Negative() {
		return Operand{}, false
	}
	cell := binary.LittleEndian.AppendUint64(make([]byte, 0, 16), sum.Lo)
	return Operand{o.Kind, o.Column, binary.LittleEndian.AppendUint64(cell, uint64(sum.Hi))}, true
}
