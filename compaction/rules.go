package compaction

import (
	"fmt"

	"github.com/oribi-db/oribi/mvcc"
)

// DeltaInfo describes a rowset to the rules for delta compactions.
type DeltaInfo struct {
	RowSet     uint64
	BaseBytes  int64 // of all files but redos and undos
	RedoBytes  int64 // of the redo files
	Redos      int   // redo files
	Columns    int   // columns that redos change; 0 if all redos are DELETEs
	OfColumns  int   // columns that have a file
	StaleUndos int   // undo files that no readable snapshot needs
	StaleBytes int64 // of these files
	// StaleBirths is the number of births, if no readable snapshot needs any of them; otherwise 0,
	// for they are not worth a commit one by one.
	StaleBirths int
	Gone        bool // no readable snapshot sees any of its rows
	// Recompressible is the number of columns that RecompressSet would look at; 0 if the rowset is
	// not at rest.
	Recompressible int
	// Written is the time when the base or the redos were last written, or 0 if it is not known. It
	// is set only if Recompressible is not 0.
	Written mvcc.Timestamp
}

// DeltaChoice is a delta compaction and its reason, in one sentence.
type DeltaChoice struct {
	Kind    Kind     // MinorDelta, MajorDelta, Recompress, or UndoGC
	RowSet  uint64   // not for UndoGC, which covers all rowsets
	Columns []string // of a major compaction; none = all that redos change
	Why     string

	Quality float64 // how much faster it makes reads, at most 1; 0 for UndoGC, next to nothing for Recompress
	Bytes   int64   // that it reads and writes, estimated; 0 for UndoGC
	Frees   int64   // bytes of the files and the metadata that UndoGC removes
}

const (
	maxRedos      = 8   // number of redo files of a rowset above which they are merged into one
	redosQuality  = 100 // number of redo files whose merge has quality 1
	redoBaseRatio = 3   // redos larger than 1/3 of the base are folded into it
	birthBytes    = 18  // of a birth in the metadata, about

	restQuality = 1e-6 // of recompressing a rowset: after everything else
)

// PickDeltas chooses the delta compactions that are due, at most one of each kind: the removal of
// files, which rewrites nothing; of the rowsets whose redos are more than a third of their base,
// the rowset with the largest share; of the others with more than eight redo files, the rowset with
// the most; of the others at rest that RecompressSet would look at, the rowset that was written
// first. It does not choose the same again until more has been written. Source: tablet spec §14.3,
// with other limits.
func PickDeltas(infos []DeltaInfo) (picked []DeltaChoice) {
	var major, minor, oldest *DeltaInfo
	files, births, sets, frees := 0, 0, 0, int64(0)
	for i := range infos {
		in := &infos[i]
		files += in.StaleUndos
		births += in.StaleBirths
		frees += int64(in.StaleBirths) * birthBytes
		frees += in.StaleBytes
		if in.Gone {
			sets++
			frees += in.BaseBytes + in.RedoBytes
		}
		switch {
		case in.Gone:
		case in.Columns > 0 && in.RedoBytes > in.BaseBytes/redoBaseRatio:
			if major == nil || in.share() > major.share() {
				major = in
			}
		case in.Redos > maxRedos && (minor == nil || in.Redos > minor.Redos):
			minor = in
		case in.Recompressible > 0 && (oldest == nil || in.Written < oldest.Written):
			oldest = in
		}
	}
	if files+births+sets > 0 {
		picked = append(picked, DeltaChoice{Kind: UndoGC, Frees: frees,
			Why: fmt.Sprintf("history no longer holds %d undo files, %d births and %d rowsets", files, births, sets)})
	}
	if major != nil {
		picked = append(picked, DeltaChoice{Kind: MajorDelta, RowSet: major.RowSet,
			Quality: min(1, major.share()), Bytes: major.majorBytes(),
			Why: fmt.Sprintf("%d bytes of redos beside %d of base", major.RedoBytes, major.BaseBytes)})
	}
	if minor != nil {
		picked = append(picked, DeltaChoice{Kind: MinorDelta, RowSet: minor.RowSet,
			Quality: min(1, float64(minor.Redos)/redosQuality), Bytes: 2 * minor.RedoBytes,
			Why: fmt.Sprintf("%d redo files", minor.Redos)})
	}
	if oldest != nil {
		picked = append(picked, DeltaChoice{Kind: Recompress, RowSet: oldest.RowSet, Quality: restQuality,
			Bytes: oldest.recompressBytes(),
			Why:   fmt.Sprintf("at rest, %d columns", oldest.Recompressible)})
	}
	return picked
}

// share returns the ratio of the size of the redos to the size of the base.
func (in *DeltaInfo) share() float64 { return float64(in.RedoBytes) / float64(max(in.BaseBytes, 1)) }

// majorBytes estimates what a major compaction of all changed columns reads and writes. Columns
// count as equally large.
func (in *DeltaInfo) majorBytes() int64 {
	base := in.BaseBytes / int64(max(in.OfColumns, 1)) * int64(min(in.Columns, in.OfColumns))
	return 2 * (base + in.RedoBytes) // the redos become undos
}

// recompressBytes estimates how many bytes the recompression reads and writes. Columns count as
// equally large.
func (in *DeltaInfo) recompressBytes() int64 {
	return 2 * in.BaseBytes / int64(max(in.OfColumns, 1)) * int64(in.Recompressible)
}
