package kvlines

import (
	"bytes"
	"fmt"
	"iter"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/hfile"
	"github.com/oribi-db/oribi/kv"
)

// HFile reads the pairs of an HFile. A pair is valid until the next step. From a file of HBase, the
// pairs are the rows with a live version, with the value of the newest version. Errors come as the
// last step: errors of the file; ErrUnsupported for a file of HBase with more than one column;
// ErrRow for a key or a value that no bucket takes.
func HFile(r *hfile.Reader) iter.Seq2[kv.Pair, error] {
	if r.Hudi() {
		return func(yield func(kv.Pair, error) bool) {
			for e, err := range r.KeyValues() {
				p := kv.Pair{Key: e.Key, Value: e.Value}
				if err == nil {
					err = fits(p)
				}
				if !yield(p, err) || err != nil {
					return
				}
			}
		}
	}
	return live(r.Cells())
}

// fits names the key of a pair that no bucket takes.
func fits(p kv.Pair) error {
	if err := Check(p); err != nil {
		return &refused{fmt.Errorf("key %.40q: %w", p.Key, err), oribi.ErrRow}
	}
	return nil
}

// refused is an error of a class that its message does not name.
type refused struct{ err, class error }

func (r *refused) Error() string   { return r.err.Error() }
func (r *refused) Unwrap() []error { return []error{r.err, r.class} }

// live returns the rows of cells, which are in HBase's order:
//
//	row     column  timestamp  type
//	a       f       5          DeleteFamily   versions of f up to 5 are deleted
//	a       f:q     9          Put            the newest live version
//	a       f:q     4          Put            deleted
//	b       f:q     7          DeleteColumn   versions of f:q up to 7 are deleted
//
// Marks come before the versions that they delete: marks of the family before its columns, other
// marks before older versions, and before a Put with the same timestamp.
func live(cells iter.Seq2[hfile.Cell, error]) iter.Seq2[kv.Pair, error] {
	return func(yield func(kv.Pair, error) bool) {
		var row liveRow
		var column *hfile.Key // the column of the file; nil before the first cell
		for c, err := range cells {
			if err != nil {
				yield(kv.Pair{}, err)
				return
			}
			if !row.begun || !bytes.Equal(row.pair.Key, c.Row) {
				if row.found && !yield(row.pair, nil) {
					return
				}
				row.reset(c.Row)
			}
			if ofColumn(c.Type) {
				if column == nil {
					column = &hfile.Key{Family: bytes.Clone(c.Family), Qualifier: bytes.Clone(c.Qualifier)}
				}
				if !bytes.Equal(column.Family, c.Family) || !bytes.Equal(column.Qualifier, c.Qualifier) {
					yield(kv.Pair{}, &refused{fmt.Errorf("row %.40q: columns %q and %q, want one column",
						c.Row, columnName(column), columnName(&c.Key)), hfile.ErrUnsupported})
					return
				}
			}
			row.add(&c)
			if err := fits(row.pair); err != nil {
				yield(kv.Pair{}, err)
				return
			}
		}
		if row.found {
			yield(row.pair, nil)
		}
	}
}

// ofColumn reports whether a cell concerns one column, not a family.
func ofColumn(t hfile.Type) bool {
	return t == hfile.Put || t == hfile.Delete || t == hfile.DeleteColumn
}

func columnName(k *hfile.Key) string { return string(k.Family) + ":" + string(k.Qualifier) }

// liveRow finds the newest live version among the cells of a row.
type liveRow struct {
	begun, found bool
	pair         kv.Pair

	marked  bool    // there is a mark for versions up to upTo
	upTo    int64   // the newest such mark
	one     int64   // the mark for one version of the column that came last; below 0: none
	several []int64 // marks for one version of the family, newest first, up to the version last seen
}

func (r *liveRow) reset(row []byte) {
	*r = liveRow{begun: true, one: -1, several: r.several[:0],
		pair: kv.Pair{Key: append(r.pair.Key[:0], row...), Value: r.pair.Value[:0]}}
}

func (r *liveRow) add(c *hfile.Cell) {
	switch c.Type {
	case hfile.DeleteFamily, hfile.DeleteColumn:
		if !r.marked || c.Timestamp > r.upTo {
			r.marked, r.upTo = true, c.Timestamp
		}
	case hfile.Delete:
		r.one = c.Timestamp
	case hfile.DeleteFamilyVersion:
		r.several = append(r.several, c.Timestamp)
	case hfile.Put:
		for len(r.several) > 0 && r.several[0] > c.Timestamp {
			r.several = r.several[1:]
		}
		deleted := r.marked && c.Timestamp <= r.upTo || r.one == c.Timestamp ||
			len(r.several) > 0 && r.several[0] == c.Timestamp
		if !r.found && !deleted {
			r.found, r.pair.Value = true, append(r.pair.Value, c.Value...)
		}
	}
}
