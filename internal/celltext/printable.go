package celltext

import (
	"fmt"
	"unicode"
	"unicode/utf8"
)

// Printable returns text for a message: every character that would not show, or that acts on a
// terminal or on the direction of the text after it, is written as its escape. Keys, names of files,
// and whatever else comes from outside pass through it on their way to a person.
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

// IsPrintable reports whether a character, decoded from size bytes, shows as itself.
func IsPrintable(c rune, size int) bool {
	return c >= ' ' && c < 0x7f || c >= 0x7f && unicode.IsPrint(c) && (c != utf8.RuneError || size > 1)
}

// AppendEscape appends a character that is not printable, decoded from size bytes the first of which
// is b, as JSON escapes it; a byte that is not UTF-8 as \x….
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
