package hfile

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/oribi-db/oribi/block"
)

// allocated returns the bytes that f allocates in all, those that were freed since included. It is
// no less than the memory in use at any time.
func allocated(f func()) int64 {
	var a, b runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&a)
	f()
	runtime.ReadMemStats(&b)
	return int64(b.TotalAlloc - a.TotalAlloc)
}

// gzipOf returns n zeros, compressed.
func gzipOf(n int) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	zeros := make([]byte, 1<<20)
	for ; n > 0; n -= len(zeros) {
		w.Write(zeros[:min(n, len(zeros))])
	}
	w.Close()
	return b.Bytes()
}

// TestSmallFilesTakeLittleMemory reads files that claim or contain much more than their size.
func TestSmallFilesTakeLittleMemory(t *testing.T) {
	for name, file := range map[string]func() []byte{
		"a data block of 31 MiB of zeros": func() []byte {
			f := &rawFile{codec: GZ, info: vintInfo}
			offset, size := f.block(magicData, gzipOf(31<<20), 31<<20)
			f.root, f.rootN = appendIndexEntry(nil, offset, size, seedKey), 1
			return f.finish(nil, nil)
		},
		"a data block that claims 31 MiB": func() []byte {
			f := &rawFile{codec: GZ, info: vintInfo}
			offset, size := f.block(magicData, gzipOf(1<<20), 31<<20)
			f.root, f.rootN = appendIndexEntry(nil, offset, size, seedKey), 1
			return f.finish(nil, nil)
		},
		"a root index of 31 MiB of zeros": func() []byte {
			f := &rawFile{codec: GZ, info: vintInfo, rootN: 2 << 20, root: make([]byte, 31<<20)}
			return f.finish(nil, nil)
		},
		"file info of 31 MiB of zeros": func() []byte {
			f := &rawFile{codec: GZ}
			return f.finish(make([]byte, 31<<20), nil)
		},
		"a data block of 2 GiB": func() []byte {
			f := &rawFile{codec: GZ, info: vintInfo}
			offset, size := f.block(magicData, gzipOf(64<<20), 1<<31-1)
			f.root, f.rootN = appendIndexEntry(nil, offset, size, seedKey), 1
			return f.finish(nil, nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			data := file()
			var err error
			n := allocated(func() {
				var r *Reader
				if r, err = Open(&block.Memory{Bytes: data}, ReaderOptions{}); err == nil {
					err = r.Verify(context.Background())
				}
			})
			if err == nil || !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrUnsupported) {
				t.Errorf("%v", err)
			}
			if limit := int64(32*len(data) + 32<<20); n > limit {
				t.Errorf("%d bytes allocated for a file of %d, at most %d: %v", n, len(data), limit, err)
			}
			t.Log(n, len(data), err)
		})
	}
}
