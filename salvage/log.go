package salvage

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"

	"github.com/oribi-db/oribi/blockmanager"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/record"
	"github.com/oribi-db/oribi/internal/salvage/versions"
	"github.com/oribi-db/oribi/internal/storedir"
	"github.com/oribi-db/oribi/internal/wal"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/mvcc"
)

// logReader reads a log that may be damaged, and writes it anew: without holes, and without the
// operations that rowsets of the new store contain. In the place of missing records are empty ones.
type logReader struct {
	v     *salvager
	end   lsn.LSN        // the last LSN that the log must have // inclusive
	last  mvcc.Timestamp // of the last record so far
	epoch uint64         // the highest one of a record
	gaps  []versions.LogGap

	unknown map[uint32]int64 // operations on tables that the metadata does not have, by number
}

// logDamage is a part of the log that is no record.
type logDamage wal.Entry

// logOptions returns the options of the damaged log.
func (v *salvager) logOptions() wal.Options {
	return wal.Options{FS: v.o.FS, Dir: v.dir.File(storedir.LogName), Instance: v.instance.ID, Logger: v.o.Logger}
}

// hidesRecords reports whether there may have been records. Bits that were repaired take no bytes.
func (d *logDamage) hidesRecords() bool { return d != nil && d.Kind == wal.EntryDamage && d.Bytes > 0 }

// maxMissing is the maximum number of consecutive records that may be missing: each is written as an
// empty one.
const maxMissing = 1 << 28

// survey finds what is missing in the log, and operations that do not fit their tables.
func (l *logReader) survey() error {
	v := l.v
	l.unknown = map[uint32]int64{}
	newest := v.stored.ClockHigh
	l.end = v.stored.LogEnd
	for _, t := range v.tables {
		l.end = max(l.end, t.flushed)
		for _, d := range t.sets {
			newest = max(newest, d.Metadata.MaxTimestamp)
			l.end = max(l.end, d.Metadata.IncludedLSN)
		}
	}
	last, err := l.each(l.check, l.missing)
	if err != nil {
		return err
	}
	l.end = last
	l.reportUnfit()
	if epoch := v.blocks.Counters().Epoch; l.epoch > epoch && !v.older {
		v.damaged(blockmanager.Older(epoch, l.epoch))
	}
	v.newest, v.last = min(max(newest, l.last), mvcc.Last), l.end
	return nil
}

// reportUnfit reports the operations that do not fit the metadata.
func (l *logReader) reportUnfit() {
	for _, number := range slices.Sorted(maps.Keys(l.unknown)) {
		l.v.report(Loss{File: storedir.LogName, Rows: -1,
			Lost: fmt.Sprintf("%d operations on table %d, which the metadata does not have", l.unknown[number],
				number)})
	}
	for _, t := range l.v.tables {
		if t.unfit > 0 {
			l.v.report(Loss{Table: t.row.Name, File: storedir.LogName, Rows: -1,
				Lost: fmt.Sprintf("%d operations that do not fit the schema of the table, which is at version %d",
					t.unfit, t.row.SchemaVersion)})
		}
	}
}

// each calls fn with each record from the first that is needed on, and missing with each range of
// LSNs without a record: before the next record, with its timestamp, or at the end, with 0. It sets
// l.last. A record that no writer can have written after the one before is missing too. It returns
// the last LSN.
func (l *logReader) each(
	fn func(n lsn.LSN, payload []byte) error, missing func(from, to lsn.LSN, why *logDamage, next mvcc.Timestamp) error,
) (lsn.LSN, error) {
	next := max(l.v.blocks.LogStart(), 1)
	end := l.end
	var why *logDamage
	foreign := ""
	l.last = mvcc.Min
	err := wal.WalkAll(l.v.logOptions(), func(e *wal.Entry) error {
		if err := l.v.ctx.Err(); err != nil {
			return err
		}
		switch {
		case e.Kind == wal.EntrySegment && e.Header.Instance != l.v.instance.ID:
			foreign = e.File
			why = &logDamage{Kind: wal.EntryDamage, File: e.File, Bytes: e.Bytes, Problem: "segment of another store"}
		case e.File == foreign && foreign != "":
		case e.Kind == wal.EntryDamage || e.Kind == wal.EntryTail:
			why = &logDamage{Kind: e.Kind, File: e.File, Offset: e.Offset, Bytes: e.Bytes, Problem: e.Problem}
		case e.Kind == wal.EntryFooter:
			end = max(end, e.LSN)
		case e.Kind == wal.EntryRecord && e.LSN >= next:
			ts, err := l.decode(e.Payload, uint64(e.LSN-next))
			if errors.Is(err, fault.ErrUnsupported) {
				return fmt.Errorf("log: lsn %d: %w", e.LSN, err)
			} else if err != nil {
				why = &logDamage{Kind: wal.EntryDamage, File: e.File, Offset: e.Offset, Bytes: e.Bytes,
					Problem: err.Error()}
				return nil
			}
			if e.LSN > next {
				if err := missing(next, e.LSN-1, why, ts); err != nil {
					return err
				}
			}
			next, l.last, why = e.LSN+1, ts, nil
			return fn(e.LSN, e.Payload)
		}
		return nil
	})
	if errors.Is(err, fault.ErrCorrupt) { // there is no log
		why, err = &logDamage{Kind: wal.EntryDamage, Problem: err.Error()}, nil
	}
	if err == nil && end >= next && uint64(end-next) >= maxMissing {
		return 0, fault.Corruptf("log: ends with LSN %d, the metadata names LSN %d", next-1, end)
	}
	if err == nil && (next <= end || why.hidesRecords()) {
		err = missing(next, end, why, 0)
		next = max(next, end+1)
	}
	return next - 1, err
}

// decode checks a record after the one of l.last, with so many missing between them, and returns its
// timestamp.
func (l *logReader) decode(payload []byte, missing uint64) (mvcc.Timestamp, error) {
	ts, err := record.Decode(payload, func(record.Op) error { return nil })
	switch {
	case err != nil:
		return 0, err
	case missing > maxMissing:
		return 0, fault.Corruptf("%d records are missing before it", missing)
	case ts <= l.last || uint64(ts-l.last) <= missing || ts > mvcc.Last:
		return 0, fault.Corruptf("timestamp %d after %d", uint64(ts), uint64(l.last))
	}
	return ts, nil
}

// missing reports records that are missing. At the end of the log there may have been others after
// them.
func (l *logReader) missing(from, to lsn.LSN, why *logDamage, next mvcc.Timestamp) error {
	lost := fmt.Sprintf("write batches with LSNs %d to %d", from, to)
	if next == 0 && why.hidesRecords() {
		if from > to {
			lost = fmt.Sprintf("write batches from LSN %d on, if there were any", from)
		} else {
			lost += ", and later ones, if there were any"
		}
		to = math.MaxUint64
	}
	if !l.gap(from, to) {
		return nil
	}
	loss := Loss{File: storedir.LogName, Rows: -1, Lost: lost + "; rows that they changed are as before"}
	if why != nil {
		loss.File = filepath.ToSlash(filepath.Join(storedir.LogName, why.File))
		loss.Lost += fmt.Sprintf(": byte %d: %s", why.Offset, why.Problem)
	}
	l.v.report(loss)
	return nil
}

// gap notes missing records. What they changed in a table whose files do not contain them may
// contradict what follows.
func (l *logReader) gap(from, to lsn.LSN) (needed bool) {
	for _, t := range l.v.tables {
		if t.needsLog(to) {
			t.holes, needed = true, true
		}
	}
	if needed {
		l.gaps = append(l.gaps, versions.LogGap{From: from, To: to, Before: l.last})
	}
	return needed
}

// check notes operations of a record that do not fit the metadata.
func (l *logReader) check(n lsn.LSN, payload []byte) error {
	h, err := record.DecodeHead(payload)
	if err != nil {
		return err
	}
	l.epoch = max(l.epoch, h.Epoch)
	_, err = record.Decode(payload, func(op record.Op) error {
		t := l.v.tables[op.Table]
		switch {
		case t == nil && op.Table >= l.v.stored.NextTable:
			l.unknown[op.Table]++
		case t != nil && !t.contains(&op, n) && !t.fits(&op):
			t.unfit++
			t.holes = true
		}
		return nil
	})
	return err
}

// collect gives the tables the operations that rowsets of the new store are to contain.
func (l *logReader) collect() error {
	nothing := func(_, _ lsn.LSN, _ *logDamage, _ mvcc.Timestamp) error { return nil }
	_, err := l.each(func(n lsn.LSN, payload []byte) error {
		_, err := record.Decode(payload, func(op record.Op) error {
			if t := l.v.tables[op.Table]; t != nil && t.takes(&op) && !t.contains(&op, n) && t.fits(&op) {
				t.take(&op, n, l.last)
			}
			return nil
		})
		return err
	}, nothing)
	return err
}

// write calls fn with each record of the new log.
func (l *logReader) write(fn func(record []byte) error) error {
	var w record.Writer
	before := mvcc.Min
	_, err := l.each(func(_ lsn.LSN, payload []byte) error {
		h, err := record.DecodeHead(payload)
		if err != nil {
			return err
		}
		before = h.Timestamp
		w.Begin(h.Timestamp)
		if h.Empty {
			w.SetEmpty()
		}
		_, err = record.Decode(payload, func(op record.Op) error {
			if t := l.v.tables[op.Table]; t == nil && op.Table >= l.v.stored.NextTable || t != nil &&
				!t.keeps(&op) {
				return nil
			}
			w.Add(op)
			return nil
		})
		if err != nil {
			return err
		}
		if h.Epoch > 0 || w.Announces() { // a record without operations does, unless it has an epoch
			w.Require(max(h.Epoch, 1))
		}
		return fn(w.Bytes())
	}, func(from, to lsn.LSN, _ *logDamage, next mvcc.Timestamp) error {
		// The missing records had timestamps between the timestamps of their neighbors.
		ts := max(before, l.v.stored.ClockHigh, l.v.newest)
		if next > 0 {
			ts = next - mvcc.Timestamp(to-from+1) - 1
		}
		for ; from <= to; from++ {
			ts++
			w.Begin(ts)
			w.Require(1)
			if err := fn(w.Bytes()); err != nil {
				return err
			}
		}
		before = ts
		return nil
	})
	return err
}
