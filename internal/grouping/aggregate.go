package grouping

import (
	"strings"

	"github.com/oribi-db/oribi/internal/bind"
)

// Aggregate is a value that is computed from the rows of a group.
type Aggregate struct {
	Kind   Kind
	Column string
	Terms  []Term // of a sum of products
}

// Term is a factor of a sum of products.
type Term struct {
	bind.Term
	Err error // of the first constant that does not fit
}

// Kind is the kind of an aggregate.
type Kind uint8

// The kinds of aggregates.
const (
	CountRows Kind = iota + 1
	CountOf
	SumOf
	MinOf
	MaxOf
	AvgOf
)

var names = map[Kind]string{CountOf: "count", SumOf: "sum", MinOf: "min", MaxOf: "max", AvgOf: "avg"}

// String returns a in the syntax of SQL.
func (a Aggregate) String() string {
	if a.Kind == CountRows {
		return "count(*)"
	}
	argument := bind.QuoteName(a.Column)
	if a.Kind == SumOf {
		texts := make([]string, len(a.Terms))
		for i, t := range a.Terms {
			texts[i] = t.String()
		}
		if argument = strings.Join(texts, " * "); len(texts) == 1 {
			argument = strings.TrimSuffix(strings.TrimPrefix(argument, "("), ")")
		}
	}
	return names[a.Kind] + "(" + argument + ")"
}
