package change

import (
	"fmt"

	"github.com/oribi-db/oribi/internal/fault"
)

// String describes the list in one line, with an error if its bytes are malformed.
func (l List) String() string {
	s := l.Kind().String()
	if l.Kind() == Replace {
		return fmt.Sprintf("%s, image of %d bytes", s, len(l.Image()))
	}
	r := l.Columns()
	for {
		id, cell, ok := r.Next()
		switch {
		case !ok && r.Damaged():
			return fmt.Sprintf("%s, %v", s, fault.ErrCorrupt)
		case !ok:
			return s
		case cell == nil:
			s += fmt.Sprintf(" %d=NULL", id)
		default:
			s += fmt.Sprintf(" %d=%x", id, cell)
		}
	}
}
