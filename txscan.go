package oribi

import (
	"bytes"
	"slices"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/keyindex"
	"github.com/oribi-db/oribi/internal/rowunion"
	"github.com/oribi-db/oribi/scan"
)

// Scan reads rows in key order, as Table.Scan does. What it reads is the range of keys up to the
// last row that it yields, or the whole range if it yields all rows. Writes of the transaction that
// come after the beginning of a scan may or may not appear in it.
//
// A scan by an index reads the rows that it looks at, and a range of the index: with OrderBy that up to the
// last row that it yields, otherwise all that the predicates select. With OrderBy, rows that are written during
// the scan keep the places that they had at its beginning.
func (tx *Tx) Scan(t *Table, opts ...RowsOption) *Scan {
	sc := tx.newScan(t)
	collectInto(&sc.o, opts)
	return sc
}

func (tx *Tx) newScan(t *Table) *Scan { return &Scan{t: t, ctx: tx.ctx, rows: true, tx: tx} }

// scan returns an iterator over the rows of sc, which it adds to the read set.
func (tx *Tx) scan(sc *Scan, v view, o scan.Options) (scan.Iterator, error) {
	if sc.by != nil {
		return tx.scanByIndex(sc, v, o)
	}
	t, p := sc.t, tx.batch.ops(sc.t)
	lower, upper := o.Lower, o.Upper
	var own *keyindex.Cursor
	if p != nil {
		if len(sc.o.where) == 0 {
			o.Lower, o.Upper = p.gaps.Narrow(lower, upper, o.Descending)
		}
		own = p.keysIn(o.Lower, o.Upper, o.Descending)
	}
	o.Keys = true
	clock := v.Clock()
	if clock >= 0 {
		o.Columns = append(slices.Clip(o.Columns), clock)
	}
	it, err := v.Scan(o, true)
	if err != nil {
		return nil, err
	}
	if p != nil && len(p.deleted) > 0 {
		it = rowunion.Without(it, p.deleted)
	}
	tracked := &trackedScan{tx: tx, descending: o.Descending, left: sc.o.limit,
		reads: tx.reads.AddRange(t.tab.Number, lower, upper)}
	if own != nil {
		o.Schema = v.Schema
		it = rowunion.WithWrites(it, o, own, &tableWrites{tx, t, view{View: v.Ref(), ts: v.ts}})
		if len(sc.o.where) == 0 {
			tracked.ops = p
		}
	}
	tracked.Iterator = it
	if clock >= 0 {
		tracked.expires, tracked.view = true, v.View
		tx.scans = append(tx.scans, tracked)
	}
	sc.tracked = tracked
	return tracked, nil
}

// keysIn returns the keys of the operations in a range, or nil.
func (p *tableOps) keysIn(lower, upper []byte, descending bool) *keyindex.Cursor {
	p.extend()
	if own := p.index.Range(lower, upper, descending); own.Key() != nil {
		return own
	}
	return nil
}

func (tx *Tx) state() *Snapshot { return tx.snapshot }

// tableWrites are the writes of a transaction to a table, as rowunion.Writes.
type tableWrites struct {
	tx    *Tx
	table *Table
	view  view
}

// Row does not read what is stored if the row is known without it, and does not expire.
func (w *tableWrites) Row(key []byte) ([][]byte, error) {
	p := w.tx.batch.ops(w.table)
	if e := p.find(key); e >= 0 && w.view.Clock() < 0 && p.schema == w.view.TableSchema {
		if op := &p.ops[p.index.Last(e)]; op.Check == nil && op.Kind.Deletes() {
			return nil, nil
		} else if p.schema.Overwrites(op) {
			return p.schema.RowFormat.AppendCells(nil, op.Body), nil
		}
	}
	return w.tx.row(w.table, &w.view, key)
}

func (w *tableWrites) Release() { w.view.Release() }

func (w *tableWrites) Ended() error {
	if w.tx.ended {
		return ErrTxEnded
	}
	return nil
}

func (s *trackedScan) Batch() *batch.RecordBatch {
	if s.expires {
		return &s.b
	}
	return s.Iterator.Batch()
}

func (s *trackedScan) Next() bool {
	if s.tx.hold != nil {
		s.tx.hold.Step()
	}
	s.settle()
	if !s.Iterator.Next() {
		s.ended = true
		return false
	}
	s.addGap()
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

// addGap notes that there is no row before the first one of the scan.
func (s *trackedScan) addGap() {
	if s.ops == nil {
		return
	}
	switch first := s.Keys()[s.Iterator.Batch().Selection.Next(0)]; {
	case s.descending:
		s.ops.gaps.Add(append(slices.Clip(first), 0), s.reads.Upper)
	default:
		s.ops.gaps.Add(s.reads.Lower, first)
	}
	s.ops = nil
}

// stop notes that row i is the last that the caller gets of the current batch.
func (s *trackedScan) stop(i int) {
	if s.last == nil {
		s.last = []byte{} // not nil, even if the key is empty
	}
	s.last = append(s.last[:0], s.Keys()[i]...)
	s.upTo = i
}

// settle adds the times at which the rows of the current batch expire to the transaction.
func (s *trackedScan) settle() {
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
		s.settle()
		s.tx.scans = slices.DeleteFunc(s.tx.scans, func(o openScan) bool { return o == s })
	}
	s.closed = true
	err := s.Iterator.Close()
	if s.ops != nil && s.ended && err == nil {
		s.ops.gaps.Add(s.reads.Lower, s.reads.Upper)
	}
	s.ops = nil
	return err
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
