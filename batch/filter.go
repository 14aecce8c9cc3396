package batch

import (
	"iter"

	"github.com/oribi-db/oribi/schema"
)

// Filter is a tree of predicates on the columns of a row, combined by And, Or and Not. The zero
// Filter is true for every row.
//
// Evaluation is two-valued: a predicate on a NULL is true or false, never unknown, and Not inverts
// it. Callers that need SQL's three-valued logic push Not down to the predicates and add NotNull to
// each.
//
// A Filter is immutable and safe for concurrent use. Its predicates must be prepared
// (Predicate.Prepare) and name their columns by ID.
type Filter struct {
	kind     filterKind
	test     *Predicate
	children []Filter
}

type filterKind uint8

const (
	filterAnd filterKind = iota // true without children
	filterOr                    // false without children
	filterNot                   // has one child
	filterTest
)

// Test returns a filter that consists of one predicate.
func Test(p Predicate) Filter { return Filter{kind: filterTest, test: &p} }

// And returns a filter that is true where all filters are true. They are evaluated in order, each
// on the rows that passed the ones before it.
func And(filters ...Filter) Filter { return join(filterAnd, filters) }

// Or returns a filter that is true where at least one of the filters is true.
func Or(filters ...Filter) Filter { return join(filterOr, filters) }

// Not returns a filter that is true where f is false.
func Not(f Filter) Filter { return Filter{kind: filterNot, children: []Filter{f}} }

// join combines filters into one node, replacing filters of the same kind by their children: the
// And of a, and of an And of b and c, has the children a, b, c.
func join(kind filterKind, filters []Filter) Filter {
	if len(filters) == 1 {
		return filters[0]
	}
	out := Filter{kind: kind}
	for _, f := range filters {
		if f.kind == kind {
			out.children = append(out.children, f.children...)
		} else {
			out.children = append(out.children, f)
		}
	}
	return out
}

// All reports whether f is empty and therefore true for every row.
func (f *Filter) All() bool { return f.kind == filterAnd && len(f.children) == 0 }

// Conjuncts yields filters that are all true where f is: the children of an And, otherwise f
// itself. The filters are read-only.
func (f *Filter) Conjuncts() iter.Seq[*Filter] {
	return func(yield func(*Filter) bool) {
		if f.kind != filterAnd {
			yield(f)
			return
		}
		for i := range f.children {
			if !yield(&f.children[i]) {
				return
			}
		}
	}
}

// Predicate returns the predicate that f consists of, nil if it is a tree.
func (f *Filter) Predicate() *Predicate { return f.test }

// Tests yields the predicates of f, in the order of the tree.
func (f *Filter) Tests() iter.Seq[*Predicate] {
	return func(yield func(*Predicate) bool) { f.tests(yield) }
}

func (f *Filter) tests(yield func(*Predicate) bool) bool {
	if f.kind == filterTest {
		return yield(f.test)
	}
	for i := range f.children {
		if !f.children[i].tests(yield) {
			return false
		}
	}
	return true
}

// EvalRow reports whether f is true for one row. cell returns the cell of a column, nil for NULL.
func (f *Filter) EvalRow(cell func(schema.ColumnID) []byte) bool {
	switch f.kind {
	case filterTest:
		return f.test.EvalCell(cell(f.test.ID))
	case filterNot:
		return !f.children[0].EvalRow(cell)
	}
	for i := range f.children {
		if f.children[i].EvalRow(cell) == (f.kind == filterOr) {
			return f.kind == filterOr
		}
	}
	return f.kind == filterAnd
}

// FilterEval evaluates filters on a sequence of batches and reuses the bitmaps of inner nodes. Its
// zero value is ready for use. Not safe for concurrent use.
type FilterEval struct {
	free []Bitmap
}

// Eval clears the bits of sel for which f is not true and sets none. test does the same for one
// predicate; Eval calls it only with a bitmap that has a bit set, which avoids reading columns that
// cannot change the result, and for a predicate that rests with another one on the same column (see
// Predicate.MayRest). Eval returns the first error of test.
func (e *FilterEval) Eval(f *Filter, sel Bitmap, test func(p *Predicate, sel Bitmap) error) error {
	switch f.kind {
	case filterTest:
		return f.test.eval(sel, test)
	case filterNot:
		passed := e.copyOf(sel)
		defer e.release(passed)
		if err := e.Eval(&f.children[0], passed, test); err != nil {
			return err
		}
		sel.AndNot(passed)
		return nil
	case filterOr:
		return e.or(f.children, sel, test)
	}
	for i := range f.children {
		if !sel.Any() {
			return nil
		}
		if err := e.Eval(&f.children[i], sel, test); err != nil {
			return err
		}
	}
	return nil
}

// or evaluates each filter on the rows for which no earlier one was true.
func (e *FilterEval) or(filters []Filter, sel Bitmap, test func(p *Predicate, sel Bitmap) error) error {
	rest, passed := e.copyOf(sel), e.copyOf(sel)
	defer e.release(rest)
	defer e.release(passed)
	for i := range filters {
		if !rest.Any() {
			break
		}
		copy(passed, rest)
		if err := e.Eval(&filters[i], passed, test); err != nil {
			return err
		}
		rest.AndNot(passed)
	}
	sel.AndNot(rest)
	return nil
}

// copyOf returns a copy of sel, to be passed to release after use.
func (e *FilterEval) copyOf(sel Bitmap) Bitmap {
	var b Bitmap
	if n := len(e.free); n > 0 {
		b, e.free = e.free[n-1], e.free[:n-1]
	}
	return append(b[:0], sel...)
}

func (e *FilterEval) release(b Bitmap) { e.free = append(e.free, b) }
