package rowunion

import (
	"github.com/oribi-db/oribi/internal/keyindex"
	"github.com/oribi-db/oribi/scan"
)

// Without returns the rows of a scan that are not in ranges of keys, which the transaction of the scan
// has deleted. The scan returns keys.
func Without(base scan.Iterator, deleted keyindex.Ranges) scan.Iterator {
	return &without{Iterator: base, deleted: deleted}
}

type without struct {
	scan.Iterator
	deleted keyindex.Ranges
}

// Next implements scan.Iterator.
func (w *without) Next() bool {
	for w.Iterator.Next() {
		b, keys := w.Batch(), w.Keys()
		for i := b.Selection.Next(0); i >= 0; i = b.Selection.Next(i + 1) {
			if w.deleted.Contain(keys[i]) {
				b.Selection.Clear(i)
			}
		}
		if b.Selection.Any() {
			return true
		}
	}
	return false
}
