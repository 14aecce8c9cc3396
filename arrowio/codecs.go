package arrowio

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"sync"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	packed "github.com/oribi-db/oribi/internal/compress"
)

// Snappy compresses as fast as Google's library does; arrow-go's encoder takes twice the time for a
// few per cent. This replaces it in the whole process.
func init() {
	old, err := compress.GetCodec(compress.Codecs.Snappy)
	if err != nil {
		panic(err) // arrow-go has it
	}
	if streaming, ok := old.(compress.StreamingCodec); ok {
		compress.RegisterCodec(compress.Codecs.Snappy, &fastSnappy{old, streaming})
	}
}

// fastSnappy is Snappy with a faster encoder.
type fastSnappy struct {
	compress.Codec
	compress.StreamingCodec
}

// Encode compresses src, in the memory of dst if that has room.
func (c *fastSnappy) Encode(dst, src []byte) []byte { return s2.EncodeSnappy(dst[:cap(dst)], src) }

// EncodeLevel is Encode: Snappy has no levels.
func (c *fastSnappy) EncodeLevel(dst, src []byte, _ int) []byte { return c.Encode(dst, src) }

// pageCodec is a way to compress the pages of a Parquet file.
type pageCodec struct {
	name string
	// ratio is how many bytes a compressed byte becomes at most; 0 means no limit.
	ratio int64
	// unpack decompresses src into dst, which has the size of the result. It is nil for a codec
	// that is not supported.
	unpack func(dst, src []byte) error
}

// pageCodecs are the codecs by their numbers in Parquet.
var pageCodecs = map[compress.Compression]pageCodec{
	compress.Codecs.Uncompressed: {"no codec", 1, copyExact},
	compress.Codecs.Snappy:       {"SNAPPY", 22, unsnappy},
	compress.Codecs.Gzip:         {"GZIP", 1032, gunzip},
	compress.Codecs.Lzo:          {"LZO", 0, nil},
	compress.Codecs.Brotli:       {"BROTLI", 0, unbrotli},
	compress.Codecs.Lz4:          {"LZ4", 255, unlz4},
	compress.Codecs.Zstd:         {"ZSTD", maxExpansion, unzstd},
	compress.Codecs.Lz4Raw:       {"LZ4_RAW", 255, packed.LZ4DecompressExact},
}

// checkCodec returns ErrUnsupported unless pages of a codec can be decompressed.
func checkCodec(codec compress.Compression) error {
	switch c, ok := pageCodecs[codec]; {
	case !ok:
		return unsupportedf("values compressed with the unknown codec %d", int(codec))
	case c.unpack == nil:
		return unsupportedf("values compressed with %s", c.name)
	}
	return nil
}

// decompressed returns a page of size bytes: head, then src decompressed. It is in the memory of
// buf. The codec is supported.
func decompressed(codec compress.Compression, buf *memory.Buffer, head []byte, size int, src []byte) ([]byte, error) {
	c := pageCodecs[codec]
	n := size - len(head)
	if c.ratio > 0 && int64(n) > int64(len(src))*c.ratio {
		return nil, corruptf("%d bytes of %s cannot be %d bytes uncompressed", len(src), c.name, n)
	}
	page := resized(buf, size)
	copy(page, head)
	if err := c.unpack(page[len(head):], src); err != nil {
		return nil, corruptf("%d bytes of %s, want %d uncompressed: %v", len(src), c.name, n, err)
	}
	return page, nil
}

var errSize = fmt.Errorf("another size")

func copyExact(dst, src []byte) error {
	if len(src) != len(dst) {
		return errSize
	}
	copy(dst, src)
	return nil
}

func unsnappy(dst, src []byte) error {
	// The decoder allocates memory for the length that is stored, unless dst has it.
	n, err := snappy.DecodedLen(src)
	if err == nil && n != len(dst) {
		err = errSize
	}
	if err == nil {
		_, err = snappy.Decode(dst, src)
	}
	return err
}

var gzipReaders sync.Pool

// gunzip decompresses one or more members of gzip.
func gunzip(dst, src []byte) error {
	in := bytes.NewReader(src)
	z, ok := gzipReaders.Get().(*gzip.Reader)
	var err error
	if ok {
		err = z.Reset(in)
	} else {
		z, err = gzip.NewReader(in)
	}
	if err != nil {
		return err
	}
	defer gzipReaders.Put(z)
	return readExact(z, dst)
}

// readExact reads the bytes of r, which must be len(dst).
func readExact(r io.Reader, dst []byte) error {
	if _, err := io.ReadFull(r, dst); err != nil {
		return err
	}
	var more [1]byte
	switch n, err := io.ReadFull(r, more[:]); {
	case n > 0:
		return errSize
	case err != io.EOF:
		return err
	}
	return nil
}

func unbrotli(dst, src []byte) error {
	c, err := compress.GetCodec(compress.Codecs.Brotli)
	if err != nil {
		return err
	}
	out, err := compress.Decode(c, dst, src)
	if err == nil && len(out) != len(dst) {
		err = errSize
	}
	return err
}

var zstdDecoder = sync.OnceValue(func() *zstd.Decoder {
	d, err := zstd.NewReader(nil, zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		panic(err) // the options are valid
	}
	return d
})

// unzstd decompresses one or more frames of zstd.
func unzstd(dst, src []byte) error {
	out, err := zstdDecoder().DecodeAll(src, dst[:0:len(dst)])
	if err == nil && len(out) != len(dst) {
		err = errSize
	}
	return err
}

// unlz4 decompresses what writers have stored under the name of LZ4, which is deprecated since they
// disagreed:
//
//	Hadoop, with it Spark and parquet-java   frames: 4 bytes size uncompressed, 4 bytes size
//	                                         compressed, both big-endian; a block of LZ4
//	parquet-cpp from 0.16 on                 the same, in versions before a bare block
//	parquet-cpp before 0.16                  the frame format of LZ4
//
// A frame of Hadoop may have several blocks, each after its size. Only the content shows which one
// it is.
func unlz4(dst, src []byte) error {
	if unhadoop(dst, src) {
		return nil
	}
	err := packed.LZ4DecompressExact(dst, src)
	if err != nil && len(src) >= 4 && binary.LittleEndian.Uint32(src) == lz4Magic {
		err = readExact(lz4.NewReader(bytes.NewReader(src)), dst)
	}
	return err
}

// lz4Magic begins a frame of LZ4.
const lz4Magic = 0x184d2204

// unhadoop decompresses Hadoop's frames of LZ4. It returns false if src is not made of such frames.
func unhadoop(dst, src []byte) bool {
	for len(src) > 0 {
		if len(src) < 8 {
			return false
		}
		frame := int64(binary.BigEndian.Uint32(src))
		if src = src[4:]; frame > int64(len(dst)) {
			return false
		}
		for frame > 0 {
			if len(src) < 4 {
				return false
			}
			n := int64(binary.BigEndian.Uint32(src))
			if src = src[4:]; n > int64(len(src)) {
				return false
			}
			got, err := lz4.UncompressBlock(src[:n], dst[:frame])
			if err != nil || got <= 0 || int64(got) > frame {
				return false
			}
			dst, src, frame = dst[got:], src[n:], frame-int64(got)
		}
	}
	return len(dst) == 0
}
