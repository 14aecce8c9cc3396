package encoding

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
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
				must.Equal(t, got[:len(src)], want, width, n)
				var refs [maxPlanes]planeRef
				checkCells(t, r, viewRows(got, n, width, &refs), src)
				stream := appendPlanes(nil, want, n/8)
				found, ones, ok := recognize(stream, n/8, width, nil)
				must.Equal(t, ok, true, width, n)
				checkCells(t, r, planeView{base: stream, row: n / 8, width: width, ones: ones, refs: found}, src)
			}
		}
	}
}

// checkCells compares the cells of a view, all and some, with src.
func checkCells(t *testing.T, r *rand.Rand, v planeView, src []byte) {
	t.Helper()
	n, width := 8*v.row, v.width
	for name, decode := range map[string]func([]byte){
		"cells": v.cells, "someCells": func(dst []byte) { v.someCells(dst, 0) },
	} {
		got := bytes.Repeat([]byte{0x5a}, len(src)+8)
		if decode(got[:len(src)]); !bytes.Equal(got[:len(src)], src) {
			t.Fatalf("width %d, %d cells: %s are wrong", width, n, name)
		}
		must.Equal(t, got[len(src):], bytes.Repeat([]byte{0x5a}, 8), width, n, name)
	}
	from := r.IntN(n)
	to := from + r.IntN(n-from+1)
	some := bytes.Repeat([]byte{0x5a}, len(src)+8)
	v.someCells(some[:(to-from)*width], from)
	if k := (to - from) * width; !bytes.Equal(some[:k], src[from*width:to*width]) || some[k] != 0x5a {
		t.Fatalf("width %d, %d cells: cells [%d,%d) are wrong", width, n, from, to)
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
		shuffle(rows[:8192], src, n, c.width)
		b.Run(fmt.Sprintf("shuffle/width=%d/bytes=%d", c.width, c.bytes), func(b *testing.B) {
			for b.Loop() {
				shuffle(rows[:8192], src, n, c.width)
			}
			b.ReportMetric(float64(b.N)*float64(n)/b.Elapsed().Seconds(), "cells/s")
		})
		var refs [maxPlanes]planeRef
		b.Run(fmt.Sprintf("unshuffle/width=%d/bytes=%d", c.width, c.bytes), func(b *testing.B) {
			for b.Loop() {
				v := viewRows(rows, n, c.width, &refs)
				v.cells(src)
			}
			b.ReportMetric(float64(b.N)*float64(n)/b.Elapsed().Seconds(), "cells/s")
		})
		stream := appendPlanes(nil, rows[:8192], n/8)
		b.Run(fmt.Sprintf("recognize/width=%d/bytes=%d", c.width, c.bytes), func(b *testing.B) {
			for b.Loop() {
				if _, _, ok := recognize(stream, n/8, c.width, refs[:0]); !ok {
					b.Fatal("no planes")
				}
			}
			b.ReportMetric(float64(b.N)*float64(n)/b.Elapsed().Seconds(), "cells/s")
		})
		found, ones, _ := recognize(stream, n/8, c.width, refs[:0])
		v := planeView{base: stream, row: n / 8, width: c.width, ones: ones, refs: found}
		b.Run(fmt.Sprintf("cells/width=%d/bytes=%d", c.width, c.bytes), func(b *testing.B) {
			for b.Loop() {
				v.cells(src)
			}
			b.ReportMetric(float64(b.N)*float64(n)/b.Elapsed().Seconds(), "cells/s")
		})
	}
}
