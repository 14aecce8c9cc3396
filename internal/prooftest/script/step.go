package script

import (
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// Manual reports whether the store flushes and compacts only in steps, and so reports the progress
// of these jobs on the goroutine that runs the steps.
func (o *Settings) Manual() bool { return !o.Background && o.Memory == 0 }

// Op is one operation of a write batch, or a condition on it. Cells and Set have one element for
// each column of the table, in schema order. Set reports which columns the operation sets.
type Op struct {
	Ask   oribi.Op
	Table string
	Cells [][]byte
	Set   []bool
	Tests []Test // of a condition
	// Operands has the kind of the operand for each column that has one: its cell is the operand. nil: none.
	Operands []Operand
	// Range makes the operation delete the rows of a range of keys. Only the model has such operations, of
	// transactions.
	Range *Read
}

// Kind is the kind of a step.
type Kind string

// Kinds of steps.
const (
	Create Kind = "create" // create a table
	Drop   Kind = "drop"   // drop a table
	Alter  Kind = "alter"  // alter the columns of a table
	Rename Kind = "rename" // rename a table
	Write  Kind = "write"  // commit a write batch
	Ingest Kind = "ingest" // write rows in key order directly to files

	UpdateWhere Kind = "updatewhere" // set columns of all rows that pass tests
	DeleteWhere Kind = "deletewhere" // delete all rows that pass tests
	DeleteRange Kind = "deleterange" // delete the rows of a key range that pass tests
	Truncate    Kind = "truncate"    // delete all rows
	Restore     Kind = "restoreto"   // change the content back to that at a timestamp

	Recompress Kind = "recompress" // rewrite columns of each rowset to be smaller

	Get      Kind = "get"      // read one row by key
	Find     Kind = "scan"     // scan rows
	Count    Kind = "count"    // count rows
	Many     Kind = "getmany"  // read rows by several keys
	Versions Kind = "history"  // read all versions of one row
	Diff     Kind = "diff"     // read the rows that differ between two timestamps
	Flush    Kind = "flush"    // flush the MemRowSet
	FlushAll Kind = "flushall" // flush all tables together
	Compact  Kind = "compact"  // merge all rowsets
	Merge    Kind = "merge"    // merge some rowsets
	Deltas   Kind = "deltas"   // flush the delta mem stores
	Minor    Kind = "minor"    // minor delta compaction of each rowset
	Major    Kind = "major"    // major delta compaction of some columns
	UndoGC   Kind = "undogc"   // drop undos older than the history floor
	Maintain Kind = "maintain" // carry out some of the background operations that could run
	Tick     Kind = "tick"     // set the wall clock forward or back
	Verify   Kind = "verify"   // run Verify
	Copy     Kind = "copy"     // make a checkpoint, open it and compare it
	Hold     Kind = "hold"     // take a snapshot and keep it past the retention and through rewrites
	Check    Kind = "check"    // compare all rows of all tables, now and at one past timestamp
	Reopen   Kind = "reopen"   // close and open the store
	ReadOnly Kind = "readonly" // close the store, open it read-only, check it, open it to write
	Kill     Kind = "kill"     // end the process: everything written remains
	Cut      Kind = "cut"      // cut the power: only what was synced remains
	Begin    Kind = "begin"    // begin a transaction
	TxGet    Kind = "txget"    // read one row by key in a transaction
	TxScan   Kind = "txscan"   // scan rows in a transaction
	TxWrite  Kind = "txwrite"  // write rows in a transaction
	TxCommit Kind = "txcommit" // commit a transaction
	Rollback Kind = "rollback" // end a transaction without an effect

	TxGetBy    Kind = "txgetby"    // read one row by a unique index in a transaction
	TxDelete   Kind = "txdelete"   // delete a range of keys in a transaction
	TxCursor   Kind = "txcursor"   // make a cursor of a transaction
	TxMove     Kind = "txmove"     // move a cursor of a transaction
	Savepoint  Kind = "savepoint"  // make a savepoint of a transaction
	RollbackTo Kind = "rollbackto" // undo the writes of a transaction after a savepoint

	Tear Kind = "torn" // cut the power: what was synced remains, and a random part of the rest
)

// Step is one step of a history. The comment on a field names the kinds that use it.
type Step struct {
	Kind    Kind
	Table   string
	Schema  *schema.Schema // Create
	RowFile bool           // Create
	Expires int            // Create: rows expire Time after this column, its index + 1; 0 = they do not
	Alter   []Alteration   // Alter
	Name    string         // Rename: the new name; TxGetBy: the index, Read.Key has the values
	// Write, TxWrite; Ingest: inserts that all set the same columns; UpdateWhere: one update
	// without a key
	Ops     []Op
	Sync    bool   // Write, TxCommit, bulk calls
	Partial bool   // Write: refused rows are left out
	As      string // Write: the form in which operations are added to the batch: cells, rows, vectors
	// Write, bulk calls: commit in the middle of this kind of step on Table: Flush, Merge, Compact,
	// Deltas, Minor, Major or Recompress; "" = commit alone
	During Kind
	// Get, Find, Count, Check, Many, Versions, Diff, TxGet, TxScan, TxGetBy, TxDelete, TxCursor; bulk calls: the rows, or the
	// timestamp of a Restore
	Read Read
	Keys [][][]byte // Many
	// Merge, also During: bit i mod 64 selects rowset i; During: bits 56 to 58 select the time of
	// the commit, 59 to 61 flushes inside a Merge, Minor, Major or Recompress; Major: bit i mod 64
	// selects column i, 0 = all; Ingest: bit i mod 64 flushes before vectors i; Tear, Maintain: the
	// seed
	Mask uint64
	Size int // Ingest: rows per record batch; 0 = 1. Bulk calls: bytes per write batch; 0 = one write batch
	// Bulk calls with Size: the write batches after which the call is canceled, and made again for
	// the rest; TxScan: the rows after which the loop ends; 0 = none
	Stop int
	Tx   int // steps of transactions: its number
	// Begin: the transaction is an exclusive attempt of Update, whose commit is synced if Sync is set
	Exclusive bool
	// RollbackTo: the savepoint, TxMove: the cursor, counted from 0 in the transaction
	Number int
	Moves  []Move        // TxMove
	Time   time.Duration // Tick: how far to move the clock; negative = back. Create with Expires: the age

	Written bool // with During: the batch was committed, even if the step failed
}

// Bulk reports whether the step is a bulk call: it changes many rows by one call of a Table.
func (st *Step) Bulk() bool {
	switch st.Kind {
	case UpdateWhere, DeleteWhere, DeleteRange, Truncate, Restore:
		return true
	}
	return false
}

// InTx reports whether the step is one of a transaction.
func (st *Step) InTx() bool {
	switch st.Kind {
	case Begin, TxGet, TxScan, TxWrite, TxCommit, Rollback, TxGetBy, TxDelete, TxCursor, TxMove, Savepoint, RollbackTo:
		return true
	}
	return false
}

// Move is a move of a cursor.
type Move struct {
	Where Where
	Key   [][]byte // Seek, SeekBefore: cells of the first key columns
}

// Where is where a cursor moves.
type Where string

// Moves of cursors.
const (
	First      Where = "first"
	Last       Where = "last"
	Next       Where = "next"
	Prev       Where = "prev"
	Seek       Where = "seek"
	SeekBefore Where = "before"
)

// Back reports whether the row that the cursor finds is the last one of some.
func (w Where) Back() bool { return w == Last || w == Prev || w == SeekBefore }

// Read describes what a step reads.
type Read struct {
	AsOf     bool // read at the timestamp At; else the newest state
	At       mvcc.Timestamp
	Columns  []int          // nil = all
	Until    mvcc.Timestamp // Diff: the other timestamp
	Key      [][]byte       // Get, Versions
	Tests    []Test
	From, To [][]byte // bounds [From, To): cells of the first key columns; nil = no bound
	Limit    int64    // maximum number of rows; −1 = no limit
	Any      bool     // rows may come in any order
	Workers  int      // goroutines of a read in any order; 0 = the caller's alone
	Desc     bool     // Find: rows come in descending order
	Values   bool     // read Go values, not cells
}

// Test is a predicate on a column.
type Test struct {
	Column int
	Op     batch.Operator
	Values [][]byte
}

// Settings configure a history. With the zero value, timestamps count from 1 and tables keep all
// old versions.
type Settings struct {
	Seed        uint64
	Hybrid      bool          // timestamps come from a wall clock that Tick sets; else they count from 1
	History     time.Duration // how long tables keep old versions; needs Hybrid; 0 = forever
	FlushBytes  int64
	RowSetBytes int64
	Segment     int64 // size of a log segment in bytes; 0 = the store's default
	Memory      int64 // memory limit in bytes; 0 = the store's default
	// compaction policy of background work: a name of compaction.Named, or overlap and the depth;
	// "" = the store's default
	Policy     string
	Background bool // flush and compact in the background too; runs are then not repeatable
	Shuffled   bool // background operations are chosen at random; steps of kind Maintain do so without Background too
	Eager      bool // rowsets have their key directories from the first lookup on
	Scarce     bool // the cache has 64 KiB, so that most reads go to files
	NoCrashes  bool // the generator makes no kills or power cuts
	Keys       int  // approximate number of different keys in a table; 0 = 300
	Batch      int  // factor on the size of generated write batches; 0 = 1
}

// Script is a history: its settings and its steps, in order.
type Script struct {
	Settings Settings
	Steps    []Step
}
