//go:build !amd64 || purego

package encoding

// unshuffleWide does nothing on this machine; unshuffleWords does all the work.
func unshuffleWide(_, _ []byte, _, _ int, _ *planes) bool { return false }
