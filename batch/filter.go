package batch

import (
	"iter"

	"github.com/oribi-db/oribi/schema"
)

// Filter is a tree of predicates over the columns of a row: And, Or and Not over tests of one
// column. The zero Filter is true of every row.
//
// A Filter knows two truth values: a predicate that is not true of a NULL is false of it, and Not
// makes that true. Callers with SQL's three values move Not down to the predicates and add NotNull
// to each.
//
// A Filter is immutable; all goroutines may use it. Its predicates are prepared (Predicate.Prepare)
// and name their columns by ID.
type Filter struct {
	kind     filterKind
	test     *Predicate
	children []Filter
}

type filterKind uint8

const (
	filterAnd filterKind = iota // of no children: true
	filterOr                    // of no children: false
	filterNot                   // of one child
	filterTest
)

// Test is the filter of one predicate.
func Test(p Predicate) Filter { return Filter{kind: filterTest, test: &p} }

// And is true where all filters are. It evaluates them in their order, each on the rows that the
// ones before left.
func And(filters ...Filter) Filter { return join(filterAnd, filters) }

// Or is true where one of the filters is; of none, nowhere.
func Or(filters ...Filter) Filter { return join(filterOr, filters) }

// Not is true where f is false.
func Not(f Filter) Filter { return Filter{kind: filterNot, children: []Filter{f}} }

// join makes one node of filters and of the children of those of its own kind.
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

// All reports whether f is true of every row without a look at it.
func (f *Filter) All() bool { return f.kind == filterAnd && len(f.children) == 0 }

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

// EvalRow reports whether f is true of one row. cell returns the cell of a column, nil for NULL.
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

// FilterEval evaluates filters on one batch after the other. Its zero value is ready for use; it
// keeps the bitmaps that inner nodes need. Not safe for concurrent use.
type FilterEval struct {
	free []Bitmap
}

// Eval clears the bits of sel of the rows for which f is not true and sets none. test does so for
// one predicate; Eval calls it only while the bitmap it passes has a bit set, so that a column is
// read only if its test can decide something. The first error of test ends the evaluation.
func (e *FilterEval) Eval(f *Filter, sel Bitmap, test func(p *Predicate, sel Bitmap) error) error {
	switch f.kind {
	case filterTest:
		return test(f.test, sel)
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

// or evaluates each filter on the rows for which those before were not true.
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

// copyOf is a bitmap with the bits of sel, until it is released.
func (e *FilterEval) copyOf(sel Bitmap) Bitmap {
	var b Bitmap
	if n := len(e.free); n > 0 {
		b, e.free = e.free[n-1], e.free[:n-1]
	}
	return append(b[:0], sel...)
}

func (e *FilterEval) release(b Bitmap) { e.free = append(e.free, b) }
