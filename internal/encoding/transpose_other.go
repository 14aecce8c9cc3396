//go:build !amd64 || purego

package encoding

// cellsWide does nothing on this machine; someCells does all the work.
func (v *planeView) cellsWide([]byte) bool { return false }
