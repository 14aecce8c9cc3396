package compaction

import (
	"testing"

	"github.com/oribi-db/oribi/internal/must"
)

func TestPickDeltasChoosesTheLargestGain(t *testing.T) {
	third := DeltaInfo{RowSet: 3, BaseBytes: 300, RedoBytes: 100, Redos: 1, Columns: 1, OfColumns: 1}
	more := DeltaInfo{RowSet: 4, BaseBytes: 300, RedoBytes: 101, Redos: 1, Columns: 1, OfColumns: 1}
	most := DeltaInfo{RowSet: 5, BaseBytes: 30, RedoBytes: 15, Redos: 9, Columns: 1, OfColumns: 1}
	large := DeltaInfo{RowSet: 12, BaseBytes: 30, RedoBytes: 90, Redos: 1, Columns: 2, OfColumns: 3}
	deletes := DeltaInfo{RowSet: 6, BaseBytes: 300, RedoBytes: 900, Redos: 2}
	eight := DeltaInfo{RowSet: 7, BaseBytes: 9000, RedoBytes: 8, Redos: 8, Columns: 1, OfColumns: 1}
	nine := DeltaInfo{RowSet: 8, BaseBytes: 9000, RedoBytes: 9, Redos: 9}
	ten := DeltaInfo{RowSet: 9, BaseBytes: 9000, RedoBytes: 9, Redos: 10, Columns: 1, OfColumns: 1}
	stale := DeltaInfo{RowSet: 10, BaseBytes: 9000, StaleUndos: 2, StaleBytes: 70}
	gone := DeltaInfo{RowSet: 11, BaseBytes: 9000, Redos: 1, Gone: true}
	major := DeltaChoice{Kind: MajorDelta, RowSet: 4, Why: "101 bytes of redos beside 300 of base",
		Quality: 101.0 / 300, Bytes: 802}
	minor := DeltaChoice{Kind: MinorDelta, RowSet: 9, Why: "10 redo files", Quality: 0.1, Bytes: 18}
	for _, test := range []struct {
		name  string
		infos []DeltaInfo
		want  []DeltaChoice
	}{
		{"no rowset", nil, nil},
		{"no deltas", []DeltaInfo{{RowSet: 1, BaseBytes: 100}}, nil},
		{"an empty base", []DeltaInfo{{RowSet: 1}}, nil},
		{"a third is not more than a third", []DeltaInfo{third}, nil},
		{"more than a third", []DeltaInfo{third, more}, []DeltaChoice{major}},
		{"the largest share", []DeltaInfo{more, most, more},
			[]DeltaChoice{{Kind: MajorDelta, RowSet: 5, Why: "15 bytes of redos beside 30 of base",
				Quality: 0.5, Bytes: 90}}},
		{"more redos than base", []DeltaInfo{large},
			[]DeltaChoice{{Kind: MajorDelta, RowSet: 12, Why: "90 bytes of redos beside 30 of base", Quality: 1,
				Bytes: 2 * (90 + 20)}}},
		{"deletes cannot be brought into the base", []DeltaInfo{deletes}, nil},
		{"eight files are not too many", []DeltaInfo{eight}, nil},
		{"too many files", []DeltaInfo{eight, nine, ten, nine}, []DeltaChoice{minor}},
		{"too many files of deletes", []DeltaInfo{nine},
			[]DeltaChoice{{Kind: MinorDelta, RowSet: 8, Why: "9 redo files", Quality: 0.09, Bytes: 18}}},
		{"of one rowset only the major one", []DeltaInfo{most},
			[]DeltaChoice{{Kind: MajorDelta, RowSet: 5, Why: "15 bytes of redos beside 30 of base",
				Quality: 0.5, Bytes: 90}}},
		{"one of each kind", []DeltaInfo{more, ten, stale, gone}, []DeltaChoice{
			{Kind: UndoGC, Why: "history no longer holds 2 undo files, 0 births and 1 rowsets",
				Frees: 70 + 9000}, major, minor}},
		{"births", []DeltaInfo{{RowSet: 1, BaseBytes: 100, StaleBirths: 3}}, []DeltaChoice{
			{Kind: UndoGC, Why: "history no longer holds 0 undo files, 3 births and 0 rowsets", Frees: 54}}},
		{"at rest the oldest", []DeltaInfo{{RowSet: 1, Recompressible: 1, Written: 7},
			{RowSet: 2, BaseBytes: 900, OfColumns: 3, Recompressible: 2, Written: 5},
			{RowSet: 3, Recompressible: 1, Written: 6}},
			[]DeltaChoice{{Kind: Recompress, RowSet: 2, Why: "at rest, 2 columns", Quality: restQuality, Bytes: 1200}}},
		{"at rest, with files to merge",
			[]DeltaInfo{{RowSet: 8, BaseBytes: 9000, RedoBytes: 9, Redos: 9, Recompressible: 1}},
			[]DeltaChoice{{Kind: MinorDelta, RowSet: 8, Why: "9 redo files", Quality: 0.09, Bytes: 18}}},
		{"of a rowset that is removed nothing else",
			[]DeltaInfo{{RowSet: 1, BaseBytes: 30, RedoBytes: 60, Redos: 10, Columns: 1, Gone: true}}, []DeltaChoice{
				{Kind: UndoGC, Why: "history no longer holds 0 undo files, 0 births and 1 rowsets", Frees: 90}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			must.Equal(t, PickDeltas(test.infos), test.want)
		})
	}
}
