package encoding

import "github.com/oribi-db/oribi/internal/fault"

// Copier is a Block whose Decode copies values of which the payload contains only parts. A few
// bytes may represent long values, so callers that read many at a time call Fit first; Decode of
// far more returns ErrUnsupported.
type Copier interface {
	Block
	// Fit returns how many of the values [from, from+n) Decode copies in at most limit bytes, and
	// how many bytes they take. n is at least 1, and so is the result. If 4096 of the longest
	// values fit in limit, Fit does not count bytes.
	Fit(from, n, limit int) (fit, copied int)
}

const (
	// If this many of the longest values of a block fit in the limit, Fit does not count bytes.
	uncountedValues = 4096
	// maxCopied is the maximum number of bytes that one Decode copies, in addition to the payload's
	// length, which ensures that a single value always fits.
	maxCopied = 16 << 20
)

// Fit walks the entries and their lengths; it builds no value except the one before the first.
func (b *prefixBlock) Fit(from, n, limit int) (fit, copied int) {
	if b.longest <= limit/uncountedValues {
		return n, 0
	}
	p := b.cursorAt(from)
	defer b.keep(&p)
	pos := p.pos
	for fit < n {
		shared, unshared, next, _ := b.entry(pos)
		size := 0
		if shared > 0 && unshared > 0 {
			size = shared + unshared
		}
		if copied+size > limit && fit > 0 {
			break
		}
		copied += size
		fit++
		pos = next
	}
	return fit, copied
}

// copied returns the number of bytes that Decode copies for n values from the entry at pos on.
func (b *prefixBlock) copied(pos, n int) (size int, err error) {
	for range n {
		shared, unshared, next, _ := b.entry(pos)
		if shared > 0 && unshared > 0 {
			size += shared + unshared
		}
		pos = next
	}
	if size > maxCopied+len(b.payload) {
		return 0, fault.Unsupportedf("encoding: prefix: %d values of %d bytes in all are too many to be read at once",
			n, size)
	}
	return size, nil
}
