package cfile

import (
	"sort"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/encoding"
	"github.com/oribi-db/oribi/schema"
)

// maxCopied is about how much Verify lets one decoding copy: as much as the largest cblock of a file with a codec.
const maxCopied = maxPayload

// Fit is how many of the cells [ord, ord+n) ReadVector reads without copying more than limit bytes; at least 1, if the
// file has as many. Files of others are read so: prefix encoding, and it alone, makes long values of few bytes, 4096 times
// 16 MiB of a file of some KiB.
func (c *ColumnReader) Fit(ord batch.Ordinal, n, limit int) (int, error) {
	n = c.clip(ord, n)
	if n == 0 || c.r.info.Encoding != schema.Prefix {
		return n, nil
	}
	b, err := c.block(int64(ord))
	if err != nil {
		return 0, err
	}
	from := int(int64(ord) - b.first)
	return b.fit(from, min(n, b.rows-from), limit), nil
}

// fit is how many of the rows [from, from+n) are decoded without copying more than limit bytes; at least 1.
func (b *dataBlock) fit(from, n, limit int) int {
	values, ok := b.values.(encoding.Copier)
	if !ok {
		return n
	}
	first := b.valuesBefore(from)
	all := b.valuesBefore(from+n) - first
	if all == 0 {
		return n
	}
	fitting := values.Fit(first, all, limit)
	if fitting == all {
		return n
	}
	rows := sort.Search(n, func(i int) bool { return b.valuesBefore(from+i+1)-first > fitting })
	return max(1, rows)
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
