package compaction

import (
	"testing"
	"time"

	"github.com/oribi-db/oribi/internal/must"
)

// updated describes a rowset of 100 rows whose column "v" has so many bytes, and redos of it.
func updated(id uint64, base, redo int64, files int) DeltaInfo {
	return DeltaInfo{RowSet: id, Rows: 100, BaseBytes: 10 * base, RedoBytes: redo, LargestRedo: redo, Redos: files,
		Updated: []UpdatedColumn{{Name: "v", Bytes: base, Redo: redo}}, OfColumns: 10}
}

func majorOf(id uint64, base, redo int64, why string) DeltaChoice {
	return DeltaChoice{Kind: MajorDelta, RowSet: id, Why: why, Quality: min(1, float64(redo)/float64(base)),
		Bytes: 2 * (base + redo)}
}

func minorOf(id uint64, files int, bytes int64, why string) DeltaChoice {
	return DeltaChoice{Kind: MinorDelta, RowSet: id, Why: why, Quality: float64(files) / redosQuality, Bytes: 2 * bytes}
}

func TestPickDeltasChoosesTheLargestGain(t *testing.T) {
	more, most := updated(4, 300, 101, 1), updated(5, 300, 150, 9)
	deletes := DeltaInfo{RowSet: 6, Rows: 100, BaseBytes: 300, RedoBytes: 900, LargestRedo: 900, Redos: 2}
	nine := DeltaInfo{RowSet: 8, Rows: 100, BaseBytes: 9000, RedoBytes: 9, LargestRedo: 9, Redos: 9}
	ten := updated(9, 9000, 9, 10)
	stale := DeltaInfo{RowSet: 10, BaseBytes: 9000, StaleUndos: 2, StaleBytes: 70}
	gone := DeltaInfo{RowSet: 11, BaseBytes: 9000, Redos: 1, Gone: true}
	major := majorOf(4, 300, 101, "101 bytes of redos beside 300 of base")
	minor := minorOf(9, 10, 9, "10 redo files")
	for _, test := range []struct {
		name  string
		infos []DeltaInfo
		want  []DeltaChoice
	}{
		{"no rowset", nil, nil},
		{"no deltas", []DeltaInfo{{RowSet: 1, BaseBytes: 100}}, nil},
		{"an empty base", []DeltaInfo{{RowSet: 1}}, nil},
		{"a third is not more than a third", []DeltaInfo{updated(3, 300, 100, 1)}, nil},
		{"more than a third", []DeltaInfo{updated(3, 300, 100, 1), more}, []DeltaChoice{major}},
		{"the largest share", []DeltaInfo{more, most, more},
			[]DeltaChoice{majorOf(5, 300, 150, "150 bytes of redos beside 300 of base")}},
		{"more redos than base", []DeltaInfo{updated(12, 300, 900, 1)},
			[]DeltaChoice{majorOf(12, 300, 900, "900 bytes of redos beside 300 of base")}},
		{"a file that compresses well", []DeltaInfo{updated(3, 1, 33, 1), updated(4, 1, 34, 1)},
			[]DeltaChoice{majorOf(4, 100, 34, "34 bytes of redos beside 100 of base")}},
		{"deletes cannot be brought into the base", []DeltaInfo{deletes}, nil},
		{"eight files are not too many", []DeltaInfo{updated(7, 9000, 8, 8)}, nil},
		{"too many files", []DeltaInfo{updated(7, 9000, 8, 8), nine, ten, nine}, []DeltaChoice{minor}},
		{"too many files of deletes", []DeltaInfo{nine}, []DeltaChoice{minorOf(8, 9, 9, "9 redo files")}},
		{"of one rowset only the major one", []DeltaInfo{most},
			[]DeltaChoice{majorOf(5, 300, 150, "150 bytes of redos beside 300 of base")}},
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
			[]DeltaInfo{{RowSet: 8, BaseBytes: 9000, RedoBytes: 9, LargestRedo: 9, Redos: 9, Recompressible: 1}},
			[]DeltaChoice{minorOf(8, 9, 9, "9 redo files")}},
		{"of a rowset that is removed nothing else",
			[]DeltaInfo{{RowSet: 1, BaseBytes: 30, RedoBytes: 60, Redos: 10, Gone: true}}, []DeltaChoice{
				{Kind: UndoGC, Why: "history no longer holds 0 undo files, 0 births and 1 rowsets", Frees: 90}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			picked, idle := PickDeltas(test.infos)
			must.Equal(t, picked, test.want)
			must.Equal(t, idle, 0)
		})
	}
}

func TestPickDeltasFoldsTheColumnsThatPay(t *testing.T) {
	set := func(deletes, rowFile int64, spare int, columns ...UpdatedColumn) DeltaInfo {
		in := DeltaInfo{RowSet: 1, Rows: 100, BaseBytes: 1 << 20, RedoBytes: deletes, Redos: 1, Updated: columns,
			RowFileBytes: rowFile, Spare: spare}
		for _, c := range columns {
			in.RedoBytes += c.Redo
		}
		in.LargestRedo = in.RedoBytes
		return in
	}
	much, little := UpdatedColumn{"much", 900, 600}, UpdatedColumn{"little", 9000, 30}
	for _, test := range []struct {
		name string
		info DeltaInfo
		want []string
		due  bool
	}{
		{"all", set(0, 500, 1, much), nil, true},
		{"one of two", set(0, 500, 1, much, little), []string{"much"}, true},
		{"one and a dropped one", set(0, 500, 1, much, little, UpdatedColumn{"", 0, 40}), []string{"much"}, true},
		{"a dropped one", set(0, 500, 1, UpdatedColumn{"", 0, 40}), nil, true},
		{"with a row file", set(0, 500, 0, much), nil, true},
		{"with a large row file", set(0, 901, 0, much), nil, false},
		{"with many deletes", set(900, 0, 1, much), nil, false},
		{"with some deletes", set(899, 0, 1, much), nil, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			picked, _ := PickDeltas([]DeltaInfo{test.info})
			must.Equal(t, len(picked) > 0, test.due)
			if test.due {
				must.Equal(t, picked[0].Columns, test.want)
			}
		})
	}
}

func TestPickDeltasFoldsEarlierInIdleTables(t *testing.T) {
	aged := func(in DeltaInfo, age time.Duration) DeltaInfo { in.Age = age; return in }
	small, large := updated(3, 6400, 101, 1), updated(4, 64<<20, 2<<20, 1)
	merged := updated(5, 64000, 500, 3)
	unmerged := merged
	unmerged.LargestRedo = 250
	fold := majorOf(3, 6400, 101, "101 bytes of redos beside 6400 of base")
	for _, test := range []struct {
		name  string
		infos []DeltaInfo
		want  []DeltaChoice
		idle  time.Duration
	}{
		{"a table that changes", []DeltaInfo{aged(small, time.Second)}, nil, time.Second},
		{"an unknown age", []DeltaInfo{small}, nil, 0},
		{"an idle table", []DeltaInfo{aged(small, 3*time.Second)}, []DeltaChoice{fold}, 0},
		{"a 64th is not more than a 64th", []DeltaInfo{aged(updated(3, 6400, 100, 1), time.Hour)}, nil, 0},
		{"another rowset changes", []DeltaInfo{aged(small, 3*time.Second), aged(updated(4, 6400, 1, 1), time.Second)},
			nil, time.Second},
		{"another rowset has no changes", []DeltaInfo{aged(small, 3*time.Second), aged(updated(4, 6400, 0, 0), 1)},
			[]DeltaChoice{fold}, 0},
		{"much to write", []DeltaInfo{aged(small, 3*time.Second), aged(large, 3*time.Second)}, nil,
			1062500 * time.Microsecond},
		{"files of different sizes", []DeltaInfo{aged(merged, 3*time.Second)}, nil, 0},
		{"files of similar sizes", []DeltaInfo{aged(unmerged, 3*time.Second)},
			[]DeltaChoice{minorOf(5, 3, 500, "3 redo files")}, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			picked, idle := PickDeltas(test.infos)
			must.Equal(t, picked, test.want)
			must.Equal(t, idle.Round(time.Millisecond), test.idle.Round(time.Millisecond))
		})
	}
}
