package wal

import (
	"math/rand"
	"testing"
)

// The place of a flipped bit follows from the CRC, in payloads up to the largest frame.
func TestFlippedBitIsFoundByTheCRC(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	for _, n := range []int{1, 2, 60, 511, 4096, 1 << 20} {
		b := make([]byte, n)
		rng.Read(b)
		crc := crc32c(b)
		for _, off := range []int{0, n / 2, n - 1, rng.Intn(n)} {
			mask := byte(1) << rng.Intn(8)
			b[off] ^= mask
			if got, gotMask, ok := flippedBit(crc32c(b)^crc, n); !ok || got != off || gotMask != mask {
				t.Errorf("bit %#02x of byte %d of %d: found %#02x of byte %d, %v", mask, off, n, gotMask, got, ok)
			}
			b[off] ^= mask
		}
		if _, _, ok := flippedBit(crc^0x5a5a5a5a, min(n, 64)); ok {
			t.Errorf("%d bytes: a bit is found where none was flipped", n)
		}
	}
}
