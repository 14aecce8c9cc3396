package rowset

import "github.com/oribi-db/oribi/batch"

// Trace describes how a lookup finds a key: the rowsets whose bounds contain it, in the order of
// the lookup, with the results of their bloom files and key indexes.
type Trace struct {
	InMemory bool // a MemRowSet has the key, so no rowset on disk was searched
	Expired  bool // and the row there is expired as of the snapshot
	Steps    []TraceStep
}

// TraceStep is one rowset that a lookup searched.
type TraceStep struct {
	RowSet  uint64        // the rowset's ID
	Filter  bool          // the bloom file may contain the key
	Found   bool          // the key index contains the key
	Row     batch.Ordinal // its row ID, if Found
	Live    bool          // the row is stored as of the snapshot
	Expired bool          // but it is expired then
}
