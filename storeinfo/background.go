package storeinfo

// BackgroundOp describes an operation of background work: what it would free, gain, and cost. Sizes
// are in bytes and estimates.
type BackgroundOp struct {
	// Kind is flush, delta-flush, minor, major, recompress, merge, or undo-gc, as in the events of
	// package compaction; log-gc, which confirms the metadata and removes log segments; or reclaim,
	// which copies the blocks out of a container that has few of them.
	Kind string
	// Table is empty for log-gc and reclaim. Small tables are flushed together, unless Options.Schedule
	// chooses: then it is one of them, and the sizes are those of all.
	Table string

	Memory int64   // memory that it frees
	Log    int64   // log that it lets be removed, unless another table needs it too
	Data   int64   // disk space that it frees
	Gain   float64 // by how much reads improve; only for comparison
	Cost   int64   // bytes that it reads and writes
}
