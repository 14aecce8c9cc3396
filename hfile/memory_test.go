package hfile

import (
	"context"
	"errors"
	"testing"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/invariant"
	"github.com/oribi-db/oribi/internal/memtest"
)

// TestSmallFilesTakeLittleMemory reads files that claim or contain much more than their size.
func TestSmallFilesTakeLittleMemory(t *testing.T) {
	if invariant.Race {
		t.Skip("takes long, and starts no goroutine")
	}
	for name, file := range map[string]func() []byte{
		"a data block of 31 MiB of zeros": func() []byte {
			f := &rawFile{codec: GZ, info: vintInfo}
			offset, size := f.block(magicData, memtest.GzipZeros(31<<20), 31<<20)
			f.root, f.rootN = appendIndexEntry(nil, offset, size, seedKey), 1
			return f.finish(nil, nil)
		},
		"a data block that claims 31 MiB": func() []byte {
			f := &rawFile{codec: GZ, info: vintInfo}
			offset, size := f.block(magicData, memtest.GzipZeros(1<<20), 31<<20)
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
			offset, size := f.block(magicData, memtest.GzipZeros(64<<20), 1<<31-1)
			f.root, f.rootN = appendIndexEntry(nil, offset, size, seedKey), 1
			return f.finish(nil, nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			data := file()
			var err error
			n := memtest.Allocated(func() {
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
