package arrowio

import (
	"sync"

	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
)

// The codecs of arrow-go for zstd and Snappy allocate as many bytes as the compressed bytes state,
// up to 64 GiB, if a page has more than its header says. These replace them in arrow-go, in the whole
// process: they return an error instead. Other calls, without memory for the result, are unchanged.
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
