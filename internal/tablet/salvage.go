package tablet

import (
	"context"
	"fmt"

	"github.com/oribi-db/oribi/bloom"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/record"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/rowset"
)

// Sets calls use with each rowset, in the order of first keys, until an error.
func (t *Tablet) Sets(ctx context.Context, use func(d *rowset.DiskRowSet) error) error {
	return t.eachSet(ctx, func(d *rowset.DiskRowSet, _ *rowset.Metadata) error { return use(d) })
}

// replayOnDamaged is replayOnDisk for a table with damaged rowsets. If it is unknown whether the
// row with the key exists in a rowset, it must be the one that the batch changed, unless another
// rowset may have the key too: then the change is not applied, and the row remains unknown.
func (t *Tablet) replayOnDamaged(key []byte, ts mvcc.Timestamp, lsn lsn.LSN, list change.List) error {
	p := bloom.MakeProbe(key)
	var buf [8]*rowset.DiskRowSet
	var at, unsure position
	may := 0 // rowsets that may have the row
	for _, d := range t.state.Load().tree.Candidates(buf[:0], key) {
		f, err := d.FindDamaged(p)
		switch {
		case err != nil:
			return fmt.Errorf("table %q: lsn %d: %w", t.Name(), lsn, err)
		case !f.Found && f.Certain:
		case !f.Found, d.Metadata().IncludedLSN >= lsn:
			may++
		case !f.Certain:
			may++
			unsure = position{live: true, set: d, row: f.Row}
		case f.Live:
			at = position{live: true, set: d, row: f.Row}
		}
	}
	if !at.live && may == 1 {
		at = unsure
	}
	if at.live {
		at.set.Apply(at.row, ts, lsn, list)
	}
	return nil
}

// OpFix is how an operation of a log with missing records must be changed so that it can be
// applied.
type OpFix uint8

// Fixes.
const (
	OpKept        OpFix = iota
	OpDropped           // it changes a row of which it is not known what it was before
	OpDeleteFirst       // it inserts a row that exists: a missing record has deleted it
	OpInserted          // it replaces a row that does not exist, which a missing record has inserted
)

// ApplySalvaged applies an operation after records that are missing, the last of them with LSN gap;
// 0: none is. known reports whether all cells of the row are known nevertheless, since a later
// record has set them. It may retain op until Flush.
//
// What is applied is right, as far as it goes: a row has either the cells that it had, or those
// that it had at an earlier time. An insert or a replacement sets all cells, a delete needs none.
// An update of a row that missing records may have changed is not applied.
//
// Operations that do not fit the table are dropped. Errors: those of reading that are not damage.
func (r *Replayer) ApplySalvaged(op record.Op, ts mvcc.Timestamp, lsn, gap lsn.LSN, known bool) (OpFix, error) {
	t, st := r.t, r.t.state.Load()
	if gap == 0 {
		err := r.Apply(op, ts, lsn)
		if err != nil && rowset.Unreadable(err) {
			return OpDropped, nil
		}
		return OpKept, err
	}
	if row := t.Metadata(); op.SchemaVersion != row.SchemaVersion {
		if op.SchemaVersion < row.SchemaVersion && lsn <= row.FlushedLSN {
			return OpKept, nil // the files contain it
		}
		return OpDropped, nil
	}
	if !t.fits(st, &op) {
		return OpDropped, nil
	}
	r.Flush()
	live, set, contained, unsure := st.mem.Live(op.Key), (*rowset.DiskRowSet)(nil), false, 0
	if !live {
		var err error
		if set, contained, unsure, err = t.salvagedRow(op.Key, lsn); err != nil {
			return OpKept, fmt.Errorf("table %q: lsn %d: %w", t.Name(), lsn, err)
		}
	}
	exists, fresh := live || set != nil, lsn > t.Metadata().FlushedLSN
	switch {
	case unsure > 1 && !exists && fresh && op.Kind != change.Delete: // the row would be twice
		return OpDropped, nil
	case unsure == 1 && !exists && fresh && op.Kind == change.Replace: // after which it exists there
		return OpKept, r.Apply(op, ts, lsn)
	case op.Kind == change.Insert && fresh && (exists || unsure == 1):
		gone := op
		gone.Kind, gone.Body = change.Delete, nil
		err := r.Apply(gone, ts, lsn)
		if err == nil {
			err = r.Apply(op, ts, lsn)
		}
		return OpDeleteFirst, err
	case op.Kind == change.Replace && fresh && !exists && !contained:
		op.Kind = change.Insert
		return OpInserted, r.Apply(op, ts, lsn)
	case op.Kind == change.Update && !known && (live || set != nil && set.Metadata().IncludedLSN < gap || !exists && fresh && !contained):
		return OpDropped, nil
	}
	return OpKept, r.Apply(op, ts, lsn)
}

// fits reports whether an operation can be applied to the table.
func (t *Tablet) fits(st *tabletState, op *record.Op) bool {
	if _, _, err := st.schema.Encoder.AppendCells(nil, nil, op.Key); err != nil {
		return false
	}
	switch op.Kind {
	case change.Update:
		return change.List(op.Body).Check(st.schema.Schema) == nil
	case change.Insert, change.Replace:
		return st.schema.RowFormat.Check(op.Body) == nil
	}
	return true
}

// salvagedRow returns the rowset in which a key is live and that does not contain operations up to
// lsn, nil if there is none; contained reports whether a rowset with the key does contain them.
// unsure is in how many others it may be live.
func (t *Tablet) salvagedRow(key []byte, lsn lsn.LSN) (set *rowset.DiskRowSet, contained bool, unsure int, err error) {
	p := bloom.MakeProbe(key)
	var buf [8]*rowset.DiskRowSet
	for _, d := range t.state.Load().tree.Candidates(buf[:0], key) {
		f, err := d.FindDamaged(p)
		switch {
		case err != nil:
			return nil, false, 0, err
		case d.Metadata().IncludedLSN >= lsn:
			contained = contained || f.Found || !f.Certain
		case f.Found && f.Live && f.Certain:
			set = d
		case f.Found && !f.Certain:
			unsure++
		}
	}
	return set, contained, unsure, nil
}

// NeedsLog reports whether the table needs records up to an LSN: its files do not contain them.
func (t *Tablet) NeedsLog(lsn lsn.LSN) bool {
	st := t.state.Load()
	if t.Metadata().FlushedLSN < lsn {
		return true
	}
	for _, d := range st.tree.Sets {
		if d.Metadata().IncludedLSN < lsn {
			return true
		}
	}
	return false
}
