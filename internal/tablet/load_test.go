package tablet

import (
	"fmt"
	"testing"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/must"
)

// ascending returns one operation for each of n keys from first on.
func (w *testStore) ascending(kind OpKind, first, n int) []Op {
	ops := []Op{}
	for k := range n {
		ops = append(ops, w.op(kind, first+k, 1, "x"))
	}
	return ops
}

// The keys of a batch in key order are not looked up if they all come after the table's last key.
// The results do not depend on where the last key is stored, even if the batch begins with it.
func TestAppendsInKeyOrderCheckTheLastKey(t *testing.T) {
	for name, prepare := range map[string]func(w *testStore){
		"in memory": func(w *testStore) {},
		"on disk":   func(w *testStore) { w.flush() },
		"on disk, with a lower key in memory": func(w *testStore) {
			w.flush()
			w.mustCommit(w.op(Insert, 50, 1, "x"))
		},
		"in memory, with a ghost on disk": func(w *testStore) {
			w.mustCommit(w.op(Delete, 1299, 0, ""))
			w.flush()
			w.mustCommit(w.op(Insert, 1299, 1, "x"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTestStore(t, testSchema)
			w.mustCommit(w.ascending(Insert, 1000, 300)...) // more than one run of inserts
			prepare(w)
			for _, kind := range []OpKind{Update, Delete} {
				must.Fail(t, must.Err(w.commit(w.ascending(kind, 1300, 2)...)), fault.ErrNotFound,
					kind, "after the last key")
			}
			must.Fail(t, must.Err(w.commit(w.ascending(Insert, 1299, 2)...)), fault.ErrKeyExists,
				"insert of the last key")
			must.Equal(t, must.Get(w.commit(w.ascending(InsertIgnore, 1299, 2)...))(t), 1,
				"insert_ignore from the last key on changes")
			w.mustCommit(w.ascending(Insert, 1301, 600)...)
			for _, k := range []int{1000, 1299, 1300, 1301, 1556, 1557, 1900} {
				must.Equal(t, w.get(k, latest), fmt.Sprintf(`%d: 1 "x" 7`, k), "key", k)
			}
			must.Equal(t, w.get(1901, latest), "", "key 1901")
		})
	}
}

// Consecutive inserts are applied together, but a key may be inserted, deleted and inserted again
// in one batch.
func TestRunsOfInsertsEndAtOtherOperations(t *testing.T) {
	w := newTestStore(t, testSchema)
	ops := w.ascending(Insert, 0, 300)
	ops = append(ops, w.op(Delete, 7, 0, ""), w.op(Insert, 7, 2, "y"), w.op(Insert, 300, 3, ""),
		w.op(Update, 300, 4, "z"))
	w.mustCommit(ops...)
	for k, want := range map[int]string{6: `6: 1 "x" 7`, 7: `7: 2 "y" 7`, 299: `299: 1 "x" 7`, 300: `300: 4 "z" 7`} {
		must.Equal(t, w.get(k, latest), want, "key", k)
	}
}
