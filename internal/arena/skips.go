package arena

import "encoding/binary"

// Skips are the references of an element of a list to earlier elements: to the one before it, and to
// another one at a distance that repeats the distance of the jump before, or closes two equal ones. So
// Skip finds an element in a number of steps that grows with the logarithm of its distance. An owner of
// pieces stores the Skips in them.
//
// Source: Myers, "An applicative random-access stack", 1983.
type Skips struct {
	Prev, Jump Ref    // 0 = none
	depth      uint32 // of this element; the first one has 1
}

// SkipsLen is the length of Skips in a piece: prev 8 bytes, jump 8, depth 4.
const SkipsLen = 20

// SkipsIn returns the Skips at the beginning of b.
func SkipsIn(b []byte) Skips {
	return Skips{Ref(binary.LittleEndian.Uint64(b)), Ref(binary.LittleEndian.Uint64(b[8:])),
		binary.LittleEndian.Uint32(b[16:])}
}

// Put writes s to the beginning of b.
func (s Skips) Put(b []byte) {
	binary.LittleEndian.PutUint64(b, uint64(s.Prev))
	binary.LittleEndian.PutUint64(b[8:], uint64(s.Jump))
	binary.LittleEndian.PutUint32(b[16:], s.depth)
}

// SkipsAfter returns the Skips of a new element after prev, which is 0 for the first element. of
// returns the Skips of an element.
func SkipsAfter(prev Ref, of func(Ref) Skips) Skips {
	s := Skips{Prev: prev, Jump: prev, depth: 1}
	if prev == 0 {
		return s
	}
	before := of(prev)
	s.depth = before.depth + 1
	if before.Jump == 0 {
		return s
	}
	far, beyond := of(before.Jump), uint32(0)
	if far.Jump != 0 {
		beyond = of(far.Jump).depth
	}
	if before.depth-far.depth == far.depth-beyond {
		s.Jump = far.Jump
	}
	return s
}

// Skip returns the earliest element for which passes is true, from ref on, for which it is true. If
// passes is false for an element, it is false for all earlier ones.
func Skip(ref Ref, of func(Ref) Skips, passes func(Ref) bool) Ref {
	for {
		switch s := of(ref); {
		case s.Jump != 0 && passes(s.Jump):
			ref = s.Jump
		case s.Prev != 0 && passes(s.Prev):
			ref = s.Prev
		default:
			return ref
		}
	}
}
