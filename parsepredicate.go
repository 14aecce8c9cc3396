package oribi

import (
	"fmt"

	"github.com/oribi-db/oribi/internal/where"
	"github.com/oribi-db/oribi/schema"
)

// ParsePredicate returns the predicate that an expression about columns describes, such as
//
//	size > 100 and (mode = '100644' or path like 'docs/%' or path like '%.md')
//
// It is the syntax of the command's flag --where, which docs/command.md describes. Errors name the
// column or the byte, counted from 1.
func ParsePredicate(columns []schema.Column, expression string) (Predicate, error) {
	e, err := where.Parse(columns, expression)
	if err != nil {
		return Predicate{}, fmt.Errorf("oribi: expression: %w", err)
	}
	return expressionPredicate(e), nil
}

var expressionOps = map[where.Op]func(column string, value any) Predicate{where.Eq: Eq, where.Ne: Ne, where.Lt: Lt,
	where.Le: Le, where.Gt: Gt, where.Ge: Ge, where.Prefix: HasPrefix}

// expressionPredicate returns the predicate of an expression.
func expressionPredicate(e *where.Expr) Predicate {
	var operands []Predicate
	for _, o := range e.Operands {
		operands = append(operands, expressionPredicate(o))
	}
	var cells []Cell
	for _, c := range e.Cells {
		cells = append(cells, c)
	}
	switch e.Op {
	case where.And:
		return And(operands...)
	case where.Or:
		return Or(operands...)
	case where.Not:
		return Not(operands[0])
	case where.In:
		return In(e.Column.Name, cells...)
	case where.Between:
		return Between(e.Column.Name, cells[0], cells[1])
	case where.Like:
		p := Predicate{kind: isLike, column: e.Column.Name}
		for _, c := range cells {
			p.values = append(p.values, c)
		}
		return p
	case where.IsNull:
		return IsNull(e.Column.Name)
	}
	return expressionOps[e.Op](e.Column.Name, cells[0])
}
