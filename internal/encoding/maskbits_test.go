package encoding

import (
	"slices"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/seedtest"
)

func TestCompressAndExpandBits(t *testing.T) {
	r := seedtest.Rand(t)
	for range 300 {
		n := r.IntN(600)
		mask, src := batch.Bitmap(randomSelection(r, n)), batch.Bitmap(randomSelection(r, n))
		var want, wantBack = batch.MakeBitmap(n), batch.MakeBitmap(n)
		count := 0
		for i := range n {
			if mask.Get(i) {
				if src.Get(i) {
					want.Set(count)
					wantBack.Set(i)
				}
				count++
			}
		}
		got := make([]uint64, (count+63)/64)
		if k := CompressBits(got, src, mask); k != count || !slices.Equal(got, want[:len(got)]) {
			t.Fatalf("%x of %x: %d bits %x, want %d: %x", src, mask, k, got, count, want)
		}
		back := slices.Clone(src) // is overwritten
		if ExpandBits(back, got, mask); !slices.Equal(back, wantBack) {
			t.Fatalf("%x to %x: %x, want %x", got, mask, back, wantBack)
		}
		for i, m := range mask {
			x := src[i]
			if c := compressRuns(x, m); c != compressWord(x, m) || expandRuns(c, m) != x&m || expandWord(c, m) != x&m {
				t.Fatalf("%x of %x: %x", x, m, c)
			}
		}
		copied := slices.Clone(src)
		if CompressBits(copied, copied, mask); !slices.Equal(copied[:len(got)], got) {
			t.Fatalf("in place: %x, want %x", copied, got)
		}
	}
}
