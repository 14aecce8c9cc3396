//go:build !purego

package encoding

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

// permutes reports whether the machine selects 64 of 128 bytes in one instruction (AVX-512 VBMI).
var permutes = wide && cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512VBMI

// maxGathered is the number of selected cells of a chunk up to which a sum is computed from the
// cells and not from the number of selected bits in each plane. Wide registers count bits of planes
// fast.
var maxGathered = gatheredLimit()

func gatheredLimit() int {
	if wide {
		return 1
	}
	return 8
}

// gathers reports whether products of count cells are to be computed from cells of p and q planes,
// and not from pairs of planes. The figures are from a comparison for 1 to 1000 of 1024 cells.
func gathers(count, p, q int) bool {
	switch {
	case permutes:
		return (32+count)*(44+p+q) <= 64*p*q
	case wide:
		return count*(p+q) <= 2*p*q
	}
	return count*(p+q) <= maxGathered*p*q
}

// load sets dst to the cells of a group.
func (g *gatherer) load(c *cellGroup, dst *[groupCells]uint64) {
	if !permutes || len(g.refs) == 0 || c.count <= 2 {
		g.loadBits(c, dst)
		return
	}
	g.permute(c, dst)
}

// permute is load with gatherOctets. There are refs.
func (g *gatherer) permute(c *cellGroup, dst *[groupCells]uint64) {
	octets, mixed := 4, uint(0)
	if g.refs[len(g.refs)-1].plane >= 32 {
		octets = 8
	}
	for _, r := range g.refs {
		mixed |= 1 << (r.plane >> 3)
	}
	for k := range octets {
		if mixed>>k&1 == 0 {
			clear(c.octets[k*groupCells:][:groupCells])
		}
	}
	n := min(c.end, g.row) - c.from // bytes of each plane
	low, high := lowBits(min(n, 64)), lowBits(max(n-64, 0))
	gatherOctets(&c.octets[0], &g.base[c.from], &g.refs[0], len(g.refs), &c.at, &c.shift, low, high)
	if octets == 4 {
		joinNarrow((*byte)(unsafe.Pointer(dst)), &c.octets[0], groupCells, 0)
	} else {
		join8((*byte)(unsafe.Pointer(dst)), &c.octets[0], groupCells)
	}
	if g.ones != 0 {
		for i := range dst[:c.count] {
			dst[i] |= g.ones
		}
	}
}

// gatherOctets sets dst[64·k+i] to byte k of the cell whose bits are at bit shift[i] of byte at[i]
// of the planes, for each k with a plane in n refs, n > 0. It reads only the bytes with a 1 in low,
// a bit for each of the first 64 bytes of a plane, or in high, for the next 64 bytes.
//
//go:noescape
func gatherOctets(dst, base *byte, refs *planeRef, n int, at, shift *[groupCells]uint8, low, high uint64)
