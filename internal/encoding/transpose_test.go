package encoding

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/oribi-db/oribi/internal/seedtest"
)

// naiveShuffle is the definition of cfile spec §6.4, bit by bit.
func naiveShuffle(src []byte, n, width int) []byte {
	dst := make([]byte, len(src))
	for e := range n {
		for k := range width {
			for b := range 8 {
				dst[(k*8+b)*(n/8)+e/8] |= src[e*width+k] >> b & 1 << (e % 8)
			}
		}
	}
	return dst
}

func TestShuffleMatchesItsDefinition(t *testing.T) {
	r := seedtest.Rand(t)
	for _, width := range []int{1, 2, 4, 8, 16} {
		for _, n := range []int{8, 16, 56, 64, 72, 120, 128, 8192 / width, 8192/width - 8} {
			for round := range 20 {
				src := make([]byte, n*width)
				for i := range src {
					if round == 19 && i < len(src)/2 {
						src[i] = 0xff // planes that begin with ones
						continue
					}
					// Some bytes of the cells are all 0, some all ff, the others mixed; sometimes
					// numbers are small.
					k := i % width
					if round%5 == 4 && k >= 4 {
						continue
					}
					switch (round + k) % (2 + round%4) {
					case 0:
						src[i] = byte(r.Uint32())
					case 1:
						src[i] = byte(round%2) * 0xff
					}
				}
				want := naiveShuffle(src, n, width)
				got := bytes.Repeat([]byte{0xa5}, len(src)+8)
				shuffle(got[:len(src)], src, n, width)
				if !bytes.Equal(got[:len(src)], want) {
					t.Fatalf("width %d, %d cells: shuffled wrong", width, n)
				}
				back := bytes.Repeat([]byte{0x5a}, len(src)+8)
				unshuffle(back[:len(src)], got, n, width)
				if !bytes.Equal(back[:len(src)], src) {
					t.Fatalf("width %d, %d cells: unshuffled wrong", width, n)
				}
				words, p := bytes.Repeat([]byte{0x5a}, len(src)+8), findPlanes(got, n, width)
				unshuffleWords(words[:len(src)], got[:len(src)+laneBytes], n, width, &p)
				if !bytes.Equal(words, back) {
					t.Fatalf("width %d, %d cells: unshuffled in two ways, with two results", width, n)
				}
				from := r.IntN(n)
				to := from + r.IntN(n-from+1)
				some := bytes.Repeat([]byte{0x5a}, len(src)+8)
				unshuffleSome(some[:(to-from)*width], got, n, width, from)
				if k := (to - from) * width; !bytes.Equal(some[:k], src[from*width:to*width]) || some[k] != 0x5a {
					t.Fatalf("width %d, %d cells: cells [%d,%d) unshuffled wrong", width, n, from, to)
				}
				if !bytes.Equal(back[len(src):], bytes.Repeat([]byte{0x5a}, 8)) {
					t.Fatalf("width %d, %d cells: wrote beyond the cells", width, n)
				}
			}
		}
	}
}

func BenchmarkUnshuffle(b *testing.B) {
	for _, c := range []struct{ width, bytes int }{{1, 1}, {2, 2}, {4, 2}, {4, 4}, {8, 3}, {8, 8}, {16, 4}} {
		n := 8192 / c.width
		src, rng := make([]byte, 8192), rand.New(rand.NewPCG(1, 1))
		for i := range src {
			if i%c.width < c.bytes {
				src[i] = byte(rng.Uint32())
			}
		}
		rows := make([]byte, 8192+8)
		b.Run(fmt.Sprintf("shuffle/width=%d/bytes=%d", c.width, c.bytes), func(b *testing.B) {
			for b.Loop() {
				shuffle(rows[:8192], src, n, c.width)
			}
			b.ReportMetric(float64(b.N)*float64(n)/b.Elapsed().Seconds(), "cells/s")
		})
		b.Run(fmt.Sprintf("unshuffle/width=%d/bytes=%d", c.width, c.bytes), func(b *testing.B) {
			for b.Loop() {
				unshuffle(src, rows, n, c.width)
			}
			b.ReportMetric(float64(b.N)*float64(n)/b.Elapsed().Seconds(), "cells/s")
		})
	}
}
