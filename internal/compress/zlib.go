package compress

import (
	"bytes"
	"compress/zlib"
	"io"
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

// zlibReader is a decompressor with the input that it reads. z is nil until the first stream,
// since the library makes one only from a good header.
type zlibReader struct {
	in   bytes.Reader
	z    io.ReadCloser
	tail [1]byte
}

var zlibReaders = sync.Pool{New: func() any { return new(zlibReader) }}

func zlibDecompress(dst, src []byte) error {
	r := zlibReaders.Get().(*zlibReader)
	defer zlibReaders.Put(r)
	r.in.Reset(src)
	defer r.in.Reset(nil) // the pool must not hold on to src
	if err := r.start(); err != nil {
		return fault.Corruptf("compress: zlib: %v", err)
	}
	if n, err := io.ReadFull(r.z, dst); err != nil {
		return fault.Corruptf("compress: zlib: byte %d of %d: %v", n, len(dst), err)
	}
	// The end of the stream carries its checksum, which is looked at only by reading on.
	n, err := r.z.Read(r.tail[:])
	for n == 0 && err == nil {
		n, err = r.z.Read(r.tail[:])
	}
	switch {
	case n > 0:
		return fault.Corruptf("compress: zlib: more than %d bytes", len(dst))
	case err != io.EOF:
		return fault.Corruptf("compress: zlib: %v", err)
	case r.in.Len() > 0:
		return fault.Corruptf("compress: zlib: %d bytes after the stream", r.in.Len())
	}
	return nil
}

// start reads the header of the stream in r.in.
func (r *zlibReader) start() error {
	if r.z != nil {
		return r.z.(zlib.Resetter).Reset(&r.in, nil)
	}
	z, err := zlib.NewReader(&r.in)
	if err != nil {
		return err
	}
	r.z = z
	return nil
}
