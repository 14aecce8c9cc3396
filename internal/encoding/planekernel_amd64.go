//go:build !purego

package encoding

import (
	"unsafe"

	"github.com/oribi-db/oribi/batch"
)

// comparePlanes is compare after the constant planes have been considered: it visits all refs. flip
// inverts the highest of them.
func (v *planeView) comparePlanes(op comparison, refs []planeRef, x *uint128, flip bool, sel []uint64) {
	if !wide || v.row < blockBytes {
		v.compareWords(op, refs, x, flip, sel)
		return
	}
	inverted := uint64(0)
	if flip {
		inverted = allOnes
	}
	run := v.run()
	compareWide(&sel[0], &v.base[0], &refs[0], len(refs), v.row, x, &op, inverted, &run)
}

// betweenPlanes is between after the constant planes have been considered: it visits all refs.
func (v *planeView) betweenPlanes(refs []planeRef, lo, hi *uint128, sel []uint64) {
	if !wide || v.row < 8*stripWords {
		v.betweenWords(refs, lo, hi, sel)
		return
	}
	run := v.run()
	betweenWide(&sel[0], &v.base[0], &refs[0], len(refs), v.row, lo, hi, &run)
}

// tally adds to t, for each plane, the number of selected cells that have its bit and, unless with
// is nil, the bit of with. Plane i counts as bit i+shift.
func (v *planeView) tally(t *tallies, refs []planeRef, sel []uint64, with []byte, shift int) {
	done := 0
	if wide && v.row >= blockBytes {
		done = v.row &^ (blockBytes - 1)
		mask := (*byte)(unsafe.Pointer(&sel[0])) // no further condition
		if with != nil {
			mask = &with[0]
		}
		run := v.run()
		tallyWide(&t[shift], &v.base[0], &refs[0], len(refs), done, &sel[0], mask, &run)
	}
	if done < v.row {
		v.tallyWords(t, refs, sel, with, shift, done/8)
	}
}

// keepBest clears the bits of left whose cells are not the greatest or the least. left is part of a
// selection, begins at one of its words and is not 0. inverted is XORed with the highest plane.
func (v *planeView) keepBest(left []uint64, refs []planeRef, begin int, greatest bool, inverted uint64) {
	if !wide || v.row-8*begin < 8*stripWords {
		v.keepBestWords(left, refs, begin, greatest, inverted)
		return
	}
	others := uint64(0)
	if !greatest {
		others = allOnes
	}
	keepBestWide(&left[0], &v.base[8*begin], &refs[0], len(refs), inverted, others)
}

// onesIn returns the number of ones.
func onesIn(words []uint64) int {
	if !wide || len(words) == 0 { // machines with wide registers count bits too
		return batch.Bitmap(words).Count()
	}
	return countWords(&words[0], len(words))
}

// chunkRun lets a kernel go on with the chunks after the first one. The kernel changes it.
type chunkRun struct {
	chunks  int     // that are left, with the current one
	stride  int     // bytes of the refs of a chunk
	next    int     // the current one
	payload *byte   // of the block
	offsets *uint32 // of the chunks in the payload
}

// run returns the run of v for a kernel whose refs are part of v's.
func (v *planeView) run() (r chunkRun) {
	if v.offsets != nil {
		r = chunkRun{chunks: len(v.offsets), stride: len(v.refs) * int(unsafe.Sizeof(planeRef{})),
			payload: &v.payload[0], offsets: &v.offsets[0]}
	}
	return r
}

// runs is whether kernels compute on several chunks in one call.
var runs = wide

// countWords returns the number of ones in n words, n > 0.
//
//go:noescape
func countWords(words *uint64, n int) int

// compareWide is compareWords in registers of 32 bytes, for n refs and planes of at least 32 bytes.
// inverted is XORed with the highest plane.
//
//go:noescape
func compareWide(sel *uint64, base *byte, refs *planeRef, n, row int, x *uint128, op *comparison,
	inverted uint64, run *chunkRun)

// betweenWide is betweenWords in registers of 32 bytes, for n refs and planes of at least 128
// bytes.
//
//go:noescape
func betweenWide(sel *uint64, base *byte, refs *planeRef, n, row int, lo, hi *uint128, run *chunkRun)

// tallyWide adds to t[p], for each plane p in n refs, the number of selected cells among the first
// 8·row that have both its bit and the bit of mask. row is a positive multiple of 32.
//
//go:noescape
func tallyWide(t *[4]uint64, base *byte, refs *planeRef, n, row int, sel *uint64, mask *byte, run *chunkRun)

// keepBestWide is keepBestWords for 16 words. inverted is XORed with the highest of n planes,
// others with the others.
//
//go:noescape
func keepBestWide(left *uint64, base *byte, refs *planeRef, n int, inverted, others uint64)
