package celltext

import (
	"fmt"
	"unicode"
	"unicode/utf8"
)

// Printable returns text for a message: it escapes every character that is invisible, that controls
// a terminal, or that changes the direction of the text after it. Keys, file names, and all other
// text from outside must pass through it before it is displayed.
func Printable(text string) string {
	for i := 0; i < len(text); {
		c, size := rune(text[i]), 1
		if c >= utf8.RuneSelf {
			c, size = utf8.DecodeRuneInString(text[i:])
		}
		if !IsPrintable(c, size) {
			return printableFrom(text, i)
		}
		i += size
	}
	return text
}

func printableFrom(text string, from int) string {
	out := []byte(text[:from])
	for rest := text[from:]; rest != ""; {
		c, size := utf8.DecodeRuneInString(rest)
		if IsPrintable(c, size) {
			out = append(out, rest[:size]...)
		} else {
			out = AppendEscape(out, c, rest[0], size)
		}
		rest = rest[size:]
	}
	return string(out)
}

// IsPrintable reports whether a character, decoded from size bytes, is displayed as itself.
func IsPrintable(c rune, size int) bool {
	return c >= ' ' && c < 0x7f || c >= 0x7f && unicode.IsPrint(c) && (c != utf8.RuneError || size > 1)
}

// AppendEscape appends the JSON escape of a character that is not printable, decoded from size
// bytes of which b is the first. A byte that is not UTF-8 is written as \x….
func AppendEscape(dst []byte, c rune, b byte, size int) []byte {
	switch {
	case c == utf8.RuneError && size == 1:
		return fmt.Appendf(dst, `\x%02x`, b)
	case c == '\n':
		return append(dst, `\n`...)
	case c == '\r':
		return append(dst, `\r`...)
	case c == '\t':
		return append(dst, `\t`...)
	case c > 0xffff:
		return fmt.Appendf(dst, `\U%08x`, c)
	}
	return fmt.Appendf(dst, `\u%04x`, c)
}
