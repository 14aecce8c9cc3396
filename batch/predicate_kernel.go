package batch

import "unsafe"

// ordered lists the cell types that Go's operators can compare.
type ordered interface {
	uint8 | int8 | uint16 | int16 | uint32 | int32 | uint64 | int64 | float32 | float64
}

// lane is the number of cells covered by one word of a selection.
const lane = 64

// fewValues is the length up to which a list is tested by comparing 64 cells at once with each
// value in turn. Longer lists use a binary search for each selected cell. Measured on int64: 30 ns
// per value for 64 cells, against 1000 ns for 64 searches among 9 to 16 values.
const fewValues = 32

// evalOrdered evaluates Eq to In and InFilter on a vector of fixed width.
func evalOrdered[T ordered](p *Predicate, v *Vector, sel Bitmap) {
	consts := make([]T, 0, 4)
	for _, c := range p.Values {
		if c != nil {
			consts = append(consts, loadCell[T](c))
		}
	}
	cells := unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(v.Data))), v.Len)
	if p.Op == In && len(consts) > fewValues || p.Op == InFilter {
		p.evalEach(v, sel)
		return
	}
	for w := range sel {
		if sel[w] == 0 {
			continue
		}
		from := w * lane
		if from >= len(cells) {
			return
		}
		if rest := cells[from:]; len(rest) >= lane {
			sel[w] &= laneMask((*[lane]T)(rest), p.Op, consts)
		} else {
			var padded [lane]T
			copy(padded[:], rest)
			sel[w] &= laneMask(&padded, p.Op, consts)
		}
	}
}

// loadCell decodes a cell of T's width, which need not be aligned.
func loadCell[T ordered](cell []byte) T {
	var v T
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&v)), unsafe.Sizeof(v)), cell)
	return v
}

// laneMask returns one bit for each of 64 cells, 1 if it passes. Every operator but Ne has its own
// kernel instead of complementing another one, since NaN fails both Lt and Ge.
func laneMask[T ordered](a *[lane]T, op Operator, consts []T) (m uint64) {
	switch op {
	case Eq:
		return maskEq(a, consts[0])
	case Ne:
		return ^maskEq(a, consts[0])
	case Lt:
		return maskLt(a, consts[0])
	case Le:
		return maskLe(a, consts[0])
	case Gt:
		return maskGt(a, consts[0])
	case Ge:
		return maskGe(a, consts[0])
	}
	for _, c := range consts {
		m |= maskEq(a, c)
	}
	return m
}

// bit returns 1 for true. It compiles to one instruction without a branch.
func bit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// The kernels are unrolled by eight: the eight bits of a step do not depend on one another.

func maskEq[T ordered](a *[lane]T, c T) (m uint64) {
	for i := 0; i < lane; i += 8 {
		p := (*[8]T)(a[i:])
		m |= (bit(p[0] == c) | bit(p[1] == c)<<1 | bit(p[2] == c)<<2 | bit(p[3] == c)<<3 |
			bit(p[4] == c)<<4 | bit(p[5] == c)<<5 | bit(p[6] == c)<<6 | bit(p[7] == c)<<7) << i
	}
	return m
}

func maskLt[T ordered](a *[lane]T, c T) (m uint64) {
	for i := 0; i < lane; i += 8 {
		p := (*[8]T)(a[i:])
		m |= (bit(p[0] < c) | bit(p[1] < c)<<1 | bit(p[2] < c)<<2 | bit(p[3] < c)<<3 |
			bit(p[4] < c)<<4 | bit(p[5] < c)<<5 | bit(p[6] < c)<<6 | bit(p[7] < c)<<7) << i
	}
	return m
}

func maskLe[T ordered](a *[lane]T, c T) (m uint64) {
	for i := 0; i < lane; i += 8 {
		p := (*[8]T)(a[i:])
		m |= (bit(p[0] <= c) | bit(p[1] <= c)<<1 | bit(p[2] <= c)<<2 | bit(p[3] <= c)<<3 |
			bit(p[4] <= c)<<4 | bit(p[5] <= c)<<5 | bit(p[6] <= c)<<6 | bit(p[7] <= c)<<7) << i
	}
	return m
}

func maskGt[T ordered](a *[lane]T, c T) (m uint64) {
	for i := 0; i < lane; i += 8 {
		p := (*[8]T)(a[i:])
		m |= (bit(p[0] > c) | bit(p[1] > c)<<1 | bit(p[2] > c)<<2 | bit(p[3] > c)<<3 |
			bit(p[4] > c)<<4 | bit(p[5] > c)<<5 | bit(p[6] > c)<<6 | bit(p[7] > c)<<7) << i
	}
	return m
}

func maskGe[T ordered](a *[lane]T, c T) (m uint64) {
	for i := 0; i < lane; i += 8 {
		p := (*[8]T)(a[i:])
		m |= (bit(p[0] >= c) | bit(p[1] >= c)<<1 | bit(p[2] >= c)<<2 | bit(p[3] >= c)<<3 |
			bit(p[4] >= c)<<4 | bit(p[5] >= c)<<5 | bit(p[6] >= c)<<6 | bit(p[7] >= c)<<7) << i
	}
	return m
}
