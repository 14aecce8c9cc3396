package carbondata

import (
	"fmt"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/schema"
)

// boundFilter is a filter for the columns of one table. It is a tree of tests that are true or
// false, never unknown: negations are moved down to the tests, and those that need it have a test
// for NULL next to them. Immutable.
type boundFilter struct {
	root    node
	rows    batch.Filter // the same; the ID of a test is its index in leaves
	leaves  []leaf
	columns []int // of the table, that leaves test
}

// leaf is a test on one column.
type leaf struct {
	column int // index in boundFilter.columns
	test   batch.Predicate
}

// node is a part of the tree.
type node struct {
	op       nodeOp
	leaf     int
	children []node
}

type nodeOp uint8

const (
	nodeLeaf nodeOp = iota
	nodeAnd
	nodeOr
	nodeNot // has one child, a leaf
)

// bind checks f and prepares it for the columns of t. It returns nil for a filter that selects
// every row.
func (t *Table) bind(f Filter) (*boundFilter, error) {
	if f.all() {
		return nil, nil
	}
	b := &binder{table: t, boundFilter: new(boundFilter), places: map[int]int{}}
	root, err := b.node(f, false)
	if err != nil {
		return nil, inside(err, "filter")
	}
	for i := range b.leaves {
		p := &b.leaves[i].test
		p.ID = schema.ColumnID(i)
		if err := p.Prepare(); err != nil {
			return nil, inside(err, "filter")
		}
	}
	b.root = root
	b.rows = b.rowFilter(&root)
	return b.boundFilter, nil
}

type binder struct {
	*boundFilter
	table  *Table
	places map[int]int // from the index of a table's column to its index in the filter
}

// rowFilter returns n as a filter of rows.
func (b *boundFilter) rowFilter(n *node) batch.Filter {
	if n.op == nodeLeaf {
		return batch.Test(b.leaves[n.leaf].test)
	}
	var children []batch.Filter
	for i := range n.children {
		children = append(children, b.rowFilter(&n.children[i]))
	}
	switch n.op {
	case nodeAnd:
		return batch.And(children...)
	case nodeOr:
		return batch.Or(children...)
	}
	return batch.Not(children[0])
}

// node returns the tree that is true where f is true, or, negated, where f is false.
func (b *binder) node(f Filter, negated bool) (node, error) {
	switch f.op {
	case opNot:
		return b.node(f.children[0], !negated)
	case opAnd, opOr:
		n := node{op: nodeAnd}
		if (f.op == opOr) != negated {
			n.op = nodeOr
		}
		for _, child := range f.children {
			c, err := b.node(child, negated)
			if err != nil {
				return n, err
			}
			n.children = append(n.children, c)
		}
		return n, nil
	}
	at, err := b.table.column(f.column)
	if err != nil {
		return node{}, err
	}
	place, ok := b.places[at]
	if !ok {
		place = len(b.columns)
		b.places[at] = place
		b.columns = append(b.columns, at)
	}
	n, err := b.test(&b.table.columns[at], place, f, negated)
	return n, inside(err, "column %q", f.column)
}

// negations are the operators that are true where others are false, for cells that are not NULL.
// Orders of floats have none because of NaN.
var negations = map[operator]operator{opEq: opNe, opNe: opEq, opLt: opGe, opGe: opLt, opGt: opLe, opLe: opGt,
	opIsNull: opNotNull, opNotNull: opIsNull}

// cellOps are the operators of batch.Predicate.
var cellOps = map[operator]batch.Operator{opEq: batch.Eq, opNe: batch.Ne, opLt: batch.Lt, opLe: batch.Le,
	opGt: batch.Gt, opGe: batch.Ge, opIn: batch.In,
	opIsNull: batch.IsNull, opNotNull: batch.NotNull}

// testedType returns the type of the cells of c, as far as tests need it.
func testedType(c *Column) (typ schema.Type, values bool) {
	t, ok := c.TableType()
	if !ok || t.Type == schema.Array {
		return schema.Array, false
	}
	return t.Type, true
}

// test returns the tree of one test.
func (b *binder) test(c *Column, place int, f Filter, negated bool) (node, error) {
	typ, values := testedType(c)
	leaf := func(op batch.Operator, cells ...[]byte) node {
		b.leaves = append(b.leaves, leaf{place, batch.Predicate{Column: c.Name, Type: typ, Op: op, Values: cells}})
		return node{leaf: len(b.leaves) - 1}
	}
	both := func(op nodeOp, children ...node) node { return node{op: op, children: children} }
	op := f.op
	switch {
	case op == opIsNull || op == opNotNull:
		if negated {
			op = negations[op]
		}
		switch {
		case c.Type == Varchar && op == opIsNull:
			return both(nodeOr, leaf(batch.IsNull), leaf(batch.Eq, []byte{})), nil
		case c.Type == Varchar:
			return leaf(batch.Ne, []byte{}), nil
		}
		return leaf(cellOps[op]), nil
	case !values:
		return node{}, fmt.Errorf("%s is tested for NULL only: %w", c.TypeName(), fault.ErrSchema)
	case op == opHasPrefix:
		return prefixTest(c, f.values[0], negated, leaf, both)
	case op == opLike:
		return likeTest(c, f.values, negated, leaf, both)
	}
	var cells [][]byte
	outside, between := 0, false
	for _, v := range f.values {
		cell, out, err := filterCell(c, typ, v)
		if err != nil {
			return node{}, err
		}
		if outside = out; out != 0 {
			continue
		}
		cell, exact := storedCell(typ, cell)
		if between = !exact; exact || op != opIn {
			cells = append(cells, cell)
		}
	}
	floating := typ == schema.Float || typ == schema.Double
	switch unequal := op == opNe || op == opEq; {
	case op == opIn && negated:
		return both(nodeAnd, leaf(batch.NotNull), both(nodeNot, leaf(batch.In, cells...))), nil
	case op == opIn:
		return leaf(batch.In, cells...), nil
	case negated && floating && !unequal:
		return both(nodeAnd, leaf(batch.NotNull), both(nodeNot, leaf(cellOps[op], cells...))), nil
	case negated:
		op = negations[op]
	}
	if outside != 0 {
		if less := outside > 0; op == opNe || less && (op == opLt || op == opLe) ||
			!less && (op == opGt || op == opGe) {
			return leaf(batch.NotNull), nil
		}
		return leaf(batch.In), nil
	}
	if between { // no cell is equal to the value, and that in its place is the next greater one
		switch op {
		case opEq:
			return leaf(batch.In), nil
		case opNe:
			return leaf(batch.NotNull), nil
		case opLe:
			op = opLt
		case opGt:
			op = opGe
		}
	}
	return leaf(cellOps[op], cells...), nil
}

// likeTest returns the tree of Like.
func likeTest(
	c *Column, parts []any, negated bool, leaf func(batch.Operator, ...[]byte) node, both func(nodeOp, ...node) node,
) (node, error) {
	if c.Type != String && c.Type != Varchar && c.Type != Binary {
		return node{}, fmt.Errorf("%s has no text to search, only STRING, VARCHAR, and BINARY: %w",
			c.TypeName(), fault.ErrSchema)
	}
	if len(parts) < 2 {
		return node{}, fmt.Errorf("a pattern of %d parts, want at least 2: %w", len(parts), fault.ErrSchema)
	}
	cells := make([][]byte, len(parts))
	for i, part := range parts {
		cells[i] = textCell(c.Type, part)
	}
	if !negated {
		return leaf(batch.Like, cells...), nil
	}
	return both(nodeAnd, leaf(batch.NotNull), both(nodeNot, leaf(batch.Like, cells...))), nil
}

// prefixTest returns the tree of HasPrefix: the strings from the prefix up to the first one after
// all those that begin with it.
func prefixTest(
	c *Column, v any, negated bool, leaf func(batch.Operator, ...[]byte) node, both func(nodeOp, ...node) node,
) (node, error) {
	if c.Type != String && c.Type != Varchar && c.Type != Binary {
		return node{}, fmt.Errorf("%s has no prefixes, only STRING, VARCHAR, and BINARY: %w",
			c.TypeName(), fault.ErrSchema)
	}
	prefix := textCell(c.Type, v)
	if prefix == nil {
		return node{}, fmt.Errorf("%.40v is not a prefix: %w", v, fault.ErrSchema)
	}
	end := append([]byte{}, prefix...)
	for len(end) > 0 && end[len(end)-1] == 0xff {
		end = end[:len(end)-1]
	}
	if len(end) > 0 {
		end[len(end)-1]++
	}
	switch {
	case len(end) == 0 && negated:
		return leaf(batch.Lt, prefix), nil
	case len(end) == 0:
		return leaf(batch.Ge, prefix), nil
	case negated:
		return both(nodeOr, leaf(batch.Lt, prefix), leaf(batch.Ge, end)), nil
	}
	return both(nodeAnd, leaf(batch.Ge, prefix), leaf(batch.Lt, end)), nil
}
