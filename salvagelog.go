package oribi

import (
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"path/filepath"
	"slices"

	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/budget"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/record"
	"github.com/oribi-db/oribi/internal/tablet"
	"github.com/oribi-db/oribi/internal/wal"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/mvcc"
)

// logSalvager replays a log that may be damaged, and writes it anew: without holes, and such that
// opening the new store does exactly what the replay has done. In the place of missing records are
// empty ones.
type logSalvager struct {
	v      *salvager
	tables map[uint32]*tablet.Replayer
	end    lsn.LSN        // the last LSN that the log must have // inclusive
	last   mvcc.Timestamp // of the last record
	epoch  uint64         // the highest one of a record

	gap   lsn.LSN             // the last missing LSN so far; 0: none
	known map[uint64]struct{} // rows of which all cells were set since, as hashes of table and key
	seed  maphash.Seed
	fixes map[opNumber]tablet.OpFix

	dropped map[uint32]int64 // operations that were not applied, by table
}

// rowKey names a row of the store.
type rowKey struct {
	table uint32
	key   string
}

// opNumber names an operation of the log.
type opNumber struct {
	lsn lsn.LSN
	op  int
}

// fixBytes is about how much memory a fix or a known row takes.
const fixBytes = 48

// replay applies all records that can be read.
func (l *logSalvager) replay() error {
	s := l.v.s
	l.seed = maphash.MakeSeed()
	l.tables, l.known, l.fixes, l.dropped = map[uint32]*tablet.Replayer{}, map[uint64]struct{}{}, map[opNumber]tablet.OpFix{}, map[uint32]int64{}
	newest := s.stored.ClockHigh
	l.end = s.stored.LogEnd
	for _, t := range s.tables {
		l.tables[t.tab.Number] = t.tab.Replayer()
		newest = max(newest, t.tab.MaxTimestamp())
		l.end = max(l.end, t.tab.Metadata().FlushedLSN)
		for _, m := range t.tab.RowSetMetadata() {
			l.end = max(l.end, m.IncludedLSN)
		}
	}
	last, err := l.each(l.apply, l.missing)
	if err != nil {
		return err
	}
	l.end = last
	for _, number := range slices.Sorted(maps.Keys(l.dropped)) {
		l.v.report(Loss{Table: l.tableName(number), File: walName, Rows: -1,
			Lost: fmt.Sprintf("%d operations that are in the log: what the rows were before them is lost", l.dropped[number])})
	}
	if newest = max(newest, l.last); newest > mvcc.Last {
		newest = mvcc.Last
	}
	s.clock.Restore(newest)
	s.lastLSN.Store(l.end)
	s.pub = mvcc.NewPublisher(newest, l.end)
	return nil
}

func (l *logSalvager) tableName(number uint32) string {
	for _, t := range l.v.s.tables {
		if t.tab.Number == number {
			return t.tab.Name()
		}
	}
	return ""
}

// each calls fn with each record from the first that is needed on, and missing with each range of
// LSNs without a record: before the next record, whose payload follows, or at the end, where that
// is nil. It returns the last LSN.
func (l *logSalvager) each(fn func(n lsn.LSN, payload []byte) error, missing func(from, to lsn.LSN, why *wal.Entry, next []byte) error) (lsn.LSN, error) {
	s := l.v.s
	next := max(s.blocks.LogStart(), 1)
	var why *wal.Entry
	foreign := ""
	err := wal.Salvage(s.logOptions(), func(e *wal.Entry) error {
		if err := l.v.ctx.Err(); err != nil {
			return err
		}
		switch {
		case e.Kind == wal.EntrySegment && e.Header.Instance != s.instance.id:
			foreign = e.File
			why = &wal.Entry{File: e.File, Problem: "segment of another store"}
		case e.File == foreign:
		case e.Kind == wal.EntryDamage || e.Kind == wal.EntryTail:
			why = &wal.Entry{File: e.File, Offset: e.Offset, Problem: e.Problem}
		case e.Kind == wal.EntryRecord && e.LSN >= next:
			if e.LSN > next {
				if err := missing(next, e.LSN-1, why, e.Payload); err != nil {
					return err
				}
			}
			next = e.LSN + 1
			return fn(e.LSN, e.Payload)
		}
		return nil
	})
	if errors.Is(err, fault.ErrCorrupt) { // there is no log
		why, err = &wal.Entry{Problem: err.Error()}, nil
	}
	if err == nil && next <= l.end {
		err = missing(next, l.end, why, nil)
		next = l.end + 1
	}
	return next - 1, err
}

// missing reports records that are missing.
func (l *logSalvager) missing(from, to lsn.LSN, why *wal.Entry, _ []byte) error {
	needed := false
	for _, t := range l.v.s.tables {
		needed = needed || t.tab.NeedsLog(to)
	}
	if !needed {
		return nil
	}
	loss := Loss{File: walName, Rows: -1, Lost: fmt.Sprintf("write batches with LSNs %d to %d; rows that they changed are as before", from, to)}
	if why != nil {
		loss.File = filepath.ToSlash(filepath.Join(walName, why.File))
		loss.Lost += fmt.Sprintf(": byte %d: %s", why.Offset, why.Problem)
	}
	l.v.report(loss)
	l.gap = to
	clear(l.known)
	return nil
}

// apply applies one record.
func (l *logSalvager) apply(n lsn.LSN, payload []byte) error {
	h, err := record.DecodeHead(payload)
	if err != nil {
		return fmt.Errorf("log: lsn %d: %w", n, err)
	}
	if h.Timestamp <= l.last {
		return fault.Corruptf("log: lsn %d: timestamp %d after %d", n, uint64(h.Timestamp), uint64(l.last))
	}
	l.last, l.epoch = h.Timestamp, max(l.epoch, h.Epoch)
	i := -1
	var current *tablet.Replayer // of the operations before
	_, err = record.Decode(payload, func(op record.Op) error {
		i++
		t := l.tables[op.Table]
		if current != t && current != nil {
			current.Flush()
		}
		current = t
		if t == nil {
			if op.Table >= l.v.s.stored.NextTable {
				l.fix(opNumber{n, i}, tablet.OpDropped)
				l.dropped[op.Table]++
			}
			return nil
		}
		var key uint64
		known := false
		if l.gap > 0 {
			key = maphash.Comparable(l.seed, rowKey{op.Table, string(op.Key)})
			_, known = l.known[key]
		}
		fix, err := t.ApplySalvaged(op, h.Timestamp, n, l.gap, known)
		if err != nil {
			return err
		}
		if fix != tablet.OpKept {
			l.fix(opNumber{n, i}, fix)
		}
		if fix == tablet.OpDropped {
			l.dropped[op.Table]++
		} else if l.gap > 0 && !known && (op.Kind == change.Insert || op.Kind == change.Replace) {
			l.known[key] = struct{}{}
			l.v.s.budget.Reserve(budget.Metadata, fixBytes)
		}
		return nil
	})
	if current != nil {
		current.Flush()
	}
	return err
}

func (l *logSalvager) fix(n opNumber, fix tablet.OpFix) {
	l.fixes[n] = fix
	l.v.s.budget.Reserve(budget.Metadata, fixBytes)
}

// write calls fn with each record of the new log.
func (l *logSalvager) write(fn func(record []byte) error) error {
	var w record.Writer
	last := mvcc.Min
	_, err := l.each(func(n lsn.LSN, payload []byte) error {
		h, err := record.DecodeHead(payload)
		if err != nil {
			return err
		}
		last = h.Timestamp
		w.Begin(last)
		i := -1
		_, err = record.Decode(payload, func(op record.Op) error {
			i++
			switch l.fixes[opNumber{n, i}] {
			case tablet.OpDropped:
				return nil
			case tablet.OpDeleteFirst:
				gone := op
				gone.Kind, gone.Body = change.Delete, nil
				w.Add(gone)
			case tablet.OpInserted:
				op.Kind = change.Insert
			}
			w.Add(op)
			return nil
		})
		if err != nil {
			return err
		}
		if h.Epoch > 0 || w.Len() == 0 { // without an epoch, an empty record announces a change
			w.Require(max(h.Epoch, 1))
		}
		return fn(w.Bytes())
	}, func(from, to lsn.LSN, _ *wal.Entry, next []byte) error {
		// The missing records had timestamps between those of their neighbors.
		n := mvcc.Timestamp(to - from + 1)
		ts := max(last, l.v.s.stored.ClockHigh, l.v.s.pub.Visible())
		if next != nil {
			h, err := record.DecodeHead(next)
			if err != nil {
				return err
			}
			if h.Timestamp <= n || h.Timestamp-n <= last {
				return fault.Corruptf("log: %d records are missing between the timestamps %d and %d", n, uint64(last), uint64(h.Timestamp))
			}
			ts = h.Timestamp - n - 1
		}
		for ; from <= to; from++ {
			ts++
			w.Begin(ts)
			w.Require(1)
			if err := fn(w.Bytes()); err != nil {
				return err
			}
		}
		last = ts
		return nil
	})
	return err
}
