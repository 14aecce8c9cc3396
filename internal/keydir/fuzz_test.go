package keydir

import (
	"encoding/binary"
	"errors"
	"io"
	"testing"

	"github.com/zeebo/xxh3"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/fuzztest"
)

// FuzzRead reads a block with a valid checksum. Read must return an error that says so, or a
// directory whose searches end and return rows of the rowset.
func FuzzRead(f *testing.F) {
	_, src := made(f, []uint64{1, 2, 3 << 60, 4 << 60, 5, 5, 6, 7, 8, 9, 10, 11}, MaxGroups)
	f.Add(src.Bytes[:len(src.Bytes)-checksumLen], int64(12), uint64(5))
	_, src = made(f, make([]uint64, 20), 4)
	f.Add(src.Bytes[:len(src.Bytes)-checksumLen], int64(20), uint64(0))
	fuzztest.Run(f, func(t *testing.T, b []byte, rows int64, hash uint64) {
		b = binary.LittleEndian.AppendUint64(b[:len(b):len(b)], xxh3.Hash(b))
		rows &= 1<<31 - 1
		d, err := Read(&block.Memory{Bytes: b}, rows, bloomBlock)
		for _, err := range []error{err, Dump(io.Discard, b)} {
			if err != nil && !errors.Is(err, fault.ErrCorrupt) && !errors.Is(err, fault.ErrUnsupported) {
				t.Fatal(err)
			}
		}
		if err != nil {
			return
		}
		n := 0
		for s := d.Search(hash); ; n++ {
			g, ok := s.Next()
			if !ok {
				break
			}
			if g<<d.Shift() >= rows || n > maxProbes*bucketSlots {
				t.Fatalf("group %d of 2^%d rows, of %d, as result %d", g, d.Shift(), rows, n)
			}
		}
	})
}
