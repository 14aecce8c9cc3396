package carbondata

import (
	"bytes"
	"fmt"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
)

// compressor compresses pages in the forms that decompress reads, see the table above nameSnappy.
// It is safe for concurrent use.
type compressor struct {
	name string
	zstd *zstd.Encoder
	gzip sync.Pool // of *gzipBuffer
}

// gzipBuffer compresses into its memory.
type gzipBuffer struct {
	w   *gzip.Writer
	out bytes.Buffer
}

// zstdLevel is the level of the SDK.
const zstdLevel = 3

// newCompressor returns the compressor of a name, which uses at most procs goroutines.
func newCompressor(name string, procs int) (*compressor, error) {
	c := &compressor{name: name}
	switch name {
	case nameSnappy:
	case nameZstd:
		// The SDK needs the size of the content in each frame: a single segment has it, also if it
		// is short or empty. Pages of numbers have few matches, but not all bytes are as frequent.
		e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.EncoderLevelFromZstd(zstdLevel)),
			zstd.WithEncoderCRC(false),
			zstd.WithEncoderConcurrency(procs), zstd.WithAllLitEntropyCompression(true),
			zstd.WithSingleSegment(true), zstd.WithZeroFrames(true))
		if err != nil {
			return nil, err
		}
		c.zstd = e
	case nameGzip:
		c.gzip.New = func() any { return &gzipBuffer{w: gzip.NewWriter(nil)} }
	default:
		return nil, fmt.Errorf("compressor %q: want %s, %s, or %s", name, nameSnappy, nameZstd, nameGzip)
	}
	return c, nil
}

// compress returns new memory.
func (c *compressor) compress(src []byte) ([]byte, error) {
	switch c.name {
	case nameSnappy:
		return bytes.Clone(s2.EncodeSnappy(nil, src)), nil // without the rest of the buffer
	case nameZstd:
		return bytes.Clone(c.zstd.EncodeAll(src, nil)), nil
	}
	b := c.gzip.Get().(*gzipBuffer)
	defer c.gzip.Put(b)
	b.out.Reset()
	b.w.Reset(&b.out)
	if _, err := b.w.Write(src); err != nil {
		return nil, err
	}
	if err := b.w.Close(); err != nil {
		return nil, err
	}
	return bytes.Clone(b.out.Bytes()), nil
}
