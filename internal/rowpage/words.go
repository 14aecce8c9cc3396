package rowpage

import (
	"github.com/oribi-db/oribi/internal/coding"
	"github.com/oribi-db/oribi/internal/fault"
)

// Words are the words of a file, by column of its format. Columns without words may be missing at
// the end.
//
// As bytes, each column with words, in ascending order:
//
//	width  field   meaning
//	1–5    column  its index in the format, base 128
//	1–5    count   of its words, base 128, not 0
//	…      words   each with its length, base 128
//
// Column 2 with the words "a" and "bc": 02 02 01 61 02 62 63
type Words [][][]byte

// maxWordBytes bounds the words of a file: they stay in memory while the file is open.
const maxWordBytes = 16 << 10

// maxWord bounds a word.
const maxWord = 64

// Append appends w as bytes to dst.
func (w Words) Append(dst []byte) []byte {
	for col, words := range w {
		if len(words) == 0 {
			continue
		}
		dst = coding.AppendUvarint32(dst, uint32(col))
		dst = coding.AppendUvarint32(dst, uint32(len(words)))
		for _, word := range words {
			dst = coding.AppendUvarint32(dst, uint32(len(word)))
			dst = append(dst, word...)
		}
	}
	return dst
}

// ParseWords parses the bytes of Words of a file with the given number of columns. The words alias
// b. Errors: ErrCorrupt.
func ParseWords(b []byte, columns int) (Words, error) {
	size := len(b)
	bad := func() (Words, error) {
		return nil, fault.Corruptf("row pages: words: byte %d of %d", size-len(b), size)
	}
	next := func(limit int) (int, bool) {
		n, used, ok := coding.Uvarint32(b)
		if !ok || int64(n) > int64(limit) {
			return 0, false
		}
		b = b[used:]
		return int(n), true
	}
	var w Words
	for len(b) > 0 {
		col, ok := next(columns - 1)
		if !ok || col < len(w) {
			return bad()
		}
		count, ok := next(len(b))
		if !ok || count == 0 {
			return bad()
		}
		w = append(w, make([][][]byte, col+1-len(w))...)
		for range count {
			n, ok := next(len(b))
			if !ok || n > len(b) {
				return bad()
			}
			w[col], b = append(w[col], b[:n:n]), b[n:]
		}
	}
	return w, nil
}
