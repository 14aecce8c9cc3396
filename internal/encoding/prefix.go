package encoding

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"sync/atomic"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/coding"
	"github.com/oribi-db/oribi/internal/fault"
)

// PREFIX payload of byte strings. Source: cfile spec §6.6.
//
//	width        field     meaning
//	5–17         header    group varint of count, ordinal, interval, 0
//	…            entries   one a value, see below
//	4 each       restarts  offsets, from the payload's start, of entries interval, 2·interval, …
//	4            n         restarts: ⌊(count − 1) / interval⌋, 0 if there are no values
//
//	entry
//	varint       shared    leading bytes shared with the previous value; 0 for entry 0 and at restarts
//	varint       unshared  bytes of the next field
//	unshared     bytes     the rest of the value
//
// "a", "ab", "b", interval 2, from row 0:
// 00 03 00 02 00 00 01 61 01 01 62 00 01 62 0b 00 00 00 01 00 00 00
const (
	restartLen     = 4 // file format: never change
	minEntryLen    = 2
	headerCount    = 0 // index in the header's group; file format: never change
	headerOrdinal  = 1 // file format: never change
	headerInterval = 2 // file format: never change
)

// prefixBlock is a PREFIX payload.
type prefixBlock struct {
	ordinal  batch.Ordinal
	count    int
	interval int
	payload  []byte
	first    int    // offset of entry 0
	end      int    // offset after the last entry
	restarts []byte // offsets of the restarts
	longest  int    // bytes of the longest value
	spread   spread // of the values of the restarts

	// kept is where the last call ended, for the next call. It is used if restarts are so far apart
	// that walking from them for each window would take quadratic time. A call that takes it owns
	// it until it puts it back.
	kept atomic.Pointer[prefixCursor]
}

// farRestarts is the restart interval from which on a block keeps its cursor. Writers use 16.
const farRestarts = 1024

// prefixCursor is a position between two entries.
type prefixCursor struct {
	next  int    // the value whose entry is at pos
	pos   int    // offset in the payload
	value []byte // the previous value, in memory of the cursor; undefined at a restart
}

func parsePrefix(payload []byte) (*prefixBlock, error) {
	header, first, ok := coding.GroupVarint(payload)
	if !ok {
		return nil, fault.Corruptf("encoding: prefix: header cut short at %d bytes", len(payload))
	}
	count, interval := header[headerCount], header[headerInterval]
	if err := checkRange("prefix", header[headerOrdinal], count); err != nil {
		return nil, err
	}
	if interval == 0 {
		return nil, fault.Corruptf("encoding: prefix: no restart interval")
	}
	tail := len(payload) - restartLen
	if tail < first {
		return nil, fault.Corruptf("encoding: prefix: no restart count in %d bytes", len(payload))
	}
	n := int64(binary.LittleEndian.Uint32(payload[tail:]))
	if n*restartLen > int64(tail-first) || n != int64(max(count, 1)-1)/int64(interval) {
		return nil, fault.Corruptf("encoding: prefix: %d restarts for %d values, one every %d", n, count, interval)
	}
	end := tail - int(n)*restartLen
	b := &prefixBlock{ordinal: batch.Ordinal(header[headerOrdinal]), count: int(count), interval: int(interval),
		payload: payload, first: first, end: end, restarts: payload[end:tail]}
	if err := b.check(); err != nil {
		return nil, err
	}
	b.spread = b.measure()
	return b, nil
}

// check walks all entries, so that later walks need no bounds checks.
func (b *prefixBlock) check() error {
	if b.count > (b.end-b.first)/minEntryLen {
		return fault.Corruptf("encoding: prefix: %d values in %d bytes", b.count, b.end-b.first)
	}
	pos, previous := b.first, 0
	untilRestart := 0
	for i := range b.count {
		shared, unshared, next, ok := b.entry(pos)
		if !ok || shared > previous {
			return fault.Corruptf("encoding: prefix: value %d of %d at byte %d: bad lengths", i, b.count, pos)
		}
		if untilRestart == 0 {
			untilRestart = b.interval
			if shared != 0 || b.restart(i/b.interval) != pos {
				return fault.Corruptf("encoding: prefix: value %d of %d at byte %d is no restart", i, b.count, pos)
			}
		}
		untilRestart--
		pos, previous = next, shared+unshared
		b.longest = max(b.longest, previous)
	}
	if pos != b.end {
		return fault.Corruptf("encoding: prefix: %d bytes after the last value", b.end-pos)
	}
	return nil
}

// restart returns the offset of restart r; restart 0 is the first entry.
func (b *prefixBlock) restart(r int) int {
	if r == 0 {
		return b.first
	}
	return int(binary.LittleEndian.Uint32(b.restarts[(r-1)*restartLen:]))
}

// entry reads the lengths of the entry at pos, whose bytes end at next. ok is false if it overruns
// the payload.
func (b *prefixBlock) entry(pos int) (shared, unshared, next int, ok bool) {
	// Nearly all lengths take one byte.
	if rest := b.payload[pos:b.end]; len(rest) >= 2 && rest[0]|rest[1] < 0x80 {
		shared, unshared, next = int(rest[0]), int(rest[1]), pos+2
	} else {
		s, used, ok1 := coding.Uvarint32(rest)
		u, more, ok2 := coding.Uvarint32(rest[used:])
		if !ok1 || !ok2 {
			return 0, 0, 0, false
		}
		shared, unshared, next = int(s), int(u), pos+used+more
	}
	return shared, unshared, next + unshared, unshared <= b.end-next
}

func (b *prefixBlock) Ordinal() batch.Ordinal { return b.ordinal }
func (b *prefixBlock) Len() int               { return b.count }

// Footprint includes the value that the block may keep.
func (b *prefixBlock) Footprint() int {
	if b.interval >= farRestarts {
		return 192 + b.longest
	}
	return 160
}

// cursorAt returns the cursor before value i, which is reached from the previous restart or from
// where the last call ended.
func (b *prefixBlock) cursorAt(i int) prefixCursor {
	p := b.nearest(i)
	b.advance(&p, i)
	return p
}

// advance moves a cursor forward to value i.
func (b *prefixBlock) advance(p *prefixCursor, i int) {
	for ; p.next < i; p.next++ {
		shared, unshared, end, _ := b.entry(p.pos)
		p.value = append(p.value[:shared], b.payload[end-unshared:end]...)
		p.pos = end
	}
}

// nearest returns the last known cursor at or before value i, where i is at most Len.
func (b *prefixBlock) nearest(i int) prefixCursor {
	restart := min(i, b.count-1) / b.interval
	if b.interval >= farRestarts {
		if k := b.kept.Swap(nil); k != nil && k.next <= i && k.next > restart*b.interval {
			return *k
		}
	}
	return prefixCursor{next: restart * b.interval, pos: b.restart(restart)}
}

// keep keeps a cursor for the next call.
func (b *prefixBlock) keep(p *prefixCursor) {
	if b.interval >= farRestarts {
		k := *p
		b.kept.Store(&k)
	}
}

func (b *prefixBlock) Cell(i int) ([]byte, error) {
	if i < 0 || i >= b.count {
		panic("encoding: prefix: value out of range")
	}
	if i%b.interval == 0 {
		return b.restartValue(i / b.interval), nil
	}
	p := b.cursorAt(i)
	shared, unshared, end, _ := b.entry(p.pos)
	value := append(make([]byte, 0, shared+unshared), p.value[:shared]...)
	b.keep(&p)
	return append(value, b.payload[end-unshared:end]...), nil
}

// Decode writes the values to one new buffer, except those that are complete in the payload (they
// share nothing) or in the previous value (they add nothing).
func (b *prefixBlock) Decode(from, n int, dst *batch.Vector, at int) error {
	if n == 0 {
		return nil
	}
	p := b.cursorAt(from)
	size, err := b.copied(p.pos, n)
	if err != nil {
		return err
	}
	buf, previous, pos := make([]byte, 0, size), p.value, p.pos
	out := dst.Bytes[at : at+n]
	for i := range out {
		shared, unshared, next, _ := b.entry(pos)
		value := b.payload[next-unshared : next : next]
		switch {
		case shared == 0:
		case unshared == 0:
			value = previous[:shared:shared]
		default:
			start := len(buf)
			buf = append(append(buf, previous[:shared]...), value...)
			value = buf[start:len(buf):len(buf)]
		}
		out[i] = value
		previous, pos = value, next
	}
	if b.interval >= farRestarts {
		b.keep(&prefixCursor{next: from + n, pos: pos, value: bytes.Clone(previous)}) // out may alias the memory of p
	}
	return nil
}

// DecodeSelected walks from the restarts before selected values, and copies these to a buffer.
// Values that begin the value before them share its memory: any number of them may be as long as
// they like in a short payload (see Fit).
func (b *prefixBlock) DecodeSelected(from, n int, sel batch.Bitmap, selAt int, dst *batch.Vector, at int) {
	var p prefixCursor
	var buf, last []byte
	for s := sel.Next(selAt); s >= 0 && s < selAt+n; s = sel.Next(s + 1) {
		i := from + s - selAt
		if p.pos == 0 || i/b.interval > p.next/b.interval {
			value := p.value
			if p = b.nearest(i); p.value == nil {
				p.value = value
			}
		}
		b.advance(&p, i+1)
		if !bytes.HasPrefix(last, p.value) || last == nil {
			if cap(buf)-len(buf) < len(p.value) {
				buf = make([]byte, 0, max(2*cap(buf), len(p.value), 1024)) // earlier values keep their memory
			}
			start := len(buf)
			buf = append(buf, p.value...)
			last = buf[start:]
		}
		last = last[:len(p.value):len(p.value)]
		dst.Bytes[at+s-selAt] = last
	}
	if p.pos != 0 {
		b.keep(&p)
	}
}

// restartValue returns the value of restart r, which is complete in the payload.
func (b *prefixBlock) restartValue(r int) []byte {
	_, unshared, end, _ := b.entry(b.restart(r))
	return b.payload[end-unshared : end : end]
}

// commonPrefix returns the number of leading bytes that a and b share.
func commonPrefix(a, b []byte) int {
	n := min(len(a), len(b))
	i := 0
	for ; i+8 <= n; i += 8 {
		if x := binary.LittleEndian.Uint64(a[i:]) ^ binary.LittleEndian.Uint64(b[i:]); x != 0 {
			return i + bits.TrailingZeros64(x)/8
		}
	}
	for ; i < n; i++ {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}
