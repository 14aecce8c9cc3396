package bloom

import (
	"fmt"
	"math"
)

// Defaults of Options, the same as Kudu's.
const (
	DefaultBlockBytes        = 4096
	DefaultFalsePositiveRate = 0.0001
)

const (
	// ln2 has only five digits, as in Kudu: with more, the number of hashes, and so the bytes, of
	// some filters would differ from Kudu's.
	ln2 = 0.69314 // file format: never change

	maxBlockBytes = 16 << 20 // the longest cblock that readers accept

	// maxHashes is the largest number of hashes that a reader accepts. A filter of the optimal size
	// has −log2(rate) hashes, and the smallest float64 is 2^−1074.
	maxHashes = 1074
)

// Options configures the filters. The zero value gives Kudu's defaults.
type Options struct {
	// BlockBytes is the size of each filter's bitmap in bytes; 0 = DefaultBlockBytes. It
	// determines, with the rate, how many keys a filter has.
	BlockBytes int
	// KeysPerBlock, if not 0, is the number of keys of each filter. It then determines, with the
	// rate, the size of the bitmap, and BlockBytes must be 0.
	KeysPerBlock int
	// FalsePositiveRate is the probability that a full filter reports an absent key as possibly
	// present, above 0 and below 1; 0 = DefaultFalsePositiveRate.
	FalsePositiveRate float64
	// NoChecksums omits the checksums of the CFile, an option that Kudu has too.
	NoChecksums bool
}

// Sizing is the size of one filter.
type Sizing struct {
	Bytes  int // of the bitmap
	Keys   int // of a full filter
	Hashes int // bits set for each key
}

// Sizing returns the size of the filters, or an error if o is invalid.
//
//	from bytes: Keys  = ⌈−8·Bytes·ln2² / ln(rate)⌉
//	from keys:  Bytes = ⌈−Keys·ln(rate) / ln2² / 8⌉
//	Hashes            = max(1, ⌊8·Bytes·ln2 / Keys⌋)
//
// 4096 bytes at 0.0001 have room for 1710 keys with 13 hashes. Source: cfile spec §9.3.
func (o Options) Sizing() (Sizing, error) {
	rate := o.FalsePositiveRate
	if rate == 0 {
		rate = DefaultFalsePositiveRate
	}
	if !(rate > 0 && rate < 1) {
		return Sizing{}, fmt.Errorf("bloom: false-positive rate %v, want one between 0 and 1", rate)
	}
	if o.BlockBytes < 0 || o.KeysPerBlock < 0 || o.BlockBytes > 0 && o.KeysPerBlock > 0 {
		return Sizing{}, fmt.Errorf("bloom: filters of %d bytes and %d keys, want only one of the two, not negative",
			o.BlockBytes, o.KeysPerBlock)
	}
	// The values stay in floating point until both are known to be in bounds: a rate near 1 gives
	// numbers beyond any integer type.
	size, keys := float64(o.BlockBytes), float64(o.KeysPerBlock)
	if keys > 0 {
		size = math.Ceil(-keys * math.Log(rate) / ln2 / ln2 / 8)
	} else {
		if size == 0 {
			size = DefaultBlockBytes
		}
		keys = math.Ceil(-8 * size * ln2 * ln2 / math.Log(rate))
	}
	if size > maxBlockBytes || keys > math.MaxInt32 {
		return Sizing{}, fmt.Errorf("bloom: filters of %.0f bytes for %.0f keys, want at most %d bytes and %d keys",
			size, keys, maxBlockBytes, math.MaxInt32)
	}
	s := Sizing{Bytes: int(size), Keys: int(keys)}
	s.Hashes = max(1, int(8*size*ln2/keys))
	if s.Hashes > maxHashes {
		return Sizing{}, fmt.Errorf("bloom: filters of %d bytes for %d keys: %d hashes, want at most %d",
			s.Bytes, s.Keys, s.Hashes, maxHashes)
	}
	return s, nil
}
