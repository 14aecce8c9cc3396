//go:build !amd64 || purego

package encoding

// unshuffleWide does nothing here: unshuffleWords does it all.
func unshuffleWide(_, _ []byte, _, _ int, _ *planes) bool { return false }
