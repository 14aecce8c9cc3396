package bind

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/operand"
	"github.com/oribi-db/oribi/schema"
)

// Operand is an operand as a Go value.
type Operand struct {
	Kind  operand.Kind
	Value any
}

// CounterOf returns the operand that adds to a counter in a binary column. See operand.AddCounter.
func CounterOf(delta int64) Operand { return Operand{operand.AddCounter, delta} }

// errOperand is the error of a read into a field that is an operand, and of an ingest of it.
var errOperand = errors.New("the field is an operand, which only updates and upserts take")

// isOperand reports whether t is the exported type that has an Operand as its only field.
func isOperand(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && t.NumField() == 1 && t.Field(0).Type == reflect.TypeFor[Operand]()
}

var errNullOperand = errors.New("an operand that is NULL")

// Of returns the operand for a column. Its memory is its own.
func (o Operand) Of(c *schema.Column) (operand.Operand, error) {
	out := operand.Operand{Kind: o.Kind, Column: c.ID}
	if o.Kind == 0 {
		return out, errors.New("an operand that is empty: use Add, Min, Max, SetIfNull, or Append")
	}
	err := o.Kind.Takes(c)
	if err == nil {
		out.Cell, err = o.cell(c)
	}
	if err == nil && out.Cell == nil {
		err = errNullOperand
	}
	if err != nil {
		return out, fmt.Errorf("%v: %w", o, err)
	}
	return out, nil
}

// String returns a text such as Add(1).
func (o Operand) String() string { return fmt.Sprintf("%v(%s)", o.Kind, Clip(Literal(o.Value))) }

func (o Operand) cell(c *schema.Column) ([]byte, error) {
	if o.Kind == operand.AddCounter {
		return binary.BigEndian.AppendUint64(nil, uint64(o.Value.(int64))), nil
	}
	cell, err := Append(nil, c, o.Value)
	switch {
	case !o.Kind.Wide(c.Type):
		return bytes.Clone(cell), err
	case err == nil && cell != nil:
		return appendWidth(nil, batch.Int128OfCell(c.Type, cell), MaxWidth), nil
	case err == nil:
		return nil, nil
	}
	wide := *c
	wide.Type = schema.Int128
	if c.Type.Decimal() {
		wide.Type, wide.Precision = schema.Decimal128, schema.MaxPrecision
	}
	if cell, wider := Append(nil, &wide, o.Value); wider == nil {
		return cell, nil
	}
	return nil, err
}
