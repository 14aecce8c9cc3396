package tablet

import (
	"errors"
	"fmt"
	"testing"

	"github.com/oribi-db/oribi/internal/fault"
)

// rising makes one operation for each key from first on.
func (w *world) rising(ask OpKind, first, n int) []Op {
	ops := []Op{}
	for k := range n {
		ops = append(ops, w.op(ask, first+k, 1, "x"))
	}
	return ops
}

// Batches in key order whose keys lie behind all that the table has are not looked up; the answers
// are the same, wherever the table's last key is, and for the first batch whose first key is not
// behind it.
func TestLoadsInKeyOrderMeetTheLastKey(t *testing.T) {
	for name, settle := range map[string]func(w *world){
		"in memory": func(w *world) {},
		"on disk":   func(w *world) { w.flush() },
		"on disk behind what is in memory": func(w *world) {
			w.flush()
			w.mustCommit(w.op(Insert, 50, 1, "x"))
		},
		"in memory behind what is on disk": func(w *world) {
			w.mustCommit(w.op(Delete, 1299, 0, ""))
			w.flush()
			w.mustCommit(w.op(Insert, 1299, 1, "x"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, testSchema)
			w.mustCommit(w.rising(Insert, 1000, 300)...) // more than one run of inserts
			settle(w)
			for _, ask := range []OpKind{Update, Delete} {
				if _, err := w.commit(w.rising(ask, 1300, 2)...); !errors.Is(err, fault.ErrNotFound) {
					t.Errorf("%v behind the last key: %v", ask, err)
				}
			}
			if _, err := w.commit(w.rising(Insert, 1299, 2)...); !errors.Is(err, fault.ErrKeyExists) {
				t.Errorf("insert of the last key: %v", err)
			}
			if n, err := w.commit(w.rising(InsertIgnore, 1299, 2)...); err != nil || n != 1 {
				t.Errorf("insert_ignore from the last key on: %d changes, %v", n, err)
			}
			w.mustCommit(w.rising(Insert, 1301, 600)...)
			for _, k := range []int{1000, 1299, 1300, 1301, 1556, 1557, 1900} {
				if got, want := w.get(k, latest), fmt.Sprintf(`%d: 1 "x" 7`, k); got != want {
					t.Errorf("key %d is %q, want %q", k, got, want)
				}
			}
			if got := w.get(1901, latest); got != "" {
				t.Errorf("key 1901 is %q", got)
			}
		})
	}
}

// Inserts that follow one another are applied together, but a key may be inserted, deleted and
// inserted again in one batch.
func TestRunsOfInsertsEndAtOtherOperations(t *testing.T) {
	w := newWorld(t, testSchema)
	ops := w.rising(Insert, 0, 300)
	ops = append(ops, w.op(Delete, 7, 0, ""), w.op(Insert, 7, 2, "y"), w.op(Insert, 300, 3, ""), w.op(Update, 300, 4, "z"))
	w.mustCommit(ops...)
	for k, want := range map[int]string{6: `6: 1 "x" 7`, 7: `7: 2 "y" 7`, 299: `299: 1 "x" 7`, 300: `300: 4 "z" 7`} {
		if got := w.get(k, latest); got != want {
			t.Errorf("key %d is %q, want %q", k, got, want)
		}
	}
}
