package oribi

import (
	"bytes"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/tablet"
	"github.com/oribi-db/oribi/keyenc"
	"github.com/oribi-db/oribi/scan"
)

// boundByFilter narrows the range of keys to those for which the comparisons of key columns in the
// filter can be true, so that rowsets and windows outside of it are not visited. The filter still
// tests the rows in the range.
//
// If the filter compares the first key columns for equality and bounds the next one, the range is
// that of the keys which begin with these values:
//
//	k1 = 5 and k2 >= 10 and k2 < 20        keys in [(5, 10), (5, 20))
//
// Alternatives and negations bound nothing, except for In, whose least and greatest values do.
func boundByFilter(tableSchema *tablet.TableSchema, o *scan.Options) {
	prefix := []byte{}
	for i := range tableSchema.Schema.Keys {
		lower, upper, equal := columnBounds(tableSchema, o, i, prefix)
		narrow(o, lower, upper)
		if equal == nil {
			return
		}
		prefix = equal
	}
}

// narrow makes [lower, upper) the bounds of the scan, as far as it is not bounded more tightly. A
// nil bound is none.
func narrow(o *scan.Options, lower, upper []byte) {
	if bytes.Compare(lower, o.Lower) > 0 {
		o.Lower = lower
	}
	if upper != nil && (o.Upper == nil || bytes.Compare(upper, o.Upper) < 0) {
		o.Upper = upper
	}
}

// columnBounds returns bounds of the keys whose column i passes the tests that the filter is a
// conjunction of, if the columns before it are encoded as prefix. equal is the prefix with column
// i, nil unless its value is known.
func columnBounds(tableSchema *tablet.TableSchema, o *scan.Options, i int, prefix []byte) (lower, upper, equal []byte) {
	id := tableSchema.Schema.Columns[i].ID
	within := scan.Options{}
	for f := range o.Filter.Conjuncts() {
		p := f.Predicate()
		if p == nil || p.ID != id || len(p.Values) == 0 {
			continue
		}
		// Encoded keys are in the order of their columns, so those with at most this value begin
		// with it or come before it.
		encode := func(cell []byte) []byte {
			return tableSchema.Encoder.AppendCell(bytes.Clone(prefix), i, cell)
		}
		first, last := encode(p.Values[0]), encode(p.Values[len(p.Values)-1])
		switch p.Op {
		case batch.Eq, batch.In: // the values of In ascend
			narrow(&within, first, keyenc.PrefixEnd(last))
			if len(p.Values) == 1 {
				equal = first
			}
		case batch.Ge, batch.Gt:
			narrow(&within, first, nil)
		case batch.Le:
			narrow(&within, nil, keyenc.PrefixEnd(last))
		case batch.Lt:
			narrow(&within, nil, last)
		}
	}
	return within.Lower, within.Upper, equal
}
