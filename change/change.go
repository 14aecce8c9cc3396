// Package change describes what happens to rows, as values and as bytes.
//
// It has two encodings, each with its table next to its code:
//
//   - a List is one change to an existing row (update, delete, reinsert): Kudu's RowChangeList,
//     byte for byte, as delta files, memory stores and log records contain it;
//   - a row image is one row with all its cells, in the RowFormat of the schema: it is stored in
//     the MemRowSet and in log records, and gives any cell without a walk over the others.
//
// A cell is the bytes of one value: nil for NULL, Width bytes little-endian for a type of fixed
// width, the bytes themselves (not nil, even when empty) for a byte string.
//
// Check bytes that come from disk with List.Check and RowFormat.Check first; the other functions
// take checked bytes. Lists, formats and images are immutable and may be shared by goroutines;
// readers belong to one goroutine. Cells that are returned alias the bytes they were read from.
//
// Source: tablet spec §2.5, §5. Simpler than Kudu: the byte strings of a row follow it in one heap,
// with end offsets in the row, so an image contains no pointers and can be copied, logged and kept
// in an arena as it is.
package change

import (
	"fmt"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/mvcc"
)

// Kind is what an operation or a list does to its row. The first three are the type bytes of a
// List; log records contain all but Reinsert.
type Kind uint8

// Kinds. File format: never change the numbers.
const (
	Update   Kind = 1 // some non-key cells get new values
	Delete   Kind = 2 // the row goes
	Reinsert Kind = 3 // a deleted row of the same key comes back, with all its non-key cells
	Insert   Kind = 4 // a new row; in log records only
)

var kindNames = [...]string{Update: "update", Delete: "delete", Reinsert: "reinsert", Insert: "insert"}

func (k Kind) String() string {
	if int(k) < len(kindNames) && k != 0 {
		return kindNames[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Delta is one change of one row among many.
type Delta struct {
	Row  uint32 // row ID, or position in the batch of a Rows
	TS   mvcc.Timestamp
	List List
}

// Rows are rows with their histories, as flushes and compactions take them.
//
// Batch holds the base cells, all columns of the schema in its order; Keys holds one encoded key a
// row. Undo leads back from the base, Redo forward. Both are sorted by row; within a row Undo is
// newest first, Redo oldest first. Delta.Row is the row's position in Batch. All memory holds until
// the next call of whoever made the Rows.
type Rows struct {
	Batch *batch.RecordBatch
	Keys  [][]byte
	Undo  []Delta
	Redo  []Delta
}
