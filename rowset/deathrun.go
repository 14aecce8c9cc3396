package rowset

import (
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/delta"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// LiveRuns calls use with each run of consecutive rows that exist after their newest changes and have
// encoded keys in [lower, upper), in the order of their keys; a nil bound is open. The caller holds the
// locks of these rows. Errors: ErrCorrupt; errors of reading files.
func (d *DiskRowSet) LiveRuns(lower, upper []byte, use func(first batch.Ordinal, n uint32)) error {
	at, end := batch.Ordinal(0), batch.Ordinal(d.Metadata().Rows)
	var err error
	if lower != nil {
		at, _, err = d.seek(lower)
	}
	if upper != nil && err == nil {
		end, _, err = d.seek(upper)
	}
	if err != nil {
		return err
	}
	var w delta.Window
	w.Reset(d.Tracker(), mvcc.Everything, []schema.ColumnID{}) // only deletes
	var sel batch.Bitmap
	first := at // of the run before at
	finish := func() {
		if first < at {
			use(first, uint32(at-first))
		}
	}
	for at < end {
		if known := d.dead.Load(); known != nil {
			if next := known.after(at, end, mvcc.Everything); next > at {
				finish()
				at, first = next, next
				continue
			}
		}
		next := min(end, at-at%batch.WindowRows+batch.WindowRows)
		n := int(next - at)
		if err := w.Prepare(at, n); err != nil {
			return err
		}
		sel = sel.Resize(n)
		sel.SetRange(0, n)
		if w.ApplyDeletes(sel) {
			from := at
			for i, j := sel.NextRun(0, n); i < n; i, j = sel.NextRun(j, n) {
				if i > 0 {
					finish()
					first = from + batch.Ordinal(i)
				}
				at = from + batch.Ordinal(j)
			}
			if at < next {
				finish()
				first = next
			}
		}
		at = next
	}
	finish()
	return nil
}

// DeleteRun deletes the rows [first, first+n), all of which exist, at ts, by the log record lsn. The
// caller holds their locks and prevents a concurrent replacement of the store.
func (d *DiskRowSet) DeleteRun(first batch.Ordinal, n uint32, ts mvcc.Timestamp, lsn lsn.LSN) {
	d.makeMem().Mem.DeleteRun(first, n, ts, lsn)
	d.addDead(first, first+batch.Ordinal(n), ts)
}
