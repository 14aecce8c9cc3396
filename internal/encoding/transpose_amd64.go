//go:build !purego

package encoding

import (
	"sync"

	"golang.org/x/sys/cpu"
)

// wide reports whether the machine has registers of 32 bytes (AVX2).
var wide = cpu.X86.HasAVX2

// planeBuffer contains the planes of a chunk as bytes: plane k at k·n, byte e that of cell e.
type planeBuffer [chunkBytes]byte

var planeBuffers = sync.Pool{New: func() any { return new(planeBuffer) }}

// blockBytes is the number of bytes of each row that planeBytes processes at once.
const blockBytes = 32

// unshuffleWide is unshuffle for chunks whose rows are whole blocks, which are all except the last
// one of a payload, and cells of up to 8 bytes. It does the two steps in 32-byte registers: first
// it converts each mixed plane to the bytes of its cells in order, then it interleaves these. It
// reports whether it did the work.
func unshuffleWide(dst, src []byte, n, width int, p *planes) bool {
	row := n / 8
	if !wide || row == 0 || row%blockBytes != 0 || width > 8 || n*width > chunkBytes {
		return false
	}
	dst, src = dst[:n*width], src[:n*width]
	if width == 1 {
		if p.mixedN > 0 {
			planeBytes(&dst[0], &src[0], row, row/blockBytes)
		} else {
			setPlane(dst, byte(0-p.ones&1))
		}
		return true
	}
	buf := planeBuffers.Get().(*planeBuffer)
	defer planeBuffers.Put(buf)
	narrow := width == 8 && (p.mixedN == 0 || p.mixed[p.mixedN-1] < 4)
	made := width
	if narrow {
		made = 4
	}
	mixed := p.mixed[:p.mixedN]
	for k := range made {
		if len(mixed) > 0 && int(mixed[0]) == k {
			mixed = mixed[1:]
			planeBytes(&buf[k*n], &src[k*n], row, row/blockBytes)
		} else {
			setPlane(buf[k*n:(k+1)*n], byte(0-p.ones>>k&1))
		}
	}
	switch {
	case width == 2:
		join2(&dst[0], &buf[0], n)
	case width == 4:
		join4(&dst[0], &buf[0], n)
	case narrow:
		var high uint32
		for k := range 4 {
			high |= uint32(byte(0-p.ones>>(4+k)&1)) << (8 * k)
		}
		joinNarrow(&dst[0], &buf[0], n, high)
	default:
		join8(&dst[0], &buf[0], n)
	}
	return true
}

// setPlane sets all bytes of a plane to v.
func setPlane(b []byte, v byte) {
	if v == 0 {
		clear(b)
	} else {
		fill(b, []byte{v})
	}
}

// planeBytes converts a plane, 8 rows of row bytes, into the bytes of its cells: blocks times 32
// bytes of each row become blocks times 256 bytes.
//
//go:noescape
func planeBytes(dst, src *byte, row, blocks int)

// join2, join4 and join8 weave that many planes of n bytes, back to back, into n cells. n is a
// multiple of 32, not 0.
//
//go:noescape
func join2(dst, planes *byte, n int)

//go:noescape
func join4(dst, planes *byte, n int)

//go:noescape
func join8(dst, planes *byte, n int)

// joinNarrow weaves four planes into cells of 8 bytes whose upper four are high.
//
//go:noescape
func joinNarrow(dst, planes *byte, n int, high uint32)
