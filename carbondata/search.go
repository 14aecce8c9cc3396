package carbondata

import (
	"bytes"
	"sort"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/fault"
)

// The strings of a page with row IDs are sorted: those that pass a comparison are a range of
// entries, which a binary search finds. Source: carbondata spec §7.6, §9.

// searchable reports whether search can evaluate p.
func searchable(test *batch.Predicate) bool {
	return test.Op >= batch.Eq && test.Op <= batch.Ge
}

// search clears the bits of the rows in [from, to) that do not pass the test.
func (p *page) search(test *batch.Predicate, sel batch.Bitmap, from, to int) {
	value := test.Values[0]
	first, last := p.entries(value)
	lo, hi := 0, p.rows
	switch test.Op {
	case batch.Eq, batch.Ne:
		lo, hi = first, last
	case batch.Lt:
		hi = first
	case batch.Le:
		hi = last
	case batch.Gt:
		lo = last
	case batch.Ge:
		lo = first
	}
	nullFrom, nullTo := p.entries([]byte(nullText))
	if p.column.Type == Binary {
		nullFrom, nullTo = p.entries(nil)
	}
	inside := test.Op != batch.Ne
	for i := sel.Next(0); i >= 0; i = sel.Next(i + 1) {
		e := int(p.inverse[from+i])
		if (e >= lo && e < hi) != inside || e >= nullFrom && e < nullTo || p.isNull(from+i) {
			sel.Clear(i)
		}
	}
}

// entries returns the range of the entries that are equal to value.
func (p *page) entries(value []byte) (first, last int) {
	first = sort.Search(p.rows, func(i int) bool { return bytes.Compare(p.bytes(i), value) >= 0 })
	last = first + sort.Search(p.rows-first, func(i int) bool { return bytes.Compare(p.bytes(first+i), value) > 0 })
	return first, last
}

// checkSearchable checks that the entries of a page in which filters search are sorted.
func (p *page) checkSearchable() error {
	if p.form != formStrings || p.inverse == nil {
		return nil
	}
	for i := 1; i < p.rows; i++ {
		if bytes.Compare(p.bytes(i-1), p.bytes(i)) > 0 {
			return fault.Corruptf("row IDs: entry %d is less than the one before it", i)
		}
	}
	return nil
}

// filterCodes clears the bits of the rows in [from, to) whose words do not match.
func (p *page) filterCodes(match, sel batch.Bitmap, from, to int) {
	if p.ends == nil {
		batch.FilterCodes(p.codes[from:to], match, sel, 0)
		return
	}
	for row, k := from, p.runOf(from); row < to; k++ {
		end := min(to, int(p.ends[k]))
		if !match.Get(int(p.codes[k])) {
			sel.ClearRange(row-from, end-from)
		}
		row = end
	}
}
