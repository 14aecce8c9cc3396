package wal

import (
	"fmt"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/vfs"
)

// Records of one size to a real file system, in segments of 32 MiB, old ones released. "row" is a
// single row, "batch" a thousand.
func BenchmarkAppend(b *testing.B) {
	for _, size := range []int{150, 150 << 10, 4 << 20} {
		for _, sync := range []bool{false, true} {
			b.Run(fmt.Sprintf("bytes=%d/sync=%v", size, sync), func(b *testing.B) {
				l := create(b, Options{FS: vfs.OS, Dir: b.TempDir()})
				defer l.Close()
				payload := []byte(text(1, size))
				b.SetBytes(int64(size))
				b.ReportAllocs()
				for b.Loop() {
					lsn, err := l.Append(payload)
					must.Do(b, err)
					if sync {
						must.Do(b, l.Sync(lsn))
					}
					if lsn%64 == 0 {
						must.Do(b, l.Release(lsn))
					}
				}
			})
		}
	}
}

// The work of Append without the kernel's.
func BenchmarkEncode(b *testing.B) {
	for _, size := range []int{150, 150 << 10} {
		b.Run(fmt.Sprintf("bytes=%d", size), func(b *testing.B) {
			l := create(b, Options{FS: nullFS{emptyMem(b)}, Dir: testDir, SegmentBytes: maxSegmentBytes})
			payload := []byte(text(1, size))
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				_, err := l.Append(payload)
				must.Do(b, err)
			}
		})
	}
}

func BenchmarkReplay(b *testing.B) {
	for _, size := range []int{150, 150 << 10} {
		b.Run(fmt.Sprintf("bytes=%d", size), func(b *testing.B) {
			o := Options{FS: vfs.OS, Dir: b.TempDir()}
			l := create(b, o)
			payload := []byte(text(1, size))
			for range (16 << 20) / size {
				appendAll(b, l, string(payload))
			}
			must.Do(b, l.Close())
			b.SetBytes(l.Bytes())
			b.ReportAllocs()
			sum := 0
			for b.Loop() {
				_, err := Replay(o, 1, func(_ lsn.LSN, p []byte) error { sum += len(p); return nil })
				must.Do(b, err)
			}
			if sum == 0 {
				b.Error("nothing was read")
			}
		})
	}
}
