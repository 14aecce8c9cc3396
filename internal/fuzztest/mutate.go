package fuzztest

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"reflect"
)

// mutator makes inputs from seeds. The bytes of an input are valid until the next one is made.
type mutator struct {
	seeds  [][]reflect.Value
	weight []int // for each value of an input, how often it is changed relative to the others
	total  int
	limit  int // maximum length of a value in bytes

	pcg  *rand.PCG
	rng  *rand.Rand
	a, b [][]byte // for each value: its current bytes, and a buffer for the next change
}

// newMutator requires at least one seed. Values grow up to a little more than twice the length of
// the longest seed.
func newMutator(seeds [][]reflect.Value) *mutator {
	n := len(seeds[0])
	m := &mutator{seeds: seeds, pcg: rand.NewPCG(0, 0), a: make([][]byte, n), b: make([][]byte, n)}
	m.rng = rand.New(m.pcg)
	longest := 0
	for k, v := range seeds[0] {
		w := 1
		if isBytes(v) {
			w = 4
			for _, s := range seeds {
				longest = max(longest, s[k].Len())
			}
		}
		m.weight = append(m.weight, w)
		m.total += w
	}
	m.limit = 2*longest + 256
	return m
}

func isBytes(v reflect.Value) bool { return v.Kind() == reflect.Slice || v.Kind() == reflect.String }

// input stores the input of an execution in args: a seed with a number of changes, usually few.
func (m *mutator) input(seed, execution uint64, args []reflect.Value) {
	m.pcg.Seed(seed, mix(execution))
	base := m.pick()
	copy(args, base)
	for k, v := range base {
		if v.Kind() == reflect.Slice {
			m.a[k] = append(m.a[k][:0], v.Bytes()...)
		} else if v.Kind() == reflect.String {
			m.a[k] = append(m.a[k][:0], v.String()...)
		}
	}
	changes := 1
	for changes < 16 && m.rng.IntN(5) < 3 {
		changes++
	}
	for range changes {
		k := m.choose()
		if isBytes(args[k]) {
			m.b[k] = m.change(m.b[k][:0], m.a[k], bytesOf(m.pick()[k]))
			m.a[k], m.b[k] = m.b[k][:min(len(m.b[k]), m.limit)], m.a[k]
		} else {
			args[k] = m.scalar(args[k], m.pick()[k])
		}
	}
	for k, v := range args {
		n := len(m.a[k])
		switch v.Kind() {
		case reflect.Slice: // no spare capacity, so that a body's read past the end fails
			args[k] = reflect.ValueOf(m.a[k][:n:n])
		case reflect.String:
			args[k] = reflect.ValueOf(string(m.a[k]))
		}
	}
}

// mix spreads the bits of consecutive numbers.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func (m *mutator) pick() []reflect.Value { return m.seeds[m.rng.IntN(len(m.seeds))] }

// choose picks one of the values by weight.
func (m *mutator) choose() int {
	n := m.rng.IntN(m.total)
	for k, w := range m.weight {
		if n < w {
			return k
		}
		n -= w
	}
	panic("fuzztest: the weights do not add up")
}

func bytesOf(v reflect.Value) []byte {
	if v.Kind() == reflect.String {
		return []byte(v.String())
	}
	return v.Bytes()
}

// interesting are integers at which the behavior of formats changes. Shorter fields use their low
// bytes.
var interesting = []uint64{0, 1, 2, 3, 7, 8, 15, 16, 31, 32, 63, 64, 100, 127, 128, 129, 255, 256, 511, 512,
	1000, 1024, 4095, 4096, 1<<15 - 1, 1 << 15,
	1<<16 - 1, 1 << 16, 1<<20 - 1, 1 << 20, 1<<24 - 1, 1<<28 - 1, 1<<30 - 1, 1 << 30, 1<<31 - 1, 1 << 31,
	1<<32 - 1, 1 << 32, 1<<40 + 1, 1<<56 - 1, 1<<62 - 1,
	1<<63 - 1, 1 << 63, 1<<64 - 2, 1<<64 - 1}

// number returns an interesting integer, one close to it, or any integer with a random number of
// bits.
func (m *mutator) number() uint64 {
	switch n := interesting[m.rng.IntN(len(interesting))]; m.rng.IntN(4) {
	case 0:
		return m.rng.Uint64() >> m.rng.IntN(64)
	case 1:
		return n + uint64(m.rng.IntN(9)) - 4
	default:
		return n
	}
}

// span returns a random range within n bytes, usually a short one; it is empty only if n is 0.
func (m *mutator) span(n int) (from, to int) {
	if n == 0 {
		return 0, 0
	}
	longest := n
	if m.rng.IntN(4) > 0 {
		longest = min(n, 1<<m.rng.IntN(6))
	}
	size := 1 + m.rng.IntN(longest)
	from = m.rng.IntN(n - size + 1)
	return from, from + size
}

// change appends in, with one change, to out. other is the same value in a seed.
func (m *mutator) change(out, in, other []byte) []byte {
	if len(in) == 0 || m.rng.IntN(3) == 0 {
		return m.reshape(out, in, other)
	}
	at := m.rng.IntN(len(in))
	out = append(out, in...)
	switch m.rng.IntN(6) {
	case 0, 1:
		out[at] ^= 1 << m.rng.IntN(8)
	case 2:
		out[at] = byte(m.rng.Uint32())
	case 3:
		out[at] = byte(m.number())
	case 4:
		m.overwrite(out[at:])
	case 5: // bytes from another position, of this value or of a seed
		if m.rng.IntN(2) == 0 {
			other = in
		}
		from, to := m.span(len(other))
		copy(out[at:], other[from:to])
	}
	return out
}

// overwrite changes an integer at the start of b: 1, 2, 4 or 8 bytes, fewer if b is shorter.
func (m *mutator) overwrite(b []byte) {
	var field [8]byte
	width := min(1<<m.rng.IntN(4), len(b))
	copy(field[:], b[:width])
	n := binary.LittleEndian.Uint64(field[:])
	switch m.rng.IntN(3) {
	case 0:
		n += uint64(m.rng.IntN(65)) - 32
	default:
		n = m.number()
	}
	binary.LittleEndian.PutUint64(field[:], n)
	if m.rng.IntN(4) == 0 { // keys are big-endian
		for i := range width / 2 {
			field[i], field[width-1-i] = field[width-1-i], field[i]
		}
	}
	copy(b, field[:width])
}

// reshape appends in, with a change of its length, to out.
func (m *mutator) reshape(out, in, other []byte) []byte {
	at := m.rng.IntN(len(in) + 1)
	switch m.rng.IntN(7) {
	case 0: // truncate
		return append(out, in[:at]...)
	case 1: // remove a range
		from, to := m.span(len(in))
		return append(append(out, in[:from]...), in[to:]...)
	case 2: // repeat a range
		from, to := m.span(len(in))
		out = append(out, in[:to]...)
		for range 1 + m.rng.IntN(1<<m.rng.IntN(4)) {
			if len(out) < m.limit {
				out = append(out, in[from:to]...)
			}
		}
		return append(out, in[to:]...)
	case 3: // a run of one byte
		out = append(out, in[:at]...)
		c := byte(m.number())
		for range 1 + m.rng.IntN(1<<m.rng.IntN(8)) {
			out = append(out, c)
		}
		return append(out, in[at:]...)
	case 4: // a varint
		out = binary.AppendUvarint(append(out, in[:at]...), m.number())
		return append(out, in[min(len(in), at+m.rng.IntN(3)):]...)
	case 5: // a piece of another seed
		from, to := m.span(len(other))
		out = append(append(out, in[:at]...), other[from:to]...)
		return append(out, in[at:]...)
	default: // the start of this one, the end of another
		return append(append(out, in[:at]...), other[m.rng.IntN(len(other)+1):]...)
	}
}

// scalar changes a number or a bool, or returns the corresponding value of another seed.
func (m *mutator) scalar(v, other reflect.Value) reflect.Value {
	if m.rng.IntN(4) == 0 {
		return other
	}
	n := m.number()
	out := reflect.New(v.Type()).Elem()
	switch {
	case v.Kind() == reflect.Bool:
		out.SetBool(!v.Bool())
	case v.CanUint():
		if m.rng.IntN(3) == 0 {
			n = v.Uint() + uint64(m.rng.IntN(9)) - 4
		}
		out.SetUint(n & (1<<v.Type().Bits() - 1))
	case v.CanInt():
		if m.rng.IntN(3) == 0 {
			n = uint64(v.Int()) + uint64(m.rng.IntN(9)) - 4
		}
		out.SetInt(int64(n<<(64-v.Type().Bits())) >> (64 - v.Type().Bits()))
	case v.Kind() == reflect.Float32:
		out.SetFloat(float64(math.Float32frombits(uint32(n ^ uint64(m.rng.Uint32())))))
	default:
		out.SetFloat(math.Float64frombits(n ^ m.rng.Uint64()>>m.rng.IntN(64)))
	}
	return out
}
