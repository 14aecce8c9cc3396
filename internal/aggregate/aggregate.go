// Package aggregate computes figures over the rows of record batches: counts, sums of columns and
// of products of columns, minima and maxima, for all rows or for groups of rows with equal values.
//
//	a := aggregate.New(columns, keys, figures, limit)
//	for … {
//		err := a.Add(b) // the selected rows of a batch
//	}
//	for _, g := range a.Groups() {
//		total, ok := a.IntSum(g, 0).Int128()
//	}
//
// Results do not depend on the order of the rows. Integers, and the unscaled integers of decimals,
// are added exactly (IntSum). So are floats, whose sum is rounded when it is read (FloatSum).
//
// An Aggregator is not safe for concurrent use.
package aggregate

import (
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/scan"
	"github.com/oribi-db/oribi/schema"
)

// Kind is a kind of figure.
type Kind uint8

// The kinds. A cell that is NULL does not count, nor does a product with such a cell.
const (
	CountRows  Kind = iota + 1
	CountCells      // of Column
	Sum             // of the products of Terms
	Min             // of Column, whose type is not Array
	Max
)

// Figure is a number to compute for each group, such as a sum of a column.
type Figure struct {
	Name   string // for errors
	Kind   Kind
	Column int    // of the batch
	Terms  []Term // of numeric columns, at least one
}

// ErrMemory means that the groups take more memory than allowed.
var ErrMemory = errors.New("the groups take too much memory")

// Aggregator computes figures.
type Aggregator struct {
	// The inputs: columns of the batches, products of columns, and the groups found so far. Figures
	// that need the same column or product share it, so each is computed once for a batch.
	columns  []column
	products []*product
	groups   groups
	limit    int64
	part     Part // only these groups

	// The results so far.
	rows      []int64 // by group; of windows only if needsRows
	needsRows bool    // there are keys, or figures that count rows
	states    []*state
	figures   []*state // by figure; equal figures have the same state

	// Windows, which are added up without decoding them, see AddWindow. Trying a window that cannot
	// be taken costs time, so after each failure more windows are not tried.
	parts   []windowPart // of one window
	table   *table       // nil if no window was tabulated
	infos   []scan.ColumnInfo
	refused int // windows that are not tried
	pause   int // their number after the last window that could not be taken

	// The current batch. The slices keep their memory from batch to batch.
	selected rows
	// ids has the group of each row. It is nil if the groups are not known yet, or if there are no
	// keys.
	ids []uint32
	// slots has the slot of each row's group, below len(of). It is nil if the rows have too many
	// groups, or if there are no keys.
	slots   []uint32
	of      []uint32 // group of each slot that has rows
	counts  []int64  // rows of each slot
	scratch []int64
	idBuf   []uint32
	ofBuf   []uint32
	hashes  []uint64 // of the keys, if there is a part
}

// state is the value of a figure for the rows added so far.
type state struct {
	name    string
	kind    Kind
	column  int
	product *product // of a sum

	cells   []int64    // by group, of CountCells
	ints    []IntSum   // by group, of a sum of integers
	floats  []FloatSum // by group, of a sum of floats
	extreme *extreme   // of Min and Max
}

// New returns an Aggregator for batches of columns. keys are the indexes of the columns by whose
// values the rows are grouped. limit bounds the memory of the groups, in bytes.
func New(columns []schema.Column, keys []int, figures []Figure, limit int64) *Aggregator {
	a := &Aggregator{columns: make([]column, len(columns)), limit: limit}
	for i := range columns {
		a.columns[i].typ, a.columns[i].scale = columns[i].Type, columns[i].Scale
	}
	for _, c := range keys {
		a.groups.columns = append(a.groups.columns, newKeyColumn(c, columns[c].Type, limit))
	}
	a.groups.pairs = make([]numbers, max(len(keys)-1, 0))
	for i := range figures {
		a.figures = append(a.figures, a.state(&figures[i]))
	}
	if len(keys) == 0 {
		a.reserve(1)
	}
	a.needsRows = len(keys) > 0 || slices.ContainsFunc(figures, func(f Figure) bool { return f.Kind == CountRows })
	return a
}

// state returns the state of a figure. Equal figures share one state.
func (a *Aggregator) state(f *Figure) *state {
	s := &state{name: f.Name, kind: f.Kind, column: f.Column}
	switch f.Kind {
	case CountRows:
		s.column = 0
	case Sum:
		s.column, s.product = 0, a.product(f.Terms)
	case Min, Max:
		s.extreme = &extreme{column: f.Column, typ: a.columns[f.Column].typ, max: f.Kind == Max}
	}
	for _, o := range a.states {
		if o.kind == s.kind && o.column == s.column && o.product == s.product {
			return o
		}
	}
	a.states = append(a.states, s)
	return s
}

// product returns the product of terms.
func (a *Aggregator) product(terms []Term) (p *product) {
	floats := slices.ContainsFunc(terms, func(t Term) bool {
		typ := a.columns[t.Column].typ
		return typ == schema.Float || typ == schema.Double
	})
	for _, t := range terms {
		i := slices.IndexFunc(a.products, func(o *product) bool {
			return o.before == p && o.term == t && o.floats == floats
		})
		if i < 0 {
			i = len(a.products)
			a.products = append(a.products, &product{before: p, term: t, floats: floats})
		}
		p = a.products[i]
	}
	return p
}

// Add takes the selected rows of a batch, whose columns are as in the call of New. Errors:
// ErrOverflow for a product that does not fit 128 bits; an untyped error if the groups take more
// memory than allowed. After an error, the Aggregator cannot be used any more.
func (a *Aggregator) Add(b *batch.RecordBatch) error {
	r := &a.selected
	r.take(b)
	if a.part.bits > 0 {
		a.keepPart(b)
	}
	if r.n == 0 {
		return nil
	}
	a.assign(b)
	if err := a.checkMemory(); err != nil {
		return err
	}
	for i := range a.columns {
		a.columns[i].loaded, a.columns[i].tested = false, false
	}
	for _, p := range a.products {
		p.done = false
	}
	for _, s := range a.states {
		if err := a.add(s, b); err != nil {
			return err
		}
	}
	return nil
}

// reserve makes room for n groups.
func (a *Aggregator) reserve(n int) {
	a.rows = extended(a.rows, n)
	for _, s := range a.states {
		switch {
		case s.kind == CountCells:
			s.cells = extended(s.cells, n)
		case s.kind == Sum && s.product.floats:
			s.floats = extended(s.floats, n)
		case s.kind == Sum:
			s.ints = extended(s.ints, n)
		case s.extreme != nil:
			s.extreme.reserve(n)
		}
	}
}

// checkMemory returns an error if the groups take more memory than allowed.
func (a *Aggregator) checkMemory() error {
	if n := a.bytes(); n > a.limit {
		return fmt.Errorf("%w: more than %d MiB for %d groups", ErrMemory, a.limit>>20, a.groups.count())
	}
	return nil
}

// bytes returns about how much memory the groups take.
func (a *Aggregator) bytes() int64 {
	const perCount, perInts, perFloats, perExtreme = 8, 32, 128, 32
	each, more := int64(perCount), a.groups.bytes()
	for _, s := range a.states {
		switch {
		case s.kind == Sum && s.product.floats:
			each += perFloats
		case s.kind == Sum:
			each += perInts
		case s.extreme != nil:
			each += perExtreme
			more += s.extreme.size
		default:
			each += perCount
		}
	}
	return more + each*int64(len(a.rows))
}

// Each returns all groups that have rows, in no order. Without keys, there is one group, even if no
// row was added.
func (a *Aggregator) Each() iter.Seq[int] {
	return func(yield func(int) bool) {
		for g, n := range a.rows {
			if (n > 0 || len(a.groups.columns) == 0) && !yield(g) {
				return
			}
		}
	}
}

// Groups returns the groups of Each, in ascending order of their keys, with NULL after all other values.
// Floats are in the order of numbers, with NaN last.
func (a *Aggregator) Groups() []int {
	width := len(a.groups.columns)
	list := slices.Collect(a.Each())
	if width == 0 {
		return list
	}
	var keys []uint32 // of all groups
	for g := range a.rows {
		keys = a.groups.key(keys, uint32(g))
	}
	slices.SortFunc(list, func(x, y int) int {
		return a.groups.compare(keys[x*width:][:width], keys[y*width:][:width])
	})
	return list
}

// Key returns the cells of a group's key, nil for NULL.
func (a *Aggregator) Key(group int) [][]byte {
	var few [8]uint32
	var cells [][]byte
	for i, number := range a.groups.key(few[:0], uint32(group)) {
		cells = append(cells, a.groups.columns[i].cell(number))
	}
	return cells
}

// Count returns the number of rows of a group, for a figure of kind CountRows, or of cells, for
// CountCells.
func (a *Aggregator) Count(group, figure int) int64 {
	if s := a.figures[figure]; s.kind == CountCells {
		return s.cells[group]
	}
	return a.rows[group]
}

// IntSum returns the sum of a figure of kind Sum, or nil if it is a sum of floats.
func (a *Aggregator) IntSum(group, figure int) *IntSum {
	if s := a.figures[figure]; s.ints != nil {
		return &s.ints[group]
	}
	return nil
}

// FloatSum returns the sum of a figure of kind Sum, or nil if it is not a sum of floats.
func (a *Aggregator) FloatSum(group, figure int) *FloatSum {
	if s := a.figures[figure]; s.floats != nil {
		return &s.floats[group]
	}
	return nil
}

// Cell returns the cell of a figure of kind Min or Max, nil if all cells are NULL.
func (a *Aggregator) Cell(group, figure int) []byte { return a.figures[figure].extreme.cell(group) }
