package bloom

import (
	"encoding/binary"

	"google.golang.org/protobuf/proto"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/kudupb"
)

// Format of a cblock of a bloom file, one filter. n is the length of the header, l the length of
// the cblock without its checksum.
//
//	offset  width    field   meaning
//	0       4        n       little-endian
//	4       n        header  BloomBlockHeaderPB: the number of hashes
//	4+n     l−4−n    bitmap  bit p is bit p mod 8 of byte p/8; 1 = set by some key
//
// A key with hash H sets the bits (h1 + i·h2 mod 2^32) mod 8·len(bitmap) for i from 0 to the number
// of hashes − 1, where h1 is the low and h2 the high 32 bits of H.
//
// "alpha", "beta" and "gamma" in 16 bytes with 3 hashes ("alpha" sets 94, 40, 114):
//
//	02 00 00 00 | 08 03 | 00 00 00 20 80 01 00 00 20 02 00 40 00 08 06 00
//
// Source: cfile spec §9.1, §9.2.
const (
	headerLenWidth = 4    // file format: never change
	hashesTag      = 0x08 // field 1, varint; file format: never change
)

// filter is one parsed cblock; bitmap aliases it.
type filter struct {
	hashes int
	bitmap []byte
}

// appendHeader appends the bytes before the bitmap of a cblock.
func appendHeader(dst []byte, hashes int) ([]byte, error) {
	header, err := proto.Marshal(&kudupb.BloomBlockHeaderPB{NumHashFunctions: proto.Int32(int32(hashes))})
	if err != nil {
		return dst, err
	}
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(header)))
	return append(dst, header...), nil
}

// parseFilter parses a cblock. The two-byte header that all writers produce is parsed without
// unmarshaling.
func parseFilter(b []byte) (*filter, error) {
	if len(b) < headerLenWidth {
		return nil, fault.Corruptf("filter: %d bytes are too short", len(b))
	}
	n := binary.LittleEndian.Uint32(b)
	b = b[headerLenWidth:]
	if uint64(n) > uint64(len(b)) {
		return nil, fault.Corruptf("filter: header of %d bytes, only %d left", n, len(b))
	}
	f := &filter{bitmap: b[n:]}
	if n == 2 && b[0] == hashesTag && b[1] < 0x80 {
		f.hashes = int(b[1])
	} else {
		var header kudupb.BloomBlockHeaderPB
		if err := (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(b[:n], &header); err != nil {
			return nil, fault.Corruptf("filter: header: %v", err)
		}
		f.hashes = int(header.GetNumHashFunctions())
	}
	if f.hashes < 1 || f.hashes > maxHashes {
		return nil, fault.Corruptf("filter: %d hashes, want 1 to %d", f.hashes, maxHashes)
	}
	// The upper bound keeps the number of bits within 32 bits.
	if len(f.bitmap) == 0 || len(f.bitmap) > maxBlockBytes {
		return nil, fault.Corruptf("filter: bitmap of %d bytes, want 1 to %d", len(f.bitmap), maxBlockBytes)
	}
	return f, nil
}

// mayContain reports whether all bits of a hash are set.
func (f *filter) mayContain(hash uint64) bool {
	h, step := uint32(hash), uint32(hash>>32)
	if len(f.bitmap) == DefaultBlockBytes {
		return usualMayContain((*[DefaultBlockBytes]byte)(f.bitmap), f.hashes, h, step)
	}
	bits := uint32(8 * len(f.bitmap))
	for range f.hashes {
		p := h % bits
		if f.bitmap[p>>3]>>(p&7)&1 == 0 {
			return false
		}
		h += step
	}
	return true
}

// usualMayContain is mayContain for the usual size: the compiler can prove that each index is in
// bounds, and a mask replaces a division. It tests four bits before each branch. In a full filter
// half of the bits are set, so a branch for each bit would often be mispredicted for an absent key,
// and the first four bits decide most lookups.
func usualMayContain(bitmap *[DefaultBlockBytes]byte, hashes int, h, step uint32) bool {
	const bits = 8 * DefaultBlockBytes
	for ; hashes >= 4; hashes -= 4 {
		p0, p1, p2, p3 := h%bits, (h+step)%bits, (h+2*step)%bits, (h+3*step)%bits
		if bitmap[p0>>3]>>(p0&7)&(bitmap[p1>>3]>>(p1&7))&(bitmap[p2>>3]>>(p2&7))&(bitmap[p3>>3]>>(p3&7))&1 == 0 {
			return false
		}
		h += 4 * step
	}
	for range hashes {
		p := h % bits
		if bitmap[p>>3]>>(p&7)&1 == 0 {
			return false
		}
		h += step
	}
	return true
}

// add sets the bits of a hash.
func (f *filter) add(hash uint64) {
	h, step := uint32(hash), uint32(hash>>32)
	if len(f.bitmap) == DefaultBlockBytes {
		usualAdd((*[DefaultBlockBytes]byte)(f.bitmap), f.hashes, h, step)
		return
	}
	bits := uint32(8 * len(f.bitmap))
	for range f.hashes {
		p := h % bits
		f.bitmap[p>>3] |= 1 << (p & 7)
		h += step
	}
}

// usualAdd is add for the usual size, see usualMayContain.
func usualAdd(bitmap *[DefaultBlockBytes]byte, hashes int, h, step uint32) {
	const bits = 8 * DefaultBlockBytes
	for range hashes {
		p := h % bits
		bitmap[p>>3] |= 1 << (p & 7)
		h += step
	}
}
