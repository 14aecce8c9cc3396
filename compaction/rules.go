package compaction

import (
	"fmt"
	"math"
	"time"

	"github.com/oribi-db/oribi/mvcc"
)

// DeltaInfo describes a rowset to the rules for delta compactions.
type DeltaInfo struct {
	RowSet      uint64
	Rows        int64
	BaseBytes   int64           // of all files but redos and undos
	RedoBytes   int64           // of the redo files
	LargestRedo int64           // bytes of the largest redo file
	Redos       int             // redo files
	Updated     []UpdatedColumn // columns that redos change; none if these are DELETEs, or too few to be folded
	OfColumns   int             // columns that have a file
	// RowFileBytes is the size of the row file, which is written anew if more than Spare columns
	// are rewritten.
	RowFileBytes int64
	Spare        int
	// Age is the time since the base or the redos were written, or since the table was opened if that
	// is less; 0 if it is not known.
	Age        time.Duration
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

// UpdatedColumn is a column that redos of a rowset change.
type UpdatedColumn struct {
	Name  string // empty if the column was dropped
	Bytes int64  // of its file; 0 if it has none
	Redo  int64  // bytes of the redos that are for its changes, estimated
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
	maxRedos     = 8   // number of redo files of a rowset above which they are merged into one
	redosQuality = 100 // number of redo files whose merge has quality 1
	birthBytes   = 18  // of a birth in the metadata, about

	restQuality = 1e-6 // of recompressing a rowset: after everything else

	// Redos of more than 1/busyRatio of what folding them rewrites are folded at once. So a fold
	// writes at most busyRatio+1 times their bytes, to which the log and the flush come.
	busyRatio = 3

	// Redos of more than 1/idleRatio are folded when the table is idle. A change is about five times
	// as large as a cell and takes a scan as long as some tens of cells: scans get slower by half.
	idleRatio = 64

	// A table is idle if it was not changed for idleAfter, and for as long as all that is due in idle
	// tables takes at idleRate, in bytes per second. So however often the table changes, no more is
	// written for it than that.
	idleAfter = 2 * time.Second
	idleRate  = 32 << 20
)

// PickDeltas chooses the delta compactions that are due, at most one of each kind: the removal of
// files, which rewrites nothing; of the rowsets whose redos are more than a third of the columns
// that they change, the rowset with the largest share; of the others with more than eight redo
// files, the rowset with the most; of the others at rest that RecompressSet would look at, the
// rowset that was written first. If no rowset was changed for a while, redos are folded from a 64th
// on, and the files of a rowset are merged if the largest is at most half of them. PickDeltas does
// not choose the same again until more has been written. Otherwise, idle is the time from now on
// after which the rowsets will have been unchanged for that while, or 0 if nothing is due then.
// Source: tablet spec §14.3, with other limits.
func PickDeltas(infos []DeltaInfo) (picked []DeltaChoice, idle time.Duration) {
	d := dueDeltas{age: math.MaxInt64}
	for i := range infos {
		d.add(&infos[i])
	}
	if len(d.waiting) > 0 && d.age > 0 {
		d.wait += idleAfter
		if idle = max(0, d.wait-d.age); idle == 0 {
			for i := range d.waiting {
				d.waiting[i].add(&d)
			}
		}
	}
	if d.undos+d.births+d.sets > 0 {
		picked = append(picked, DeltaChoice{Kind: UndoGC, Frees: d.frees,
			Why: fmt.Sprintf("history no longer holds %d undo files, %d births and %d rowsets", d.undos, d.births, d.sets)})
	}
	if f := d.major; f != nil {
		picked = append(picked, DeltaChoice{Kind: MajorDelta, RowSet: f.set.RowSet, Columns: f.names(),
			Quality: min(1, f.share()), Bytes: 2 * f.writes(),
			Why: fmt.Sprintf("%d bytes of redos beside %d of base", f.redo, f.base)})
	}
	if d.minor != nil {
		picked = append(picked, DeltaChoice{Kind: MinorDelta, RowSet: d.minor.RowSet,
			Quality: min(1, float64(d.minor.Redos)/redosQuality), Bytes: 2 * d.minor.RedoBytes,
			Why: fmt.Sprintf("%d redo files", d.minor.Redos)})
	}
	if d.oldest != nil {
		picked = append(picked, DeltaChoice{Kind: Recompress, RowSet: d.oldest.RowSet, Quality: restQuality,
			Bytes: d.oldest.recompressBytes(),
			Why:   fmt.Sprintf("at rest, %d columns", d.oldest.Recompressible)})
	}
	return picked, idle
}

// dueDeltas is what is due of the rowsets that were added.
type dueDeltas struct {
	major         *fold
	minor, oldest *DeltaInfo

	undos, births, sets int
	frees               int64

	waiting []waiting     // due in an idle table
	wait    time.Duration // what they take
	age     time.Duration // since redos were last written; 0 if it is not known
}

// waiting is a compaction that is due in an idle table: a fold, or a minor one if fold is nil.
type waiting struct {
	fold *fold
	set  *DeltaInfo
}

func (w waiting) add(d *dueDeltas) {
	if w.fold != nil {
		d.addMajor(w.fold)
	} else {
		d.addMinor(w.set)
	}
}

func (d *dueDeltas) addMajor(f *fold) {
	if d.major == nil || f.share() > d.major.share() {
		d.major = f
	}
}

func (d *dueDeltas) addMinor(in *DeltaInfo) {
	if d.minor == nil || in.Redos > d.minor.Redos {
		d.minor = in
	}
}

// addWaiting adds a compaction that writes so many bytes and is due in an idle table.
func (d *dueDeltas) addWaiting(w waiting, writes int64) {
	d.waiting = append(d.waiting, w)
	d.wait += time.Duration(float64(writes) / idleRate * float64(time.Second))
}

// add adds what is due of a rowset.
func (d *dueDeltas) add(in *DeltaInfo) {
	d.undos += in.StaleUndos
	d.births += in.StaleBirths
	d.frees += int64(in.StaleBirths)*birthBytes + in.StaleBytes
	if in.Gone {
		d.sets++
		d.frees += in.BaseBytes + in.RedoBytes
		return
	}
	if in.Redos > 0 {
		d.age = min(d.age, in.Age)
	}
	if f := in.fold(busyRatio); f != nil {
		d.addMajor(f)
	} else if in.Redos > maxRedos {
		d.addMinor(in)
	} else if f := in.fold(idleRatio); f != nil {
		d.addWaiting(waiting{fold: f}, f.writes())
	} else if in.Redos > 1 && in.RedoBytes >= 2*in.LargestRedo {
		d.addWaiting(waiting{set: in}, in.RedoBytes)
	} else if in.Recompressible > 0 && (d.oldest == nil || in.Written < d.oldest.Written) {
		d.oldest = in
	}
}

// fold is a major compaction of some columns of a rowset.
type fold struct {
	set     *DeltaInfo
	columns []UpdatedColumn
	redo    int64 // bytes of redos that it folds
	base    int64 // bytes of the files that it writes, except delta files
}

// fold returns the major compaction of the columns of which the redos are more than a part of the
// file, if the redos of all of them are more than that part of the files that it writes; otherwise
// nil. A file counts at least a byte for each row: scans take time for rows, however small their
// cells are.
func (in *DeltaInfo) fold(ratio int64) *fold {
	f := &fold{set: in}
	for _, c := range in.Updated {
		if base := max(c.Bytes, in.Rows); c.Redo*ratio > base {
			f.columns = append(f.columns, c)
			f.redo += c.Redo
			f.base += base
		}
	}
	if len(f.columns) > in.Spare {
		f.base += in.RowFileBytes
	}
	if f.redo*ratio <= f.base+in.RedoBytes-f.redo {
		return nil
	}
	return f
}

// names returns the names of the columns, or nil for all that redos change.
func (f *fold) names() (names []string) {
	if len(f.columns) < len(f.set.Updated) {
		for _, c := range f.columns {
			if c.Name != "" {
				names = append(names, c.Name)
			}
		}
	}
	return names
}

// share returns the ratio of the size of the redos to the size of what is written for them.
func (f *fold) share() float64 { return float64(f.redo) / float64(f.base) }

// writes estimates how many bytes the fold writes: the redos become undos, or stay.
func (f *fold) writes() int64 { return f.base + f.set.RedoBytes }

// recompressBytes estimates how many bytes the recompression reads and writes. Columns count as
// equally large.
func (in *DeltaInfo) recompressBytes() int64 {
	return 2 * in.BaseBytes / int64(max(in.OfColumns, 1)) * int64(in.Recompressible)
}
