package kudurow

import "encoding/binary"

// murmur returns the hash of b by MurmurHash64A. Source: Kudu's wire protocol, "hash buckets".
func murmur(b []byte, seed uint64) uint64 {
	const m, r = 0xc6a4a7935bd1e995, 47 // file format: never change
	h := seed ^ uint64(len(b))*m
	for ; len(b) >= 8; b = b[8:] {
		k := binary.LittleEndian.Uint64(b) * m
		k ^= k >> r
		h = (h ^ k*m) * m
	}
	if len(b) > 0 {
		var tail [8]byte
		copy(tail[:], b)
		h = (h ^ binary.LittleEndian.Uint64(tail[:])) * m
	}
	h ^= h >> r
	h *= m
	return h ^ h>>r
}
