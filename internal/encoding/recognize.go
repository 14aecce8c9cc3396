package encoding

import (
	"bytes"
	"slices"

	"github.com/oribi-db/oribi/internal/compress"
)

// recognizer finds the planes of a chunk in its LZ4 block, without decompressing it. Source: planes
// spec §3.
//
// It processes the block sequence by sequence and knows of each plane of the output whether it is
// constant, or where its bytes are in the block. It fails if a plane is in several pieces; then the
// block must be decompressed. That a plane begins with some bytes is possible if it equals the
// plane before or is constant:
//
//	output   │ plane p−1 │ plane p: part bytes so far …  │
//	                       the same as at alias in src, or all equal to last if alias < 0
type recognizer struct {
	src         []byte
	row, planes int
	refs        []planeRef // of the planes before plane, after the refs of other chunks
	first       int        // index in refs of the first ref of this chunk
	ones        uint128    // bit i: plane i is all ones

	plane int // the output ends in this plane, after
	part  int // so many bytes of it
	alias int // position of a plane that has the same bytes so far, or −1
	last  byte
}

// recognize appends the refs of a chunk's planes that are neither all zeros nor all ones to refs,
// in ascending order, and returns the bit set of those that are all ones. src is an LZ4 block of
// 8·width planes of row bytes. ok is false if the planes are not found, or if the block is invalid;
// then none is appended.
func recognize(src []byte, row, width int, refs []planeRef) (_ []planeRef, ones uint128, ok bool) {
	if len(src) == 0 || len(src) > maxRecognized {
		return refs, ones, false
	}
	r := recognizer{src: src, row: row, planes: 8 * width, refs: slices.Grow(refs, 8*width), first: len(refs),
		alias: -1, last: 1}
	if !r.run() {
		return r.refs[:r.first], ones, false // in the grown memory: the next chunk needs it too
	}
	return r.refs, r.ones, true
}

// maxRecognized is the length of the longest block in which the position of a ref can be stored. No
// writer makes longer ones of 8 KiB.
const maxRecognized = 1 << 16

func (r *recognizer) run() bool {
	for at := 0; ; {
		s, ok := compress.ParseLZ4Sequence(r.src, at)
		if !ok || !r.literals(s.From, s.To) {
			return false
		}
		if s.Match == 0 {
			return r.plane == r.planes && r.part == 0
		}
		if !r.match(s.To-s.From, s.To, s.Offset, s.Match) {
			return false
		}
		at = s.End
	}
}

// literals continues the output with bytes [from, to) of src.
func (r *recognizer) literals(from, to int) bool {
	if from == to {
		return true
	}
	if r.part > 0 {
		k := min(to-from, r.row-r.part)
		if !r.resume(r.src[from : from+k]) {
			return false
		}
		from += k
	}
	if to-from > (r.planes-r.plane)*r.row {
		return false
	}
	if k := (to - from) / r.row; k > 0 {
		r.refs = r.refs[:len(r.refs)+k]
		added := r.refs[len(r.refs)-k:]
		for i := range added {
			added[i] = planeRef{at: uint16(from + i*r.row), plane: uint8(r.plane + i)}
		}
		r.plane += k
		from += k * r.row
	}
	r.last = r.src[to-1]
	if from < to {
		// A plane may begin with literals only if it is constant.
		r.part, r.alias = to-from, -1
		return constantRow(r.src[from:to])
	}
	return true
}

// resume continues a plane that has begun with b, at most the rest of the plane.
func (r *recognizer) resume(b []byte) bool {
	if r.alias < 0 {
		if b[0] != r.last || !bytes.Equal(b[1:], b[:len(b)-1]) {
			return false
		}
	} else if !bytes.Equal(b, r.src[r.alias+r.part:r.alias+r.part+len(b)]) {
		return false
	}
	if r.part += len(b); r.part < r.row {
		return true
	}
	r.part = 0
	if r.alias < 0 {
		return r.constant(r.row, r.last)
	}
	return r.repeat(r.alias, r.row)
}

// match continues the output with a match of m bytes, offset bytes back, after n literals that end
// at byte end of src.
func (r *recognizer) match(n, end, offset, m int) bool {
	begun := r.part > 0
	if begun && r.alias >= 0 {
		return false // only literals continue such a plane
	}
	if offset-1 < n && offset > 0 && r.last+1 <= 1 {
		// Only literals are copied, which may be the beginning of a constant plane.
		if b := r.src[end-offset : end]; offset == 1 || b[0] == r.last && bytes.Equal(b[1:], b[:offset-1]) {
			return r.constant(m, r.last)
		}
	}
	if !begun && offset == r.row && r.plane > 0 {
		if k := len(r.refs) - 1; k >= r.first && int(r.refs[k].plane) == r.plane-1 {
			return r.repeat(int(r.refs[k].at), m)
		}
	}
	c, ok := r.source(offset, m)
	return ok && (!begun || r.last == c) && r.constant(m, c)
}

// source returns the byte that a match copies if it copies from constant planes of one kind only,
// the plane that has begun included.
func (r *recognizer) source(offset, m int) (c byte, ok bool) {
	from := r.plane*r.row + r.part - offset
	if from < 0 || offset == 0 {
		return 0, false
	}
	to := from + min(offset, m)
	lo, hi := from/r.row, (to+r.row-1)/r.row // planes [lo, hi)
	for k := len(r.refs) - 1; k >= r.first && int(r.refs[k].plane) >= lo; k-- {
		if int(r.refs[k].plane) < hi {
			return 0, false
		}
	}
	ones, set := r.ones, planeSet(lo, hi)
	if hi > r.plane && r.last != 0 {
		ones = ones.or(bit128(r.plane))
	}
	switch ones.and(set) {
	case uint128{}:
		return 0, true
	case set:
		return 0xff, true
	}
	return 0, false
}

// constant continues the output with n bytes c, 0 or 0xff. If a plane has begun, it consists of c.
func (r *recognizer) constant(n int, c byte) bool {
	if n += r.part; n > (r.planes-r.plane)*r.row {
		return false
	}
	k := n / r.row
	r.part, r.alias, r.last = n-k*r.row, -1, c
	if c != 0 {
		r.ones = r.ones.or(planeSet(r.plane, r.plane+k))
	}
	r.plane += k
	return true
}

// repeat continues the output with n bytes of planes that equal the one at byte at of src. No plane
// has begun.
func (r *recognizer) repeat(at, n int) bool {
	if n > (r.planes-r.plane)*r.row {
		return false
	}
	for ; n >= r.row; n -= r.row {
		r.refs = append(r.refs, planeRef{at: uint16(at), plane: uint8(r.plane)}) // there is room
		r.plane++
	}
	r.part, r.alias = n, at
	return true
}

// planeSet returns the bit set of planes [from, to).
func planeSet(from, to int) uint128 { return low128(to).andNot(low128(from)) }
