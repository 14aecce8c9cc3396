package arrowio

import (
	"sync"

	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
)

// The codecs of arrow-go for zstd and Snappy allocate as many bytes as the compressed bytes state,
// up to 64 GiB, if a page has more than its header says. These replace them in arrow-go, in the
// whole process: they return an error instead. Calls without memory for the result are unchanged.
// Snappy compresses as fast as Google's library does; arrow-go's takes twice the time for a few per
// cent.
func init() {
	for _, codec := range []compress.Compression{compress.Codecs.Zstd, compress.Codecs.Snappy} {
		old, err := compress.GetCodec(codec)
		if err != nil {
			panic(err) // arrow-go has both
		}
		streaming, ok := old.(compress.StreamingCodec)
		if !ok {
			continue
		}
		compress.RegisterCodec(codec, &boundedCodec{old, streaming, codec})
	}
}

// boundedCodec is a codec that does not decode more than fits.
type boundedCodec struct {
	compress.Codec
	compress.StreamingCodec
	codec compress.Compression
}

var zstdDecoder = sync.OnceValue(func() *zstd.Decoder {
	d, err := zstd.NewReader(nil, zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		panic(err) // the options are valid
	}
	return d
})

// Decode is DecodeWithError, and panics with its error.
func (c *boundedCodec) Decode(dst, src []byte) []byte {
	out, err := c.DecodeWithError(dst, src)
	if err != nil {
		panic(err)
	}
	return out
}

// Encode compresses src, in the memory of dst if that has room.
func (c *boundedCodec) Encode(dst, src []byte) []byte {
	if c.codec == compress.Codecs.Snappy {
		return s2.EncodeSnappy(dst[:cap(dst)], src)
	}
	return c.Codec.Encode(dst, src)
}

// EncodeLevel is Encode for codecs that have levels.
func (c *boundedCodec) EncodeLevel(dst, src []byte, level int) []byte {
	if c.codec == compress.Codecs.Snappy {
		return c.Encode(dst, src)
	}
	return c.Codec.EncodeLevel(dst, src, level)
}

// DecodeWithError decodes src into dst, which has room for the result.
func (c *boundedCodec) DecodeWithError(dst, src []byte) ([]byte, error) {
	switch {
	case cap(dst) == 0:
		return compress.Decode(c.Codec, dst, src)
	case c.codec == compress.Codecs.Zstd:
		return zstdDecoder().DecodeAll(src, dst[:0:len(dst)])
	}
	if n, err := snappy.DecodedLen(src); err != nil || n > len(dst) {
		return nil, corruptf("%d bytes of Snappy, want %d", n, len(dst))
	}
	return snappy.Decode(dst, src)
}
