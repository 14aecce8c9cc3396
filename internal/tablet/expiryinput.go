package tablet

import (
	"bytes"

	"github.com/oribi-db/oribi/cfile"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/expiry"
	"github.com/oribi-db/oribi/internal/rewrite"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/rowset"
	"github.com/oribi-db/oribi/scan"
	"github.com/oribi-db/oribi/schema"
)

// expiringInput is the input of a flush or merge of a table whose rows expire. It adds a DELETE to
// rows that have been expired, and unchanged, since the first timestamp that can be read or before, at the time of their
// expiry. So the compaction drops them, as it does rows that were deleted then.
//
// The log may have a DELETE of such a row that is newer than the files, from an insert in its place.
// Neither replay nor catching up then finds the row, and needs to.
type expiringInput struct {
	rewrite.Input
	test  expiry.Test
	clock int
	first mvcc.Timestamp
}

// boundedInput is an expiringInput of a rowset.
type boundedInput struct {
	expiringInput
	in mergeInput
}

func (in boundedInput) First() []byte { return in.in.First() }
func (in boundedInput) Keeps() int    { return in.in.Keeps() }

// dropping returns an input without the rows that no read sees because they are expired. from is the rowset that the rows are in, nil for a MemRowSet.
//
// If the statistics of the rowset show that there are none, it returns the input itself, from which
// a merge copies cblocks.
func (j *job) dropping(in rewrite.Input, from *rowset.DiskRowSet) rewrite.Input {
	if j.edit.Alter != nil {
		return in // it may end the rule
	}
	first := j.edit.First()
	if f := j.edit.Frozen; f != nil { // an earlier attempt may have frozen it long ago
		first = min(first, f.now)
	}
	test, ok := j.schema.Expiry.Final(first)
	if !ok {
		return in
	}
	if z, c := expiryZoneMap(from, test.Column); z != nil {
		if p := test.GonePredicate(c); !z.FileMayMatch(&p) {
			return in
		}
	}
	e := expiringInput{in, test, j.schema.Schema.IndexID(test.Column), first}
	if in, ok := in.(mergeInput); ok {
		return boundedInput{e, in}
	}
	return e
}

func (e expiringInput) Next() (*change.Rows, error) {
	rows, err := e.Input.Next()
	if rows == nil || err != nil {
		return rows, err
	}
	undo, redo := rows.Undo, rows.Redo
	var added []change.Delta
	cells := rows.Batch.Columns[e.clock]
	for i := range rows.Keys {
		row := uint32(i)
		undo, redo = since(undo, row), since(redo, row)
		changed := len(redo) > 0 && redo[0].Row == row
		cell := cells.Cell(i)
		if changed || !e.test.Expired(cell) {
			continue
		}
		ts := e.test.Expiry(cell)
		if len(undo) > 0 && undo[0].Row == row {
			ts = max(ts, undo[0].TS) // the newest
		}
		if ts > e.first {
			continue
		}
		added = append(added, change.Delta{Row: row, TS: ts, List: deleteList})
	}
	if added == nil {
		return rows, nil
	}
	out := *rows // as long valid as rows
	out.Redo = mergeDeltas(added, rows.Redo)
	return &out, nil
}

// since returns the deltas from the first one of a row, or a later row, on.
func since(deltas []change.Delta, row uint32) []change.Delta {
	for len(deltas) > 0 && deltas[0].Row < row {
		deltas = deltas[1:]
	}
	return deltas
}

// mergeDeltas merges deltas of different rows by row.
func mergeDeltas(a, b []change.Delta) []change.Delta {
	out := make([]change.Delta, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if a[0].Row < b[0].Row {
			out, a = append(out, a[0]), a[1:]
		} else {
			out, b = append(out, b[0]), b[1:]
		}
	}
	return append(append(out, a...), b...)
}

// mayDrop reports whether compactions may drop rows because they are expired.
func (sc *TableSchema) mayDrop() bool { return len(sc.Expiry) > 0 }

// isDelete reports whether a change deletes a row.
func isDelete(list change.List) bool { return bytes.Equal(list, deleteList) }

// hasExpired reports whether a merge would drop rows of a rowset because they are expired: rows that
// are expired as of the first timestamp that can be read and have not changed since.
func (j *job) hasExpired(d *rowset.DiskRowSet) (bool, error) {
	test, ok := j.schema.Expiry.Final(j.edit.First())
	if !ok {
		return false, nil
	}
	gone := test.Gone(&j.schema.Schema.Columns[j.schema.Schema.IndexID(test.Column)])
	at := mvcc.AsOf(j.edit.First())
	r, err := scan.NewRequest(scan.Options{Schema: d.Schema, Filter: gone, Snapshot: at})
	if err != nil {
		return false, err
	}
	changed, _ := d.Changed(at, mvcc.Everything)
	it, err := changed.NewIteratorOfOthers(r)
	if err != nil {
		return false, err
	}
	found := it.Next()
	return found, it.Close()
}

// gone reports whether no read at first or later sees any row of a rowset: all of them were deleted, or
// are expired and have not changed since. Such a rowset is dropped without being read. It changes only
// by DELETEs of expired rows from then on, from inserts in their place, which may be lost with it.
func (sc *TableSchema) gone(d *rowset.DiskRowSet, first mvcc.Timestamp) bool {
	return rewrite.Gone(d.State(), first) || sc.allExpired(d, first)
}

// allExpired reports whether the statistics of a rowset's files show that all its rows are expired as
// of first, and have not changed since.
func (sc *TableSchema) allExpired(d *rowset.DiskRowSet, first mvcc.Timestamp) bool {
	s := d.State()
	test, ok := sc.Expiry.Final(first)
	if !ok || !s.Deltas.Mem.Empty() || max(s.Meta.MaxTimestamp, s.Deltas.MaxTimestamp()) > first {
		return false
	}
	for _, f := range s.Deltas.Redo {
		if st := f.Stats(); st.Reinserts > 0 || st.Updates(test.Column) > 0 {
			return false
		}
	}
	z, c := expiryZoneMap(d, test.Column)
	if z == nil {
		return false
	}
	for _, p := range test.NotGone(c) {
		if z.FileMayMatch(&p) {
			return false
		}
	}
	return true
}

// expiryZoneMap returns the zone map of a column of a rowset's base data, and the column. The zone
// map is nil if the file has none, or if it is damaged: then it shows nothing, and whoever needs it
// finds the damage. d may be nil.
func expiryZoneMap(d *rowset.DiskRowSet, id schema.ColumnID) (*cfile.ZoneMap, *schema.Column) {
	if d == nil {
		return nil, nil
	}
	column := d.Schema.IndexID(id)
	f, err := d.File(column)
	if f == nil || err != nil {
		return nil, nil
	}
	z, err := f.ZoneMap()
	if err != nil {
		return nil, nil
	}
	return z, &d.Schema.Columns[column]
}
