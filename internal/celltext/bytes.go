package celltext

import (
	"encoding/hex"
	"unicode/utf8"
)

// IsText reports whether a byte string is UTF-8 without control characters that does not begin with
// 0x: then it may be printed as itself, where others are printed as 0x and hex.
func IsText(b []byte) bool {
	if len(b) >= 2 && b[0] == '0' && b[1] == 'x' {
		return false
	}
	for i := 0; i < len(b); {
		c, size := rune(b[i]), 1
		if c >= utf8.RuneSelf {
			if c, size = utf8.DecodeRune(b[i:]); c == utf8.RuneError && size == 1 {
				return false
			}
		}
		if c < ' ' || c >= 0x7f && c <= 0x9f {
			return false
		}
		i += size
	}
	return true
}

// AppendBytes appends a byte string as a JSON string: as itself if it is text, otherwise as 0x and
// lower-case hex.
func AppendBytes(dst, b []byte) []byte {
	if IsText(b) {
		return AppendQuoted(dst, b)
	}
	return append(hex.AppendEncode(append(dst, `"0x`...), b), '"')
}
