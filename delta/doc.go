// Package delta keeps the changes to rows on disk apart from the rows, and puts the two together.
//
// A DiskRowSet's base data is never rewritten in place. Its changes are redos, which lead forward
// from the base, and undos, which lead back:
//
//	time ──────────────────────────────────────────────────────────────▶
//	 UNDO file  ◀── UNDO file ◀── BASE ──▶ REDO file ──▶ MemStore
//	 (oldest)
//
// New changes go to a MemStore, by row ID; a flush writes what it holds at one moment to a File of
// redos with a Writer, and another MemStore takes its place with all later changes; compactions
// turn redos into new base data and undos. A Tracker is the list of all these stores of one rowset
// at one time, immutable, and answers for it:
//
//   - Live: is this row there now?
//   - RowAt: what do the changes make of this row as of a snapshot?
//   - NewWindow: the same for a scan, window by window of row IDs, column by column;
//   - NewSpan: which rows were changed between two timestamps?
//   - NewCollector: the changes themselves, for compactions.
//
// A redo counts for a snapshot that sees its timestamp, an undo for one that does not. Stores
// without changes that count, by their statistics, are not read.
//
// Bytes that are handed out (cells, lists) alias the memory of a store or of a decoded cblock, are
// read-only, and are valid as long as they are referenced. Trackers, Files and MemStores may be
// used by many goroutines; windows, collectors, row states and writers belong to one.
//
// A file of deltas is a cfile of type BINARY whose cells are sorted by row; the tables of its bytes
// are beside appendKey and Stats. Source: tablet spec §5 to §8; cfile spec §16.3. Simpler than
// Kudu: no lazy opening, no scans with two snapshots (a diff joins two scans of the rows of a
// Span), no snapshots with gaps. The cost: opening a rowset reads the footer of each of its files.
package delta
