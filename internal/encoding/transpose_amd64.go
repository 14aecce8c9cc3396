//go:build !purego

package encoding

import (
	"sync"
	"unsafe"

	"golang.org/x/sys/cpu"
)

// wide reports whether the machine has registers of 32 bytes (AVX2).
var wide = cpu.X86.HasAVX2

// octetBuffer contains the bytes of a chunk's cells: byte k of cell e, of n, at k·n + e.
type octetBuffer [chunkBytes]byte

var octetBuffers = sync.Pool{New: func() any { return new(octetBuffer) }}

// blockBytes is the number of bytes of each plane that octetBytes processes at once.
const blockBytes = 32

// cellsWide is cells for planes that are whole blocks, as in all chunks of a payload except the
// last one, and cells of up to 8 bytes. It does the two steps in 32-byte registers: first it
// converts each octet to the bytes of its cells in order, then it interleaves these. It reports
// whether it did the work.
func (v *planeView) cellsWide(dst []byte) bool {
	n, width := 8*v.row, v.width
	if !wide || n == 0 || v.row%blockBytes != 0 || width > 8 || n*width > chunkBytes {
		return false
	}
	dst = dst[:n*width]
	if width == 1 {
		v.octetBytes(dst, 0, v.refs)
		return true
	}
	buf := octetBuffers.Get().(*octetBuffer)
	defer octetBuffers.Put(buf)
	refs := v.refs
	narrow := width == 8 && (len(refs) == 0 || refs[len(refs)-1].plane < 32)
	made := width
	if narrow {
		made = 4
	}
	for k := range made {
		refs = v.octetBytes(buf[k*n:(k+1)*n], k, refs)
	}
	switch {
	case width == 2:
		join2(&dst[0], &buf[0], n)
	case width == 4:
		join4(&dst[0], &buf[0], n)
	case narrow:
		joinNarrow(&dst[0], &buf[0], n, uint32(v.ones.lo>>32))
	default:
		join8(&dst[0], &buf[0], n)
	}
	return true
}

// octetBytes sets dst to byte k of the cells. refs are those from byte k on; it returns the rest.
func (v *planeView) octetBytes(dst []byte, k int, refs []planeRef) []planeRef {
	var o octet
	rest, c, mixed := v.octet(&o, k, refs)
	if mixed {
		octetBytes(&dst[0], &o, v.row/blockBytes)
	} else {
		setAll(dst, c)
	}
	return rest
}

// cellsWide writes the bytes of the cells of whole blocks to dst and returns the number of bytes of
// each plane that it has converted.
func (o *octet) cellsWide(dst []byte, row int) (done int) {
	if !wide || row < blockBytes {
		return 0
	}
	done = row &^ (blockBytes - 1)
	octetBytes(&dst[:8*done][0], o, done/blockBytes)
	return done
}

// join16 makes integers of len(dst) low bytes and as many high bytes after them, and returns how
// many it has made: all or none.
func join16(dst []uint16, src []byte) (done int) {
	if n := len(dst); wide && n > 0 && n%blockBytes == 0 {
		src = src[:2*n]
		join2((*byte)(unsafe.Pointer(&dst[0])), &src[0], n)
		return n
	}
	return 0
}

// setAll sets all bytes of b to c.
func setAll(b []byte, c byte) {
	if c == 0 {
		clear(b)
	} else {
		fill(b, []byte{c})
	}
}

// octetBytes converts an octet into the bytes of the cells: blocks times 32 bytes of each plane
// become blocks times 256 bytes.
//
//go:noescape
func octetBytes(dst *byte, o *octet, blocks int)

// join2, join4 and join8 weave that many series of n bytes, back to back, into n cells. n is a
// multiple of 32, not 0.
//
//go:noescape
func join2(dst, src *byte, n int)

//go:noescape
func join4(dst, src *byte, n int)

//go:noescape
func join8(dst, src *byte, n int)

// joinNarrow weaves four series into cells of 8 bytes whose upper four are high.
//
//go:noescape
func joinNarrow(dst, src *byte, n int, high uint32)
