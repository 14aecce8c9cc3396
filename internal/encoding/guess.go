package encoding

import (
	"encoding/binary"

	"github.com/oribi-db/oribi/schema"
)

// guess returns about where target would be among n sorted cells, if they had equal distances: keys
// are often numbered, and each comparison elsewhere in the cells is a miss of the processor's cache.
// Of types other than integers, it is the middle.
func guess(t schema.Type, cells []byte, n int, target []byte) int {
	width := len(cells) / n
	if width != len(target) {
		return n / 2
	}
	first, ok := integer(t, cells[:width])
	last, _ := integer(t, cells[len(cells)-width:])
	x, _ := integer(t, target)
	switch {
	case !ok:
		return n / 2
	case !(first < x):
		return 0
	case !(x < last):
		return n - 1
	}
	return min(int((x-first)/(last-first)*float64(n-1)+0.5), n-1)
}

// integer returns about the value of an integer of at least 4 bytes; ok is false for another type.
func integer(t schema.Type, cell []byte) (x float64, ok bool) {
	le := binary.LittleEndian
	switch t.Physical() {
	case schema.Int64:
		return float64(int64(le.Uint64(cell))), true
	case schema.Uint64:
		return float64(le.Uint64(cell)), true
	case schema.Int32:
		return float64(int32(le.Uint32(cell))), true
	case schema.Uint32:
		return float64(le.Uint32(cell)), true
	}
	return 0, false
}

// searchNear is searchOrdered for a target that is probably near guess, one of the n. It takes a few
// steps from there that double, and then searches by halves.
func searchNear(n, guess int, order func(i int) int) (i int, exact bool) {
	const maxStep = 4
	lo, hi := 0, n // those before lo are below the target, those from hi on are not
	below := func(i int) bool {
		c := order(i)
		if c < 0 {
			lo = i + 1
		} else {
			hi, exact = i, c == 0
		}
		return c < 0
	}
	for up, step := below(guess), 1; lo < hi && step <= maxStep; step *= 2 {
		next := max(hi-step, lo)
		if up {
			next = min(lo+step, hi) - 1
		}
		if below(next) != up {
			break
		}
	}
	for lo < hi {
		below(int(uint(lo+hi) >> 1))
	}
	return hi, exact
}
