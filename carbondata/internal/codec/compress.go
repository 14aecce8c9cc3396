package codec

import (
	"bytes"
	"fmt"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
)

// Compressor compresses pages in the forms that Decompress reads, see the table above Snappy.
// It is safe for concurrent use.
type Compressor struct {
	Name string
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

// NewCompressor returns the compressor of a name, which uses at most procs goroutines.
func NewCompressor(name string, procs int) (*Compressor, error) {
	c := &Compressor{Name: name}
	switch name {
	case Snappy:
	case Zstd:
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
	case Gzip:
		c.gzip.New = func() any { return &gzipBuffer{w: gzip.NewWriter(nil)} }
	default:
		return nil, fmt.Errorf("compressor %q: want %s, %s, or %s", name, Snappy, Zstd, Gzip)
	}
	return c, nil
}

// Compress returns src compressed, in new memory.
func (c *Compressor) Compress(src []byte) ([]byte, error) {
	switch c.Name {
	case Snappy:
		return bytes.Clone(s2.EncodeSnappy(nil, src)), nil // without the rest of the buffer
	case Zstd:
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
