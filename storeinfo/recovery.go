package storeinfo

// Recovery describes what Open found in the log, and what a writer repaired.
type Recovery struct {
	Clean        bool   // the log ended as Close leaves it
	Frames       int64  // log frames read
	Batches      int64  // write batches replayed
	TornBytes    int64  // bytes of an unfinished write at the end of the log
	TornFile     string // where a writer kept them, within the store's directory; empty for a reader
	RepairedBits int64  // single bits repaired

	// What a writer removed: blocks that no commit names or that a commit dropped. Zero for a
	// reader.
	StrayContainers int   // files that were removed
	CutBytes        int64 // after the last named block of a container
	Reclaimed       int   // dropped blocks whose space was reclaimed
}
