package compress

import (
	"compress/zlib"
	"encoding/binary"
	"hash/adler32"
	"sync"

	"github.com/oribi-db/oribi/internal/fault"
)

// zlibWriter is a compressor with the buffer that it appends to.
type zlibWriter struct {
	out []byte
	z   *zlib.Writer
}

func (w *zlibWriter) Write(p []byte) (int, error) {
	w.out = append(w.out, p...)
	return len(p), nil
}

var zlibWriters = sync.Pool{New: func() any {
	w := new(zlibWriter)
	w.z = zlib.NewWriter(w) // level 6, Kudu's too
	return w
}}

func zlibCompress(dst, src []byte) ([]byte, error) {
	w := zlibWriters.Get().(*zlibWriter)
	defer zlibWriters.Put(w)
	w.out = dst
	w.z.Reset(w)
	_, err := w.z.Write(src)
	if err == nil {
		err = w.z.Close()
	}
	dst, w.out = w.out, nil
	return dst, err
}

// zlibDecompress unpacks a zlib stream: a header of two bytes, DEFLATE, and the Adler-32 of the
// unpacked bytes, big-endian. Source: RFC 1950.
func zlibDecompress(dst, src []byte) error {
	const headerLen, trailerLen, method, maxWindow, hasDictionary = 2, 4, 8, 7, 1 << 5
	if len(src) < headerLen {
		return fault.Corruptf("compress: zlib: %d bytes are too short", len(src))
	}
	if src[0]&15 != method || src[0]>>4 > maxWindow || binary.BigEndian.Uint16(src)%31 != 0 ||
		src[1]&hasDictionary != 0 {
		return fault.Corruptf("compress: zlib: a stream cannot begin with % x", src[:headerLen])
	}
	rest, err := inflate(dst, src[headerLen:])
	switch {
	case err != nil:
		return err
	case len(rest) < trailerLen:
		return fault.Corruptf("compress: zlib: the stream is cut off")
	case len(rest) > trailerLen:
		return fault.Corruptf("compress: zlib: %d bytes after the stream", len(rest)-trailerLen)
	}
	if sum, want := adler32.Checksum(dst), binary.BigEndian.Uint32(rest); sum != want {
		return fault.Corruptf("compress: zlib: Adler-32 %08x, want %08x", sum, want)
	}
	return nil
}
