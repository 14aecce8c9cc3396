package encoding

import (
	"bytes"
	"encoding/binary"
	"math/bits"

	"github.com/oribi-db/oribi/batch"
)

// prefixOrder compares the values of a PREFIX payload, one after another, with one byte string. It
// needs no value, only what an entry adds to the value before it. That one has common leading bytes
// in common with the byte string:
//
//	shared > common  the value differs from it at the same byte as the one before: the same order
//	shared ≤ common  the value has the first shared bytes in common with it, and the rest decides
type prefixOrder struct {
	with        []byte // followed by at least eight zeros in its memory
	common      int
	least, most int    // of the orders that pass: -1, 0, or 1 if a value is below with, equal, or above
	passes      uint64 // 1 if the last value passes
}

// padding follows the byte string of a prefixOrder.
var padding [8]byte

func (o *prefixOrder) set(with []byte, least, most int) {
	padded := append(append(make([]byte, 0, len(with)+len(padding)), with...), padding[:]...)
	*o = prefixOrder{with: padded[:len(with)], least: least, most: most}
}

// compare compares the value that shares at most o.common leading bytes with the one before it and
// ends with payload[from:to].
func (o *prefixOrder) compare(shared int, payload []byte, from, to int) {
	wanted := o.with[shared:]
	k, order := 0, 0
	if from+8 <= len(payload) {
		// Eight bytes decide for most values.
		x := binary.BigEndian.Uint64(payload[from:]) & firstBytes(to-from)
		y := binary.BigEndian.Uint64(wanted[:8:8])
		k = min(bits.LeadingZeros64(x^y)>>3, to-from, len(wanted))
		order = int(bit(x > y)) - int(bit(x < y))
	}
	if order == 0 {
		k += commonPrefix(payload[from+k:to], wanted[k:])
		order = bytes.Compare(payload[from+k:to], wanted[k:])
	}
	o.common = shared + k
	o.passes = bit(o.least <= order && order <= o.most)
}

// firstBytes returns a mask of the first n bytes of eight, the most significant ones.
func firstBytes[T int | uint32](n T) uint64 { return allOnes << (64 - 8*uint(min(n, 8))) }

// ordersOf returns what t requires of values in addition to t.rest.
func ordersOf(t *stringTest) (orders [2]prefixOrder, n int) {
	add := func(with []byte, least, most int) {
		orders[n].set(with, least, most)
		n++
	}
	if t.equal || t.differ {
		add(t.value, 0, 0)
	}
	if t.hasLow {
		add(t.low.value, int(bit(t.low.after)), 1)
	}
	if t.hasHigh {
		add(t.high.value, -1, int(bit(t.high.after))-1)
	}
	return orders, n
}

// Select compares only what entries add to the values before them. It leaves Bloom filters to the
// caller: they need complete values, which may be many times as long as the payload.
func (b *prefixBlock) Select(p *batch.Predicate, from, n int, sel batch.Bitmap, at int) (bool, error) {
	if selectAll(p, n, sel, at) {
		return true, nil
	}
	if p.Op == batch.InFilter {
		return false, nil
	}
	var t stringTest
	t.compile(p)
	if t.rest != nil || b.interval >= farRestarts {
		b.filterValues(&t, from, n, sel, at)
		return true, nil
	}
	orders, k := ordersOf(&t)
	for i := range orders[:k] {
		b.filter(&orders[i], t.differ, from, n, sel, at)
	}
	return true, nil
}

// filter clears the bits in [at, at+n) of sel whose values, from value from on, do not pass o, or
// do if differ is set. It walks the entries from the restarts before selected values.
func (b *prefixBlock) filter(o *prefixOrder, differ bool, from, n int, sel batch.Bitmap, at int) {
	for s := sel.Next(at); s >= 0 && s < at+n; s = sel.Next(s) {
		r := (from + s - at) / b.interval
		i, pos := r*b.interval, b.restart(r)
		end := min(i+b.interval, from+n)
		if i < from {
			pos, _ = b.walk(o, pos, from-i)
			i = from
		}
		s = at + i - from
		for i < end {
			var passed uint64
			k := min(end-i, 64)
			pos, passed = b.walk(o, pos, k)
			if differ {
				passed = ^passed
			}
			keepBits(sel, s, []uint64{passed}, 0, k)
			i, s = i+k, s+k
		}
	}
}

// walk compares the values of the n entries from pos on. next is the end of the last one. If n is
// at most 64, bit i of passed is 1 if value i passes.
func (b *prefixBlock) walk(o *prefixOrder, pos, n int) (next int, passed uint64) {
	payload, common, passes := b.payload, o.common, o.passes
	for i := range n {
		// Nearly all lengths take one byte.
		shared, unshared := int(payload[pos]), int(payload[pos+1])
		next := pos + 2 + unshared
		if shared|unshared >= 0x80 {
			shared, unshared, next, _ = b.entry(pos)
		}
		if shared <= common {
			o.compare(shared, payload, next-unshared, next)
			common, passes = o.common, o.passes
		}
		passed |= passes << (i & 63)
		pos = next
	}
	return pos, passed
}

// filterValues is filter for tests that need the values, and for blocks that keep a cursor.
func (b *prefixBlock) filterValues(t *stringTest, from, n int, sel batch.Bitmap, at int) {
	if n == 0 {
		return
	}
	p := b.cursorAt(from)
	if b.interval >= farRestarts { // the values that are left may be decoded next
		b.keep(&prefixCursor{next: p.next, pos: p.pos, value: bytes.Clone(p.value)})
	}
	if p.value == nil {
		p.value = []byte{} // nil is NULL
	}
	for end := from + n; p.next < end; p.next++ {
		shared, unshared, next, _ := b.entry(p.pos)
		p.value, p.pos = append(p.value[:shared], b.payload[next-unshared:next]...), next
		if s := at + p.next - from; sel.Get(s) && !t.passes(p.value) {
			sel.Clear(s)
		}
	}
}
