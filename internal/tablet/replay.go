package tablet

import (
	"bytes"
	"fmt"

	"github.com/oribi-db/oribi/bloom"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/meta"
	"github.com/oribi-db/oribi/internal/record"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/rowset"
)

// Replayer carries out the operations of the log on one state of a table, before anything else uses
// the state. Not for concurrent use.
type Replayer struct {
	t   *Tablet
	st  *tabletState
	row *meta.Table // the table's metadata row in the state

	// The stores have the operations up to hasUpTo, except for those that are new in the state: the
	// MemRowSet if newMem is set, and the rowsets with IDs in newSets.
	hasUpTo lsn.LSN
	newMem  bool
	newSets map[uint64]bool

	// A run of inserts with one LSN whose keys ascend and come after all keys of the MemRowSet.
	// They are carried out together, without a search for each.
	keys, rows [][]byte
	ts         mvcc.Timestamp
	lsn        lsn.LSN

	cells [][]byte // of the last key, in buf
	buf   []byte
}

// Replayer returns a Replayer of the table's current state, whose stores have no operation of the log
// that will be replayed.
func (t *Tablet) Replayer() *Replayer {
	return &Replayer{t: t, st: t.state.Load(), row: t.Metadata()}
}

// Table returns the table's metadata row in the state.
func (r *Replayer) Table() *meta.Table { return r.row }

// RowSets returns the metadata rows of the rowsets in the state.
func (r *Replayer) RowSets() []*rowset.Metadata { return r.st.rowSetMetadata() }

// MaxTimestamp returns the newest timestamp of any change in the state.
func (r *Replayer) MaxTimestamp() mvcc.Timestamp { return r.st.maxTimestamp() }

// memHas reports whether the MemRowSet has an operation, or knows that it is another store's.
func (r *Replayer) memHas(at lsn.LSN) bool { return at <= r.hasUpTo && !r.newMem }

// setHas reports whether a rowset has an operation, or knows that it is another store's.
func (r *Replayer) setHas(d *rowset.DiskRowSet, at lsn.LSN) bool {
	m := d.Metadata()
	return at <= m.IncludedLSN || at <= r.hasUpTo && !r.newSets[m.ID]
}

// Apply applies one operation of the log, unless the files contain it:
//
//	INSERT at l          l ≤ flushed LSN: the files contain it; else into the MemRowSet
//	other changes at l   to the MemRowSet if the key is live there; else to the rowset with
//	                     included LSN < l in which it is live; else the files contain it
//	DELETE RANGE at l    to all rows that are live in one of these stores
//
// A rowset whose included LSN is l or higher already contains l and possibly later operations, and
// is not consulted. The files contain every operation of an older schema version. Apply may retain
// op until Flush. Errors: ErrCorrupt. Source: design §5.
func (r *Replayer) Apply(op record.Op, ts mvcc.Timestamp, lsn lsn.LSN) (err error) {
	t, st, row := r.t, r.st, r.row
	if op.SchemaVersion < row.SchemaVersion && lsn <= row.FlushedLSN {
		return nil
	}
	if op.SchemaVersion != row.SchemaVersion {
		return fault.Corruptf("table %q: lsn %d is of schema version %d, the table is at %d", t.Name(), lsn,
			op.SchemaVersion, row.SchemaVersion)
	}
	if op.Kind == change.DeleteRange {
		r.Flush()
		return r.deleteRange(op.Key, op.Body, ts, lsn)
	}
	if r.cells, r.buf, err = st.schema.Encoder.AppendCells(r.cells[:0], r.buf[:0], op.Key); err != nil {
		return fmt.Errorf("table %q: lsn %d: %w", t.Name(), lsn, err)
	}
	if op.Kind == change.Insert {
		return r.insert(op, ts, lsn)
	}
	r.Flush()
	list := deleteList
	switch op.Kind {
	case change.Update:
		list = change.List(op.Body)
		if err := list.Check(st.schema.Schema); err != nil {
			return fmt.Errorf("table %q: lsn %d: %w", t.Name(), lsn, err)
		}
	case change.Replace:
		if err := st.schema.RowFormat.Check(op.Body); err != nil {
			return fmt.Errorf("table %q: lsn %d: %w", t.Name(), lsn, err)
		}
		list = change.AppendReplace(nil, op.Body)
	}
	if !r.memHas(lsn) && st.mem.Mutate(op.Key, ts, lsn, list) {
		return nil
	}
	return r.replayOnDisk(op.Key, ts, lsn, list)
}

// insert is Apply for an insert whose key has the cells r.cells.
func (r *Replayer) insert(op record.Op, ts mvcc.Timestamp, lsn lsn.LSN) error {
	t, st := r.t, r.st
	if st.schema.auto >= 0 {
		t.auto = max(t.auto, autoValue(r.cells[st.schema.auto]))
	}
	if lsn <= r.row.FlushedLSN || r.memHas(lsn) {
		return nil
	}
	if len(r.keys) == insertRun || r.lsn != lsn || r.ts != ts {
		r.Flush()
	}
	last := false // the key comes after all others: logs of loads in key order need no lookup
	if n := len(r.keys); n > 0 {
		last = bytes.Compare(r.keys[n-1], op.Key) < 0
	} else {
		last = st.mem.EndsBefore(op.Key)
	}
	if !last {
		r.Flush()
		if st.mem.Live(op.Key) {
			return fault.Corruptf("table %q: lsn %d inserts key %s, which exists", t.Name(), lsn, t.KeyText(op.Key))
		}
	}
	if err := st.schema.RowFormat.Check(op.Body); err != nil {
		return fmt.Errorf("table %q: lsn %d: %w", t.Name(), lsn, err)
	}
	if !last {
		st.mem.Insert(op.Key, ts, lsn, op.Body)
		return nil
	}
	r.keys, r.rows, r.ts, r.lsn = append(r.keys, op.Key), append(r.rows, op.Body), ts, lsn
	return nil
}

// Flush carries out what Apply has left for later. It must be called before the memory of the
// operations is used again, and after the last one.
func (r *Replayer) Flush() {
	if len(r.keys) == 0 {
		return
	}
	r.st.mem.InsertMany(r.keys, r.ts, r.lsn, r.rows)
	r.keys, r.rows = r.keys[:0], r.rows[:0]
}

// replayOnDisk applies a change of a row that is not in the MemRowSet.
func (r *Replayer) replayOnDisk(key []byte, ts mvcc.Timestamp, lsn lsn.LSN, list change.List) error {
	t := r.t
	p := bloom.MakeProbe(key)
	var buf [8]*rowset.DiskRowSet
	var at position
	for _, d := range r.st.tree.Candidates(buf[:0], key) {
		if r.setHas(d, lsn) {
			continue
		}
		row, found, err := d.Find(p)
		if err == nil && found {
			found, err = d.Live(row)
		}
		switch {
		case err != nil:
			return fmt.Errorf("table %q: lsn %d: %w", t.Name(), lsn, err)
		case !found:
			continue
		case at.live:
			return fault.Corruptf("table %q: key %s is live in rowsets %d and %d", t.Name(), t.KeyText(key),
				at.set.Metadata().ID, d.Metadata().ID)
		}
		at = position{live: true, set: d, row: row}
	}
	if at.live {
		at.set.Apply(at.row, ts, lsn, list)
	}
	return nil
}
