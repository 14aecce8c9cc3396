//go:build !purego

package encoding

import "golang.org/x/sys/cpu"

// compressWord moves the bits of x that have a 1 in m to the low end.
func compressWord(x, m uint64) uint64 {
	if !cpu.X86.HasBMI2 {
		return compressRuns(x, m)
	}
	return pext(x, m)
}

// expandWord is the inverse of compressWord: it moves the low bits of x to the places of the 1s in
// m.
func expandWord(x, m uint64) uint64 {
	if !cpu.X86.HasBMI2 {
		return expandRuns(x, m)
	}
	return pdep(x, m)
}

//go:noescape
func pext(x, m uint64) uint64

//go:noescape
func pdep(x, m uint64) uint64
