package script

import (
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// Manual reports whether only steps flush and merge, so that their progress is reported to
// the goroutine that makes the steps.
func (o *Settings) Manual() bool { return !o.Background && o.Memory == 0 }

// Op is one operation of a write batch, or a condition of it. Cells has one for each column of the
// table, in schema order; Set tells which were given.
type Op struct {
	Ask   oribi.Op
	Table string
	Cells [][]byte
	Set   []bool
	Tests []Test // of a condition
}

// Kind is what a step does.
type Kind string

// Kinds of steps.
const (
	Create   Kind = "create"   // a table is made
	Drop     Kind = "drop"     // and removed
	Alter    Kind = "alter"    // its columns are changed
	Write    Kind = "write"    // a write batch
	Ingest   Kind = "ingest"   // rows in key order straight to files
	Get      Kind = "get"      // one row by key
	Find     Kind = "scan"     // rows
	Count    Kind = "count"    // how many rows
	Many     Kind = "getmany"  // rows by several keys
	Versions Kind = "history"  // all versions of one row
	Diff     Kind = "diff"     // rows that differ between two timestamps
	Flush    Kind = "flush"    // memory to disk
	Compact  Kind = "compact"  // all rowsets
	Merge    Kind = "merge"    // some rowsets
	Deltas   Kind = "deltas"   // changes in memory to delta files
	Minor    Kind = "minor"    // redo files of each rowset to one
	Major    Kind = "major"    // redos of some columns into the base
	UndoGC   Kind = "undogc"   // away with what history no longer holds
	Tick     Kind = "tick"     // time goes by, or back: the machine's clock is set
	Verify   Kind = "verify"   // the store checks itself
	Hold     Kind = "hold"     // a snapshot that outlives the retention and all rewrites
	Check    Kind = "check"    // all rows of all tables, now and at one past timestamp
	Reopen   Kind = "reopen"   // closed and opened
	ReadOnly Kind = "readonly" // closed, opened to read and checked, opened to write
	Kill     Kind = "kill"     // the process ends: all that was written is there
	Cut      Kind = "cut"      // the power goes: all that was synced is there
	Tear     Kind = "torn"     // the power goes: all that was synced is there, and any part of the rest
)

// Step is one step of a history. Which fields count depends on the kind.
type Step struct {
	Kind    Kind
	Table   string
	Schema  *schema.Schema // Create
	Alter   []Alteration   // Alter
	Ops     []Op           // Write; Ingest: inserts, all with the same columns
	Sync    bool           // Write
	Partial bool           // Write: refused rows are left out
	As      string         // Write: how operations are handed over: cells, rows, vectors
	During  Kind           // Write: it is committed in the middle of a Flush, Merge, Compact, Deltas, Minor or Major of Table; "" = there is none
	Read    Read           // Get, Find, Count, Check, Many, Versions, Diff
	Keys    [][][]byte     // Many
	Mask    uint64         // Merge, also During: bit i mod 64 chooses rowset i; During: bits 56 to 58 choose when, see meanwhile; Major: bit i mod 64 column i, none = all; Ingest: bit i mod 64 flushes before vectors i; Tear: the seed
	Size    int            // Ingest: rows that are handed over at once
	Time    time.Duration  // Tick

	Written bool // Write During: it is, though the step failed
}

// Read says what a step reads.
type Read struct {
	AsOf     bool
	At       mvcc.Timestamp
	Columns  []int          // nil = all
	Until    mvcc.Timestamp // Diff, between it and At
	Key      [][]byte       // Get, Versions
	Tests    []Test
	From, To [][]byte // cells of the first key columns; nil = no bound
	Limit    int64    // −1 = none
	Any      bool     // in any order
	Values   bool     // read as Go values, not as cells
}

// Test is a predicate on a column.
type Test struct {
	Column int
	Op     batch.Operator
	Values [][]byte
}

// Settings are what a history starts from. The zero value keeps history for ever under a clock that
// counts.
type Settings struct {
	Seed        uint64
	Hybrid      bool          // timestamps of a wall clock that Tick moves; else they count from 1
	History     time.Duration // how long tables keep old versions, under a hybrid clock; 0 = for ever
	FlushBytes  int64
	RowSetBytes int64
	Segment     int64  // size of the log's files; 0 = the store's default
	Memory      int64  // the store's limit; 0 = its default
	Policy      string // what merges in the background: none, or overlap and the depth; "" = the store's default
	Background  bool   // flushes and compactions by themselves, besides those of the steps: runs are not repeatable then
	NoCrashes   bool   // Generate makes no kills and power cuts
	Keys        int    // how many different keys a table has, about; 0 = 300
	Batch       int    // Generate makes write batches so many times as large; 0 = 1
}

// Script is a history.
type Script struct {
	Settings Settings
	Steps    []Step
}
