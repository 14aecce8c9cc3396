package compaction

import (
	"fmt"

	"github.com/oribi-db/oribi/delta"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/rowset"
)

// DeltaInfo is what the rules for delta compactions see of a rowset.
type DeltaInfo struct {
	RowSet     uint64
	BaseBytes  int64 // of all files but redos and undos
	RedoBytes  int64 // of the redo files
	Redos      int   // redo files
	Updates    bool  // a redo changes a column; else they are DELETEs
	StaleUndos int   // undo files that history no longer holds
	Gone       bool  // history holds no row of it any more
}

// DescribeDeltas looks at a rowset; floor is the earliest timestamp that reads may still ask for.
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

// stale reports whether no read at floor or later needs an undo file: an undo at ts leads to what
// was before ts.
func stale(f *delta.File, floor mvcc.Timestamp) bool { return f.Stats().Max <= floor }

// DeltaChoice is a delta compaction, and why in one sentence.
type DeltaChoice struct {
	Kind    Kind     // MinorDelta, MajorDelta or UndoGC; "" = nothing to do
	RowSet  uint64   // not for UndoGC, which is for all
	Columns []string // of a major one; none = all that redos change
	Why     string
}

const (
	maxRedos      = 8 // redo files of a rowset above which they become one
	redoBaseRatio = 3 // redos above one part in so many of the base are brought into it
)

// PickDeltas chooses what helps reads most for what it costs: first what goes without rewriting;
// then the rowset whose redos are the largest part of its base, if they are more than a third; then
// the one with most redo files, if they are more than eight. After what it chose was done it does
// not choose the same again until more was written. Source: tablet spec §14.3, with other limits.
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

// share is how large the redos are as a part of the base.
func (in *DeltaInfo) share() float64 { return float64(in.RedoBytes) / float64(max(in.BaseBytes, 1)) }
