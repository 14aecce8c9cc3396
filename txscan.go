package oribi

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/conflict"
	"github.com/oribi-db/oribi/internal/tablet"
	"github.com/oribi-db/oribi/scan"
	"github.com/oribi-db/oribi/schema"
)

// Scan reads rows in key order, as Table.Scan does. What it reads is the range of keys up to the
// last row that it yields, or the whole range if it yields all rows. Writes of the transaction that
// come after the beginning of a scan may or may not appear in it.
func (tx *Tx) Scan(t *Table, opts ...RowsOption) *Scan {
	sc := tx.newScan(t)
	collectInto(&sc.o, opts)
	At(tx.snapshot).apply(&sc.o)
	return sc
}

func (tx *Tx) newScan(t *Table) *Scan { return &Scan{t: t, ctx: tx.ctx, rows: true, tx: tx} }

// scan returns an iterator over the rows of sc, which it adds to the read set.
func (tx *Tx) scan(sc *Scan, v view, o scan.Options) (scan.Iterator, error) {
	t := sc.t
	var own []string
	if p := tx.ops(t); p != nil {
		own = p.keysIn(o.Lower, o.Upper)
	}
	if o.Descending {
		slices.Reverse(own)
	}
	o.Keys = true
	clock := v.Clock()
	if clock >= 0 {
		o.Columns = append(slices.Clip(o.Columns), clock)
	}
	if len(own) > 0 {
		o.Limit = 0 // of the rows on disk, more may be needed
	}
	it, err := v.Scan(o, true)
	if err != nil {
		return nil, err
	}
	if len(own) > 0 {
		it = &ownWrites{base: it, tx: tx, table: t, view: view{View: v.Ref()}, o: o, own: own}
	}
	sc.tracked = &trackedScan{Iterator: it, tx: tx, reads: tx.reads.AddRange(t.tab.Number, o.Lower, o.Upper),
		descending: o.Descending, left: sc.o.limit}
	if clock >= 0 {
		sc.tracked.expires, sc.tracked.view = true, v.View
		tx.scans = append(tx.scans, sc.tracked)
	}
	return sc.tracked, nil
}

// trackedScan narrows a range of a transaction's read set to what was read, and finds out when the
// rows that were read expire. For that, the iterator has one column more, which trackedScan
// removes.
type trackedScan struct {
	scan.Iterator
	tx         *Tx
	reads      *conflict.Range
	descending bool
	left       int64  // rows up to the limit of the scan; below 0: there is none
	last       []byte // key of the last row that the caller gets of the current batch, or nil
	ended      bool   // Next has returned false
	closed     bool

	expires bool // the rows of the table expire
	view    tablet.View
	b       batch.RecordBatch // the current batch without the clock
	clock   *batch.Vector     // of the current batch: when its rows expire; nil if known
	upTo    int               // the last row of it that the caller gets
}

func (s *trackedScan) Batch() *batch.RecordBatch {
	if s.expires {
		return &s.b
	}
	return s.Iterator.Batch()
}

func (s *trackedScan) Next() bool {
	s.addExpiry()
	if !s.Iterator.Next() {
		s.ended = true
		return false
	}
	if s.expires {
		s.b = *s.Iterator.Batch()
		n := len(s.b.Columns) - 1
		s.clock = s.b.Columns[n]
		s.b.Columns, s.b.Schema = s.b.Columns[:n], s.b.Schema[:n]
	}
	b := s.Batch()
	last := b.Selection.Prev(b.Len - 1)
	if s.left >= 0 && int64(b.Selected()) > s.left { // scan.Limit removes the rows after these
		last = -1
		for range s.left {
			last = b.Selection.Next(last + 1)
		}
	}
	if s.left >= 0 {
		s.left = max(0, s.left-int64(b.Selected()))
	}
	s.stop(last)
	return true
}

// stop notes that row i is the last that the caller gets of the current batch.
func (s *trackedScan) stop(i int) {
	if s.last == nil {
		s.last = []byte{} // not nil, even if the key is empty
	}
	s.last = append(s.last[:0], s.Keys()[i]...)
	s.upTo = i
}

// addExpiry adds the times at which the rows of the current batch expire to the transaction.
func (s *trackedScan) addExpiry() {
	if s.clock == nil {
		return
	}
	for i := s.b.Selection.Next(0); i >= 0 && i <= s.upTo; i = s.b.Selection.Next(i + 1) {
		s.tx.until = min(s.tx.until, s.view.UntilCell(s.clock.Cell(i)))
	}
	s.clock = nil
}

func (s *trackedScan) Close() error {
	if !s.closed && !s.ended {
		s.narrow()
	}
	if !s.closed && s.expires {
		s.addExpiry()
		s.tx.scans = slices.DeleteFunc(s.tx.scans, func(o *trackedScan) bool { return o == s })
	}
	s.closed = true
	return s.Iterator.Close()
}

// narrow removes the keys after the last row from the range.
func (s *trackedScan) narrow() {
	switch {
	case s.last == nil:
		s.reads.Narrow([]byte{}, []byte{})
	case s.descending:
		s.reads.Narrow(s.last, s.reads.Upper)
	default:
		s.reads.Narrow(s.reads.Lower, append(bytes.Clone(s.last), 0))
	}
}

// ownWrites applies the writes of a transaction to a scan in key order:
//
//	base           a   c   d   f
//	own            b   d (deleted)
//	batches        a | b | c   f      the rows of base without those that own has
type ownWrites struct {
	base  scan.Iterator
	tx    *Tx
	table *Table
	view  view
	o     scan.Options
	own   []string // encoded keys that are not returned yet, in the order of the scan

	b    *batch.RecordBatch // the current batch
	keys [][]byte           // of its rows
	rest batch.Bitmap       // rows of the base's batch that are not returned yet
	held bool               // there is such a batch, with rows in rest
	done bool               // the base has ended
	mine *batch.RecordBatch // memory for rows of the transaction, and for copies
	err  error

	closed bool
}

// ownRows is the maximum number of the transaction's rows in a batch.
const ownRows = 256

func (w *ownWrites) Batch() *batch.RecordBatch { return w.b }
func (w *ownWrites) Keys() [][]byte            { return w.keys }

func (w *ownWrites) Close() error {
	if !w.closed {
		w.closed = true
		w.view.Release()
	}
	err := w.base.Close()
	if w.err != nil {
		err = w.err
	}
	return err
}

// before reports whether key a comes before b in the scan.
func (w *ownWrites) before(a, b []byte) bool {
	if w.o.Descending {
		a, b = b, a
	}
	return bytes.Compare(a, b) < 0
}

func (w *ownWrites) Next() bool {
	if w.tx.ended {
		w.err = ErrTxEnded
	}
	for w.err == nil {
		if !w.load() {
			return len(w.own) > 0 && w.mineUpTo(-1)
		}
		at := w.rest.Next(0)
		if at < 0 {
			w.held = false
			continue
		}
		key := w.base.Keys()[at]
		if len(w.own) == 0 || w.before(key, []byte(w.own[0])) {
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
func (w *ownWrites) load() bool {
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
func (w *ownWrites) theirs(at int) {
	b, keys := w.base.Batch(), w.base.Keys()
	end := b.Len
	if len(w.own) > 0 {
		for i := at; i >= 0; i = w.rest.Next(i + 1) {
			if !w.before(keys[i], []byte(w.own[0])) {
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
func (w *ownWrites) clear() {
	if w.mine == nil {
		columns := make([]schema.Column, len(w.o.Columns))
		for i, c := range w.o.Columns {
			columns[i] = w.view.Schema.Columns[c]
		}
		w.mine = batch.New(columns, 0)
	}
	w.mine.Reset(0)
	w.b, w.keys = w.mine, nil
}

// mineUpTo makes rows of the transaction the current batch: those up to row at of the base's batch,
// which it removes if the transaction has written it; −1 is the end of the scan. They are at most
// ownRows. It reports whether there are any that the scan selects.
func (w *ownWrites) mineUpTo(at int) bool {
	w.clear()
	for len(w.own) > 0 && len(w.keys) < ownRows {
		k := []byte(w.own[0])
		if at >= 0 {
			switch key := w.base.Keys()[at]; {
			case w.before(key, k):
				return w.finish()
			case bytes.Equal(key, k):
				w.rest.Clear(at)
			}
		}
		w.own = w.own[1:]
		cells, err := w.tx.row(w.table, &w.view, k)
		if err != nil {
			w.err = err
			return false
		}
		if cells == nil || !w.selects(cells) {
			continue
		}
		for i, c := range w.o.Columns {
			w.mine.Columns[i].AppendCell(cells[c])
		}
		w.keys = append(w.keys, k)
	}
	return w.finish()
}

// finish completes a batch of copied rows, and reports whether it has any.
func (w *ownWrites) finish() bool {
	w.mine.Len = len(w.keys)
	w.mine.Selection = w.mine.Selection.Resize(w.mine.Len)
	w.mine.Selection.SetRange(0, w.mine.Len)
	return w.mine.Len > 0
}

// selects reports whether the predicates of the scan are true for a row.
func (w *ownWrites) selects(cells [][]byte) bool {
	if w.o.Filter.All() {
		return true
	}
	return w.o.Filter.EvalRow(func(id schema.ColumnID) []byte {
		if i := w.view.Schema.IndexID(id); i >= 0 {
			return cells[i]
		}
		return nil
	})
}

// Seek is not supported: the scan of a transaction has no caller that needs it.
func (w *ownWrites) Seek([]byte) error {
	return fmt.Errorf("seek in the scan of a transaction that has written to the table")
}
