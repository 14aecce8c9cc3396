package keydir

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/memtest"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
)

const bloomBlock = 7

// made returns a directory of hashes, by row, and the directory that is read from its block.
func made(t testing.TB, hashes []uint64, groups int64) (all []*Directory, src *block.Memory) {
	t.Helper()
	d := New(int64(len(hashes)), groups)
	for row, h := range hashes {
		must.Equal(t, d.Add(h, int64(row)), true, "row", row, "of", len(hashes), "does not fit")
	}
	src = &block.Memory{Number: 9}
	must.Do(t, d.Write(src, bloomBlock))
	if got := src.Size(); got != Size(d.rows) || got != d.Size() {
		t.Fatalf("%d bytes, Size says %d and %d", got, Size(d.rows), d.Size())
	}
	again := must.Get(Read(src, d.rows, bloomBlock))(t)
	return []*Directory{d, again}, src
}

// found returns the groups that a search returns.
func found(d *Directory, hash uint64) map[int64]bool {
	groups := map[int64]bool{}
	for s := d.Search(hash); ; {
		g, ok := s.Next()
		if !ok {
			if _, ok := s.Next(); ok {
				panic("a search goes on after its end")
			}
			return groups
		}
		groups[g] = true
	}
}

// randomHashes returns n hashes, of which some are equal, some differ only in the bucket, and some
// only in the tag.
func randomHashes(r *rand.Rand, n int) []uint64 {
	hashes := make([]uint64, n)
	for i := range hashes {
		hashes[i] = r.Uint64()
		if i == 0 {
			continue
		}
		switch old := hashes[r.IntN(i)]; r.IntN(10) {
		case 0:
			hashes[i] = old
		case 1:
			hashes[i] = old ^ uint64(r.IntN(16))
		case 2:
			hashes[i] = old ^ uint64(r.IntN(16))<<60
		case 3:
			hashes[i] &^= 1<<12 - 1
		}
	}
	return hashes
}

func TestSearchFindsEachRow(t *testing.T) {
	r := seedtest.Rand(t)
	for _, n := range []int{1, 2, 11, 12, 13, 100, 3000} {
		for _, groups := range []int64{MaxGroups, 1000, 7, 1} {
			hashes := randomHashes(r, n)
			all, _ := made(t, hashes, groups)
			oracle := map[uint64]map[int64]bool{}
			for row, h := range hashes {
				if oracle[h] == nil {
					oracle[h] = map[int64]bool{}
				}
				oracle[h][int64(row)>>all[0].Shift()] = true
			}
			for _, d := range all {
				if last := int64(n-1) >> d.Shift(); last >= groups || d.Shift() > 0 && last*2+1 < groups {
					t.Fatalf("%d rows in at most %d groups: groups of 2^%d", n, groups, d.Shift())
				}
				for h, want := range oracle {
					got := found(d, h)
					for g := range want {
						if !got[g] || !d.Contains(h, g<<d.Shift()) {
							t.Fatalf("%d rows in groups of 2^%d: hash %x: group %d is missing", n, d.Shift(), h, g)
						}
					}
				}
				for range 100 {
					for g := range found(d, r.Uint64()) {
						if g > int64(n-1)>>d.Shift() {
							t.Fatalf("group %d of %d rows in groups of 2^%d", g, n, d.Shift())
						}
					}
				}
			}
		}
	}
}

// Keys that are not there must be recognized in one cache line, with few exceptions.
func TestSearchesForAbsentKeysEndInOneBucket(t *testing.T) {
	r := seedtest.Rand(t)
	hashes := make([]uint64, 20_000)
	for i := range hashes {
		hashes[i] = r.Uint64()
	}
	all, _ := made(t, hashes, MaxGroups)
	const searches = 20_000
	long, candidates := 0, 0
	for range searches {
		s := all[0].Search(r.Uint64())
		first := s.bucket
		for {
			if _, ok := s.Next(); !ok {
				break
			}
			candidates++
		}
		if s.bucket != first {
			long++
		}
	}
	if long > searches*8/100 || candidates > searches*5/1000 {
		t.Errorf("of %d searches %d go beyond the first bucket, %d candidates", searches, long, candidates)
	}
}

// A directory of keys that were chosen to have the same hash is given up, not searched forever.
func TestAddRefusesTooManyEqualHashes(t *testing.T) {
	d := New(100_000, MaxGroups)
	row := int64(0)
	for ; d.Add(42, row); row++ {
		must.Equal(t, d.Contains(42, row), true, "row", row, "is missing")
	}
	must.Equal(t, row, maxProbes*bucketSlots, "rows with one hash")
	must.Equal(t, len(found(d, 42)), int(row), "a search returns other rows")
	must.Equal(t, len(found(d, 43)), 0, "a search returns other rows")
}

func TestReadRefusesDamage(t *testing.T) {
	r := seedtest.Rand(t)
	_, src := made(t, randomHashes(r, 40), 16)
	for bit := range 8 * len(src.Bytes) {
		src.Bytes[bit/8] ^= 1 << (bit % 8)
		must.Fail(t, must.Err(Read(src, 40, bloomBlock)), fault.ErrCorrupt, "bit", bit)
		src.Bytes[bit/8] ^= 1 << (bit % 8)
	}
	whole := src.Bytes
	for n := range whole {
		src.Bytes = whole[:n]
		must.Fail(t, must.Err(Read(src, 40, bloomBlock)), fault.ErrCorrupt, n, "bytes")
	}
	src.Bytes = whole
	for _, other := range []struct {
		rows  int64
		bloom block.ID
	}{{0, bloomBlock}, {39, bloomBlock}, {41, bloomBlock}, {40, bloomBlock + 1}} {
		must.Fail(t, must.Err(Read(src, other.rows, other.bloom)), fault.ErrCorrupt,
			"as of", other.rows, "rows with the bloom file in block", other.bloom)
	}
}

// The number of rows is known, so a block that is much larger is refused before it is read.
func TestReadAllocatesForTheRowsOnly(t *testing.T) {
	src := &block.Memory{Bytes: make([]byte, headerLen+64<<20+checksumLen)}
	if n := memtest.Allocated(func() {
		if _, err := Read(src, 1000, bloomBlock); !errors.Is(err, fault.ErrCorrupt) {
			t.Error(err)
		}
	}); n > 64<<10 {
		t.Errorf("%d bytes", n)
	}
}

func TestDump(t *testing.T) {
	hashes := []uint64{0x8000000000000abc}
	_, src := made(t, hashes, MaxGroups)
	must.Equal(t, fmt.Sprintf("% x", src.Bytes[len(src.Bytes)-checksumLen:]), "d5 55 4b 59 31 68 bb fd",
		"checksum of the example")
	for range 17 {
		hashes = append(hashes, 0xdef)
	}
	_, src = made(t, hashes, MaxGroups)
	var b strings.Builder
	must.Do(t, Dump(&b, src.Bytes))
	must.Equal(t, b.String(), golden, "dump")
}
