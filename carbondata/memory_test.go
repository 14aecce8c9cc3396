package carbondata

import (
	"bytes"
	"compress/gzip"
	"errors"
	"runtime"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/oribi-db/oribi/block"
)

// allocated returns the bytes that f allocates, in use or not.
func allocated(f func()) int64 {
	var a, b runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&a)
	f()
	runtime.ReadMemStats(&b)
	return int64(b.TotalAlloc - a.TotalAlloc)
}

// TestSmallInputsTakeLittleMemory decompresses bytes that claim or contain much more than their
// size, as a page of strings.
func TestSmallInputsTakeLittleMemory(t *testing.T) {
	zeros := make([]byte, 64<<20)
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	w.Write(zeros)
	w.Close()
	encoder, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	frame := encoder.EncodeAll(zeros, nil)
	zstdDecoder()
	for name, in := range map[string]struct {
		codec string
		src   []byte
	}{
		"64 MiB in gzip":                {nameGzip, packed.Bytes()},
		"64 MiB in zstd":                {nameZstd, frame},
		"a snappy block of 4 GiB":       {nameSnappy, []byte{0xff, 0xff, 0xff, 0xff, 0x0f, 0}},
		"a zstd frame of 2^40 bytes":    {nameZstd, []byte{0x28, 0xb5, 0x2f, 0xfd, 0xe0, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0}},
		"an unknown compressor, 6 byte": {"lz9", []byte("abcdef")},
	} {
		t.Run(name, func(t *testing.T) {
			f := &File{src: &block.Memory{Bytes: in.src}}
			var err error
			n := allocated(func() { _, err = decompress(in.codec, in.src, f.textLimit()) })
			if !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrUnsupported) {
				t.Errorf("%v", err)
			}
			if limit := int64(32*len(in.src) + 40<<20); n > limit { // with buffers that were replaced
				t.Errorf("%d bytes allocated for %d, at most %d: %v", n, len(in.src), limit, err)
			}
			t.Log(n, len(in.src), err)
		})
	}
}
