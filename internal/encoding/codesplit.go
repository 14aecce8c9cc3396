package encoding

import "github.com/oribi-db/oribi/batch"

// CodeSplit divides selections by the codes of values, all codes in one pass over the chunks. The
// zero CodeSplit is ready for use. Not safe for concurrent use.
type CodeSplit struct{ view indexView }

// Release forgets all blocks.
func (x *CodeSplit) Release() { x.view.block, x.view.view = nil, planeView{} }

// Split clears the bits in [at, at+n) of parts[c] whose values, from value from on, do not have
// code c. Before, the parts are equal. There is one for each word of the dictionary. ok is false,
// and nothing has changed, if b has no codes. Errors: ErrCorrupt for a code of a bit that is 1
// beyond the dictionary; parts are then undefined.
func (x *CodeSplit) Split(b Block, from, n int, parts []batch.Bitmap, at int) (ok bool, err error) {
	d, ok := b.(*dictBlock)
	if !ok || len(d.dict.Words) != len(parts) || len(parts) == 0 {
		return false, nil
	}
	w := planeWorks.Get().(*planeWork)
	defer planeWorks.Put(w)
	w.test.codes = uint64(len(parts))
	for k := 0; n > 0; from, n, at = from+k, n-k, at+k {
		k = d.codes.restOfChunk(from, n)
		if !parts[0].AnyRange(at, at+k) {
			continue
		}
		lead := from & 7
		if w.part, err = x.view.part(&d.codes, from-lead, lead+k); err != nil {
			return true, err
		}
		if err := w.test.checkCodes(&w.part, w.align(from, k, parts[0], at), &w.selections); err != nil {
			return true, err
		}
		for c, part := range parts {
			w.part.compare(equalTo, uint128{lo: uint64(c)}, false, w.align(from, k, part, at))
			w.alignBack(from, k, part, at)
		}
	}
	return true, nil
}

// InPlanes reports whether integer i of b is in planes that need not be decompressed, on a machine
// that counts their bits in wide registers.
func InPlanes(b Block, i int) bool {
	s, ok := b.(*shuffled)
	if !ok || !runs {
		return false
	}
	buf := viewBuffers.Get().(*viewBuffer)
	defer viewBuffers.Put(buf)
	if w := s.walk.Load(); w != nil {
		return w.chunks[i>>s.shift].found
	}
	_, _, found := recognize(s.stream(i>>s.shift), s.chunkCells(i>>s.shift)/8, s.width, buf.refs[:0])
	return found
}
