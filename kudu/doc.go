// Package kudu reads the tables in the directories of an Apache Kudu tablet server, without the
// server and without its cluster. The server may be stopped, or may be unable to start.
//
//	d, err := kudu.Open("/data/kudu", kudu.Options{Warn: func(text string) { log.Print(text) }})
//	defer d.Close()
//	for _, t := range d.Tablets() { … } // all tablets
//	t, err := d.Open(ctx, "metrics")    // a table, or a tablet by its ID
//	defer t.Close()
//	it, err := t.Scan(scan.Options{Columns: []int{0, 1}, Snapshot: mvcc.Everything}, true)
//
// A Table consists of all tablets that the directory has of a table, or of one tablet. Its rows
// have the last schema of the table and include those that only the log has: opening a table reads
// the logs of its tablets. Scan, Diff, and History read it as of any time. A directory does not say
// how much history it has lost, so a read of old times gives a warning and not an error.
//
// A server has only some of a table's tablets. Other servers of the cluster have the rest.
//
// Nothing in the directory is changed or locked. A directory that a server is using can be read,
// with a warning, but the server may remove blocks during the read, which is then ErrCorrupt.
//
// A Directory and a Table are safe for concurrent use; iterators are not. Source: tablet spec §8,
// §18.5, §19; blockmanager spec §1 to §5. Simpler than Kudu: a server opens a directory as a whole
// or not at all, and repairs it; here damage concerns only the tablets that have it.
package kudu

import (
	"errors"

	"github.com/oribi-db/oribi/internal/fault"
)

// Errors that callers can act on, for errors.Is. They are the values that package oribi exports
// under the same names.
var (
	ErrCorrupt     = fault.ErrCorrupt     // files are damaged or missing
	ErrNotFound    = fault.ErrNotFound    // there is no such tablet
	ErrNoTable     = fault.ErrNoTable     // there is no such table
	ErrNotStore    = fault.ErrNotStore    // the directory is not one of a Kudu server
	ErrUnsupported = fault.ErrUnsupported // encrypted files, or blocks listed in RocksDB
)

// ErrLogMemory is the error of a table whose logs need more memory than Options.LogBytes.
var ErrLogMemory = errors.New("more memory than Options.LogBytes")
