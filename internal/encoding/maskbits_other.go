//go:build !amd64 || purego

package encoding

// compressWord moves the bits of x that have a 1 in m to the low end.
func compressWord(x, m uint64) uint64 { return compressRuns(x, m) }

// expandWord is the inverse of compressWord: it moves the low bits of x to the places of the 1s in
// m.
func expandWord(x, m uint64) uint64 { return expandRuns(x, m) }
