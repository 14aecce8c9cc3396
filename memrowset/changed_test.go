package memrowset

import (
	"fmt"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/mvcc"
)

// The rows have every kind of history: inserted at 10 or at 30, changed or not, deleted or not,
// deleted and reinserted.
func TestChangedSinceFindsNewlyLiveRows(t *testing.T) {
	m := New(testSchema(t), nil)
	insert := func(key string, ts mvcc.Timestamp) { m.Insert([]byte(key), ts, lsn.LSN(ts), image(m, key, 1, "x")) }
	remove := func(key string, ts mvcc.Timestamp) { m.Mutate([]byte(key), ts, lsn.LSN(ts), deletion) }
	for i := range 200 {
		insert(fmt.Sprintf("a%03d", i), 10) // before all others
	}
	for _, key := range []string{"b-old", "c-updated", "d-deleted", "e-again", "f-again-before"} {
		insert(key, 10)
	}
	remove("f-again-before", 15)
	insert("f-again-before", 20)
	m.Mutate([]byte("c-updated"), 30, 30, set(2, "y"))
	remove("d-deleted", 30)
	remove("e-again", 30)
	insert("e-again", 40)
	insert("g-new", 21)
	insert("h-new-and-deleted", 30)
	remove("h-new-and-deleted", 40)
	insert("i-new", 30)
	for _, c := range []struct {
		since       mvcc.Timestamp
		first, last string
		want        []string
	}{
		{20, "a", "z", []string{"c-updated", "e-again", "g-new", "i-new"}},
		{20, "e-again", "g-new", []string{"e-again", "g-new"}},
		{20, "e-againX", "g-ne", nil},
		{21, "a", "z", []string{"c-updated", "e-again", "i-new"}},
		{40, "a", "z", nil},
	} {
		for _, max := range []int{1, 3, 1000} {
			var got []string
			it := m.ChangedSince(c.since, []byte(c.first), []byte(c.last))
			for keys := it.Next(max); keys != nil; keys = it.Next(max) {
				for _, k := range keys {
					got = append(got, string(k))
				}
			}
			must.Equal(t, got, c.want, "since", c.since, c.first, "to", c.last, max, "at a time")
		}
	}
}
