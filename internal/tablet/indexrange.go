package tablet

import (
	"bytes"
	"context"
	"slices"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/keyenc"
	"github.com/oribi-db/oribi/scan"
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

// rowKey returns the key of the row of an entry of an index that is not unique.
func (c *IndexColumns) rowKey(entry []byte) []byte {
	for _, i := range c.Columns {
		column := &c.schema.Columns[i]
		if column.Nullable {
			null := entry[0] == 0
			if entry = entry[1:]; null {
				continue
			}
		}
		if n := column.Type.Width(); n > 0 {
			entry = entry[n:]
			continue
		}
		for end := 0; ; end++ { // 00 is in a string as 00 01
			end += bytes.IndexByte(entry[end:], 0)
			if entry[end+1] == 0 {
				entry = entry[end+2:]
				break
			}
			end++
		}
	}
	return entry
}

// KeysBy returns the keys of all rows for which a filter is true, and perhaps of others, by an index whose
// entries the view entries sees, in ascending order. ok is false if the filter does not bound the index, or if
// they would be more than limit. Errors: ctx.Err(); errors of reading files.
func (c *IndexColumns) KeysBy(ctx context.Context, f *batch.Filter, entries *View, limit int) (keys [][]byte, ok bool, err error) {
	ranges, ok := c.ranges(f)
	if !ok {
		return nil, false, nil
	}
	columns := []int{}
	if c.Table.Index().Unique {
		columns = append(columns, entries.Schema.Index(RowColumn))
	}
	for _, r := range ranges {
		it, err := entries.Ref().Scan(scan.Options{Columns: columns, Filter: entries.Alive(batch.Filter{}),
			Lower: r.lower, Upper: r.upper, Keys: true, Limit: int64(limit - len(keys) + 1)}, false)
		if err != nil {
			return nil, false, err
		}
		keys, err = c.appendKeys(ctx, keys, it, limit)
		if err != nil || len(keys) > limit {
			return nil, false, err
		}
	}
	slices.SortFunc(keys, bytes.Compare)
	return slices.CompactFunc(keys, bytes.Equal), true, nil
}

// appendKeys appends the keys of the rows of entries, more than limit at most by those of a batch.
func (c *IndexColumns) appendKeys(ctx context.Context, keys [][]byte, it scan.Iterator, limit int) ([][]byte, error) {
	defer it.Close()
	for len(keys) <= limit && it.Next() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		b := it.Batch()
		for i := b.Selection.Next(0); i >= 0; i = b.Selection.Next(i + 1) {
			var key []byte
			if len(b.Columns) > 0 {
				key = b.Columns[0].Cell(i)
			} else {
				key = c.rowKey(it.Keys()[i])
			}
			keys = append(keys, bytes.Clone(key))
		}
	}
	return keys, it.Close()
}
