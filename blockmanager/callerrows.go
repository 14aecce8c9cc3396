package blockmanager

import (
	"strings"

	"github.com/google/btree"
)

// callerRows are the caller's rows in key order. Keys and values never change once they are in.
// A lookup takes time logarithmic in the number of rows; a walk over a prefix takes that and one
// step per row of the prefix.
type callerRows struct {
	tree *btree.BTreeG[callerRow]
}

type callerRow struct {
	key   string
	value []byte // never nil
}

func newCallerRows() callerRows {
	return newCallerRowsBy(func(a, b callerRow) bool { return a.key < b.key })
}

// newCallerRowsBy is newCallerRows with the comparison of keys replaced, for tests that count.
func newCallerRowsBy(less btree.LessFunc[callerRow]) callerRows {
	return callerRows{btree.NewG(32, less)}
}

// put adds a row or replaces its value. The rows keep value.
func (r callerRows) put(key string, value []byte) {
	if value == nil {
		value = []byte{}
	}
	r.tree.ReplaceOrInsert(callerRow{key, value})
}

func (r callerRows) delete(key string) { r.tree.Delete(callerRow{key: key}) }

// value returns the value of the row with this key, or nil if no such row exists.
func (r callerRows) value(key string) []byte {
	row, _ := r.tree.Get(callerRow{key: key})
	return row.value
}

// withPrefix returns the rows whose key begins with prefix, in key order.
func (r callerRows) withPrefix(prefix string) []callerRow {
	var rows []callerRow
	r.tree.AscendGreaterOrEqual(callerRow{key: prefix}, func(row callerRow) bool {
		if !strings.HasPrefix(row.key, prefix) {
			return false
		}
		rows = append(rows, row)
		return true
	})
	return rows
}
