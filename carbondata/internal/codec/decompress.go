// Package codec compresses and decompresses the bytes of CarbonData: pages, null bits, dictionaries.
// All of it is safe for concurrent use.
package codec

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"

	"github.com/oribi-db/oribi/internal/compress"
	"github.com/oribi-db/oribi/internal/fault"
)

// Compressed bytes: the data of a page, its null bits, and both parts of a dictionary. Row IDs and
// runs are not compressed. Source: carbondata spec §7.1.
//
//	snappy  a raw Snappy block: length (varint), then literals and copies; the default
//	zstd    Zstandard frames
//	gzip    one gzip member (RFC 1952)
//
// No null bits in snappy: 00. The bytes "aaaa": 04 0c 61 61 61 61
const (
	Snappy = "snappy" // file format: never change
	Zstd   = "zstd"   // file format: never change
	Gzip   = "gzip"   // file format: never change
)

// Memory for output whose size is not known: a first buffer of at most trustRatio times the input,
// then up to growFactor times what the codec has produced.
const (
	trustRatio  = 16
	trustBytes  = 4096
	growFactor  = 8
	GrowSpare   = 8  // a buffer that was too small is replaced by one with an 8th to spare
	SnappyRatio = 22 // most bytes that one byte can become: a copy of 64 bytes takes 3
	gzipRatio   = 1032
	gzipSizeLen = 4
)

// Decompress returns what is stored in src, of at most limit bytes, in the memory of dst if that is
// large enough.
func Decompress(dst []byte, codec string, src []byte, limit int) ([]byte, error) {
	switch codec {
	case "", Snappy:
		return unsnappy(dst, src, limit)
	case Zstd:
		return unzstd(dst, src, limit)
	case Gzip:
		return gunzip(dst, src, limit)
	}
	return nil, fault.Unsupportedf("compressor %q", codec)
}

// DecompressText is Decompress for the data of a page of strings. The memory also takes src.
func DecompressText(dst []byte, codec string, src []byte, limit int) ([]byte, error) {
	if codec != "" && codec != Snappy {
		return Decompress(dst, codec, src, limit)
	}
	n, err := snappyLen(src, limit)
	if err != nil {
		return nil, err
	}
	return compress.UnpackText(withSpare(dst, n+len(src)), src)
}

// unsnappy uses a decoder that is much faster than the strict one, and that reads a copy from
// offset 0, which no encoder of Snappy writes, as a copy from the offset before. Only Verify looks
// for these: that takes 0.8 to 0.9 of the time of the decoder. In strings, which
// compress.UnpackText unpacks, every read finds them.
func unsnappy(dst, src []byte, limit int) ([]byte, error) {
	n, err := snappyLen(src, limit)
	if err != nil {
		return nil, err
	}
	b, err := snappy.Decode(withSpare(dst, n)[:0], src)
	if err != nil {
		return nil, fault.Corruptf("%v", err)
	}
	return b, nil
}

// snappyLen returns the uncompressed length that a block of Snappy states, which must be at most
// limit bytes.
func snappyLen(src []byte, limit int) (int, error) {
	n, err := snappy.DecodedLen(src)
	if err != nil {
		return 0, fault.Corruptf("%v", err)
	}
	if most := min(limit, SnappyRatio*len(src)); n > most {
		err := fault.Corruptf("snappy: %d bytes from %d, at most %d are expected", n, len(src), most)
		if most == limit {
			err = &TooLong{err}
		}
		return 0, err
	}
	return n, nil
}

// TooLong is the error of data that is longer than the limit when it is decompressed.
type TooLong struct{ error }

func (e *TooLong) Unwrap() error { return e.error }

// MostBytes returns a length that what is stored in src does not exceed.
func MostBytes(codec string, src []byte) int {
	switch codec {
	case "", Snappy:
		n, _ := snappy.DecodedLen(src) // 0 after an error
		return min(n, SnappyRatio*len(src))
	case Zstd:
		return compress.ZstdBound(src)
	case Gzip:
		return gzipLen(src)
	}
	return math.MaxInt
}

// withSpare returns dst, or, if that is memory of less than n bytes, memory with some to spare.
func withSpare(dst []byte, n int) []byte {
	if 0 < cap(dst) && cap(dst) < n {
		return make([]byte, 0, n+n/GrowSpare)
	}
	return dst
}

// zstdDecoder unpacks whole frames into the given memory. It is safe for concurrent use.
var zstdDecoder = sync.OnceValue(func() *zstd.Decoder {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		panic("codec: zstd: " + err.Error()) // wrong options
	}
	return d
})

func unzstd(dst, src []byte, limit int) ([]byte, error) {
	limit = min(limit, compress.ZstdBound(src))
	for size := min(limit, max(cap(dst), trustBytes+trustRatio*len(src))); ; size = min(limit, growFactor*size) {
		if size > cap(dst) {
			dst = make([]byte, 0, size)
		}
		b, err := zstdDecoder().DecodeAll(src, dst[:0:size])
		if err == nil {
			return b, nil
		}
		if size >= limit {
			bad := fault.Corruptf("zstd: at most %d bytes are expected: %v", limit, err)
			if limit < compress.ZstdBound(src) && errors.Is(err, zstd.ErrDecoderSizeExceeded) {
				bad = &TooLong{bad}
			}
			return nil, bad
		}
	}
}

// gzipReaders contains gzip.Readers, each with a window of 32 KiB.
var gzipReaders sync.Pool

// gzipLen returns the uncompressed length that a gzip member states in its last four bytes, or, if
// that is less, the most that its bytes can expand to.
func gzipLen(src []byte) int {
	if len(src) < gzipSizeLen {
		return 0
	}
	return min(int(binary.LittleEndian.Uint32(src[len(src)-gzipSizeLen:])), gzipRatio*len(src))
}

// gunzip unpacks one gzip member, which must be all of src. Its last four bytes are the length of
// what it contains.
func gunzip(dst, src []byte, limit int) ([]byte, error) {
	long := false // by the length that it states
	if len(src) >= gzipSizeLen {
		size := int(binary.LittleEndian.Uint32(src[len(src)-gzipSizeLen:]))
		limit, long = min(limit, size), size > limit
	}
	in := bytes.NewReader(src)
	z, _ := gzipReaders.Get().(*gzip.Reader)
	if z == nil {
		z = new(gzip.Reader)
	}
	defer gzipReaders.Put(z)
	if err := z.Reset(in); err != nil {
		return nil, fault.Corruptf("gzip: header: %v", err)
	}
	z.Multistream(false)
	b := dst[:0]
	if size := min(limit+1, trustBytes+trustRatio*len(src)); size > cap(b) {
		b = make([]byte, 0, size)
	}
	for {
		n, err := z.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		switch {
		case len(b) > limit:
			err := fault.Corruptf("gzip: more than the %d bytes expected", limit)
			if long {
				err = &TooLong{err}
			}
			return nil, err
		case err == io.EOF && in.Len() > 0:
			return nil, fault.Corruptf("gzip: %d bytes after the member", in.Len())
		case err == io.EOF:
			return b, nil
		case err != nil:
			return nil, fault.Corruptf("gzip: after %d bytes: %v", len(b), err)
		case len(b) == cap(b):
			b = append(make([]byte, 0, min(limit+1, growFactor*cap(b))), b...)
		}
	}
}
