package aggregate

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/fault"
)

// Term is a factor of a product: Offset + Slope × cell. Decimal cells are their unscaled integers.
// If a column of the product has floats, the product is computed with floats instead, rounded after
// each operation: FloatOffset + FloatSlope × value.
type Term struct {
	Column        int // of the batch
	Offset, Slope batch.Int128

	FloatOffset, FloatSlope float64
}

// plain reports whether the term is the cell itself.
func (t *Term) plain(floats bool) bool {
	if floats {
		return t.FloatOffset == 0 && t.FloatSlope == 1
	}
	return t.Offset == batch.Int128{} && t.Slope == batch.Int128{Lo: 1}
}

var errProduct = fmt.Errorf("a product does not fit 128 bits: %w", fault.ErrOverflow)

// product is a term, or the product of another product and a term. Sums of products that begin with
// the same terms share what these have in common.
type product struct {
	before *product // nil: the term alone
	term   Term
	floats bool // computed with floats

	// Of the current batch: the values of the selected rows, in one of three forms, 0 where a cell
	// is NULL.
	done  bool
	err   error
	ints  []int64
	wide  []batch.Int128
	float []float64
	// valid is 1 for a value, 0 for NULL. It is nil if no cell is NULL.
	valid []uint8
	count int64 // values
	// most is a bound: no magnitude in ints is above it. It is 0 if no bound is known.
	most uint64

	intBuf   []int64
	wideBuf  []batch.Int128
	floatBuf []float64
	validBuf []uint8
}

// tabulates reports whether tables can have the factors.
func (p *product) tabulates() bool {
	for ; p != nil; p = p.before {
		if p.floats || !small(p.term.Offset, maxTableFactor) || !small(p.term.Slope, maxTableFactor) {
			return false
		}
	}
	return true
}

// terms returns the factors.
func (p *product) terms() (list []Term) {
	for ; p != nil; p = p.before {
		list = append(list, p.term)
	}
	return list
}

// eval computes the products of the selected rows, whose columns are loaded, once per batch.
func (p *product) eval(columns []column, n int) error {
	if p.done {
		return p.err
	}
	p.done = true
	p.ints, p.wide, p.float, p.most, p.err = nil, nil, nil, 0, nil
	c := &columns[p.term.Column]
	p.valid, p.count = c.valid, c.count
	if p.before != nil {
		if p.err = p.before.eval(columns, n); p.err != nil {
			return p.err
		}
		p.joinValid(c, n)
	}
	switch {
	case p.floats:
		p.evalFloats(c, n)
	case p.before == nil && p.term.plain(p.floats):
		p.ints, p.wide, p.most = c.ints, c.wide, c.most
	case !p.evalInts(columns, n):
		p.err = p.evalWide(c, n)
	}
	return p.err
}

// joinValid finds the rows in which neither the product before nor the cell is NULL.
func (p *product) joinValid(c *column, n int) {
	before := p.before
	switch {
	case before.valid == nil:
		return
	case c.valid == nil:
		p.valid, p.count = before.valid, before.count
		return
	}
	p.validBuf = grown(p.validBuf, n)
	p.count = 0
	for j := range p.validBuf {
		p.validBuf[j] = before.valid[j] & c.valid[j]
		p.count += int64(p.validBuf[j])
	}
	p.valid = p.validBuf
}

// bound returns a number that no magnitude of ints, of the product of columns, is above.
func (p *product) bound(columns []column) uint64 {
	if p.most == 0 {
		p.most = columns[p.term.Column].bound() // the term is the column
	}
	return p.most
}

// evalInts computes with integers of 64 bits. It returns false if these may overflow.
func (p *product) evalInts(columns []column, n int) bool {
	c := &columns[p.term.Column]
	if c.ints == nil || p.before != nil && p.before.ints == nil {
		return false
	}
	offset, slope := int64(p.term.Offset.Lo), int64(p.term.Slope.Lo)
	if p.term.Offset != batch.Int128Of(offset) || p.term.Slope != batch.Int128Of(slope) {
		return false
	}
	over, most := bits.Mul64(abs(slope), c.bound())
	most, carry := bits.Add64(most, abs(offset), 0)
	if p.before != nil && over|carry == 0 {
		over, most = bits.Mul64(most, p.before.bound(columns))
	}
	if over|carry != 0 || most > math.MaxInt64 {
		return false
	}
	p.intBuf, p.most = grown(p.intBuf, n), most
	p.ints = p.intBuf
	cells := c.ints[:n]
	if p.before == nil {
		for j, x := range cells {
			p.intBuf[j] = offset + slope*x
		}
		for j, ok := range c.valid {
			p.intBuf[j] *= int64(ok)
		}
		return true
	}
	before, out := p.before.ints[:n], p.intBuf[:n]
	for j, x := range cells {
		out[j] = before[j] * (offset + slope*x)
	}
	for j, ok := range p.valid {
		out[j] *= int64(ok)
	}
	return true
}

func abs(v int64) uint64 {
	if v < 0 {
		return -uint64(v)
	}
	return uint64(v)
}

// evalWide computes with integers of 128 bits. Errors: ErrOverflow.
func (p *product) evalWide(c *column, n int) error {
	p.wideBuf = grown(p.wideBuf, n)
	p.wide = p.wideBuf
	for j := range p.wide {
		if p.valid != nil && p.valid[j] == 0 {
			p.wide[j] = batch.Int128{}
			continue
		}
		x := at(c.ints, c.wide, j)
		x, ok1 := x.Mul(p.term.Slope)
		x, ok2 := x.Add(p.term.Offset)
		ok3 := true
		if p.before != nil {
			x, ok3 = x.Mul(at(p.before.ints, p.before.wide, j))
		}
		if !ok1 || !ok2 || !ok3 {
			return errProduct
		}
		p.wide[j] = x
	}
	return nil
}

// at returns value j, which is in ints unless that is nil.
func at(ints []int64, wide []batch.Int128, j int) batch.Int128 {
	if ints != nil {
		return batch.Int128Of(ints[j])
	}
	return wide[j]
}

func (p *product) evalFloats(c *column, n int) {
	if p.before == nil && p.term.plain(p.floats) && c.floats != nil {
		p.float = c.floats
		return
	}
	p.floatBuf = grown(p.floatBuf, n)
	p.float = p.floatBuf
	for j := range p.float {
		// The conversion prevents a fused operation, which some machines have and others do not.
		x := p.term.FloatOffset + float64(p.term.FloatSlope*c.float(j))
		if p.before != nil {
			x *= p.before.float[j]
		}
		p.float[j] = x
	}
}
