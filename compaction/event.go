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
	UndoGC     Kind = "undo-gc"     // undo files and rowsets of deleted rows below the history floor were dropped
	Ingest     Kind = "ingest"      // rows in key order were written to rowsets without going through memory
)

// Result summarizes a flush or compaction of a table.
type Result struct {
	RowSetsBefore int
	RowSetsAfter  int
	BytesWritten  int64 // to new files
}

// Event reports one flush, compaction or ingest that was committed or has failed. An alteration
// that flushes memory is reported as the flush.
type Event struct {
	Kind  Kind
	Table string
	Why   string // in one sentence

	// Inputs are the rowsets that were replaced or removed; none for a flush or an ingest.
	Inputs []RowSetInfo
	// Outputs are the new rowsets and those with new files. After a failure they are those that
	// were written before it.
	Outputs []RowSetInfo

	RowsRead     int64
	RowsWritten  int64
	BytesWritten int64 // to new files
	Duration     time.Duration
	Before       Layout // when the job began
	After        Layout // when it ended
	Err          error  // nil if it was committed
}
