package encoding

import (
	"encoding/binary"
	"slices"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/schema"
)

// span is a range of numbers in unsigned order, both ends included. It is empty if lo > hi.
type span struct{ lo, hi uint128 }

// maxSpans is the largest number of spans that a test may have. More are left to the caller, who
// does a binary search for each selected cell.
const maxSpans = 128

// planeTest is a predicate on numbers, as spans of the numbers that pass.
//
// Floats are a sign and a magnitude. The magnitudes are in the order of unsigned numbers. The
// magnitudes of NaNs are the greatest, and no span contains them.
type planeTest struct {
	signed bool
	float  bool
	invert bool    // the numbers outside of the spans pass; for floats, NaN too
	max    uint128 // the greatest number in unsigned order, or the greatest magnitude
	spans  []span  // for floats, the magnitudes of positive numbers
	minus  []span  // the magnitudes of negative numbers
	// codes is the number of valid codes of a dictionary, or 0 if all numbers are valid.
	codes uint64
}

// compileAll sets t to the test of all of ps, at least one. It reports whether they are tests on
// numbers that t can represent together.
func (t *planeTest) compileAll(ps []*batch.Predicate, typ schema.Type) bool {
	if !t.compile(ps[0], typ) {
		return false
	}
	for _, p := range ps[1:] {
		var o planeTest
		if t.invert || !o.compile(p, typ) || o.invert {
			return false
		}
		t.spans, t.minus = intersect(t.spans, o.spans), intersect(t.minus, o.minus)
	}
	return true
}

// intersect returns the numbers that are both in a and in b, which are sorted and disjoint, in the
// memory of a if b has one span.
func intersect(a, b []span) []span {
	var both []span
	if len(a) == 1 && len(b) == 1 {
		both = a[:0]
	}
	for len(a) > 0 && len(b) > 0 {
		s, o := a[0], b[0]
		if s.lo.compare(o.lo) < 0 {
			s.lo = o.lo
		}
		if s.hi.compare(o.hi) <= 0 {
			a = a[1:]
		} else {
			s.hi, b = o.hi, b[1:]
		}
		if s.lo.compare(s.hi) <= 0 {
			both = append(both, s)
		}
	}
	return both
}

// compile sets t to the test of p. It reports whether p is a test on numbers that t can represent.
func (t *planeTest) compile(p *batch.Predicate, typ schema.Type) bool {
	width := typ.Width()
	*t = planeTest{max: low128(8 * width), invert: p.Op == batch.Ne, spans: t.spans[:0], minus: t.minus[:0]}
	if typ.Variable() || typ.Physical() == schema.Bool {
		return false
	}
	if t.signed, t.float = signed(typ), float(typ); t.float {
		t.max = low128(8*width - 1)
	}
	if p.Op > batch.In || p.Op < batch.In && len(p.Values) != 1 || len(p.Values) > maxSpans {
		return false
	}
	op := p.Op
	if op == batch.In || op == batch.Ne {
		op = batch.Eq
	}
	for _, value := range p.Values {
		switch {
		case value == nil: // equal to nothing
		case len(value) != width:
			return false
		case t.float:
			t.addFloats(op, value)
		default:
			t.addNumbers(op, value)
		}
	}
	t.spans, t.minus = joinSpans(t.spans), joinSpans(t.minus)
	return true
}

// signed reports whether the cells are in two's complement.
func signed(typ schema.Type) bool {
	switch typ.Physical() {
	case schema.Int8, schema.Int16, schema.Int32, schema.Int64, schema.Int128:
		return true
	}
	return false
}

// float reports whether the cells are floats.
func float(typ schema.Type) bool {
	physical := typ.Physical()
	return physical == schema.Float || physical == schema.Double
}

// maxCodeSpans is the largest number of spans of codes that are compared. Comparing takes 0.03 ns
// per value for each span, twice that if its ends differ; decoding codes and looking up each takes
// 1.3 to 1.9 ns.
const maxCodeSpans = 24

// compileCodes sets t to the test for codes below n whose bits are 1 in match, count of them. It
// reports whether t can represent it.
func (t *planeTest) compileCodes(match batch.Bitmap, n, count int) bool {
	*t = planeTest{max: low128(32), invert: 2*count > n, spans: t.spans[:0], minus: t.minus[:0], codes: uint64(n)}
	for i := 0; i < n; {
		end := i + sameBits(match, i, n)
		if match.Get(i) != t.invert {
			if len(t.spans) == maxCodeSpans {
				return false
			}
			t.spans = append(t.spans, span{uint128{lo: uint64(i)}, uint128{lo: uint64(end - 1)}})
		}
		i = end
	}
	return true
}

// checkCodes returns an error if a selected cell is not a valid code.
func (t *planeTest) checkCodes(v *planeView, sel []uint64, s *selections) error {
	if t.codes == 0 || v.ones.or(v.mixed()).lo < t.codes {
		return nil
	}
	bad := s.rest[:copy(s.rest[:], sel)]
	v.compare(greaterEqual, uint128{lo: t.codes}, false, bad)
	if i := firstBit(bad); i >= 0 {
		return fault.Corruptf("encoding: dict: code %d, the dictionary has %d words", v.cell(i).lo, t.codes)
	}
	return nil
}

// number128 returns a cell as a number without sign.
func number128(cell []byte) (x uint128) {
	if len(cell) == 16 {
		return uint128{binary.LittleEndian.Uint64(cell), binary.LittleEndian.Uint64(cell[8:])}
	}
	return uint128{lo: load64(cell)}
}

// addNumbers adds the integers x for which "x op value" is true.
func (t *planeTest) addNumbers(op batch.Operator, value []byte) {
	x := number128(value)
	if t.signed {
		x = x.xor(bit128(8*len(value) - 1))
	}
	t.spans = appendSpan(t.spans, op, x, t.max)
}

// appendSpan appends the numbers up to greatest for which "number op x" is true.
func appendSpan(dst []span, op batch.Operator, x, greatest uint128) []span {
	s := span{hi: greatest}
	switch op {
	case batch.Eq:
		s = span{x, x}
	case batch.Lt:
		if x == (uint128{}) {
			return dst
		}
		s.hi = x.dec()
	case batch.Le:
		s.hi = x
	case batch.Gt:
		if x == greatest {
			return dst
		}
		s.lo = x.inc()
	case batch.Ge:
		s.lo = x
	}
	return append(dst, s)
}

// addFloats adds the floats x for which "x op value" is true. −0 equals +0, and NaN nothing.
func (t *planeTest) addFloats(op batch.Operator, value []byte) {
	infinity := infinityOf(len(value))
	sign := bit128(8*len(value) - 1)
	x := number128(value)
	magnitude, zero := x.andNot(sign), uint128{}
	negative := x != magnitude && magnitude != zero
	if magnitude.compare(infinity) > 0 {
		return
	}
	below := op == batch.Lt || op == batch.Le
	switch {
	case op == batch.Eq:
		if !negative {
			t.spans = append(t.spans, span{magnitude, magnitude})
		}
		if negative || magnitude == zero {
			t.minus = append(t.minus, span{magnitude, magnitude})
		}
	case negative:
		// Among negative numbers, the smaller one has the greater magnitude.
		t.minus = appendSpan(t.minus, mirror(op), magnitude, infinity)
		if !below {
			t.spans = append(t.spans, span{zero, infinity})
		}
	default:
		t.spans = appendSpan(t.spans, op, magnitude, infinity)
		switch {
		case magnitude == zero: // equals −0
			t.minus = appendSpan(t.minus, mirror(op), zero, infinity)
		case below:
			t.minus = append(t.minus, span{zero, infinity})
		}
	}
}

// infinityOf returns the magnitude of infinity in floats of width bytes. The magnitude of a NaN is
// greater.
func infinityOf(width int) uint128 {
	if width == 4 {
		return uint128{lo: 0x7f800000}
	}
	return uint128{lo: 0x7ff0 << 48}
}

// mirror returns the operator that has op's result if both sides are negated.
func mirror(op batch.Operator) batch.Operator {
	switch op {
	case batch.Lt:
		return batch.Gt
	case batch.Le:
		return batch.Ge
	case batch.Gt:
		return batch.Lt
	}
	return batch.Le
}

// joinSpans sorts spans and joins those that are adjacent or overlap.
func joinSpans(spans []span) []span {
	if len(spans) < 2 {
		return spans
	}
	slices.SortFunc(spans, func(a, b span) int { return a.lo.compare(b.lo) })
	n := 0
	for _, s := range spans[1:] {
		if last := &spans[n]; s.lo.compare(last.hi) <= 0 || s.lo == last.hi.inc() {
			if s.hi.compare(last.hi) > 0 {
				last.hi = s.hi
			}
			continue
		}
		n++
		spans[n] = s
	}
	return spans[:n+1]
}

// once reports whether filter does one pass over the planes and needs no memory for its results.
func (t *planeTest) once() bool {
	return !t.float && len(t.spans) == 1 && (!t.invert || t.spans[0].lo == t.spans[0].hi)
}

// maxWords is the number of words of a selection of a chunk.
const maxWords = chunkBytes / 64

// selections is the memory for the intermediate results of a test.
type selections struct {
	positive, negative, passed, rest [maxWords]uint64
}

// filter clears the bits of sel whose cells do not pass t.
func (t *planeTest) filter(v *planeView, sel []uint64, s *selections) {
	if !t.float {
		v.within(t.spans, t, t.invert, sel, s)
		return
	}
	magnitude, positive, negative := v.split(sel, s)
	magnitude.within(t.spans, t, false, positive, s)
	magnitude.within(t.minus, t, false, negative, s)
	v.visited = v.visited || magnitude.visited
	for i := range sel {
		passed := positive[i] | negative[i]
		if t.invert {
			passed = ^passed
		}
		sel[i] &= passed
	}
}

// split separates the selected floats that are positive from those that are negative. It returns
// the view of their magnitudes.
func (v *planeView) split(sel []uint64, s *selections) (magnitude planeView, positive, negative []uint64) {
	top := 8*v.width - 1
	positive, negative = s.positive[:len(sel)], s.negative[:len(sel)]
	magnitude = *v
	magnitude.ones = v.ones.andNot(bit128(top))
	if n := len(v.refs); n > 0 && int(v.refs[n-1].plane) == top {
		magnitude.refs, v.visited = v.refs[:n-1], true
		for i, w := range sel {
			p := v.word(v.refs[n-1], 8*i)
			positive[i], negative[i] = w&^p, w&p
		}
		return magnitude, positive, negative
	}
	sign := -v.ones.bit(top)
	for i, w := range sel {
		positive[i], negative[i] = w&^sign, w&sign
	}
	return magnitude, positive, negative
}

// within clears the bits of sel whose cells are in none of the spans or, if invert is set, in one
// of them.
func (v *planeView) within(spans []span, t *planeTest, invert bool, sel []uint64, s *selections) {
	if len(spans) == 1 {
		v.withinOne(&spans[0], t, invert, sel, s)
		return
	}
	passed, rest := s.passed[:len(sel)], s.rest[:len(sel)]
	clear(passed)
	for i := range spans {
		copy(rest, sel)
		v.withinOne(&spans[i], t, false, rest, s)
		for i, w := range rest {
			passed[i] |= w
		}
	}
	for i, w := range passed {
		if invert {
			w = ^w
		}
		sel[i] &= w
	}
}

// withinOne is within for one span.
func (v *planeView) withinOne(x *span, t *planeTest, invert bool, sel []uint64, s *selections) {
	op, value := equalTo, x.lo
	switch {
	case x.lo == x.hi:
	case x.lo == uint128{}:
		op, value = lessEqual, x.hi
	case x.hi == t.max:
		op = greaterEqual
	case invert:
		passed := s.passed[:len(sel)]
		copy(passed, sel)
		v.withinOne(x, t, false, passed, s)
		for i, w := range passed {
			sel[i] &^= w
		}
		return
	default:
		v.between(x.lo, x.hi, t.signed, sel)
		return
	}
	if invert {
		op = op.not()
	}
	v.compare(op, value, t.signed, sel)
}
