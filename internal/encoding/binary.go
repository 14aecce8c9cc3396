package encoding

import (
	"bytes"
	"encoding/binary"
	"slices"
	"sync/atomic"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/coding"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/keyenc"
	"github.com/oribi-db/oribi/schema"
)

// PLAIN payload of byte strings; a dictionary cblock is one, from row 0. Source: cfile spec §6.5.
//
//	offset      width  field       meaning
//	0           4      ordinal     row of the cblock's first row
//	4           4      count       values
//	8           4      offsetsPos  where the offsets begin
//	12          …      bytes       the values, back to back
//	offsetsPos  …      offsets     count offsets of values from the payload's start, in group varints;
//	                               the first is 12; a value ends where the next one begins
//
// "apple", "", "cherry" from row 9:
// 09 00 00 00 03 00 00 00 17 00 00 00 61 70 70 6c 65 63 68 65 72 72 79 00 0c 11 11 00
const (
	binaryCountOff   = 4  // file format: never change
	binaryOffsetsOff = 8  // file format: never change
	binaryHeaderLen  = 12 // file format: never change
	minGroupLen      = 5  // bytes of the shortest group of four offsets
)

// binaryBlock is a PLAIN payload of byte strings.
type binaryBlock struct {
	ordinal batch.Ordinal
	payload []byte
	offsets []uint32              // of the values, then of their end: Len()+1
	heads   atomic.Pointer[heads] // nil before the first Seek
}

// parsePlainBinary returns a binaryBlock or, if its offsets would take more than limit bytes, a
// sparseBinary. 0 means no limit. memory is Params.Offsets.
func parsePlainBinary(payload []byte, limit int, memory *[]uint32) (Block, error) {
	ord, pos, g, err := parseBinaryHeader(payload)
	if err != nil {
		return nil, err
	}
	if limit > 0 && 4*(int64(g.count)+1) > int64(limit) {
		return parseSparse(payload, ord, pos, g)
	}
	offsets, err := readOffsets(g, pos, memory)
	if err != nil {
		return nil, err
	}
	return &binaryBlock{ordinal: batch.Ordinal(ord), payload: payload, offsets: offsets}, nil
}

// parseBinaryHeader returns the first row of a payload, and where its offsets begin.
func parseBinaryHeader(payload []byte) (ord, pos uint32, g offsetGroups, err error) {
	if len(payload) < binaryHeaderLen {
		return 0, 0, g, fault.Corruptf("encoding: plain binary: %d bytes, the header has %d", len(payload),
			binaryHeaderLen)
	}
	le := binary.LittleEndian
	ord, count, pos := le.Uint32(payload), le.Uint32(payload[binaryCountOff:]), le.Uint32(payload[binaryOffsetsOff:])
	if err := checkRange("plain binary", ord, count); err != nil {
		return 0, 0, g, err
	}
	if pos < binaryHeaderLen || uint64(pos) > uint64(len(payload)) {
		return 0, 0, g, fault.Corruptf("encoding: plain binary: offsets at byte %d of %d", pos, len(payload))
	}
	g = offsetGroups{rest: payload[pos:], count: int(count), last: binaryHeaderLen}
	if n := (uint64(count) + 3) / 4; n > uint64(len(g.rest)/minGroupLen) {
		return 0, 0, g, fault.Corruptf("encoding: plain binary: %d offsets in %d bytes", count, len(g.rest))
	}
	return ord, pos, g, nil
}

// PlainOffsets returns the offsets of the values of a payload of byte strings, and of their end, in
// payload[at:]; ok is false if the payload does not have the values back to back. memory is
// Params.Offsets.
func PlainOffsets(payload []byte, e schema.Encoding, memory *[]uint32) (at int, offsets []uint32, ok bool) {
	switch {
	case e == schema.Plain:
	case e == schema.Dictionary && len(payload) >= dictModeLen && binary.LittleEndian.Uint32(payload) == modePlain:
		at = dictModeLen
	default:
		return 0, nil, false
	}
	_, offsets, err := PlainStrings(payload[at:], memory)
	return at, offsets, err == nil
}

// PlainStrings returns the first row of a PLAIN payload of byte strings, and the offsets in payload of
// its values and of their end. memory is Params.Offsets.
func PlainStrings(payload []byte, memory *[]uint32) (first batch.Ordinal, offsets []uint32, err error) {
	ord, pos, g, err := parseBinaryHeader(payload)
	if err == nil {
		offsets, err = readOffsets(g, pos, memory)
	}
	return batch.Ordinal(ord), offsets, err
}

// offsetGroups iterates over the offsets of a payload, four at a time, and checks that they do not
// descend.
type offsetGroups struct {
	rest  []byte
	i     int // offsets read, a multiple of 4
	count int
	last  uint32
}

// next reads a group, i < count. After the last offset it repeats that one.
func (g *offsetGroups) next() (v [4]uint32, err error) {
	v, used, ok := coding.GroupVarint(g.rest)
	if !ok {
		return v, fault.Corruptf("encoding: plain binary: offset %d of %d cut short", g.i, g.count)
	}
	g.rest = g.rest[used:]
	for j := g.count - g.i; j < 4; j++ {
		v[j] = v[j-1] // padding of the last group, not an offset
	}
	if g.i == 0 && v[0] != binaryHeaderLen || v[0] < g.last || v[1] < v[0] || v[2] < v[1] || v[3] < v[2] {
		return v, fault.Corruptf("encoding: plain binary: values %d to %d of %d at bytes %d after %d", g.i,
			g.i+3, g.count, v, g.last)
	}
	g.i, g.last = g.i+4, v[3]
	return v, nil
}

// finish checks that the values end before end and that no bytes follow the last group.
func (g *offsetGroups) finish(end uint32) error {
	switch {
	case g.last > end:
		return fault.Corruptf("encoding: plain binary: value %d at byte %d, values end at %d", g.count-1, g.last, end)
	case g.count == 0 && end != binaryHeaderLen:
		return fault.Corruptf("encoding: plain binary: %d bytes of no value", end-binaryHeaderLen)
	case len(g.rest) != 0:
		return fault.Corruptf("encoding: plain binary: %d bytes after the offsets", len(g.rest))
	}
	return nil
}

// readOffsets reads all offsets and adds their end. They must fill the groups. memory is
// Params.Offsets.
func readOffsets(g offsetGroups, end uint32, memory *[]uint32) ([]uint32, error) {
	var offsets []uint32
	size := (g.count+3)&^3 + 1
	if memory != nil && cap(*memory) >= size {
		offsets = (*memory)[:size]
	} else {
		offsets = make([]uint32, size)
	}
	if memory != nil {
		*memory = offsets
	}
	for g.i < g.count {
		at := g.i
		v, err := g.next()
		if err != nil {
			return nil, err
		}
		*(*[4]uint32)(offsets[at:]) = v
	}
	offsets[g.count] = end
	return offsets[:g.count+1], g.finish(end)
}

// ParseDictionary reads a dictionary cblock. The words alias payload. Source: cfile spec §6.7.
func ParseDictionary(payload []byte) (*batch.Dictionary, error) {
	b, err := parsePlainBinary(payload, 0, nil)
	if err != nil {
		return nil, err
	}
	v := batch.NewVector(schema.Binary, b.Len())
	return &batch.Dictionary{Words: v.Bytes}, b.Decode(0, v.Len, v, 0)
}

func (b *binaryBlock) Ordinal() batch.Ordinal { return b.ordinal }
func (b *binaryBlock) Len() int               { return len(b.offsets) - 1 }
func (b *binaryBlock) Footprint() int         { return 72 + 4*cap(b.offsets) + 8*(b.Len()/headStep) }

func (b *binaryBlock) cell(i int) []byte {
	from, to := b.offsets[i], b.offsets[i+1]
	return b.payload[from:to:to]
}

func (b *binaryBlock) Cell(i int) ([]byte, error) { return b.cell(i), nil }

func (b *binaryBlock) Decode(from, n int, dst *batch.Vector, at int) error {
	out := dst.Bytes[at : at+n]
	start := b.offsets[from]
	for i, end := range b.offsets[from+1 : from+1+n] {
		out[i] = b.payload[start:end:end]
		start = end
	}
	return nil
}

// DecodeBackward is Decode with the values in descending order.
func (b *binaryBlock) DecodeBackward(from, n int, dst *batch.Vector, at int) {
	out := dst.Bytes[at : at+n]
	start := b.offsets[from]
	for i, end := range b.offsets[from+1 : from+1+n] {
		out[n-1-i] = b.payload[start:end:end]
		start = end
	}
}

// DecodeSelected decodes values whose bits are set.
func (b *binaryBlock) DecodeSelected(from, n int, sel batch.Bitmap, selAt int, dst *batch.Vector, at int) {
	for i := sel.Next(selAt); i >= 0 && i < selAt+n; i = sel.Next(i + 1) {
		dst.Bytes[at+i-selAt] = b.cell(from + i - selAt)
	}
}

func (b *binaryBlock) Seek(target []byte) (int, bool, error) {
	lo, hi := 0, b.Len() // values before lo are below target, those from hi on are not
	if hi >= 2*headStep {
		lo, hi = b.near(target)
	}
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if bytes.Compare(b.cell(mid), target) < 0 {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo, lo < b.Len() && bytes.Equal(b.cell(lo), target), nil
}

// heads are the heads (see keyenc.Head) of every headStep-th value, after the prefix that all values have.
// A search in them waits for two or three cache lines, and one in the values for two at each step.
type heads struct {
	prefix []byte
	list   []uint64
}

const headStep = 16

// near returns bounds of a search for target.
func (b *binaryBlock) near(target []byte) (lo, hi int) {
	h := b.heads.Load()
	if h == nil {
		h = b.makeHeads()
		b.heads.Store(h)
	}
	if !bytes.HasPrefix(target, h.prefix) {
		return 0, b.Len()
	}
	head := keyenc.Head(target[len(h.prefix):])
	i, found := slices.BinarySearch(h.list, head)
	end := i
	for found && end < len(h.list) && h.list[end] == head {
		end++
	}
	if lo = max(0, (i-1)*headStep+1); i == 0 {
		lo = 0
	}
	return lo, min(end*headStep, b.Len())
}

func (b *binaryBlock) makeHeads() *heads {
	n := b.Len()
	skip := commonPrefix(b.cell(0), b.cell(n-1))
	h := &heads{bytes.Clone(b.cell(0)[:skip]), make([]uint64, 0, n/headStep+1)}
	for i := 0; i < n; i += headStep {
		cell := b.cell(i)
		h.list = append(h.list, keyenc.Head(cell[min(skip, len(cell)):])) // values of a damaged file are in any order
	}
	return h
}

// Select tests only the values whose bits are set, in place.
func (b *binaryBlock) Select(p *batch.Predicate, from, n int, sel batch.Bitmap, at int) (bool, error) {
	if selectAll(p, n, sel, at) {
		return true, nil
	}
	var t stringTest
	t.compile(p)
	t.filter(b.payload, b.offsets[from:from+n+1], sel, at)
	return true, nil
}
