package cfile

import (
	"sort"

	"github.com/oribi-db/oribi/internal/encoding"
)

// maxReadCopyBytes is the approximate limit of byte strings copied by one read, in bytes. Only
// prefix encoding needs it: it expands a few bytes to long values, in the worst case 4096 values of
// 16 MiB from a file of some KiB.
const maxReadCopyBytes = 4 << 20

// fit returns how many of rows [from, from+n) can be decoded without copying more than limit bytes,
// at least 1, and how many bytes these take. The result may omit up to limit bytes for each 4096
// rows.
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

// valuesBefore returns the number of values before a row.
func (b *dataBlock) valuesBefore(row int) int {
	switch {
	case b.arrays != nil:
		return b.arrays.elements.rank(b.arrays.counts.before(row))
	case b.nullable:
		return b.nulls.rank(row)
	}
	return row
}
