// Package compress compresses and decompresses whole buffers with the codecs of Kudu's files, and
// decompresses gzip members.
//
// A stream is the bare output of the codec, without frame, length, or checksum. The caller stores
// the uncompressed length and verifies checksums. All functions are safe for concurrent use, do not
// retain their arguments, and take working memory from pools: a call allocates nothing except when
// dst grows.
//
// Decompression does not trust its input. If the output is not exactly as long as dst, if bytes
// follow the stream, or if the input is not a stream of the codec, the error is fault.ErrCorrupt.
// Only dst is written, and no other memory depends on the input. To limit what a hostile file can
// make it allocate, a caller compares the length that it is about to allocate with MaxRatio.
package compress

import (
	"fmt"
	"slices"

	"github.com/klauspost/compress/snappy"

	"github.com/oribi-db/oribi/internal/fault"
)

// Codec is a way to pack bytes. The numbers equal Kudu's CompressionType.
type Codec uint8

// The codecs. 0 asks Kudu's writer for its default and 999 is its "unknown"; no file may hold
// either.
const (
	None   Codec = 1 // bytes as they are; file format: never change
	Snappy Codec = 2 // raw Snappy block; file format: never change
	LZ4    Codec = 3 // raw LZ4 block; file format: never change
	Zlib   Codec = 4 // one RFC 1950 stream; file format: never change
)

// Lookup returns the codec that has the number c in a file, or an error that wraps
// fault.ErrUnsupported. Source: cfile spec §2.5.
func Lookup(c int32) (Codec, error) {
	if c < int32(None) || c > int32(Zlib) {
		return 0, fault.Unsupportedf("compress: codec number %d", c)
	}
	return Codec(c), nil
}

func (c Codec) String() string {
	switch c {
	case None:
		return "none"
	case Snappy:
		return "snappy"
	case LZ4:
		return "lz4"
	case Zlib:
		return "zlib"
	}
	return fmt.Sprintf("codec %d", uint8(c))
}

// MaxRatio is how many bytes one stored byte can become, at most: the length of any unpacked
// buffer is at most MaxRatio times the length of its stream.
//
//	LZ4     a length goes on with bytes worth 255 each
//	Snappy  a copy of 64 bytes takes 3: 21.3, rounded up
//	zlib    a match of 258 bytes takes two bits: 1032
//
// It is 0 for a number that is no codec.
func (c Codec) MaxRatio() int {
	switch c {
	case None:
		return 1
	case Snappy:
		return 22
	case LZ4:
		return 255
	case Zlib:
		return 1032
	}
	return 0
}

// Compress appends the packed form of src to dst, and returns it. The two must not overlap.
//
// LZ4 gives the bytes of the C library's LZ4_compress_default; Snappy and zlib give some stream
// that any reader unpacks. The output may be longer than src. It fails for a number that is no
// codec (fault.ErrUnsupported) and for buffers of gigabytes, which the codecs cannot take.
func (c Codec) Compress(dst, src []byte) ([]byte, error) {
	switch c {
	case None:
		return append(dst, src...), nil
	case Snappy:
		bound := snappy.MaxEncodedLen(len(src))
		if bound < 0 {
			return dst, fmt.Errorf("compress: snappy cannot pack %d bytes", len(src))
		}
		dst = slices.Grow(dst, bound)
		n := len(dst)
		return dst[:n+len(snappy.Encode(dst[n:n+bound], src))], nil
	case LZ4:
		if len(src) > maxLZ4Input {
			return dst, fmt.Errorf("compress: lz4 cannot pack %d bytes", len(src))
		}
		return LZ4CompressChunk(dst, src), nil
	case Zlib:
		return zlibCompress(dst, src)
	}
	return dst, fault.Unsupportedf("compress: %v", c)
}

// CompressHard is Compress for data that is read more often than written: LZ4 takes several times as
// long for fewer bytes, which are decompressed as fast.
func (c Codec) CompressHard(dst, src []byte) ([]byte, error) {
	if c == LZ4 && len(src) <= maxLZ4Input {
		return lz4CompressHard(dst, src), nil
	}
	return c.Compress(dst, src)
}

// Decompress unpacks src into dst, which must have the exact length of the result and not overlap
// src. On an error dst holds anything. Errors: fault.ErrCorrupt; fault.ErrUnsupported for a number
// that is no codec.
func (c Codec) Decompress(dst, src []byte) error {
	switch c {
	case None:
		if len(dst) != len(src) {
			return fault.Corruptf("compress: %d bytes, want %d", len(src), len(dst))
		}
		copy(dst, src)
		return nil
	case Snappy:
		return snappyDecompress(dst, src)
	case LZ4:
		return LZ4DecompressExact(dst, src)
	case Zlib:
		return zlibDecompress(dst, src)
	}
	return fault.Unsupportedf("compress: %v", c)
}

// snappyDecompress uses the strict decoder, since the faster one also takes copies from offset 0,
// an extension that Kudu's reader refuses and that breaks the bound of MaxRatio.
func snappyDecompress(dst, src []byte) error {
	n, err := snappy.DecodedLen(src)
	if err != nil {
		return fault.Corruptf("compress: snappy: %v", err)
	}
	// The length in the stream is an attacker's word: the decoder would allocate it.
	if n != len(dst) {
		return fault.Corruptf("compress: snappy: stream says %d bytes, want %d", n, len(dst))
	}
	if _, err := snappy.DecodeStrict(dst, src); err != nil {
		return fault.Corruptf("compress: snappy: %v", err)
	}
	return nil
}
