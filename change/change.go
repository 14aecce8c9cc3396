// Package change describes what happens to rows, as values and as bytes.
//
// It has two encodings, each with its table next to its code:
//
//   - a List is one change to an existing row (update, delete, reinsert): Kudu's RowChangeList,
//     byte for byte, as delta files, memory stores and log records contain it;
//   - a row image is one row with all its cells, in the RowFormat of the schema. Memory stores and
//     log records contain it. Access to one cell does not read the others.
//
// A change to all cells of a row that stays is an image in memory and in the log, as a List of kind
// Replace, and an update of all non-key columns in delta files.
//
// A cell is the bytes of one value: nil for NULL, Width bytes little-endian for a type of fixed
// width, the bytes themselves (not nil, even when empty) for a byte string.
//
// Check bytes from disk with List.Check and RowFormat.Check first; the other functions require
// checked bytes. Lists, formats and images are immutable and safe for concurrent use; readers are
// not. Returned cells alias the bytes they were read from.
//
// Source: tablet spec §2.5, §5. Simpler than Kudu: the byte strings of a row follow it in one heap,
// with end offsets in the row. An image therefore contains no pointers and can be copied, logged
// and stored in an arena unchanged.
package change

import (
	"fmt"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/mvcc"
)

// Kind is the kind of an operation or a List. The first three are the type bytes of a List in a
// file. Log records contain all but Reinsert, stores in memory all but Insert and DeleteRange.
type Kind uint8

// Kinds. File format: never change the numbers.
const (
	Update   Kind = 1 // sets some non-key cells
	Delete   Kind = 2 // deletes the row
	Reinsert Kind = 3 // inserts a deleted row again, with all its non-key cells
	Insert   Kind = 4 // inserts a new row; in log records only
	Replace  Kind = 5 // sets all non-key cells; in log records and in memory, never in delta files

	DeleteRange Kind = 6 // deletes all rows in a range of keys; in log records only
)

var kindNames = [...]string{Update: "update", Delete: "delete", Reinsert: "reinsert", Insert: "insert",
	Replace: "replace", DeleteRange: "delete range"}

func (k Kind) String() string {
	if int(k) < len(kindNames) && k != 0 {
		return kindNames[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Delta is one change of one row at a timestamp.
type Delta struct {
	Row  uint32 // row ID, or position in the batch of a Rows
	TS   mvcc.Timestamp
	List List
}

// Rows are rows with their histories, the input of flushes and compactions.
//
// Batch has the base cells, with all columns in schema order. Keys has one encoded key per row.
// Undo has the changes that lead back in time from the base, Redo those that lead forward. Both are
// sorted by row; within a row Undo is newest first, Redo oldest first. Delta.Row is the row's
// position in Batch. All memory is valid until the next call on the value that returned the Rows.
type Rows struct {
	Batch *batch.RecordBatch
	Keys  [][]byte
	Undo  []Delta
	Redo  []Delta
}
