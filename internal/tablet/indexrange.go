package tablet

import (
	"bytes"
	"slices"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/keyenc"
	"github.com/oribi-db/oribi/schema"
)

// maxEntryRanges is the number of ranges of entries that a filter may select.
const maxEntryRanges = 64

// entryRange is a range of keys of entries; a nil upper is no bound.
type entryRange struct{ lower, upper []byte }

// ranges returns ranges of entries that contain those of all rows for which a filter is true, in ascending
// order. ok is false if the filter does not bound the first column of the index.
func (c *IndexColumns) ranges(f *batch.Filter) (list []entryRange, ok bool) {
	prefixes := [][]byte{{}}
	for _, i := range c.Columns {
		column := &c.schema.Columns[i]
		values, equal := equalValues(f, column)
		if !equal || len(prefixes)*len(values) > maxEntryRanges {
			lower, upper := valueBounds(f, column)
			if lower == nil && upper == nil {
				break
			}
			for _, p := range prefixes {
				list = append(list, c.between(p, column, lower, upper))
			}
			return list, true
		}
		ok = true
		var longer [][]byte
		for _, p := range prefixes {
			for _, v := range values {
				longer = append(longer, appendValue(slices.Clone(p), column, v))
			}
		}
		prefixes = longer
	}
	for _, p := range prefixes {
		list = append(list, entryRange{p, keyenc.PrefixEnd(p)})
	}
	return list, ok
}

// appendValue appends a cell of a column to the beginning of an entry; nil is NULL.
func appendValue(dst []byte, column *schema.Column, cell []byte) []byte {
	if column.Nullable {
		if cell == nil {
			return append(dst, 0)
		}
		dst = append(dst, 1)
	}
	return keyenc.AppendKeyCell(dst, column.Type, cell, false)
}

// equalValues returns the only values of a column for which a filter can be true; nil is NULL. ok is false if
// they are not known.
func equalValues(f *batch.Filter, column *schema.Column) (values [][]byte, ok bool) {
	for t := range f.Conjuncts() {
		p := t.Predicate()
		if p == nil || p.ID != column.ID {
			continue
		}
		switch p.Op {
		case batch.Eq, batch.In: // In has been sorted
			return p.Values, true
		case batch.IsNull:
			if !column.Nullable {
				return nil, true
			}
			return [][]byte{nil}, true
		}
	}
	return nil, false
}

// valueBounds returns the tests that bound a column from below and above, nil for none.
func valueBounds(f *batch.Filter, column *schema.Column) (lower, upper *batch.Predicate) {
	for t := range f.Conjuncts() {
		p := t.Predicate()
		if p == nil || p.ID != column.ID {
			continue
		}
		switch p.Op {
		case batch.Ge, batch.Gt:
			lower = p
		case batch.Le, batch.Lt:
			upper = p
		}
	}
	return lower, upper
}

// between returns the range of the entries that begin with a prefix and have a value of the next column
// within bounds.
func (c *IndexColumns) between(prefix []byte, column *schema.Column, lower, upper *batch.Predicate) entryRange {
	all := slices.Clone(prefix)
	if column.Nullable {
		all = append(all, 1) // NULL is in no bounds
	}
	r := entryRange{all, keyenc.PrefixEnd(all)}
	if lower != nil {
		r.lower = appendValue(slices.Clone(prefix), column, lower.Values[0])
		if lower.Op == batch.Gt {
			r.lower = keyenc.PrefixEnd(r.lower)
		}
	}
	if upper != nil {
		r.upper = appendValue(slices.Clone(prefix), column, upper.Values[0])
		if upper.Op == batch.Le {
			r.upper = keyenc.PrefixEnd(r.upper)
		}
	}
	return r
}

// rowKey returns the key of the row of an entry of an index that is not unique; of any entry, what comes after
// the cells. ok is false for bytes that are no entry.
func (c *IndexColumns) rowKey(entry []byte) (key []byte, ok bool) {
	for _, i := range c.Columns {
		column := &c.schema.Columns[i]
		if column.Nullable {
			if len(entry) == 0 {
				return nil, false
			}
			null := entry[0] == 0
			if entry = entry[1:]; null {
				continue
			}
		}
		n := column.Type.Width()
		if n == 0 {
			n = terminated(entry)
		}
		if n < 0 || n > len(entry) {
			return nil, false
		}
		entry = entry[n:]
	}
	return entry, true
}

// terminated returns the length of a byte string in a key that is followed by others, below 0 if it has no
// end: 00 is in it as 00 01, and 00 00 is its end.
func terminated(key []byte) int {
	for at := 0; ; at += 2 {
		i := bytes.IndexByte(key[at:], 0)
		if at += i; i < 0 || at+1 >= len(key) {
			return -1
		}
		if key[at+1] == 0 {
			return at + 2
		}
	}
}
