package encoding

// Copier is a Block whose Decode copies values that stand in the payload in parts. A few bytes may stand for long values,
// so who reads many at a time asks how many.
type Copier interface {
	Block
	// Fit is how many of the values [from, from+n), n being at least 1, Decode copies in at most limit bytes; at least 1.
	Fit(from, n, limit int) int
}

// Fit walks the entries: their lengths tell, no value is made.
func (b *prefixBlock) Fit(from, n, limit int) int {
	pos := b.restart(from / b.interval)
	for range from % b.interval {
		_, _, pos, _ = b.entry(pos)
	}
	size := 0
	for i := range n {
		shared, unshared, next, _ := b.entry(pos)
		if shared > 0 && unshared > 0 {
			size += shared + unshared
		}
		if size > limit && i > 0 {
			return i
		}
		pos = next
	}
	return n
}
