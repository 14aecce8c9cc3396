package encoding

import (
	"bytes"
	"encoding/binary"
	"math/bits"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/keyenc"
)

// stringTest is a predicate on byte strings, in a form that is fast on payloads. A value passes if
// it is not below low and below high, where the test has these; if it equals value, or differs from
// it; and if it passes rest. The zero stringTest passes everything.
type stringTest struct {
	low, high       bound
	hasLow, hasHigh bool
	equal, differ   bool
	value           []byte
	// lengths has a 1 for each length of a value that may pass or, if differ is set, that may not.
	// It is 0 if values of any length may.
	lengths uint64
	rest    *batch.Predicate
}

// bound is a place in the order of byte strings: before a value, or just after it.
type bound struct {
	value []byte
	key   uint64 // of value, see keyenc.Head
	after bool
}

func before(value []byte) bound { return bound{value: value, key: keyenc.Head(value)} }
func after(value []byte) bound  { return bound{value: value, key: keyenc.Head(value), after: true} }

// compile sets t to a predicate other than IsNull and NotNull.
func (t *stringTest) compile(p *batch.Predicate) {
	*t = stringTest{}
	switch p.Op {
	case batch.Eq:
		t.equal, t.value, t.lengths = true, p.Values[0], lengthBit(uint32(len(p.Values[0])))
	case batch.Ne:
		t.differ, t.value, t.lengths = true, p.Values[0], lengthBit(uint32(len(p.Values[0])))
	case batch.Lt:
		t.high, t.hasHigh = before(p.Values[0]), true
	case batch.Le:
		t.high, t.hasHigh = after(p.Values[0]), true
	case batch.Gt:
		t.low, t.hasLow = after(p.Values[0]), true
	case batch.Ge:
		t.low, t.hasLow = before(p.Values[0]), true
	default:
		t.rest = p
		if n := len(p.Values); p.Op == batch.In && n > 0 && p.Prepared() { // its values are sorted
			t.low, t.hasLow = before(p.Values[0]), true
			t.high, t.hasHigh = after(p.Values[n-1]), true
			for _, v := range p.Values {
				t.lengths |= lengthBit(uint32(len(v)))
			}
		}
	}
}

// passes reports whether a value passes.
func (t *stringTest) passes(value []byte) bool {
	switch {
	case t.equal:
		return bytes.Equal(value, t.value)
	case t.differ:
		return !bytes.Equal(value, t.value)
	case t.lengths != 0 && t.lengths&lengthBit(uint32(len(value))) == 0:
		return false
	case t.hasLow && t.low.exceeds(value), t.hasHigh && !t.high.exceeds(value):
		return false
	}
	return t.rest == nil || t.rest.EvalCell(value)
}

// exceeds reports whether value is below b.
func (b *bound) exceeds(value []byte) bool {
	order := bytes.Compare(value, b.value)
	return order < 0 || order == 0 && b.after
}

// lane is the number of values of one word of a selection.
const lane = 64

// laneOffsets are the offsets of a lane of values and of their end.
type laneOffsets [lane + 1]uint32

// fewInLane is the number of selected values up to which they are tested one by one.
const fewInLane = 12

// filter clears those bits of sel, from bit at on, whose values do not pass. Value i is
// payload[offsets[i]:offsets[i+1]].
func (t *stringTest) filter(payload []byte, offsets []uint32, sel batch.Bitmap, at int) {
	n := len(offsets) - 1
	for i := 0; i < n; {
		w := &sel[(at+i)>>6]
		skip := (at + i) & (lane - 1)
		k := min(n-i, lane-skip)
		selected := *w >> skip & (allOnes >> (lane - k))
		switch {
		case selected == 0:
		case k == lane && bits.OnesCount64(selected) > fewInLane:
			*w = t.lane(payload, (*laneOffsets)(offsets[i:]), selected)
		default:
			*w &^= t.failed(payload, offsets[i:], selected) << skip
		}
		i += k
	}
}

// failed returns those bits of selected whose values do not pass.
func (t *stringTest) failed(payload []byte, offsets []uint32, selected uint64) (m uint64) {
	for rest := selected; rest != 0; rest &= rest - 1 {
		i := bits.TrailingZeros64(rest)
		if from, to := offsets[i], offsets[i+1]; !t.passes(payload[from:to:to]) {
			m |= 1 << i
		}
	}
	return m
}

// lane returns those bits of selected whose values pass. It may load eight bytes from the beginning
// of each: a payload of so many values ends with at least 80 bytes of offsets.
func (t *stringTest) lane(payload []byte, offsets *laneOffsets, selected uint64) uint64 {
	if t.lengths != 0 {
		likely := selected & laneLengths(offsets, t.lengths)
		switch {
		case t.differ:
			return selected&^likely | likely&^t.failed(payload, offsets[:], likely)
		case t.equal || bits.OnesCount64(likely) <= fewInLane:
			return likely &^ t.failed(payload, offsets[:], likely)
		}
		selected = likely
	}
	if t.hasLow {
		selected &^= t.low.laneExceeds(payload, offsets, selected)
	}
	if t.hasHigh && selected != 0 {
		selected &= t.high.laneExceeds(payload, offsets, selected)
	}
	if t.rest != nil {
		selected &^= t.failed(payload, offsets[:], selected)
	}
	return selected
}

// lengthBit returns a bit for the length of a byte string. All long ones have the same bit.
func lengthBit(n uint32) uint64 { return 1 << min(n, 63) }

// laneLengths returns a mask of the values whose lengths have one of the bits of lengths.
func laneLengths(offsets *laneOffsets, lengths uint64) (m uint64) {
	start := offsets[0]
	for i, end := range offsets[1:] {
		m |= lengths >> min(end-start, 63) & 1 << i
		start = end
	}
	return m
}

// laneExceeds returns a mask of the values that are below b, correct for those that are selected.
// The first eight bytes decide for most values.
func (b *bound) laneExceeds(payload []byte, offsets *laneOffsets, selected uint64) (below uint64) {
	equal, start := uint64(0), offsets[0]
	for i, end := range offsets[1:] {
		key := binary.BigEndian.Uint64(payload[start:]) & firstBytes(end-start)
		below |= bit(key < b.key) << i
		if key == b.key {
			equal |= 1 << i
		}
		start = end
	}
	for equal &= selected; equal != 0; equal &= equal - 1 {
		i := bits.TrailingZeros64(equal)
		below |= bit(b.exceeds(payload[offsets[i]:offsets[i+1]])) << i
	}
	return below
}

// bit returns 1 for true.
func bit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}
