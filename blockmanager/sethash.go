package blockmanager

import (
	"encoding/binary"
	"fmt"

	"github.com/zeebo/xxh3"
)

// setHash is a hash of a set of rows that does not depend on their order: the sum of the rows'
// 128-bit hashes, in two 64-bit lanes that wrap separately. Adding a row and removing it again
// restores the previous hash, so a commit updates it in time proportional to the commit.
//
// The hash of a row is xxh3-128 over the key's length (4 bytes, little-endian), the key, and the
// value; the length distinguishes (ab, c) from (a, bc).
type setHash struct{ lo, hi uint64 }

func (h *setHash) add(key, value []byte) {
	r := rowHash(key, value)
	h.lo += r.Lo
	h.hi += r.Hi
}

func (h *setHash) sub(key, value []byte) {
	r := rowHash(key, value)
	h.lo -= r.Lo
	h.hi -= r.Hi
}

func (h setHash) String() string { return fmt.Sprintf("%016x%016x", h.hi, h.lo) }

func rowHash(key, value []byte) xxh3.Uint128 {
	buf := make([]byte, 0, 256)
	buf = binary.LittleEndian.AppendUint32(buf, uint32(len(key)))
	buf = append(buf, key...)
	buf = append(buf, value...)
	return xxh3.Hash128(buf)
}
