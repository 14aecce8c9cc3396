// Package nearest finds the name that a mistyped word most likely means.
package nearest

import (
	"slices"
	"strconv"
	"strings"
)

// longest is the maximum length of a word to compare, in bytes: the time is quadratic in it.
const longest = 256

// listed is the maximum number of names that Hint lists if none is near.
const listed = 8

// Of returns the name that word most likely means: a name that begins with word, or a name that
// differs by at most two typing errors and at most a third of the letters. For "colum" it may be
// "column" or "columns". It returns "" if no name is so similar.
func Of(word string, names []string) string {
	if word == "" || len(word) > longest {
		return ""
	}
	best, bestErrors := "", 3
	for _, name := range names {
		if len(name) > len(word) && strings.EqualFold(name[:len(word)], word) || strings.EqualFold(name, word) {
			return name
		}
		if len(name) > longest {
			continue
		}
		if n := typingErrors(word, name); n < bestErrors && n*3 <= max(len(word), len(name)) {
			best, bestErrors = name, n
		}
	}
	return best
}

// Hint returns the end of a message about an unknown word: it suggests the nearest of the names or,
// if none is near, lists them. It begins with a semicolon; without names it is empty.
func Hint(word string, names []string) string {
	if near := Of(word, names); near != "" {
		return "; did you mean " + strconv.Quote(near) + "?"
	}
	if len(names) == 0 {
		return ""
	}
	list := make([]string, 0, listed+1)
	for _, name := range names[:min(len(names), listed)] {
		list = append(list, strconv.Quote(name))
	}
	if len(names) > listed {
		list = append(list, "…")
	}
	return "; there is " + strings.Join(list, ", ")
}

// Error returns an error that wraps err, the error about an unknown word. Its text is the text of
// err and the Hint for the word and names(), which must be safe for concurrent use. The text is
// built only when it is needed: callers that only test for err do not pay for the comparison of all
// names.
func Error(err error, word string, names func() []string) error { return &unknown{err, word, names} }

// unknown is an error about an unknown word.
type unknown struct {
	err   error
	word  string
	names func() []string
}

func (u *unknown) Error() string { return u.err.Error() + Hint(u.word, u.names()) }
func (u *unknown) Unwrap() error { return u.err }

// Keys returns the keys of a map, sorted.
func Keys[V any](names map[string]V) []string {
	list := make([]string, 0, len(names))
	for name := range names {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

// typingErrors returns the minimum number of letters omitted, inserted, replaced, or swapped with
// their neighbor between a and b.
func typingErrors(a, b string) int {
	// rows[i%3][k] is the answer for a[:i] and b[:k].
	var rows [3][]int
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
	}
	for i := 0; i <= len(a); i++ {
		row := rows[i%3]
		for k := range row {
			if i == 0 || k == 0 {
				row[k] = i + k
				continue
			}
			last := rows[(i+2)%3]
			replaced := last[k-1]
			if a[i-1] != b[k-1] {
				replaced++
			}
			row[k] = min(replaced, last[k]+1, row[k-1]+1)
			if i > 1 && k > 1 && a[i-1] == b[k-2] && a[i-2] == b[k-1] {
				row[k] = min(row[k], rows[(i+1)%3][k-2]+1)
			}
		}
	}
	return rows[len(a)%3][len(b)]
}
