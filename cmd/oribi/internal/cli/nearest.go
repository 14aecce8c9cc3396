package cli

import "strings"

// nearest is the name that word was most likely meant to be: one that it begins, or that is at most
// two typing errors away, of which a third of the letters at most; empty if there is none.
func nearest(word string, names []string) string {
	best, bestErrors := "", 3
	for _, name := range names {
		if word != "" && len(name) > len(word) && strings.HasPrefix(name, word) {
			return name
		}
		if n := typingErrors(word, name); n < bestErrors && n*3 <= max(len(word), len(name)) {
			best, bestErrors = name, n
		}
	}
	return best
}

// typingErrors is the least number of letters left out, put in, replaced, or exchanged with their
// neighbour that lead from a to b.
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
