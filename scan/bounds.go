package scan

import (
	"bytes"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/keyenc"
	"github.com/oribi-db/oribi/schema"
)

// BoundByFilter narrows the range of keys to those for which the comparisons of key columns in the
// filter can be true, so that rowsets and windows outside of it are not visited. The filter still
// tests the rows in the range.
//
// If the filter compares the first key columns for equality and bounds the next one, the range
// covers the keys that begin with these values:
//
//	k1 = 5 and k2 >= 10 and k2 < 20        keys in [(5, 10), (5, 20))
//
// s is the schema of the rows, encoder the encoder of its keys. Alternatives and negations bound
// nothing, except for In, whose least and greatest values do.
func (o *Options) BoundByFilter(s *schema.Schema, encoder *keyenc.Encoder) {
	prefix := []byte{}
	for i := range s.Keys {
		lower, upper, equal := o.columnBounds(s, encoder, i, prefix)
		o.Narrow(lower, upper)
		if equal == nil {
			return
		}
		prefix = equal
	}
}

// Narrow makes [lower, upper) the bounds of the scan, as far as it is not bounded more tightly. A
// nil bound is none.
func (o *Options) Narrow(lower, upper []byte) {
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
func (o *Options) columnBounds(s *schema.Schema, encoder *keyenc.Encoder, i int,
	prefix []byte) (lower, upper, equal []byte) {
	id := s.Columns[i].ID
	within := Options{}
	for f := range o.Filter.Conjuncts() {
		p := f.Predicate()
		if p == nil || p.ID != id || len(p.Values) == 0 {
			continue
		}
		// Encoded keys are in the order of their columns, so those with at most this value begin
		// with it or come before it.
		encode := func(cell []byte) []byte {
			return encoder.AppendCell(bytes.Clone(prefix), i, cell)
		}
		first, last := encode(p.Values[0]), encode(p.Values[len(p.Values)-1])
		switch p.Op {
		case batch.Eq, batch.In: // the values of In ascend
			within.Narrow(first, keyenc.PrefixEnd(last))
			if len(p.Values) == 1 {
				equal = first
			}
		case batch.Ge, batch.Gt:
			within.Narrow(first, nil)
		case batch.Le:
			within.Narrow(nil, keyenc.PrefixEnd(last))
		case batch.Lt:
			within.Narrow(nil, last)
		}
	}
	return within.Lower, within.Upper, equal
}
