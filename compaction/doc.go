// Package compaction chooses what a table rewrites. It reads and writes no files.
//
// A Policy chooses the rowsets to merge. It is a pure function of a Layout: the bounds and sizes of
// the rowsets of one table. The policies are None, Overlap, Budgeted, Tiered, and Leveled. They
// need few functions over a layout, which policies of other packages can use as well: Spans,
// Heights, Groups, and Layout.MaxHeight. PickDeltas chooses rewritings of single rowsets: delta
// compactions, recompression, and the removal of files that history no longer needs.
//
// An Event reports what a flush or a compaction has done. An EventLog writes events to a file.
//
// All functions are safe for concurrent use while their arguments do not change. Source:
// tablet spec §14 to §16.
package compaction
