package batch

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
)

// boolBitmap is the model of a bitmap.
type boolBitmap []bool

func (p boolBitmap) count(from, to int) int {
	c := 0
	for i := from; i < to; i++ {
		if p[i] {
			c++
		}
	}
	return c
}

func (p boolBitmap) next(i int) int {
	for ; i < len(p); i++ {
		if p[i] {
			return i
		}
	}
	return -1
}

func (p boolBitmap) fill(from, to int, v bool) {
	for i := from; i < to; i++ {
		p[i] = v
	}
}

func bools(b Bitmap, n int) boolBitmap {
	out := make(boolBitmap, n)
	for i := range out {
		out[i] = b.Get(i)
	}
	return out
}

// drawBitmap draws bits by runs, so that whole words of ones and zeros occur.
func drawBitmap(t *rapid.T, n int, name string) (Bitmap, boolBitmap) {
	b, pic := MakeBitmap(n), make(boolBitmap, n)
	one := rapid.Bool().Draw(t, name)
	for at := 0; at < n; one = !one {
		run := rapid.SampledFrom([]int{1, 2, 5, 63, 64, 65, 200}).Draw(t, name+" run")
		end := min(n, at+run)
		for i := at; i < end && one; i++ {
			b.Set(i)
			pic[i] = true
		}
		at = end
	}
	return b, pic
}

func TestBitmapRangesMatchSingleBits(t *testing.T) {
	seedtest.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 400).Draw(t, "bits")
		b, pic := drawBitmap(t, n, "bit")
		for range rapid.IntRange(1, 6).Draw(t, "steps") {
			from := rapid.IntRange(0, n).Draw(t, "from")
			to := rapid.IntRange(0, n).Draw(t, "to") // the range is empty if to is below from
			switch rapid.IntRange(0, 2).Draw(t, "what") {
			case 0:
				b.SetRange(from, to)
				pic.fill(from, to, true)
			case 1:
				b.ClearRange(from, to)
				pic.fill(from, to, false)
			case 2:
				if from < n {
					b.Clear(from)
					pic[from] = false
				}
			}
			if got := bools(b, n); !slices.Equal(got, pic) {
				t.Fatalf("bits %v, want %v", got, pic)
			}
			if got, want := b.CountRange(from, to), pic.count(from, to); got != want {
				t.Fatalf("%d ones in [%d, %d), want %d", got, from, to, want)
			}
			if got, want := b.AnyRange(from, to), pic.count(from, to) > 0; got != want {
				t.Fatalf("a one in [%d, %d): %t, want %t", from, to, got, want)
			}
			if got, want := b.Next(from), pic.next(from); got != want {
				t.Fatalf("next one from %d at %d, want %d", from, got, want)
			}
			want := min(to, n-1)
			for want >= 0 && !pic[want] {
				want--
			}
			if got := b.Prev(min(to, n-1)); got != want {
				t.Fatalf("last one up to %d at %d, want %d", min(to, n-1), got, want)
			}
		}
		if b.Count() != pic.count(0, n) || b.Any() != (pic.count(0, n) > 0) {
			t.Fatalf("%d ones, any %t, want %d", b.Count(), b.Any(), pic.count(0, n))
		}
		if len(b) > 0 && n%64 != 0 && b[len(b)-1]>>(n%64) != 0 {
			t.Fatalf("bits above the length are %x", b[len(b)-1]>>(n%64))
		}
	})
}

func TestBitmapAnd(t *testing.T) {
	seedtest.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 300).Draw(t, "bits")
		a, pa := drawBitmap(t, n, "a")
		b, pb := drawBitmap(t, n, "b")
		a.And(b)
		for i := range n {
			if a.Get(i) != (pa[i] && pb[i]) || b.Get(i) != pb[i] {
				t.Fatalf("bit %d: %t and %t give %t", i, pa[i], pb[i], a.Get(i))
			}
		}
	})
}

// Resize clears the memory that it reuses.
func TestBitmapResizeClears(t *testing.T) {
	b := MakeBitmap(130)
	for _, n := range []int{130, 0, 64, 129, 1, 1000, 65} {
		b = b.Resize(n)
		if len(b) != (n+63)/64 || b.Any() {
			t.Fatalf("%d bits: %d words, any bit set: %t", n, len(b), b.Any())
		}
		b.SetRange(0, n)
		must.Equal(t, b.Count(), n, n, "bits: ones")
	}
	must.Equal(t, b.Next(64*len(b)), -1, "a 1 past the end")
	must.Equal(t, Bitmap(nil).Next(0), -1, "a 1 past the end")
}
