package bloom

import (
	"fmt"
	"math"
)

// Defaults of Options, Kudu's too.
const (
	DefaultBlockBytes        = 4096
	DefaultFalsePositiveRate = 0.0001
)

const (
	// ln2 has five digits only: with more, some filters would get another number of hashes
	// than Kudu gives them, and other bytes.
	ln2 = 0.69314 // file format: never change

	maxBlockBytes = 16 << 20 // the longest cblock that readers take

	// maxHashes bounds what a reader takes for a number of hashes. A filter as large as its rate
	// asks for has −log2(rate) of them, and the smallest float64 is 2^−1074.
	maxHashes = 1074
)

// Options say how large filters are. The zero value gives Kudu's defaults.
type Options struct {
	// BlockBytes is the length of each filter's bitmap; 0 = DefaultBlockBytes. How many keys
	// a filter takes follows from it and the rate.
	BlockBytes int
	// KeysPerBlock, when not 0, is how many keys each filter takes; the length of its bitmap
	// then follows from that and the rate, and BlockBytes must be 0.
	KeysPerBlock int
	// FalsePositiveRate is the share of wrong answers for keys that are not there, above 0 and
	// below 1, once a filter is full; 0 = DefaultFalsePositiveRate.
	FalsePositiveRate float64
	// NoChecksums leaves out the checksums of the CFile, as Kudu does on request.
	NoChecksums bool
}

// Sizing is the size of one filter.
type Sizing struct {
	Bytes  int // of the bitmap
	Keys   int // that the filter takes
	Hashes int // bits set for each key
}

// Sizing works out the size of the filters, or tells what is wrong with o.
//
//	from bytes: Keys  = ⌈−8·Bytes·ln2² / ln(rate)⌉
//	from keys:  Bytes = ⌈−Keys·ln(rate) / ln2² / 8⌉
//	Hashes            = max(1, ⌊8·Bytes·ln2 / Keys⌋)
//
// 4096 bytes at 0.0001 take 1710 keys with 13 hashes. Source: cfile spec §9.3.
func (o Options) Sizing() (Sizing, error) {
	rate := o.FalsePositiveRate
	if rate == 0 {
		rate = DefaultFalsePositiveRate
	}
	if !(rate > 0 && rate < 1) {
		return Sizing{}, fmt.Errorf("bloom: false-positive rate %v, want one between 0 and 1", rate)
	}
	if o.BlockBytes < 0 || o.KeysPerBlock < 0 || o.BlockBytes > 0 && o.KeysPerBlock > 0 {
		return Sizing{}, fmt.Errorf("bloom: filters of %d bytes and %d keys: one of the two, and not negative", o.BlockBytes, o.KeysPerBlock)
	}
	// In floating point until both are known to be in bounds: a rate near 1 asks for numbers
	// beyond any integer.
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
		return Sizing{}, fmt.Errorf("bloom: filters of %.0f bytes for %.0f keys, want at most %d bytes and %d keys", size, keys, maxBlockBytes, math.MaxInt32)
	}
	s := Sizing{Bytes: int(size), Keys: int(keys)}
	s.Hashes = max(1, int(8*size*ln2/keys))
	if s.Hashes > maxHashes {
		return Sizing{}, fmt.Errorf("bloom: filters of %d bytes for %d keys: %d hashes, want at most %d", s.Bytes, s.Keys, s.Hashes, maxHashes)
	}
	return s, nil
}
