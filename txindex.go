package oribi

import (
	"bytes"
	"slices"

	"github.com/oribi-db/oribi/internal/conflict"
	"github.com/oribi-db/oribi/internal/store"
	"github.com/oribi-db/oribi/internal/tablet"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/scan"
)

// readsIndex makes the transaction conflict with changes of an index, as far as it has read it. An ingest says
// of the table alone that anything may have changed.
func (tx *Tx) readsIndex(t *Table, entries *store.Table) {
	if !slices.ContainsFunc(tx.indexes, func(x readIndex) bool { return x.entries == entries }) {
		tx.indexes = append(tx.indexes, readIndex{t, entries})
	}
	tx.reads.AddTable(t.tab.Number)
}

// ownIn returns the rows that the transaction has written and that are in some ranges of the entries of an
// index, in its order or backward.
func (tx *Tx) ownIn(t *Table, v *view, c tablet.IndexColumns, descending bool,
	ranges func(func(lower, upper []byte) bool)) (list []ownEntry, err error) {
	p := tx.batch.ops(t)
	if p == nil {
		return nil, nil
	}
	p.extend()
	own := p.ownEntriesOf(c)
	for _, key := range own.touched {
		cells, err := tx.row(t, v, key)
		if err != nil {
			return nil, err
		}
		if cells != nil {
			own.add(p, key, cells)
		}
	}
	own.count(p, -int64(len(own.touched))*sliceBytes)
	own.touched = nil
	for lower, upper := range ranges {
		for at := own.index.Range(lower, upper, false); at.Key() != nil; at.Next() {
			e := own.list[own.index.Last(own.index.Find(at.Key()))]
			if !tx.wrote(t, e.key) { // the write was undone
				continue
			}
			cells, err := tx.row(t, v, e.key)
			if err != nil {
				return nil, err
			}
			if cells == nil {
				continue
			}
			if _, position := c.Entry(e.key, cells); bytes.Equal(position, e.position) {
				list = append(list, e)
			}
		}
	}
	if descending {
		slices.Reverse(list)
	}
	return list, nil
}

// scanByIndex returns an iterator over the rows to which an index leads the transaction.
func (tx *Tx) scanByIndex(sc *Scan, v view, o scan.Options) (scan.Iterator, error) {
	t, x := sc.t, sc.by
	s := &trackedIndexScan{tx: tx, table: t, view: view{View: v.View, ts: v.ts}, descending: o.Descending,
		left: sc.o.limit}
	own, err := tx.ownIn(t, &v, x.find.IndexColumns, o.Descending, x.find.Ranges)
	if err != nil {
		v.View.Release()
		return nil, err
	}
	own = slices.DeleteFunc(own, func(e ownEntry) bool { return !x.find.Has(e.position) })
	tx.readsIndex(t, x.table)
	s.keys = txKeys{tx: tx, table: t, scan: x.find, descending: o.Descending}
	if p := tx.batch.ops(t); p != nil {
		s.keys.written = p.index.Keys()
	}
	number := x.table.Number
	if x.sorted != nil {
		slices.SortFunc(own, func(a, b ownEntry) int { return s.keys.compare(a.key, b.key) })
		for lower, upper := range x.find.Ranges {
			tx.reads.AddRange(number, lower, upper)
		}
		s.keys.base = x.sorted.Open(sc.ctx)
	} else {
		s.keys.entries = x.find.Entries(sc.ctx, o.Descending, o.Limit)
		s.keys.entries.OnRange = func(lower, upper []byte) {
			s.ranges = append(s.ranges, tx.reads.AddRange(number, lower, upper))
		}
		s.keys.base = countedKeys{s.keys.entries, &x.found}
	}
	s.keys.own = own
	o.Only = func() scan.Keys { return &s.keys }
	o.Row = s.row
	if s.Iterator, err = v.Scan(o, true); err != nil {
		s.keys.Close()
		return nil, err
	}
	tx.scans = append(tx.scans, s)
	sc.tracked = s
	return s, nil
}

// txKeys merges the keys to which an index leads with those of rows that the transaction has written, as they
// were at the beginning of the scan. It implements scan.Keys.
type txKeys struct {
	tx         *Tx
	table      *Table
	scan       *tablet.IndexScan
	base       scan.Keys
	entries    *tablet.Entries // base, in the order of the index; nil in key order
	descending bool
	own        []ownEntry // those that are left
	written    int        // keys that had been written at the beginning

	ahead bool   // key is the next one of base
	ended bool   // base has ended
	key   []byte // of base
	entry []byte // of key, in the order of the index
	now   []byte // the entry of the last key that Next has returned, in the order of the index
}

func (k *txKeys) compare(a, b []byte) int {
	if k.descending {
		a, b = b, a
	}
	return bytes.Compare(a, b)
}

// wrote reports whether the transaction had written a row when the scan began.
func (k *txKeys) wrote(key []byte) bool {
	p := k.tx.batch.ops(k.table)
	if p == nil {
		return false
	}
	e := p.find(key)
	return e >= 0 && e < k.written
}

func (k *txKeys) Next() (key []byte, ok bool, err error) {
	if k.tx.ended {
		return nil, false, ErrTxEnded
	}
	for !k.ahead && !k.ended {
		if key, ok, err = k.base.Next(); err != nil {
			return nil, false, err
		}
		k.ended = !ok
		if k.ahead = ok && !k.wrote(key); k.ahead {
			if k.key = key; k.entries != nil {
				k.entry = k.entries.Entry()
			}
		}
	}
	if len(k.own) > 0 && (!k.ahead || k.ownFirst()) {
		e := k.own[0]
		k.own, k.now = k.own[1:], e.entry
		return e.key, true, nil
	}
	if !k.ahead {
		return nil, false, nil
	}
	k.ahead, k.now = false, k.entry
	return k.key, true, nil
}

// ownFirst reports whether the next written row is before the next one of base.
func (k *txKeys) ownFirst() bool {
	if k.entries == nil {
		return k.compare(k.own[0].key, k.key) < 0
	}
	return k.compare(k.own[0].position, k.scan.Position(k.entry, k.key)) < 0
}

func (k *txKeys) Close() { k.base.Close() }

// trackedIndexScan adds to a transaction what a scan by an index reads: the rows that were looked at up to the
// last one that the caller gets, and the entries up to there in the order of the index.
type trackedIndexScan struct {
	scan.Iterator
	tx         *Tx
	table      *Table
	view       view
	keys       txKeys
	ranges     []*conflict.Range // of entries that were read, in the order of the index; else nil
	descending bool

	looked []lookedRow // for the current batch
	left   int64       // rows up to the limit of the scan; below 0: there is none
	last   []byte      // the entry of the last row that the caller gets, or nil
	ended  bool        // Next has returned false
	closed bool
}

// lookedRow is a row that a scan has looked at.
type lookedRow struct {
	key, entry []byte
	until      mvcc.Timestamp
}

// row reads a row for the scan.
func (s *trackedIndexScan) row(key []byte, columns []int, dst [][]byte) (cells [][]byte, found bool, err error) {
	cells, until, found, err := s.tx.cells(s.table, &s.view, key, columns, dst)
	if !found {
		until = mvcc.Max
	}
	s.looked = append(s.looked, lookedRow{key, s.keys.now, until})
	return cells, found, err
}

// settle adds the rows that were looked at.
func (s *trackedIndexScan) settle() {
	for _, r := range s.looked {
		s.tx.reads.AddKey(s.table.tab.Number, r.key)
		s.tx.until = min(s.tx.until, r.until)
		s.last = r.entry
	}
	s.looked = s.looked[:0]
}

func (s *trackedIndexScan) Next() bool {
	if s.tx.hold != nil {
		s.tx.hold.Step()
	}
	s.settle()
	if !s.Iterator.Next() {
		s.ended = true
		return false
	}
	b := s.Batch()
	if n := int64(b.Selected()); s.left >= n {
		s.left -= n
	} else if s.left >= 0 { // scan.Limit removes the rows after these
		last := -1
		for range s.left {
			last = b.Selection.Next(last + 1)
		}
		s.left = 0
		s.stop(last)
	}
	return true
}

// stop notes that row i is the last that the caller gets of the current batch.
func (s *trackedIndexScan) stop(i int) {
	key := s.Keys()[i]
	s.looked = s.looked[:slices.IndexFunc(s.looked, func(r lookedRow) bool { return bytes.Equal(r.key, key) })+1]
}

func (s *trackedIndexScan) Close() error {
	if !s.closed {
		s.closed = true
		s.settle()
		s.tx.scans = slices.DeleteFunc(s.tx.scans, func(o openScan) bool { return o == s })
		if !s.ended {
			s.narrow()
		}
	}
	return s.Iterator.Close()
}

// narrow removes the entries after the last row's entry from what was read.
func (s *trackedIndexScan) narrow() {
	for _, r := range s.ranges {
		switch {
		case s.last == nil:
			r.Narrow([]byte{}, []byte{})
		case s.descending && bytes.Compare(s.last, r.Lower) > 0:
			lower := s.last
			if r.Upper != nil && bytes.Compare(lower, r.Upper) >= 0 {
				lower = r.Upper
			}
			r.Narrow(lower, r.Upper)
		case !s.descending && (r.Upper == nil || bytes.Compare(s.last, r.Upper) < 0):
			upper := append(bytes.Clone(s.last), 0)
			if bytes.Compare(upper, r.Lower) < 0 {
				upper = append([]byte{}, r.Lower...)
			}
			r.Narrow(r.Lower, upper)
		}
	}
}
