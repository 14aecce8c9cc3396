package output

import (
	"unicode"
	"unicode/utf8"

	"github.com/oribi-db/oribi/internal/celltext"
)

// wide are the characters that occupy two columns of a terminal: East Asian Width W or F in Unicode
// 14. A range includes unassigned and zero-width characters if that merges two ranges.
var wide = &unicode.RangeTable{
	R16: []unicode.Range16{
		{0x1100, 0x115f, 1}, {0x231a, 0x231b, 1}, {0x2329, 0x232a, 1}, {0x23e9, 0x23ec, 1}, {0x23f0, 0x23f0, 1},
		{0x23f3, 0x23f3, 1}, {0x25fd, 0x25fe, 1}, {0x2614, 0x2615, 1}, {0x2648, 0x2653, 1}, {0x267f, 0x267f, 1},
		{0x2693, 0x2693, 1}, {0x26a1, 0x26a1, 1}, {0x26aa, 0x26ab, 1}, {0x26bd, 0x26be, 1}, {0x26c4, 0x26c5, 1},
		{0x26ce, 0x26ce, 1}, {0x26d4, 0x26d4, 1}, {0x26ea, 0x26ea, 1}, {0x26f2, 0x26f3, 1}, {0x26f5, 0x26f5, 1},
		{0x26fa, 0x26fa, 1}, {0x26fd, 0x26fd, 1}, {0x2705, 0x2705, 1}, {0x270a, 0x270b, 1}, {0x2728, 0x2728, 1},
		{0x274c, 0x274c, 1}, {0x274e, 0x274e, 1}, {0x2753, 0x2755, 1}, {0x2757, 0x2757, 1}, {0x2795, 0x2797, 1},
		{0x27b0, 0x27b0, 1}, {0x27bf, 0x27bf, 1}, {0x2b1b, 0x2b1c, 1}, {0x2b50, 0x2b50, 1}, {0x2b55, 0x2b55, 1},
		{0x2e80, 0x303e, 1}, {0x3041, 0x3247, 1}, {0x3250, 0x4dbf, 1}, {0x4e00, 0xa4c6, 1}, {0xa960, 0xa97c, 1},
		{0xac00, 0xd7a3, 1}, {0xf900, 0xfad9, 1}, {0xfe10, 0xfe6b, 1}, {0xff01, 0xff60, 1}, {0xffe0, 0xffe6, 1},
	},
	R32: []unicode.Range32{
		{0x16fe0, 0x1b2fb, 1}, {0x1f004, 0x1f004, 1}, {0x1f0cf, 0x1f0cf, 1},
		{0x1f18e, 0x1f18e, 1}, {0x1f191, 0x1f19a, 1},
		{0x1f200, 0x1f320, 1}, {0x1f32d, 0x1f335, 1}, {0x1f337, 0x1f37c, 1},
		{0x1f37e, 0x1f393, 1}, {0x1f3a0, 0x1f3ca, 1},
		{0x1f3cf, 0x1f3d3, 1}, {0x1f3e0, 0x1f3f0, 1}, {0x1f3f4, 0x1f3f4, 1},
		{0x1f3f8, 0x1f43e, 1}, {0x1f440, 0x1f440, 1},
		{0x1f442, 0x1f4fc, 1}, {0x1f4ff, 0x1f53d, 1}, {0x1f54b, 0x1f54e, 1},
		{0x1f550, 0x1f567, 1}, {0x1f57a, 0x1f57a, 1},
		{0x1f595, 0x1f596, 1}, {0x1f5a4, 0x1f5a4, 1}, {0x1f5fb, 0x1f64f, 1},
		{0x1f680, 0x1f6c5, 1}, {0x1f6cc, 0x1f6cc, 1},
		{0x1f6d0, 0x1f6d2, 1}, {0x1f6d5, 0x1f6df, 1}, {0x1f6eb, 0x1f6ec, 1},
		{0x1f6f4, 0x1f6fc, 1}, {0x1f7e0, 0x1f7f0, 1},
		{0x1f90c, 0x1f93a, 1}, {0x1f93c, 0x1f945, 1}, {0x1f947, 0x1f9ff, 1},
		{0x1fa70, 0x1faf6, 1}, {0x20000, 0x3134a, 1},
	},
}

// runeWidth returns the number of columns that a printable character occupies: 0 if it combines
// with the preceding one.
func runeWidth(c rune) int {
	switch {
	case c < 0x300:
		return 1
	// vowels and final consonants of a Hangul syllable
	case unicode.In(c, unicode.Mn, unicode.Me), c >= 0x1160 && c <= 0x11ff:
		return 0
	case unicode.Is(wide, c):
		return 2
	}
	return 1
}

// textWidth returns the number of columns that printable text occupies.
func textWidth(text []byte) (n int) {
	for len(text) > 0 {
		if text[0] < utf8.RuneSelf {
			n, text = n+1, text[1:]
			continue
		}
		c, size := utf8.DecodeRune(text)
		n, text = n+runeWidth(c), text[size:]
	}
	return n
}

const ellipsis = "…" // one column

// appendCut appends printable text of the given width, cut to at most most columns, at least one;
// an ellipsis replaces the rest. It also returns the number of columns appended, which may be one
// less than most if a wide character does not fit.
func appendCut(dst, text []byte, width, most int) ([]byte, int) {
	if width <= most {
		return append(dst, text...), width
	}
	n, end := 0, 0
	for end < len(text) {
		c, size := utf8.DecodeRune(text[end:])
		w := runeWidth(c)
		if n+w > most-1 {
			break
		}
		n, end = n+w, end+size
	}
	return append(append(dst, text[:end]...), ellipsis...), n + 1
}

// appendPrintable appends text in an unambiguous form that cannot move the cursor or otherwise
// control the terminal. It writes text with unprintable characters as a JSON string, as well as
// empty text, text that begins or ends with a blank or begins with a quote, and the word for NULL.
// It also returns the number of columns appended. It stops beyond limit columns.
func appendPrintable(dst, text []byte, limit int) ([]byte, int) {
	from, n := len(dst), 0
	if !ambiguous(text) {
		for i := 0; n <= limit; {
			if i == len(text) {
				return append(dst, text...), n
			}
			c, size := rune(text[i]), 1
			if c >= utf8.RuneSelf {
				c, size = utf8.DecodeRune(text[i:])
			}
			if !celltext.IsPrintable(c, size) {
				n = -1
				break
			}
			n, i = n+runeWidth(c), i+size
			if n > limit {
				return append(dst, text[:i]...), n
			}
		}
	}
	dst, n = append(dst[:from], '"'), 1
	for len(text) > 0 && n <= limit {
		c, size := utf8.DecodeRune(text)
		was := len(dst)
		dst = appendRune(dst, c, text[:size])
		if len(dst)-was == size && c >= utf8.RuneSelf {
			n += runeWidth(c)
		} else {
			n += len(dst) - was
		}
		text = text[size:]
	}
	return append(dst, '"'), n + 1
}

// nullWord is printed for NULL.
const nullWord = "NULL"

func ambiguous(text []byte) bool {
	n := len(text)
	return n == 0 || text[0] == '"' || text[0] == ' ' || text[n-1] == ' ' || string(text) == nullWord
}

// appendRune appends a character of quoted text: the character or its escape.
func appendRune(dst []byte, c rune, bytes []byte) []byte {
	switch {
	case c == '"' || c == '\\':
		return append(dst, '\\', byte(c))
	case celltext.IsPrintable(c, len(bytes)):
		return append(dst, bytes...)
	}
	return celltext.AppendEscape(dst, c, bytes[0], len(bytes))
}
