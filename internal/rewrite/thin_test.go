package rewrite

import (
	"fmt"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/mvcc"
)

func TestThin(t *testing.T) {
	only := func(kind change.Kind, v int) change.List {
		return change.AppendColumn(change.AppendUpdateHeader(nil, kind), 11, cellOf(v))
	}
	lives := func(oldest change.List) []change.Delta {
		return []change.Delta{changed(12, only(change.Update, 7)), changed(9, only(change.Update, 6)),
			changed(8, set(change.Update, 4, 5)), deletion(6), changed(4, set(change.Reinsert, 1, 1)), deletion(3),
			changed(2, oldest)}
	}
	gone := change.AppendColumn(change.AppendUpdateHeader(nil, change.Update), 99, cellOf(1)) // a dropped column
	for _, test := range []struct {
		retained mvcc.Retained
		undo     []change.Delta
		want     string
	}{
		{mvcc.Retained{Floor: 10, Points: []mvcc.Timestamp{1, 7}}, lives(set(change.Reinsert, 2, 2)),
			"@12 update, @9 update val=4 nullable=5, @6 delete, @2 reinsert"},
		{mvcc.Retained{Floor: 10, Points: []mvcc.Timestamp{1, 3}}, lives(set(change.Reinsert, 2, 2)),
			"@12 update, @9 update val=4 nullable=5, @6 delete, @4 reinsert, @3 delete, @2 reinsert"},
		// The oldest life has the cells of the one after it.
		{mvcc.Retained{Floor: 10, Points: []mvcc.Timestamp{1, 7}}, lives(only(change.Reinsert, 2)),
			"@12 update, @9 update val=4 nullable=5, @6 delete, @4 reinsert, @3 delete, @2 reinsert"},
		{mvcc.Retained{Floor: 8}, lives(set(change.Reinsert, 2, 2)), "@12 update, @9 update"},
		{mvcc.Retained{Floor: 10, Points: []mvcc.Timestamp{7}}, []change.Delta{changed(9, gone), changed(8, gone),
			changed(7, only(change.Update, 1))}, ""},
	} {
		f := newFolder(testSchema)
		thin := thinner{Retained: test.retained, folder: &f}
		var got []string
		for _, d := range thin.thin(nil, test.undo) {
			text := fmt.Sprintf("@%d %v", d.TS, d.List.Kind())
			if d.TS == 9 && test.retained.Floor > 9 {
				for r := d.List.Columns(); ; {
					id, cell, ok := r.Next()
					if !ok {
						break
					}
					text += fmt.Sprintf(" %s=%s", testSchema.Columns[testSchema.IndexID(id)].Name, number(cell))
				}
			}
			got = append(got, text)
		}
		must.Equal(t, strings.Join(got, ", "), test.want, "retained", test.retained)
	}
}
