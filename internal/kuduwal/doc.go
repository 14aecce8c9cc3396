// Package kuduwal reads the write-ahead log of one tablet of an Apache Kudu server.
//
// The log is a directory of segments. Open reads one of them, batch by batch; Replay reads all of
// them and calls a Handler with the operations, each with its result, in the order of their
// indexes. A Decoder turns the rows of a write operation into row images and change lists of
// package change.
//
// A server never closes its log: it ends where the server was stopped, often within zeros that were
// allocated ahead. So bytes after the last entry are the end of the log unless an entry follows
// them, which means damage. A server cannot see some losses of entries that a reader of the whole
// directory can see, for example a log that begins after the last flushed operation; these are
// returned as Findings.
//
// Memory is bounded by one batch of entries, at most MaxBatchBytes, and the operations that wait
// for their results, at most MaxPendingBytes. Nothing here is safe for concurrent use.
//
// Source: tablet spec §2.6, §18. Simpler than Kudu: index files are ignored, since every read is of
// the whole log.
package kuduwal
