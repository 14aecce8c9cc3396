package hfile

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

// Hash functions of Bloom filters, all of 32 bits with a seed. HBase's filters use hashBytes,
// Hudi's hudiHash. Source: hfile spec §7.2, §7.3.

// hashBytes returns the hash of a key in HBase's Bloom filters.
func hashBytes(h BloomHash, key []byte, seed int32) int32 {
	switch h {
	case Jenkins:
		return jenkins(key, seed)
	case Murmur:
		return murmur(key, seed)
	case Murmur3:
		return murmur3(key, seed)
	}
	panic("hfile: unknown " + h.String())
}

// hudiHash returns the hash of a key in Hudi's Bloom filters. They have no Murmur3.
func hudiHash(h BloomHash, key []byte, seed int32) int32 {
	if h == Jenkins {
		return jenkins(key, seed)
	}
	return hadoopMurmur(key, seed)
}

// jenkins is Bob Jenkins's lookup3 (hashlittle).
func jenkins(key []byte, seed int32) int32 {
	a := 0xdeadbeef + uint32(len(key)) + uint32(seed)
	b, c := a, a
	for ; len(key) > 12; key = key[12:] {
		a += binary.LittleEndian.Uint32(key)
		b += binary.LittleEndian.Uint32(key[4:])
		c += binary.LittleEndian.Uint32(key[8:])
		a, b, c = jenkinsMix(a, b, c)
	}
	if len(key) == 0 {
		return int32(c)
	}
	var tail [12]byte
	copy(tail[:], key)
	a += binary.LittleEndian.Uint32(tail[:])
	b += binary.LittleEndian.Uint32(tail[4:])
	c += binary.LittleEndian.Uint32(tail[8:])

	c ^= b
	c -= bits.RotateLeft32(b, 14)
	a ^= c
	a -= bits.RotateLeft32(c, 11)
	b ^= a
	b -= bits.RotateLeft32(a, 25)
	c ^= b
	c -= bits.RotateLeft32(b, 16)
	a ^= c
	a -= bits.RotateLeft32(c, 4)
	b ^= a
	b -= bits.RotateLeft32(a, 14)
	c ^= b
	c -= bits.RotateLeft32(b, 24)
	return int32(c)
}

func jenkinsMix(a, b, c uint32) (uint32, uint32, uint32) {
	a -= c
	a ^= bits.RotateLeft32(c, 4)
	c += b
	b -= a
	b ^= bits.RotateLeft32(a, 6)
	a += c
	c -= b
	c ^= bits.RotateLeft32(b, 8)
	b += a
	a -= c
	a ^= bits.RotateLeft32(c, 16)
	c += b
	b -= a
	b ^= bits.RotateLeft32(a, 19)
	a += c
	c -= b
	c ^= bits.RotateLeft32(b, 4)
	b += a
	return a, b, c
}

// murmur is HBase's variant of MurmurHash2: the bytes of the tail are signed.
func murmur(key []byte, seed int32) int32 {
	h, tail := murmurWords(key, seed)
	var t [3]byte
	copy(t[:], tail)
	return murmurFinish(h, t, len(tail))
}

// hadoopMurmur is Hadoop's variant of MurmurHash2: as murmur, but with the tail in reverse.
func hadoopMurmur(key []byte, seed int32) int32 {
	h, tail := murmurWords(key, seed)
	var t [3]byte
	copy(t[:], tail)
	slices.Reverse(t[:len(tail)])
	return murmurFinish(h, t, len(tail))
}

const murmurMultiplier = 0x5bd1e995

// murmurWords hashes the whole words of a key and returns the remaining 0 to 3 bytes.
func murmurWords(key []byte, seed int32) (h uint32, tail []byte) {
	h = uint32(seed) ^ uint32(len(key))
	for ; len(key) >= 4; key = key[4:] {
		w := binary.LittleEndian.Uint32(key) * murmurMultiplier
		w ^= w >> 24
		w *= murmurMultiplier
		h *= murmurMultiplier
		h ^= w
	}
	return h, key
}

// murmurFinish hashes the n bytes of the tail, followed by zeros, and mixes the bits.
func murmurFinish(h uint32, tail [3]byte, n int) int32 {
	if n > 0 {
		h ^= uint32(int8(tail[2])) << 16
		h ^= uint32(int8(tail[1])) << 8
		h ^= uint32(int8(tail[0]))
		h *= murmurMultiplier
	}
	h ^= h >> 13
	h *= murmurMultiplier
	h ^= h >> 15
	return int32(h)
}

// murmur3 is MurmurHash3 for x86, 32 bits.
func murmur3(key []byte, seed int32) int32 {
	const c1, c2 = 0xcc9e2d51, 0x1b873593
	h, n := uint32(seed), uint32(len(key))
	for ; len(key) >= 4; key = key[4:] {
		h ^= bits.RotateLeft32(binary.LittleEndian.Uint32(key)*c1, 15) * c2
		h = bits.RotateLeft32(h, 13)*5 + 0xe6546b64
	}
	if len(key) > 0 {
		var tail [4]byte
		copy(tail[:], key)
		h ^= bits.RotateLeft32(binary.LittleEndian.Uint32(tail[:])*c1, 15) * c2
	}
	h ^= n
	h ^= h >> 16
	h *= 0x85ebca6b
	h ^= h >> 13
	h *= 0xc2b2ae35
	h ^= h >> 16
	return int32(h)
}

// bloomPosition returns the bit of a hash in a filter of n > 0 bits, as Java computes it: the
// remainder has the sign of the hash.
func bloomPosition(hash, n int32) int32 {
	if hash %= n; hash < 0 {
		return -hash
	}
	return hash
}

func bloomBit(b []byte, p int32) bool { return b[p>>3]>>(p&7)&1 != 0 }

func setBloomBit(b []byte, p int32) { b[p>>3] |= 1 << (p & 7) }
