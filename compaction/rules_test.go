package compaction

import "testing"

func TestPickDeltasChoosesTheLargestGain(t *testing.T) {
	third := DeltaInfo{RowSet: 3, BaseBytes: 300, RedoBytes: 100, Redos: 1, Updates: true}
	more := DeltaInfo{RowSet: 4, BaseBytes: 300, RedoBytes: 101, Redos: 1, Updates: true}
	most := DeltaInfo{RowSet: 5, BaseBytes: 30, RedoBytes: 15, Redos: 9, Updates: true}
	deletes := DeltaInfo{RowSet: 6, BaseBytes: 300, RedoBytes: 900, Redos: 2}
	eight := DeltaInfo{RowSet: 7, BaseBytes: 9000, RedoBytes: 8, Redos: 8, Updates: true}
	nine := DeltaInfo{RowSet: 8, BaseBytes: 9000, RedoBytes: 9, Redos: 9}
	ten := DeltaInfo{RowSet: 9, BaseBytes: 9000, RedoBytes: 9, Redos: 10, Updates: true}
	stale := DeltaInfo{RowSet: 10, BaseBytes: 9000, StaleUndos: 2}
	gone := DeltaInfo{RowSet: 11, BaseBytes: 9000, Redos: 1, Gone: true}
	for _, test := range []struct {
		name   string
		infos  []DeltaInfo
		kind   Kind
		rowset uint64
		why    string
	}{
		{"no rowset", nil, "", 0, ""},
		{"no deltas", []DeltaInfo{{RowSet: 1, BaseBytes: 100}}, "", 0, ""},
		{"an empty base", []DeltaInfo{{RowSet: 1}}, "", 0, ""},
		{"a third is not more than a third", []DeltaInfo{third}, "", 0, ""},
		{"more than a third", []DeltaInfo{third, more}, MajorDelta, 4, "101 bytes of redos beside 300 of base"},
		{"the largest share", []DeltaInfo{more, most, more}, MajorDelta, 5, "15 bytes of redos beside 30 of base"},
		{"deletes cannot be brought into the base", []DeltaInfo{deletes}, "", 0, ""},
		{"eight files are not too many", []DeltaInfo{eight}, "", 0, ""},
		{"too many files", []DeltaInfo{eight, nine, ten, nine}, MinorDelta, 9, "10 redo files"},
		{"too many files of deletes", []DeltaInfo{nine}, MinorDelta, 8, "9 redo files"},
		{"a major one comes before a minor one", []DeltaInfo{ten, more}, MajorDelta, 4, "101 bytes of redos beside 300 of base"},
		{"what costs nothing comes first", []DeltaInfo{more, ten, stale, gone}, UndoGC, 0, "history no longer holds 2 undo files and 1 rowsets"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := PickDeltas(test.infos)
			if got.Kind != test.kind || got.RowSet != test.rowset || got.Why != test.why || len(got.Columns) > 0 {
				t.Errorf("%+v", got)
			}
		})
	}
}
