//go:build !amd64 || purego

package encoding

// cellsWide does nothing on this machine; someCells does all the work.
func (v *planeView) cellsWide([]byte) bool { return false }

// cellsWide does nothing on this machine.
func (o *octet) cellsWide([]byte, int) (done int) { return 0 }

// join16 does nothing on this machine.
func join16([]uint16, []byte) (done int) { return 0 }
