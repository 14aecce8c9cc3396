package compaction

import "time"

// Kind is the kind of job that an Event reports.
type Kind string

// Kinds of events.
const (
	Flush      Kind = "flush"       // a MemRowSet was written to rowsets
	DeltaFlush Kind = "delta-flush" // delta mem stores were written to delta files
	Merge      Kind = "merge"       // rowsets were merged into others
	MinorDelta Kind = "minor"       // the redo files of a rowset were merged into one
	MajorDelta Kind = "major"       // redos of a rowset were applied to its base data
	Recompress Kind = "recompress"  // columns of a rowset were rewritten to be smaller
	UndoGC     Kind = "undo-gc"     // undo files and rowsets of deleted rows below the history floor were dropped
	Ingest     Kind = "ingest"      // rows in key order were written to rowsets without going through memory
	Stall      Kind = "stall"       // a writer waited for memory; not a job
)

// Result summarizes a flush or compaction of a table.
type Result struct {
	RowSetsBefore int
	RowSetsAfter  int
	BytesWritten  int64 // to new files
}

// Event reports that a job of a table, a flush, compaction or ingest, begins, or that it was
// committed or has failed. An alteration that flushes memory is reported as the flush. An event of
// kind Stall reports that a writer begins or ends to wait for memory.
//
// Each job and each stall has two events, the first with Begin set. A job without anything to do
// has none. An ingest begins when its rows are written and are to be committed. Events share
// memory: what slices in them refer to must not be changed.
type Event struct {
	// Begin reports that the job or the stall begins. Outputs, After, the counts of rows and bytes,
	// Duration and Err are not set.
	Begin bool
	Job   uint64    // number of the job or the stall since the store was opened, from 1
	Time  time.Time // when it began or ended
	Kind  Kind
	Table string // of a stall: the first table of the write batch
	Why   string // in one sentence

	// Inputs are the rowsets that are replaced or removed; none for a flush or an ingest. When an
	// undo GC begins, they are those with files to drop.
	Inputs []RowSetInfo
	// Outputs are the new rowsets and those with new files. After a failure they are those that
	// were written before it.
	Outputs []RowSetInfo

	RowsRead     int64
	RowsWritten  int64
	BytesRead    int64 // of the files that were read, whole files; none for a flush or an ingest
	BytesWritten int64 // to new files
	Duration     time.Duration
	// Before is the layout when the job begins. In the job's second event it is the layout that its
	// commit changed to After; other jobs may have changed the layout since the first event. For a
	// job that failed, both are the layout when it ended; for a stall neither has rowsets.
	Before, After Layout
	Err           error // nil if it was committed
}
