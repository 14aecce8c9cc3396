package carbondata

import (
	"slices"

	"github.com/oribi-db/oribi/carbondata/internal/thrift"
	"github.com/oribi-db/oribi/internal/fault"
)

// Minima and maxima of the columns of a blocklet, or of one column in a page. The table of their
// forms is carbondata spec §9. Source: carbondata spec §4.1.
//
// BlockletIndex:
//
//	ID  type    field          meaning
//	1   struct  min_max_index  BlockletMinMaxIndex
//	2   struct  b_tree_index   1 and 2: binaries, 8 bytes 00; not used
//
// BlockletMinMaxIndex:
//
//	ID  type  field             meaning
//	1   list  min_values        a binary for each column
//	2   list  max_values
//	3   list  min_max_presence  a bool for each column: the bounds are true; absent: all are
//
// From robot0 to robot99: 19 18 06 72 6f 62 6f 74 30 19 18 07 72 6f 62 6f 74 39 39 00
const (
	indexBounds = 1 // file format: never change
	indexTree   = 2 // file format: never change
	treeStart   = 1 // file format: never change
	treeEnd     = 2 // file format: never change

	boundsMin     = 1 // file format: never change
	boundsMax     = 2 // file format: never change
	boundsPresent = 3 // file format: never change

	floatBoundLen = 8 // also of FLOAT; file format: never change
)

// bounds are minima and maxima as stored, or nothing.
type bounds struct {
	min, max [][]byte
	present  []bool // nil: all are
}

// readBounds reads the bounds of at most n columns.
func readBounds(r *thrift.Reader, typ byte, n int) (b bounds) {
	if !r.Want(typ, thrift.Struct) {
		return b
	}
	list := func(typ byte, element func(typ byte)) {
		count := 0
		r.List(typ, func(typ byte) {
			if count++; count > n {
				r.Fail("bounds of more than %d columns", n)
			}
			element(typ)
		})
	}
	r.Fields("BlockletMinMaxIndex", func(id int, typ byte) {
		switch id {
		case boundsMin:
			list(typ, func(typ byte) { b.min = append(b.min, r.Bytes(typ)) })
		case boundsMax:
			list(typ, func(typ byte) { b.max = append(b.max, r.Bytes(typ)) })
		case boundsPresent:
			b.present = []bool{}
			list(typ, func(typ byte) { b.present = append(b.present, r.Bool(typ)) })
		default:
			r.Skip(typ)
		}
	}, boundsMin, boundsMax)
	return b
}

// readBlockletIndex reads the bounds of at most n columns in a BlockletIndex.
func readBlockletIndex(r *thrift.Reader, typ byte, n int) (b bounds) {
	if !r.Want(typ, thrift.Struct) {
		return b
	}
	r.Fields("BlockletIndex", func(id int, typ byte) {
		if id == indexBounds {
			b = readBounds(r, typ, n)
		} else {
			r.Skip(typ)
		}
	})
	return b
}

// check checks that b is empty or has bounds of n columns.
func (b *bounds) check(n int) error {
	if b.min == nil && b.max == nil {
		return nil
	}
	if len(b.min) != n || len(b.max) != n || b.present != nil && len(b.present) != n {
		return fault.Corruptf("%d minima, %d maxima, and %d flags of %d columns", len(b.min),
			len(b.max), len(b.present), n)
	}
	return nil
}

// of returns the bounds of column i as stored, and whether there are any that are true.
func (b *bounds) of(i int) (lo, hi []byte, present bool) {
	if i >= len(b.min) {
		return nil, nil, false
	}
	return b.min[i], b.max[i], b.present == nil || b.present[i]
}

// equal reports whether b and o have the same bytes and flags.
func (b *bounds) equal(o *bounds) bool {
	same := func(x, y [][]byte) bool { return slices.EqualFunc(x, y, slices.Equal[[]byte]) }
	return same(b.min, o.min) && same(b.max, o.max) && slices.Equal(b.present, o.present) &&
		(b.present == nil) == (o.present == nil)
}
