package tablet

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/record"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/rowset"
)

// ErrByRow is the error of a delete of a range that must be done row by row: rows of the table expire, so
// whether one exists depends on its cells; or the table has indexes, whose entries follow from cells; or rows are among so many deleted ones that a list of their
// runs takes more memory than the caller allows.
var ErrByRow = errors.New("the rows of the range must be deleted one by one")

// deletedRange is a range of keys whose rows a write batch deletes. The batch, its record in the log,
// and the stores have no list of the rows, except for a link for each row that memory has changes of:
//
//	MemRowSet      rows without changes share one link
//	DiskRowSets    runs of row IDs
type deletedRange struct {
	lower, upper []byte // encoded; nil = no bound
	mem          int64  // rows in MemRowSets
	runs         []setRun
	rows         int64
}

// setRun is consecutive rows of a rowset.
type setRun struct {
	set   *rowset.DiskRowSet
	first batch.Ordinal
	n     uint32
}

// runBytes is about how much memory a run takes, here and in a delta mem store.
const runBytes = 48

// DeleteRange adds the delete of all rows with encoded keys in [lower, upper) to a write batch that
// PrepareAll has begun, and returns their number; a nil bound is open. It comes before the operations of
// Resolve, which must not have been called. All ranges take up to limit bytes of memory, besides the links
// of the rows that the MemRowSets have changes of. The bounds belong to w until Release. Errors: ErrByRow;
// errors of reading files. After an error the caller still calls Release.
func (w *Write) DeleteRange(lower, upper []byte, limit int64) (rows int64, err error) {
	if _, expires := w.state.schema.Expiry.Current(); expires || len(w.t.Indexes()) > 0 {
		return 0, ErrByRow
	}
	before := 0 // runs of other ranges
	for i := range w.ranges {
		before += len(w.ranges[i].runs)
	}
	r := deletedRange{lower: lower, upper: upper}
	for _, m := range w.state.mems {
		r.mem += m.LiveIn(lower, upper)
	}
	r.rows = r.mem
	for _, d := range w.state.tree.Range(nil, lower, upper) {
		full := false
		err := d.LiveRuns(lower, upper, func(first batch.Ordinal, n uint32) {
			if full = full || int64(before+len(r.runs)) >= limit/runBytes; !full {
				r.runs = append(r.runs, setRun{d, first, n})
				r.rows += int64(n)
			}
		})
		switch {
		case err != nil:
			return 0, fmt.Errorf("table %q: %w", w.t.Name(), err)
		case full:
			return 0, ErrByRow
		}
	}
	if r.rows > 0 {
		w.ranges = append(w.ranges, r)
	}
	return r.rows, nil
}

// contains reports whether a key is in the range.
func (r *deletedRange) contains(key []byte) bool {
	return bytes.Compare(key, r.lower) >= 0 && (r.upper == nil || bytes.Compare(key, r.upper) < 0)
}

// after returns the position of a key after the ranges that the batch deletes.
func (w *Write) after(p position, key []byte) position {
	for i := range w.ranges {
		if w.ranges[i].contains(key) {
			return position{}
		}
	}
	return p
}

// Ranges reports whether the batch deletes ranges, whose keys Keys does not yield.
func (w *Write) Ranges() bool { return len(w.ranges) > 0 }

// RecordRanges appends the deletes of ranges to a log record.
func (w *Write) RecordRanges(r *record.Writer) {
	for i := range w.ranges {
		r.Add(record.Op{Table: w.t.Number, SchemaVersion: w.state.schema.Version, Kind: change.DeleteRange,
			Key: w.ranges[i].lower, Body: w.ranges[i].upper})
	}
}

// applyRanges carries out the deletes of ranges.
func (w *Write) applyRanges(ts mvcc.Timestamp, lsn lsn.LSN) {
	for i := range w.ranges {
		r := &w.ranges[i]
		n := int64(0)
		for _, m := range w.state.mems {
			n += m.DeleteRange(r.lower, r.upper, ts, lsn)
		}
		if n != r.mem {
			panic(fmt.Sprintf("tablet: table %q: %d locked rows in memory from %x to %x, want %d", w.t.Name(), n,
				r.lower, r.upper, r.mem))
		}
		for _, run := range r.runs {
			run.set.DeleteRun(run.first, run.n, ts, lsn)
		}
	}
}

// deleteRange is Apply for the delete of a range: it deletes what is left of its rows in the stores that
// do not have the operation.
func (r *Replayer) deleteRange(lower, upper []byte, ts mvcc.Timestamp, lsn lsn.LSN) error {
	if len(upper) == 0 {
		upper = nil
	}
	if !r.memHas(lsn) {
		r.st.mem.DeleteRange(lower, upper, ts, lsn)
	}
	for _, d := range r.st.tree.Range(nil, lower, upper) {
		if r.setHas(d, lsn) {
			continue
		}
		if err := deleteLive(d, lower, upper, func(first batch.Ordinal, n uint32) {
			d.DeleteRun(first, n, ts, lsn)
		}); err != nil {
			return fmt.Errorf("table %q: lsn %d: %w", r.t.Name(), lsn, err)
		}
	}
	return nil
}

// deleteLive calls use, which deletes rows, with the runs of rows of d that exist and have keys in
// [lower, upper).
func deleteLive(d *rowset.DiskRowSet, lower, upper []byte, use func(first batch.Ordinal, n uint32)) error {
	var runs []setRun
	err := d.LiveRuns(lower, upper, func(first batch.Ordinal, n uint32) { runs = append(runs, setRun{d, first, n}) })
	for _, run := range runs {
		if err == nil {
			use(run.first, run.n)
		}
	}
	return err
}
