package compaction

import (
	"fmt"

	"github.com/oribi-db/oribi/delta"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/rowset"
)

// DeltaInfo describes a rowset to the rules for delta compactions.
type DeltaInfo struct {
	RowSet     uint64
	BaseBytes  int64 // of all files but redos and undos
	RedoBytes  int64 // of the redo files
	Redos      int   // redo files
	Updates    bool  // a redo changes a column; otherwise all redos are DELETEs
	StaleUndos int   // undo files that no readable snapshot needs
	Gone       bool  // no readable snapshot sees any of its rows
}

// DescribeDeltas returns the DeltaInfo of a rowset; floor is the history floor.
func DescribeDeltas(s *rowset.State, floor mvcc.Timestamp) DeltaInfo {
	in := DeltaInfo{RowSet: s.Meta.ID, RedoBytes: sizeOf(s.Deltas.Redo), Redos: len(s.Deltas.Redo), Gone: Gone(s, floor)}
	in.BaseBytes = s.Meta.Bytes - in.RedoBytes - sizeOf(s.Deltas.Undo)
	for _, f := range s.Deltas.Redo {
		in.Updates = in.Updates || len(f.Stats().Columns) > 0
	}
	for _, f := range s.Deltas.Undo {
		if stale(f, floor) {
			in.StaleUndos++
		}
	}
	return in
}

// stale reports whether no read at floor or later needs an undo file: an undo at ts leads to the
// state before ts.
func stale(f *delta.File, floor mvcc.Timestamp) bool { return f.Stats().Max <= floor }

// DeltaChoice is a delta compaction and its reason, in one sentence.
type DeltaChoice struct {
	Kind    Kind     // MinorDelta, MajorDelta or UndoGC; "" = nothing to do
	RowSet  uint64   // not for UndoGC, which covers all rowsets
	Columns []string // of a major compaction; none = all that redos change
	Why     string
}

const (
	maxRedos      = 8 // number of redo files of a rowset above which they are merged into one
	redoBaseRatio = 3 // redos larger than 1/3 of the base are folded into it
)

// PickDeltas chooses the delta compaction that helps reads most for its cost. First come removals
// of files, which rewrite nothing; then the rowset whose redos are the largest share of its base,
// if they are more than a third; then the one with the most redo files, if they are more than
// eight. It does not choose the same again until more has been written. Source: tablet spec §14.3,
// with other limits.
func PickDeltas(infos []DeltaInfo) DeltaChoice {
	var major, minor *DeltaInfo
	files, sets := 0, 0
	for i := range infos {
		in := &infos[i]
		files += in.StaleUndos
		if in.Gone {
			sets++
		}
		if in.Updates && in.RedoBytes > in.BaseBytes/redoBaseRatio && (major == nil || in.share() > major.share()) {
			major = in
		}
		if in.Redos > maxRedos && (minor == nil || in.Redos > minor.Redos) {
			minor = in
		}
	}
	switch {
	case files+sets > 0:
		return DeltaChoice{Kind: UndoGC, Why: fmt.Sprintf("history no longer holds %d undo files and %d rowsets", files, sets)}
	case major != nil:
		return DeltaChoice{Kind: MajorDelta, RowSet: major.RowSet, Why: fmt.Sprintf("%d bytes of redos beside %d of base", major.RedoBytes, major.BaseBytes)}
	case minor != nil:
		return DeltaChoice{Kind: MinorDelta, RowSet: minor.RowSet, Why: fmt.Sprintf("%d redo files", minor.Redos)}
	}
	return DeltaChoice{}
}

// share returns the ratio of the size of the redos to that of the base.
func (in *DeltaInfo) share() float64 { return float64(in.RedoBytes) / float64(max(in.BaseBytes, 1)) }
