package apply

import (
	"fmt"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/cell"
	"github.com/oribi-db/oribi/internal/jsonin"
	"github.com/oribi-db/oribi/internal/nearest"
	"github.com/oribi-db/oribi/internal/operand"
	"github.com/oribi-db/oribi/schema"
)

// operator is a kind of operand. In a row, an operand is an object with its name and a value, such as
// {"$add":1}: no column has objects as values.
type operator struct {
	kind operand.Kind
	of   func(v any) oribi.Operand
}

var operators = map[string]operator{
	"$add":         {operand.Add, oribi.Add},
	"$min":         {operand.Min, oribi.Min},
	"$max":         {operand.Max, oribi.Max},
	"$set_if_null": {operand.SetIfNull, oribi.SetIfNull},
	"$append":      {operand.Append, oribi.Append},
}

// appendOperand parses the operand for a column. Its value is in memory that is appended to dst.
func appendOperand(dst []byte, c *schema.Column, object []byte) (grown []byte, o oribi.Operand, err error) {
	var name string
	var value []byte
	members := 0
	for w := jsonin.Walk(object); w.Next(); members++ {
		name, value = string(w.Name), w.Value
	}
	if members != 1 {
		return dst, o, fmt.Errorf(`want a value, or an operand such as {"$add":1}, not an object with %d members`, members)
	}
	op, ok := operators[name]
	if !ok {
		return dst, o, fmt.Errorf("unknown operand %q%s", name, nearest.Hint(name, nearest.Keys(operators)))
	}
	if err := op.kind.Takes(c); err != nil {
		return dst, o, err
	}
	if jsonin.IsNull(value) {
		return dst, o, fmt.Errorf("%s: NULL", name)
	}
	column := *c
	if op.kind.Wide(c.Type) { // what is added may be out of the column's range
		if column.Type = schema.Int128; c.Type.Decimal() {
			column.Type, column.Precision = schema.Decimal128, schema.MaxPrecision
		}
	}
	from := len(dst)
	if dst, err = cell.FromJSON(dst, &column, value); err != nil {
		return dst, o, fmt.Errorf("%s: %w", name, err)
	}
	return dst, op.of(oribi.Cell(dst[from:len(dst):len(dst)])), nil
}
