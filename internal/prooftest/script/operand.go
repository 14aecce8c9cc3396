package script

import (
	"slices"
	"strings"

	"github.com/oribi-db/oribi"
)

// Operand is the kind of an operand, "" for a plain value.
type Operand string

// Kinds of operands.
const (
	Add       Operand = "add"
	Min       Operand = "min"
	Max       Operand = "max"
	SetIfNull Operand = "null"
	Append    Operand = "append"
)

// Of returns a value as an operand of the kind, or the value itself.
func (o Operand) Of(v any) any {
	switch o {
	case Add:
		return oribi.Add(v)
	case Min:
		return oribi.Min(v)
	case Max:
		return oribi.Max(v)
	case SetIfNull:
		return oribi.SetIfNull(v)
	case Append:
		return oribi.Append(v)
	}
	return v
}

// Operand returns the kind of the operand in column i, "" if it has none.
func (op *Op) Operand(i int) Operand {
	if op.Operands == nil {
		return ""
	}
	return op.Operands[i]
}

// operandsText returns the text of operands: their kinds, by column.
func operandsText(list []Operand) string {
	words := make([]string, len(list))
	for i, o := range list {
		words[i] = string(o)
	}
	return strings.Join(words, ",")
}

func parseOperands(text string) (list []Operand) {
	if text == "" {
		return nil
	}
	for w := range strings.SplitSeq(text, ",") {
		switch o := Operand(w); o {
		case "", Add, Min, Max, SetIfNull, Append:
			list = append(list, o)
		default:
			panic("unknown operand " + w)
		}
	}
	return list
}

// Computed reports whether an operation has an operand.
func (op *Op) Computed() bool {
	return slices.ContainsFunc(op.Operands, func(o Operand) bool { return o != "" })
}
