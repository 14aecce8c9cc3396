package rowunion

import (
	"bytes"
	"cmp"
	"fmt"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/keyindex"
	"github.com/oribi-db/oribi/scan"
	"github.com/oribi-db/oribi/schema"
)

// OwnWrites applies the writes of a transaction to a scan in key order:
//
//	base           a   c   d   f
//	own            b   d (deleted)
//	batches        a | b | c   f      the rows of base without those that own has
//
// It is a scan.Iterator.
type OwnWrites struct {
	base   scan.Iterator
	writes Writes
	o      scan.Options     // with the schema
	own    *keyindex.Cursor // encoded keys that are not returned yet, in the order of the scan
	rows   int              // of the next batch of the transaction's rows, at most

	b    *batch.RecordBatch // the current batch
	keys [][]byte           // of its rows
	rest batch.Bitmap       // rows of the base's batch that are not returned yet
	held bool               // there is such a batch, with rows in rest
	done bool               // the base has ended
	mine *batch.RecordBatch // memory for rows of the transaction, and for copies
	err  error

	closed bool
}

// Writes are the writes of a transaction to a table.
type Writes interface {
	// Row returns all cells of a row with the writes applied, or nil if there is no such row.
	Row(key []byte) ([][]byte, error)
	// Ended returns an error if the transaction has ended.
	Ended() error
	// Release is called once, when the scan is closed.
	Release()
}

// WithWrites returns the rows of base, a scan with the options o, with writes to the rows of own
// applied: their encoded keys in the order of the scan. o.Limit is the number of rows that the
// caller will read, if known.
func WithWrites(base scan.Iterator, o scan.Options, own *keyindex.Cursor, writes Writes) *OwnWrites {
	w := &OwnWrites{base: base, writes: writes, o: o, own: own, rows: ownRows}
	if o.Limit > 0 {
		w.rows = int(min(o.Limit, ownRows))
	}
	return w
}

// ownRows is the maximum number of the transaction's rows in a batch.
const ownRows = 256

// Batch implements scan.Iterator.
func (w *OwnWrites) Batch() *batch.RecordBatch { return w.b }

// Keys implements scan.Iterator.
func (w *OwnWrites) Keys() [][]byte { return w.keys }

// Close implements scan.Iterator.
func (w *OwnWrites) Close() error {
	if !w.closed {
		w.closed = true
		w.writes.Release()
	}
	err := w.base.Close()
	if w.err != nil {
		err = w.err
	}
	return err
}

// before reports whether key a comes before b in the scan.
func (w *OwnWrites) before(a, b []byte) bool {
	if w.o.Descending {
		a, b = b, a
	}
	return bytes.Compare(a, b) < 0
}

// Next implements scan.Iterator.
func (w *OwnWrites) Next() bool {
	w.err = cmp.Or(w.err, w.writes.Ended())
	for w.err == nil {
		if !w.load() {
			return w.own.Key() != nil && w.mineUpTo(-1)
		}
		at := w.rest.Next(0)
		if at < 0 {
			w.held = false
			continue
		}
		key := w.base.Keys()[at]
		if own := w.own.Key(); own == nil || w.before(key, own) {
			w.theirs(at)
			return true
		}
		if w.mineUpTo(at) {
			return true
		}
	}
	return false
}

// load makes sure that there is a batch of the base, unless that has ended.
func (w *OwnWrites) load() bool {
	if w.held || w.done {
		return w.held
	}
	if w.held = w.base.Next(); w.held {
		b := w.base.Batch()
		w.rest = append(w.rest[:0], b.Selection...)
	}
	w.done = !w.held
	return w.held
}

// theirs makes the rows of the base's batch from row at on the current batch, up to the next key of
// the transaction. Only the last of them are the base's batch itself, which the caller may change;
// those before are copied.
func (w *OwnWrites) theirs(at int) {
	b, keys := w.base.Batch(), w.base.Keys()
	end := b.Len
	if own := w.own.Key(); own != nil {
		for i := at; i >= 0; i = w.rest.Next(i + 1) {
			if !w.before(keys[i], own) {
				end = i
				break
			}
		}
	}
	if end == b.Len {
		w.b, w.keys = b, keys
		copy(b.Selection, w.rest)
		w.held = false
		return
	}
	w.clear()
	for i := at; i < end; i = w.rest.Next(i + 1) {
		for c := range w.mine.Columns {
			w.mine.Columns[c].AppendCell(b.Columns[c].Cell(i))
		}
		w.keys = append(w.keys, keys[i])
	}
	w.rest.ClearRange(0, end)
	w.finish()
}

// clear makes the empty batch of copied rows the current batch.
func (w *OwnWrites) clear() {
	if w.mine == nil {
		columns := make([]schema.Column, len(w.o.Columns))
		for i, c := range w.o.Columns {
			columns[i] = w.o.Schema.Columns[c]
		}
		w.mine = batch.New(columns, 0)
	}
	w.mine.Reset(0)
	w.b, w.keys = w.mine, nil
}

// mineUpTo makes rows of the transaction the current batch: those up to row at of the base's batch,
// which it removes if the transaction has written it; −1 is the end of the scan. They are at most
// ownRows. It reports whether there are any that the scan selects.
func (w *OwnWrites) mineUpTo(at int) bool {
	w.clear()
	for k := w.own.Key(); k != nil && len(w.keys) < w.rows; k = w.own.Key() {
		if at >= 0 {
			switch key := w.base.Keys()[at]; {
			case w.before(key, k):
				return w.finish()
			case bytes.Equal(key, k):
				w.rest.Clear(at)
			}
		}
		w.own.Next()
		cells, err := w.writes.Row(k)
		if err != nil {
			w.err = err
			return false
		}
		if cells == nil || !Selects(&w.o.Filter, w.o.Schema, cells) {
			continue
		}
		for i, c := range w.o.Columns {
			w.mine.Columns[i].AppendCell(cells[c])
		}
		w.keys = append(w.keys, k)
	}
	w.rows = min(2*w.rows, ownRows)
	return w.finish()
}

// finish completes a batch of copied rows, and reports whether it has any.
func (w *OwnWrites) finish() bool {
	w.mine.Len = len(w.keys)
	w.mine.Selection = w.mine.Selection.Resize(w.mine.Len)
	w.mine.Selection.SetRange(0, w.mine.Len)
	return w.mine.Len > 0
}

// Selects reports whether a filter selects the row with the given cells, all columns of the schema.
func Selects(f *batch.Filter, s *schema.Schema, cells [][]byte) bool {
	if f.All() {
		return true
	}
	return f.EvalRow(func(id schema.ColumnID) []byte {
		if i := s.IndexID(id); i >= 0 {
			return cells[i]
		}
		return nil
	})
}

// Seek is not supported: the scan of a transaction has no caller that needs it.
func (w *OwnWrites) Seek([]byte) error {
	return fmt.Errorf("seek in the scan of a transaction that has written to the table")
}
