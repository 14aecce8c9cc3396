package encoding

import "github.com/oribi-db/oribi/schema"

// OrdinalOffset returns where payloads contain the ordinal of the cblock's first row, in 4 bytes,
// little-endian. With another ordinal there, a payload has the same values at other rows. ok is
// false for PREFIX, in which the ordinal has no fixed width.
func OrdinalOffset(t schema.Type, e schema.Encoding) (offset int, ok bool) {
	switch e.Resolve(t) {
	case schema.Prefix:
		return 0, false
	case schema.Bitshuffle:
		return 0, true
	case schema.Dictionary:
		return dictModeLen, true // in both modes
	case schema.Plain:
		if t.Physical() == schema.Binary {
			return 0, true
		}
	}
	return plainOrdinalOff, true
}
