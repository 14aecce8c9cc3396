package tablet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/schema"
)

// An auto-incrementing column is part of the key, so an insert has no key until the column has a
// value. Prepare assigns it: the next value above the values of all committed inserts and upserts
// and of the batch's earlier operations. So an insert into such a table never finds its key.
//
// From then until Apply, no other batch may be assigned values of the table. Otherwise
//
//	A: takes 8                                            commit
//	B:            upserts 8: finds no row, locks it, commits
//
// A's key would exist, and values would not increase with timestamps. Because they do, a reader
// that has seen n knows that no value below n will be inserted. Batches with inserts or upserts
// into such a table are therefore serialized from Prepare to Release, as all batches are in Kudu.
//
// The table's highest value is the highest of its committed INSERTs, so a refused batch uses up no
// values (in Kudu it does). The metadata records it for inserts up to the flushed LSN; replay adds
// the later ones. Source: tablet spec §2.6, §12.6.

// Causes of *change.RowErrors about the auto-incrementing column. They fail the whole batch.
// Source: tablet spec §12.6.
var (
	ErrAutoSet       = errors.New("the column is auto-incrementing: an insert must not set it")
	ErrAutoNotSet    = errors.New("the column is auto-incrementing: an upsert must set it")
	errAutoExhausted = errors.New("the column is auto-incrementing: its largest possible value is already used")
)

// Inserts reports whether k is an insert, Ignore or not: an operation that is assigned a value of
// an auto-incrementing column.
func (k OpKind) Inserts() bool { return k == Insert || k == InsertIgnore }

// Upserts reports whether k is an upsert, Ignore or not.
func (k OpKind) Upserts() bool { return k == Upsert || k == UpsertIgnore }

// assign assigns each insert of the batch its value and its key. Other batches that do so wait
// until Release. It does nothing if the table has no auto-incrementing column.
func (w *Write) assign() error {
	sc := w.state.schema
	if sc.auto < 0 {
		return nil
	}
	var cells [][]byte
	highest := int64(0)
	if w.serial {
		highest = w.t.auto
	}
	for i := range w.ops {
		op := &w.ops[i]
		if !op.Kind.Inserts() && !op.Kind.Upserts() {
			continue
		}
		if !w.serial {
			w.t.autoMu.Lock()
			w.serial, highest = true, w.t.auto
		}
		cell := sc.RowFormat.Cell(op.Body, sc.auto)
		if op.Kind.Upserts() {
			highest = max(highest, autoValue(cell))
			continue
		}
		if highest == math.MaxInt64 {
			return &change.RowError{Row: op.Index, Table: w.t.Name(), Column: schema.AutoIncrementName,
				Cause: errAutoExhausted}
		}
		highest++
		binary.LittleEndian.PutUint64(cell, uint64(highest)) // cell is part of op.Body
		cells = sc.RowFormat.AppendCells(cells[:0], op.Body)
		key := sc.Encoder.AppendKey(op.Key[:0:len(op.Key)], cells[:sc.Schema.Keys])
		if len(key) != len(op.Key) {
			panic(fmt.Sprintf("tablet: table %q: a key of %d bytes has %d with its value", w.t.Name(),
				len(op.Key), len(key)))
		}
		op.Key = key
	}
	return nil
}

// raise raises the table's highest value to the highest value that the batch inserts.
func (w *Write) raise() {
	if !w.serial {
		return
	}
	sc := w.state.schema
	for i := range w.targets {
		if w.targets[i].kind == change.Insert {
			w.t.auto = max(w.t.auto, autoValue(sc.RowFormat.Cell(w.ops[i].Body, sc.auto)))
		}
	}
}

func autoValue(cell []byte) int64 { return int64(binary.LittleEndian.Uint64(cell)) }

// Assigned calls use with the value assigned to each insert, in the order of the batch.
func (w *Write) Assigned(use func(index int, value int64)) {
	sc := w.state.schema
	if sc.auto < 0 {
		return
	}
	for i := range w.ops {
		if op := &w.ops[i]; op.Kind.Inserts() {
			use(op.Index, autoValue(sc.RowFormat.Cell(op.Body, sc.auto)))
		}
	}
}
