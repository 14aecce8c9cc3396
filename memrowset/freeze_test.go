package memrowset

import (
	"fmt"
	"testing"

	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/must"
)

// A frozen set takes changes of its rows and returns them with their LSNs from any position on. It
// refuses inserts, even of a ghost. Earlier snapshots stay readable.
func TestFrozenSetLogsChangesAndRefusesInserts(t *testing.T) {
	var grown int64
	m := New(testSchema(t), func(n int64) { grown += n })
	for i, key := range []string{"a", "b", "c"} {
		m.Insert([]byte(key), 1, 1, image(m, key, i, "x"))
	}
	m.Mutate([]byte("c"), 2, 2, deleteList)
	m.Freeze()
	m.Mutate([]byte("a"), 3, 3, set(7, "y"))
	m.Mutate([]byte("b"), 4, 4, deleteList)
	m.Mutate([]byte("a"), 5, 5, set(8, "z"))
	if m.Mutate([]byte("b"), 6, 6, set(9, "")) || m.Mutate([]byte("c"), 6, 6, deleteList) {
		t.Error("a ghost was changed")
	}
	for from, want := range []string{"a@3/3 b@4/4 a@5/5 ", "b@4/4 a@5/5 ", "a@5/5 ", ""} {
		got := ""
		rows := map[string]uint64{}
		next, err := m.LoggedChanges(from, func(n LoggedChange) error {
			if kind := n.List.Kind(); (kind == change.Delete) != (string(n.Key) == "b") {
				t.Errorf("%s of %s", kind, n.Key)
			}
			if old, ok := rows[string(n.Key)]; ok && old != n.Row {
				t.Errorf("row %s has two numbers", n.Key)
			}
			rows[string(n.Key)] = n.Row
			got += fmt.Sprintf("%s@%d/%d ", n.Key, uint64(n.TS), n.LSN)
			return nil
		})
		if got != want || next != 3 || err != nil {
			t.Errorf("from %d: %s, next %d, %v", from, got, next, err)
		}
	}
	must.Equal(t, m.DeleteRange(nil, []byte("z"), 8, 8), 1, "rows deleted")
	must.Get(m.LoggedChanges(3, func(n LoggedChange) error {
		must.Equal(t, fmt.Sprintf("%s to %s at %d", n.Key, n.Last, uint64(n.TS)), "a to a at 8", "logged")
		return nil
	}))(t)
	rows, err := m.Histories(3).Next(10)
	if err != nil || len(rows.Keys) != 3 || len(rows.Redo) != 1 || rows.Redo[0].TS != 2 {
		t.Errorf("as of the snapshot %+v, %v", rows, err)
	}
	for _, key := range []string{"b", "d"} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s was inserted", key)
				}
			}()
			m.InsertMany([][]byte{[]byte(key)}, 7, 7, [][]byte{image(m, key, 1, "x")})
		}()
	}
	m.Release()
	must.Equal(t, grown, 0, "bytes not released")
}
