package carbondata

import (
	"bytes"
	"io"
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
	nameSnappy = "snappy" // file format: never change
	nameZstd   = "zstd"   // file format: never change
	nameGzip   = "gzip"   // file format: never change
)

// Memory for output whose size is not known: a first buffer of at most trustRatio times the input,
// then up to growFactor times what the codec has produced.
const (
	trustRatio  = 16
	trustBytes  = 4096
	growFactor  = 8
	snappyRatio = 22 // most bytes that one byte can become: a copy of 64 bytes takes 3
)

// textLimit returns the most bytes of a page of strings, so that reading a file takes no more than
// 32 times its size and 32 MiB, whatever a codec could produce from it.
func (f *File) textLimit() int { return int(min(24<<20+16*f.src.Size(), 1<<31-1)) }

// decompress returns what is stored in src, of at most limit bytes.
func decompress(codec string, src []byte, limit int) ([]byte, error) {
	switch codec {
	case "", nameSnappy:
		return unsnappy(src, limit)
	case nameZstd:
		return unzstd(src, limit)
	case nameGzip:
		return gunzip(src, limit)
	}
	return nil, fault.Unsupportedf("compressor %q", codec)
}

func unsnappy(src []byte, limit int) ([]byte, error) {
	n, err := snappy.DecodedLen(src)
	if err != nil || n > limit || n > snappyRatio*len(src) {
		return nil, fault.Corruptf("snappy: %d bytes from %d, at most %d are expected (%v)", n, len(src), limit, err)
	}
	b, err := snappy.DecodeStrict(make([]byte, n), src)
	if err != nil {
		return nil, fault.Corruptf("%v", err)
	}
	return b, nil
}

// zstdDecoder unpacks whole frames into the given memory. It is safe for concurrent use.
var zstdDecoder = sync.OnceValue(func() *zstd.Decoder {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		panic("carbondata: zstd: " + err.Error()) // wrong options
	}
	return d
})

func unzstd(src []byte, limit int) ([]byte, error) {
	limit = min(limit, compress.ZstdBound(src))
	for size := min(limit, trustBytes+trustRatio*len(src)); ; size = min(limit, growFactor*size) {
		b, err := zstdDecoder().DecodeAll(src, make([]byte, 0, size))
		if err == nil {
			return b, nil
		}
		if size >= limit {
			return nil, fault.Corruptf("zstd: at most %d bytes are expected: %v", limit, err)
		}
	}
}

// gunzip unpacks one gzip member, which must be all of src.
func gunzip(src []byte, limit int) ([]byte, error) {
	in := bytes.NewReader(src)
	z, err := gzip.NewReader(in)
	if err != nil {
		return nil, fault.Corruptf("gzip: header: %v", err)
	}
	z.Multistream(false)
	b := make([]byte, 0, min(limit+1, trustBytes+trustRatio*len(src)))
	for {
		n, err := z.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		switch {
		case len(b) > limit:
			return nil, fault.Corruptf("gzip: more than the %d bytes expected", limit)
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
