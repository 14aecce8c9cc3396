// Package delta stores changes to rows on disk separately from the rows' base data, and applies
// them on reads.
//
// A DiskRowSet's base data is never rewritten in place. Its changes are redos, which lead forward
// in time from the base, and undos, which lead back:
//
//	time ──────────────────────────────────────────────────────────────▶
//	 UNDO file  ◀── UNDO file ◀── BASE ──▶ REDO file ──▶ MemStore
//	 (oldest)
//
// New changes go to a MemStore, by row ID. A delta flush writes its changes up to one LSN to a File
// of redos with a Writer, and a new MemStore takes over with the later ones. Compactions turn redos
// into base data and undos. A Tracker is the immutable list of all these stores of one rowset at
// one time. It has these methods:
//
//   - Live: does the row exist now?
//   - RowAt: what do the changes make of one row as of a snapshot?
//   - NewWindow: the same for a scan, by window of row IDs and by column.
//   - NewSpan: which rows changed between two snapshots?
//   - NewCollector: the changes themselves, for compactions.
//
// A redo applies to a snapshot that sees its timestamp, an undo to a snapshot that does not. A
// store is not read if its statistics show that none of its changes applies, and a cblock of a file
// is not read if it was read before and none of its changes applies.
//
// Returned cells and lists alias the memory of a store or of a decoded cblock. They are read-only
// and never overwritten. Trackers, Files and MemStores are safe for concurrent use; windows,
// collectors, row states and writers are for one goroutine.
//
// A delta file is a cfile of type BINARY whose cells are sorted by row; appendKey and Stats
// document its bytes. Source: tablet spec §5 to §8; cfile spec §16.3.
//
// Simpler than Kudu: no lazy opening, no scans with two snapshots (a diff joins two scans of the
// rows of a Span), no snapshots with gaps. The cost: opening a rowset reads the footer of each of
// its delta files.
package delta
