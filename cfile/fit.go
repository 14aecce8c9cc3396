package cfile

import (
	"sort"

	"github.com/oribi-db/oribi/internal/encoding"
)

// readCopied is about how many bytes of byte strings one read copies: prefix encoding, and it
// alone, makes long values of few bytes, 4096 times 16 MiB of a file of some KiB.
const readCopied = 4 << 20

// fit is how many of the rows [from, from+n) are decoded without copying more than limit bytes, at
// least 1, and how many bytes these take; no more than limit for 4096 rows may go uncounted.
func (b *dataBlock) fit(from, n, limit int) (rows, copied int) {
	values, ok := b.values.(encoding.Copier)
	if !ok {
		return n, 0
	}
	first := b.valuesBefore(from)
	all := b.valuesBefore(from+n) - first
	if all == 0 {
		return n, 0
	}
	fitting, copied := values.Fit(first, all, limit)
	if fitting == all {
		return n, copied
	}
	rows = sort.Search(n, func(i int) bool { return b.valuesBefore(from+i+1)-first > fitting })
	return max(1, rows), copied
}

// valuesBefore is the number of values that stand before a row.
func (b *dataBlock) valuesBefore(row int) int {
	switch {
	case b.arrays != nil:
		return b.arrays.elements.rank(b.arrays.counts.before(row))
	case b.nullable:
		return b.nulls.rank(row)
	}
	return row
}
