package encoding

// comparePlanes is compare after the constant planes have been considered: it visits all refs. flip
// inverts the highest of them.
func (v *planeView) comparePlanes(op comparison, refs []planeRef, x *uint128, flip bool, sel []uint64) {
	v.compareWords(op, refs, x, flip, sel, 0)
}

// tally adds to t, for each plane, the number of selected cells that have its bit. Plane i counts
// as bit i+shift.
func (v *planeView) tally(t *tallies, refs []planeRef, sel []uint64, shift int) {
	v.tallyWords(t, refs, sel, shift, 0)
}
