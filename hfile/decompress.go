package hfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"github.com/oribi-db/oribi/internal/compress"
	"github.com/oribi-db/oribi/internal/fault"
)

// Stored payload of a block: what a codec makes of the payload. Source: hfile spec §3.3, §3.4.
//
//	NONE                 the payload
//	GZ                   one gzip member (RFC 1952), also around no bytes at all
//	SNAPPY, LZ4, ZSTD    Hadoop's block stream: groups, up to the end
//	ZSTD                 or one bare frame, which begins with its magic
//
// A group of the block stream:
//
//	offset  width  field    meaning
//	0       4      length   bytes of the group, uncompressed, big-endian; 0 in an empty group
//	4       …      members  until their output adds up to length
//
// A member: its length (4, big-endian) and a raw Snappy block, a raw LZ4 block, or Zstandard
// frames.
//
// Four bytes "aaaa" in LZ4, one group of one member, without an empty group after it:
//
//	00 00 00 04  00 00 00 05  40 61 61 61 61
const (
	groupLen  = 4          // file format: never change
	memberLen = 4          // file format: never change
	zstdMagic = 0x28b52ffd // file format: never change; big-endian, as read here
)

// Memory for a payload of size bytes: a first buffer of at most trustRatio times the stored bytes,
// then up to growFactor times what the codec has produced. So the length in a header alone is never
// a reason to allocate, and all buffers together take little more than the last.
const (
	trustRatio = 16
	trustBytes = 4096
	growFactor = 8
)

// output is the payload of a block while a codec produces it.
type output struct {
	b    []byte // produced so far
	size int    // when complete
	next int    // least capacity of the next buffer
}

// newOutput starts with the memory of dst.
func newOutput(dst []byte, stored, size int) *output {
	o := &output{b: dst[:0], size: size, next: trustBytes + trustRatio*stored}
	o.reserve(0)
	return o
}

// reserve makes room for n more bytes, or for all that are missing, if those are fewer.
func (o *output) reserve(n int) {
	n = min(len(o.b)+n, o.size)
	if n <= cap(o.b) && (cap(o.b) > 0 || o.size == 0) {
		return
	}
	b := make([]byte, len(o.b), min(o.size, max(n, o.next)))
	copy(b, o.b)
	o.b = b
	o.next = growFactor * cap(b)
}

// room returns the free memory after the bytes so far, of at most n bytes.
func (o *output) room(n int) []byte {
	n = min(n, cap(o.b)-len(o.b))
	return o.b[len(o.b) : len(o.b)+n : len(o.b)+n]
}

// decompress returns the payload of size bytes that is stored as the codec writes it. It uses the
// memory of dst if that suffices.
func decompress(codec Codec, dst, stored []byte, size int) ([]byte, error) {
	if size > cap(dst) {
		trusted := size <= trustBytes+trustRatio*len(stored)
		if !trusted && codec == GZ { // uncompressing twice takes less memory than growing
			if err := measure(codec, stored, size); err != nil {
				return nil, err
			}
			trusted = true
		}
		if trusted {
			dst = make([]byte, 0, size)
		}
	}
	o := newOutput(dst, len(stored), size)
	var err error
	switch {
	case codec == GZ:
		// Bytes after the member are an error: readers of HFiles look for no second one.
		o.b = o.b[:size]
		err = compress.Gunzip(o.b, stored)
	case codec == Zstd && isZstdFrame(stored):
		err = o.zstdFrames(stored, size)
	default:
		err = o.groups(codec, stored)
	}
	if err != nil {
		return nil, err
	}
	if len(o.b) != size {
		return nil, fault.Corruptf("%v: %d bytes, want %d", codec, len(o.b), size)
	}
	return o.b, nil
}

func isZstdFrame(stored []byte) bool {
	return len(stored) >= 4 && binary.BigEndian.Uint32(stored) == zstdMagic
}

// groups unpacks Hadoop's block stream.
func (o *output) groups(codec Codec, src []byte) error {
	total := len(src)
	for len(src) > 0 {
		if len(src) < groupLen {
			return fault.Corruptf("%v: %d bytes after the last group", codec, len(src))
		}
		length := binary.BigEndian.Uint32(src)
		src = src[groupLen:]
		if int64(length) > int64(o.size-len(o.b)) {
			return fault.Corruptf("%v: group of %d bytes before byte %d, %d are left of the payload", codec,
				int32(length), total-len(src), o.size-len(o.b))
		}
		for end := len(o.b) + int(length); len(o.b) < end; {
			if len(src) < memberLen {
				return fault.Corruptf("%v: a group lacks %d bytes", codec, end-len(o.b))
			}
			n := binary.BigEndian.Uint32(src)
			src = src[memberLen:]
			if n == 0 || int64(n) > int64(len(src)) {
				return fault.Corruptf("%v: member of %d bytes at byte %d, %d are left", codec,
					int32(n), total-len(src), len(src))
			}
			before := len(o.b)
			if err := o.member(codec, src[:n], end-before); err != nil {
				return err
			}
			if len(o.b) == before {
				return fault.Corruptf("%v: member of %d bytes at byte %d without output", codec, n, total-len(src))
			}
			src = src[n:]
		}
	}
	return nil
}

// member unpacks one member of a group, to at most limit bytes.
func (o *output) member(codec Codec, src []byte, limit int) error {
	switch codec {
	case Snappy:
		n, err := snappy.DecodedLen(src)
		if err != nil || n > limit {
			return fault.Corruptf("%v: member of %d bytes, %d are left of its group (%v)", codec, n, limit, err)
		}
		if n > snappyRatio*len(src) {
			return fault.Corruptf("%v: member of %d bytes from %d", codec, n, len(src))
		}
		o.reserve(n)
		// The strict decoder refuses copies from offset 0, an extension that HBase does not know.
		if _, err := snappy.DecodeStrict(o.room(n), src); err != nil {
			return fault.Corruptf("%v: %v", codec, err)
		}
		o.b = o.b[:len(o.b)+n]
	case LZ4:
		if limit > cap(o.b)-len(o.b) {
			o.reserve(min(limit, lz4Len(src)))
		}
		n, err := lz4.UncompressBlock(src, o.room(limit))
		if err != nil {
			return fault.Corruptf("%v: %v", codec, err)
		}
		o.b = o.b[:len(o.b)+n]
	case Zstd:
		return o.zstdFrames(src, limit)
	}
	return nil
}

// snappyRatio is how many bytes one stored byte can become: a copy of 64 bytes takes 3.
const snappyRatio = 22

// lz4Len returns how many bytes a raw LZ4 block unpacks to, if it is well-formed.
func lz4Len(src []byte) int {
	const minMatch, longLength, more = 4, 15, 255
	n := 0
	for len(src) > 0 {
		token := src[0]
		src = src[1:]
		length := func(l int) int {
			if l != longLength {
				return l
			}
			for len(src) > 0 {
				c := int(src[0])
				src = src[1:]
				if l += c; c != more {
					break
				}
			}
			return l
		}
		literals := length(int(token >> 4))
		n += literals
		if len(src) < literals+2 {
			break // the last sequence has no match
		}
		src = src[literals+2:]
		n += minMatch + length(int(token&longLength))
	}
	return n
}

// zstdDecoder unpacks whole frames. It is safe for concurrent use and keeps no more than a few
// decoders.
var zstdDecoder = sync.OnceValue(func() *zstd.Decoder {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		panic("hfile: zstd: " + err.Error()) // wrong options
	}
	return d
})

// zstdFrames unpacks the frames in src, to at most limit bytes.
func (o *output) zstdFrames(src []byte, limit int) error {
	for {
		room := o.room(limit)
		b, err := zstdDecoder().DecodeAll(src, room[:0])
		if err == nil {
			o.b = o.b[:len(o.b)+len(b)]
			return nil
		}
		if !errors.Is(err, zstd.ErrDecoderSizeExceeded) || len(room) >= min(limit, compress.ZstdBound(src)) {
			return fault.Corruptf("%v: %v", Zstd, err)
		}
		o.reserve(len(room) + 1)
	}
}

// gunzipper counts the bytes of gzip members.
type gunzipper struct {
	in bytes.Reader
	z  gzip.Reader
}

var gunzippers = sync.Pool{New: func() any { return new(gunzipper) }}

// start reads the header of the member in src.
func (g *gunzipper) start(src []byte) error {
	g.in.Reset(src)
	if err := g.z.Reset(&g.in); err != nil {
		return fault.Corruptf("%v: header: %v", GZ, err)
	}
	g.z.Multistream(false)
	return nil
}

// release returns g to the pool, without the bytes that it read.
func (g *gunzipper) release() {
	g.in.Reset(nil)
	gunzippers.Put(g)
}

// measure reports an error if stored clearly does not unpack to size bytes, more than a reader
// keeps in memory.
func measure(codec Codec, stored []byte, size int) error {
	if codec == GZ {
		g := gunzippers.Get().(*gunzipper)
		defer g.release()
		if err := g.start(stored); err != nil {
			return err
		}
		if n, err := io.CopyN(io.Discard, &g.z, int64(size)); err != nil {
			return fault.Corruptf("%v: after %d of %d bytes: %v", codec, n, size, err)
		}
		return nil
	}
	if codec == Zstd && isZstdFrame(stored) {
		if bound := compress.ZstdBound(stored); bound < size {
			return fault.Corruptf("%v: at most %d bytes, want %d", codec, bound, size)
		}
		return nil
	}
	if len(stored) < groupLen || int64(binary.BigEndian.Uint32(stored)) > int64(size) {
		return fault.Corruptf("%v: no group of at most %d bytes", codec, size)
	}
	return nil
}
