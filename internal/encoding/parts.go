package encoding

import (
	"encoding/binary"
	"slices"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/coding"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/schema"
)

// Parts says where the parts of a payload are. A part has 2^Shift consecutive values, the last one
// perhaps fewer, which can be read without the rest of the payload: a chunk of a BIT_SHUFFLE payload
// or of codes, or some byte strings of a PLAIN payload with their offsets. Immutable.
type Parts struct {
	Shift int
	// Begin has the offset in the payload of each part, and of the end of the last one. Strings has,
	// for byte strings, the same of their offsets; it is nil for others. A part consists of its bytes
	// at Begin followed by those at Strings.
	Begin, Strings []uint32

	typ   schema.Type
	width int // bytes of a cell as stored; 0 for byte strings that are not codes
	count int // values of all parts
	codes bool
}

// stringPartBytes is about the size of a part of byte strings.
const stringPartBytes = 2 << 10

// PartsOf returns the parts of the payload of b; ok is false if it is in an encoding that has none.
func PartsOf(b Block, payload []byte) (p Parts, ok bool) {
	switch b := b.(type) {
	case *shuffled:
		return b.parts(len(payload) - len(b.payload)), true
	case *dictBlock:
		p = b.codes.parts(len(payload) - len(b.codes.payload))
		p.codes = true
		return p, true
	case *binaryBlock:
		return b.parts(uint32(len(payload) - len(b.payload))), b.Len() > 0
	}
	return p, false
}

// parts returns the chunks of b, whose payload begins at base.
func (b *shuffled) parts(base int) Parts {
	p := Parts{Shift: b.shift, typ: b.typ, width: b.width, count: b.count, Begin: make([]uint32, len(b.chunks)+1)}
	for i, at := range b.chunks {
		p.Begin[i] = uint32(base) + at
	}
	p.Begin[len(b.chunks)] = uint32(base + len(b.payload))
	return p
}

// parts returns parts of b, whose payload begins at base.
func (b *binaryBlock) parts(base uint32) Parts {
	n := b.Len()
	p := Parts{Shift: 2, typ: schema.Binary, count: n} // offsets are in groups of four
	pos := binary.LittleEndian.Uint32(b.payload[binaryOffsetsOff:])
	for p.Shift < maxPartShift && 2<<p.Shift <= n && int(pos)<<(p.Shift+1) <= stringPartBytes*n {
		p.Shift++
	}
	at := pos
	for i := 0; i < n; i += 4 {
		if i&(1<<p.Shift-1) == 0 {
			p.Begin = append(p.Begin, base+b.offsets[i])
			p.Strings = append(p.Strings, base+at)
		}
		_, used, _ := coding.GroupVarint(b.payload[at:]) // parsed before
		at += uint32(used)
	}
	p.Begin, p.Strings = append(p.Begin, base+pos), append(p.Strings, base+at)
	p.Begin, p.Strings = slices.Clip(p.Begin), slices.Clip(p.Strings)
	return p
}

// Len returns the number of parts.
func (p *Parts) Len() int { return len(p.Begin) - 1 }

// Bytes returns the memory of p in bytes.
func (p *Parts) Bytes() int { return 96 + 4*(cap(p.Begin)+cap(p.Strings)) }

// values returns the number of values of part k.
func (p *Parts) values(k int) int { return min(1<<p.Shift, p.count-k<<p.Shift) }

// Cell returns value i of part k, which has the given bytes. Like Block.Cell it returns a cell of the
// type's width, or a byte string, which is in new memory or in the dictionary. Errors: ErrCorrupt.
func (p *Parts) Cell(k int, part []byte, i int, dict *batch.Dictionary) ([]byte, error) {
	if p.width == 0 {
		var memory partOffsets
		s, err := p.strings(k, part, &memory)
		if err != nil {
			return nil, err
		}
		return append(make([]byte, 0, len(s.at(i))), s.at(i)...), nil // not nil if it is empty
	}
	buf := viewBuffers.Get().(*viewBuffer)
	defer viewBuffers.Put(buf)
	v, err := p.view(k, part, buf)
	if err != nil {
		return nil, err
	}
	c := v.cell(i)
	if p.codes {
		if c.lo >= uint64(len(dict.Words)) {
			return nil, fault.Corruptf("encoding: dict: code %d, the dictionary has %d words", c.lo, len(dict.Words))
		}
		return dict.Words[c.lo], nil
	}
	var wide [maxWidth]byte
	c.put(&wide)
	return append(make([]byte, 0, p.typ.Width()), wide[:p.typ.Width()]...), nil
}

// Seek returns the index in part k, which has the given bytes, of the first value at or after target,
// or the number of values if all are before it, and reports whether the two are equal. The values are
// sorted.
func (p *Parts) Seek(k int, part, target []byte, dict *batch.Dictionary) (i int, exact bool, err error) {
	n := p.values(k)
	if p.width == 0 {
		var memory partOffsets
		s, err := p.strings(k, part, &memory)
		if err != nil {
			return 0, false, err
		}
		i, exact = searchCells(p.typ, n, s.at, target)
		return i, exact, nil
	}
	buf := viewBuffers.Get().(*viewBuffer)
	defer viewBuffers.Put(buf)
	v, err := p.view(k, part, buf)
	if err != nil {
		return 0, false, err
	}
	if p.codes {
		i, exact, err = searchWords(dict, target, func(order func(code []byte) int) (int, bool, error) {
			i, exact := v.search(n, p.width, order)
			return i, exact, nil
		})
		return i, exact, err
	}
	i, exact = v.search(n, p.width, orderTo(p.typ, target))
	return i, exact, nil
}

// view returns the planes of part k.
func (p *Parts) view(k int, part []byte, buf *viewBuffer) (planeView, error) {
	if len(part) < chunkHeaderLen || binary.BigEndian.Uint32(part) != uint32(len(part)-chunkHeaderLen) {
		return planeView{}, fault.Corruptf("encoding: bitshuffle: chunk %d: %d bytes, and another length", k, len(part))
	}
	v, err := viewAlone(part[chunkHeaderLen:], (p.values(k)+7)&^7, p.width, buf)
	if err != nil {
		err = fault.Corruptf("encoding: bitshuffle: chunk %d: %v", k, err)
	}
	return v, err
}

// partOffsets is memory for the offsets of the strings of a part, and of their end.
type partOffsets [1<<maxPartShift + 1]uint32

// maxPartShift is the log2 of the strings of the largest part, in which they are short.
const maxPartShift = 8

// partStrings are the byte strings of a part, back to back.
type partStrings struct {
	bytes   []byte
	offsets []uint32 // in bytes, and of their end
}

func (s *partStrings) at(i int) []byte { return s.bytes[s.offsets[i]:s.offsets[i+1]] }

// strings returns the byte strings of part k.
func (p *Parts) strings(k int, part []byte, memory *partOffsets) (s partStrings, err error) {
	n, begin, end := p.values(k), p.Begin[k], p.Begin[k+1]
	if len(part) != int(end-begin)+int(p.Strings[k+1]-p.Strings[k]) {
		return s, fault.Corruptf("encoding: plain binary: part %d of %d bytes", k, len(part))
	}
	size := end - begin
	s = partStrings{part[:size], memory[:n+1]}
	groups := part[size:]
	base := uint32(0)
	for i := 0; i < n; i += 4 {
		v, used, ok := coding.GroupVarint(groups)
		if !ok {
			return s, fault.Corruptf("encoding: plain binary: part %d: offset %d of %d cut short", k, i, n)
		}
		groups = groups[used:]
		if i == 0 {
			base = v[0]
		}
		for j := range min(4, n-i) {
			s.offsets[i+j] = v[j] - base
		}
	}
	s.offsets[n] = size
	for i := range n {
		if s.offsets[i] > s.offsets[i+1] {
			return s, fault.Corruptf("encoding: plain binary: part %d: value %d ends before it begins", k, i)
		}
	}
	return s, nil
}
