//go:build !amd64 || purego

package encoding

import "github.com/oribi-db/oribi/batch"

// comparePlanes is compare after the constant planes have been considered: it visits all refs. flip
// inverts the highest of them.
func (v *planeView) comparePlanes(op comparison, refs []planeRef, x *uint128, flip bool, sel []uint64) {
	v.compareWords(op, refs, x, flip, sel)
}

// betweenPlanes is between after the constant planes have been considered: it visits all refs.
func (v *planeView) betweenPlanes(refs []planeRef, lo, hi *uint128, sel []uint64) {
	v.betweenWords(refs, lo, hi, sel)
}

// tally adds to t, for each plane, the number of selected cells that have its bit and, unless with
// is nil, the bit of with. Plane i counts as bit i+shift.
func (v *planeView) tally(t *tallies, refs []planeRef, sel []uint64, with []byte, shift int) {
	v.tallyWords(t, refs, sel, with, shift, 0)
}

// keepBest clears the bits of left whose cells are not the greatest or the least. left is part of a
// selection, begins at one of its words and is not 0. inverted is XORed with the highest plane.
func (v *planeView) keepBest(left []uint64, refs []planeRef, begin int, greatest bool, inverted uint64) {
	v.keepBestWords(left, refs, begin, greatest, inverted)
}

// onesIn returns the number of ones.
func onesIn(words []uint64) int { return batch.Bitmap(words).Count() }

// runs is whether kernels compute on several chunks in one call.
const runs = false
