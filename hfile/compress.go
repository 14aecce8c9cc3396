package hfile

import (
	"encoding/binary"
	"fmt"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/oribi-db/oribi/internal/compress"
)

// compressor compresses the payloads of blocks. Source: hfile spec §3.3 and §3.4.
type compressor struct {
	codec  Codec
	member int // most bytes in one member of Hadoop's framing
	out    []byte
	gz     *gzip.Writer
	zstd   *zstd.Encoder
}

// newCompressor returns a compressor for a codec that this package writes. buffer is the size of
// Hadoop's buffer.
func newCompressor(codec Codec, buffer int) (compressor, error) {
	c := compressor{codec: codec}
	var err error
	switch codec {
	case GZ:
		c.gz = gzip.NewWriter(nil) // header as Java 17 writes it: no time, system unknown
	case Zstd:
		// As zstd-jni by default: no checksum in the frame.
		c.zstd, err = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false))
	}
	// Hadoop leaves room for input that a codec makes larger.
	c.member = buffer - (buffer/6 + 32)
	return c, err
}

// Write appends what the gzip writer compressed.
func (c *compressor) Write(p []byte) (int, error) {
	c.out = append(c.out, p...)
	return len(p), nil
}

// pack returns headerLen bytes for a header and the compressed payload. They are valid until
// the next call.
func (c *compressor) pack(payload []byte) ([]byte, error) {
	c.out = append(c.out[:0], make([]byte, headerLen)...)
	if c.codec == GZ {
		c.gz.Reset(c)
		if _, err := c.gz.Write(payload); err != nil {
			return nil, err
		}
		if err := c.gz.Close(); err != nil {
			return nil, err
		}
		return c.out, nil
	}
	return c.out, c.packGroups(payload)
}

// packGroups appends the payload in Hadoop's framing:
//
//	width  field       meaning
//	4      unpacked    big-endian, length of the group after decompression
//	for each member of the group, until its bytes add up to that length:
//	4      packed      big-endian, length of the next field
//	…      bytes       raw output of the codec
//
// A payload of up to c.member bytes is a group with one member; a longer one has more, and a group
// of length 0 follows it. "aaaa" by Snappy:
//
//	00 00 00 04  00 00 00 06  04 0c 61 61 61 61
func (c *compressor) packGroups(payload []byte) error {
	c.out = binary.BigEndian.AppendUint32(c.out, uint32(len(payload)))
	empty := len(payload) > c.member
	for len(payload) > 0 {
		member := payload[:min(c.member, len(payload))]
		payload = payload[len(member):]
		start := len(c.out)
		c.out = append(c.out, 0, 0, 0, 0)
		var err error
		switch c.codec {
		case Snappy:
			c.out, err = compress.Snappy.Compress(c.out, member)
		case LZ4:
			c.out, err = compress.LZ4.Compress(c.out, member)
		case Zstd:
			c.out = c.zstd.EncodeAll(member, c.out)
		default:
			err = fmt.Errorf("cannot write %v", c.codec)
		}
		if err != nil {
			return err
		}
		binary.BigEndian.PutUint32(c.out[start:], uint32(len(c.out)-start-4))
	}
	if empty {
		c.out = append(c.out, 0, 0, 0, 0)
	}
	return nil
}
