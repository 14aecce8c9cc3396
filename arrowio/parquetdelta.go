package arrowio

import (
	"encoding/binary"

	"github.com/apache/arrow-go/v18/arrow/memory"
)

// plainValues stores pages in the encodings of differences as PLAIN ones. arrow-go has no decoder
// of DELTA_BYTE_ARRAY for values of fixed length, refuses differences of more than 32 bits between
// integers of 32 bits, which duckdb writes, and allocates memory by the block size of a page.
type plainValues struct {
	buf      *memory.Buffer
	prefixes []int32
	lengths  []int32
}

// integers returns a page whose first bytes are levels as data has them. The values after them are
// in the encoding DELTA_BINARY_PACKED: most or fewer of 4 or 8 bytes each. The result is valid
// until the next call.
func (p *plainValues) integers(data []byte, levels, width, most int) ([]byte, error) {
	d, err := newDeltas(data[levels:], most)
	if err != nil {
		return nil, err
	}
	size := levels + d.count*width
	if size > maxBuffer {
		return nil, corruptf("a page of %d values, limit %d bytes", d.count, maxBuffer)
	}
	page := resized(p.buf, size)
	copy(page, data[:levels])
	if width == 4 {
		err = d.read(page[levels:], 4)
	} else {
		err = d.read(page[levels:], 8)
	}
	return page, err
}

// strings is integers for byte strings of width bytes, −1 if they vary. prefixes selects the
// encoding DELTA_BYTE_ARRAY:
//
//	bytes that the value has in common with the one before   DELTA_BINARY_PACKED
//	lengths of the rest of each value                         DELTA_BINARY_PACKED
//	the rest of each value
//
// The encoding DELTA_LENGTH_BYTE_ARRAY has no prefixes.
func (p *plainValues) strings(data []byte, levels, width, most int, prefixes bool) (_ []byte, err error) {
	rest := data[levels:]
	p.prefixes = p.prefixes[:0]
	if prefixes {
		if p.prefixes, rest, err = readLengths(p.prefixes, rest, most); err != nil {
			return nil, err
		}
	}
	if p.lengths, rest, err = readLengths(p.lengths[:0], rest, most); err != nil {
		return nil, err
	}
	if prefixes && len(p.prefixes) != len(p.lengths) {
		return nil, corruptf("%d prefixes of %d values", len(p.prefixes), len(p.lengths))
	}
	size, err := p.size(len(rest), width)
	if err != nil {
		return nil, err
	}
	if size += int64(levels); size > maxBuffer {
		return nil, corruptf("a page of %d bytes, limit %d", size, maxBuffer)
	}
	page := resized(p.buf, int(size))
	to := page[copy(page, data[:levels]):]
	var last []byte
	for i, n := range p.lengths {
		prefix := 0
		if prefixes {
			prefix = int(p.prefixes[i])
		}
		if width < 0 {
			binary.LittleEndian.PutUint32(to, uint32(prefix+int(n)))
			to = to[4:]
		}
		copy(to, last[:prefix])
		copy(to[prefix:], rest[:n])
		last, to, rest = to[:prefix+int(n)], to[prefix+int(n):], rest[n:]
	}
	return page, nil
}

// size returns the number of bytes of the values in the encoding PLAIN. text is the number of bytes
// that are stored for them.
func (p *plainValues) size(text, width int) (size int64, err error) {
	last := int64(0)
	for i, length := range p.lengths {
		n := int64(length)
		if n < 0 || n > int64(text) {
			return 0, corruptf("%d bytes of a value, %d are left of the page", n, text)
		}
		text -= int(n)
		if len(p.prefixes) > 0 {
			prefix := int64(p.prefixes[i])
			if prefix < 0 || prefix > last {
				return 0, corruptf("a value with a prefix of %d bytes after one of %d", prefix, last)
			}
			n += prefix
		}
		last = n
		switch {
		case width < 0:
			n += 4
		case n != int64(width):
			return 0, corruptf("a value of %d bytes, want %d", n, width)
		}
		size += n
	}
	return size, nil
}

// readLengths appends at most most lengths in the encoding DELTA_BINARY_PACKED to dst. It returns
// the bytes after them.
func readLengths(dst []int32, b []byte, most int) (lengths []int32, rest []byte, err error) {
	d, err := newDeltas(b, most)
	if err != nil {
		return nil, nil, err
	}
	if d.count > maxBuffer/4 {
		return nil, nil, corruptf("a page of %d byte strings, limit %d bytes", d.count, maxBuffer)
	}
	if cap(dst) < d.count {
		dst = make([]int32, d.count)
	}
	dst = dst[:d.count]
	err = d.read(bytesOf(dst), 4)
	return dst, d.rest, err
}

// deltas is a sequence of integers in the encoding DELTA_BINARY_PACKED:
//
//	varint  values per block
//	varint  miniblocks per block
//	varint  number of values
//	zigzag  the first value
//	blocks of the others:
//		zigzag  lowest difference of the block
//		bytes   of each miniblock, bits of a number
//		bits    of each miniblock that has values: difference from the value before, less the lowest
//
// The values 7, 5, 3, 1, 2 in one block of 128: 80 01 04 05 0e 03 02 00 00 00 c0 00 00 00 00 00 00
// 00 Source: https://github.com/apache/parquet-format/blob/master/Encodings.md
type deltas struct {
	rest       []byte // after the header, then after the last value
	miniblocks int    // per block
	per        int    // values per miniblock
	count      int
	first      int64
}

// newDeltas returns the sequence at the beginning of b, which may have at most most values.
func newDeltas(b []byte, most int) (*deltas, error) {
	t := thriftCheck{b: b} // its integers are the same
	block, ok1 := t.varint()
	miniblocks, ok2 := t.varint()
	count, ok3 := t.varint()
	first, ok4 := t.varint()
	switch {
	case !ok1 || !ok2 || !ok3 || !ok4:
		return nil, corruptf("malformed header of differences")
	case miniblocks == 0 || block > 1<<32 || block%miniblocks != 0 || block/miniblocks == 0 || block/miniblocks%8 != 0:
		return nil, corruptf("blocks of %d differences in %d parts", block, miniblocks)
	case count > uint64(most):
		return nil, corruptf("%d differences, want at most %d", count, most)
	}
	return &deltas{rest: t.b, miniblocks: int(miniblocks), per: int(block / miniblocks),
		count: int(count), first: unzigzag(first)}, nil
}

// read stores the values, of width bytes, 4 or 8, in to, and sets rest to the bytes after them.
// Sums that exceed the width wrap around.
func (d *deltas) read(to []byte, width int) error {
	if d.count == 0 {
		return nil
	}
	last := uint64(d.first)
	put(to, width, last)
	to = to[width:]
	for left := d.count - 1; left > 0; {
		t := thriftCheck{b: d.rest}
		coded, ok := t.varint()
		lowest := uint64(unzigzag(coded))
		widths := t.b
		if !ok || !t.skip(uint64(d.miniblocks)) {
			return errDeltas
		}
		d.rest = t.b
		for _, bits := range widths[:d.miniblocks] {
			if left == 0 {
				break
			}
			size := uint64(d.per) / 8 * uint64(bits)
			if bits > 64 || size > uint64(len(d.rest)) {
				return errDeltas
			}
			n := min(left, d.per)
			switch {
			case bits == 0:
				last = repeatDelta(to[:n*width], width, last, lowest)
			case width == 4:
				last = unpackDeltas4(to[:n*4], d.rest, uint(bits), last, lowest)
			default:
				last = unpackDeltas8(to[:n*8], d.rest, uint(bits), last, lowest)
			}
			to, left, d.rest = to[n*width:], left-n, d.rest[size:]
		}
	}
	return nil
}

var errDeltas = corruptf("malformed differences")

func put(to []byte, width int, v uint64) {
	if width == 4 {
		binary.LittleEndian.PutUint32(to, uint32(v))
	} else {
		binary.LittleEndian.PutUint64(to, v)
	}
}

// repeatDelta stores values that differ by delta, and returns the last one.
func repeatDelta(to []byte, width int, last, delta uint64) uint64 {
	for ; len(to) > 0; to = to[width:] {
		last += delta
		put(to, width, last)
	}
	return last
}

// unpackDeltas4 stores values of 4 bytes whose differences, less the lowest, are in src, in bits
// bits each. It returns the last one. Bytes of src after them are not used.
func unpackDeltas4(to, src []byte, bits uint, last, lowest uint64) uint64 {
	mask := ^uint64(0) >> (64 - bits)
	for at := uint(0); len(to) >= 4; to, at = to[4:], at+bits {
		last += lowest + unpack(src, at, bits)&mask
		binary.LittleEndian.PutUint32(to, uint32(last))
	}
	return last
}

// unpackDeltas8 is unpackDeltas4 for values of 8 bytes.
func unpackDeltas8(to, src []byte, bits uint, last, lowest uint64) uint64 {
	mask := ^uint64(0) >> (64 - bits)
	for at := uint(0); len(to) >= 8; to, at = to[8:], at+bits {
		last += lowest + unpack(src, at, bits)&mask
		binary.LittleEndian.PutUint64(to, last)
	}
	return last
}

// unpack returns at least bits bits of src from bit at on.
func unpack(src []byte, at, bits uint) uint64 {
	i, shift := at/8, at%8
	if i+9 > uint(len(src)) {
		return unpackLast(src[i:], shift)
	}
	v := binary.LittleEndian.Uint64(src[i:]) >> shift
	if bits > 57 && shift > 0 {
		v |= uint64(src[i+8]) << (64 - shift)
	}
	return v
}

// unpackLast is unpack for the last bytes of a page.
func unpackLast(src []byte, shift uint) uint64 {
	var last [9]byte
	copy(last[:], src)
	return binary.LittleEndian.Uint64(last[:])>>shift | uint64(last[8])<<(64-shift)
}
