package tablet

import (
	"slices"

	"github.com/oribi-db/oribi/blockmanager"
	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/delta"
	"github.com/oribi-db/oribi/internal/meta"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/memrowset"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/rowset"
	"github.com/oribi-db/oribi/schema"
)

// Edit is one change of a table's state: the effect of a flush, a compaction, an ingest or an
// alteration.
//
// The job that carries it out fills it in; job.commit makes it durable and installs it. Everything
// else follows from the edit and the state that it changes: the table's metadata row (tableRow),
// the metadata commit (metadata), the lowest LSN in memory (firstLSN), the state afterwards
// (apply), the memory stores that are no longer needed (dropped), the event for listeners (event).
//
// Fields that are not set leave the state as it is.
type Edit struct {
	Kind compaction.Kind // empty: there is no event
	Why  string

	Removed  []*rowset.DiskRowSet // rowsets whose rows are in Added, or that history no longer contains
	Added    []Added
	Replaced []Replaced

	Frozen *frozen     // the frozen MemRowSet, whose rows are in Added
	Alter  *alteration // of the schema and the settings
	// Mem takes the place of the MemRowSet that takes the inserts, whose rows are in Added, or in the
	// log. nil keeps it.
	Mem *memrowset.MemRowSet

	FlushedLSN    lsn.LSN // raises the table's flushed LSN
	AutoIncrement int64   // raises the highest value: that in Added, or of the inserts up to FlushedLSN

	mvcc.Retained // what the new files contain; Floor raises the table's history floor

	Created []*blockmanager.Creation // the blocks of Added and Replaced
	Confirm bool                     // the log cannot restore the effect

	RowsRead, RowsWritten   int64
	BytesRead, BytesWritten int64 // of whole files
}

// Added is a new rowset.
type Added struct {
	Row *rowset.Metadata
	Mem *delta.MemStore // changes of its rows that Row's files do not contain; nil = none

	set *rowset.DiskRowSet // nil until open, and after apply
}

// Replaced is a rowset that gets another metadata row: the same rows in other files.
type Replaced struct {
	Set *rowset.DiskRowSet
	Row *rowset.Metadata // nil until the files are written

	// Flush moves the delta mem store to the last file of Row.Redo, and Mem takes its place.
	// Without it, the rowset keeps its delta mem store.
	Flush bool
	Mem   *delta.MemStore // nil = none yet

	file *delta.File // the last file of Row.Redo; nil until open
}

// alteration is the part of an Edit that changes the schema.
type alteration struct {
	row    *meta.Table  // the table's metadata row with the changes
	schema *TableSchema // of row's schema
	retype *retyper     // converts all rows; nil if no column gets another type
}

// rowFiles returns which rowsets that the edit adds have row files. row is the table's row
// before the edit.
func (e *Edit) rowFiles(row *meta.Table) schema.RowFile {
	if e.Alter != nil {
		row = e.Alter.row
	}
	return row.RowFile
}

// add adds new rowsets, which contain the operations on their rows up to LSN included.
func (e *Edit) add(rows []*rowset.Metadata, included lsn.LSN) {
	for _, m := range rows {
		m.IncludedLSN = included
		e.Added = append(e.Added, Added{Row: m})
	}
}

// stamp records in the rowsets whose base or redos are new that they were written now.
func (e *Edit) stamp(now mvcc.Timestamp) {
	for _, a := range e.Added {
		a.Row.Written = now
	}
	for _, r := range e.Replaced {
		if r.Flush || e.Kind == compaction.MinorDelta || e.Kind == compaction.MajorDelta {
			r.Row.Written = now
		}
	}
}

// replaced returns the replacement of each rowset that the edit replaces, and nil for each rowset
// that it removes.
func (e *Edit) replaced() map[*rowset.DiskRowSet]*Replaced {
	m := make(map[*rowset.DiskRowSet]*Replaced, len(e.Removed)+len(e.Replaced))
	for _, d := range e.Removed {
		m[d] = nil
	}
	for i := range e.Replaced {
		m[e.Replaced[i].Set] = &e.Replaced[i]
	}
	return m
}

// memRowSets returns the MemRowSets of st after the edit: the set that takes the inserts, and the
// frozen set, or nil if no set is frozen.
func (e *Edit) memRowSets(st *tabletState) (*memrowset.MemRowSet, *frozen) {
	mem, old := st.mem, st.frozen
	if e.Mem != nil {
		mem = e.Mem
	}
	if e.Frozen != nil {
		old = nil
	}
	return mem, old
}

// tableRow returns the table's metadata row after the edit. row is the row before it, nextRowSet is
// above the ID of every rowset.
func (e *Edit) tableRow(row *meta.Table, nextRowSet uint64) *meta.Table {
	next := *row
	if e.Alter != nil {
		next = *e.Alter.row
	}
	next.NextRowSetID = nextRowSet
	next.HistoryFloor = max(row.HistoryFloor, next.HistoryFloor, e.Floor)
	next.Expiry = next.Expiry.Since(min(next.HistoryFloor, e.First()))
	next.FlushedLSN = max(row.FlushedLSN, next.FlushedLSN, e.FlushedLSN)
	next.AutoIncrement = max(row.AutoIncrement, next.AutoIncrement, e.AutoIncrement)
	return &next
}

// metadata returns the metadata commit of the edit, with row as the table's row.
func (e *Edit) metadata(row *meta.Table) blockmanager.Edit {
	out := blockmanager.Edit{Created: e.Created, Confirm: e.Confirm}
	put := func(m *rowset.Metadata) {
		out.Put = append(out.Put, blockmanager.Row{Key: meta.RowSetKey(row.Number, m.ID), Value: m.Encode()})
	}
	for _, d := range e.Removed {
		m := d.Metadata()
		out.Dead = m.Blocks(out.Dead)
		out.Delete = append(out.Delete, meta.RowSetKey(row.Number, m.ID))
	}
	for _, a := range e.Added {
		put(a.Row)
	}
	for _, r := range e.Replaced {
		kept := r.Row.Blocks(nil)
		for _, id := range r.Set.Metadata().Blocks(nil) {
			if !slices.Contains(kept, id) {
				out.Dead = append(out.Dead, id)
			}
		}
		put(r.Row)
	}
	out.Put = append(out.Put, blockmanager.Row{Key: meta.TableKey(row.Number), Value: row.Encode()})
	return out
}

// firstLSN returns the lowest LSN of an operation that is in memory and not in files after the edit
// is applied to st, or lsn.Max if files contain all operations.
func (e *Edit) firstLSN(st *tabletState) lsn.LSN {
	mem, old := e.memRowSets(st)
	mems := []*memrowset.MemRowSet{mem}
	if old != nil {
		mems = append(mems, old.mem)
	}
	var deltas []*delta.MemStore
	for _, a := range e.Added {
		deltas = append(deltas, a.Mem)
	}
	replaced := e.replaced()
	for _, d := range st.tree.Sets {
		switch r, edited := replaced[d]; {
		case !edited, r != nil && !r.Flush:
			deltas = append(deltas, d.Tracker().Mem)
		case r != nil:
			deltas = append(deltas, r.Mem)
		}
	}
	return firstLSN(mems, deltas)
}

// dropped returns the memory stores of st that are not part of the state after the edit. It is
// called before apply.
func (e *Edit) dropped(st *tabletState) (stores []interface{ Release() }) {
	if e.Mem != nil {
		stores = append(stores, st.mem)
	}
	if e.Frozen != nil {
		stores = append(stores, e.Frozen.mem)
	}
	for d, r := range e.replaced() {
		if mem := d.Tracker().Mem; mem != nil && (r == nil || r.Flush) {
			stores = append(stores, mem)
		}
	}
	return stores
}

// release releases the stores of an edit that is not committed.
func (e *Edit) release() {
	for _, a := range e.Added {
		if a.Mem != nil {
			a.Mem.Release()
		}
	}
	for _, r := range e.Replaced {
		if r.Mem != nil {
			r.Mem.Release()
		}
	}
}

// open opens the new files of the edit with o, those that are not open yet. The metadata commit has
// happened. The caller calls apply or closeAdded.
func (e *Edit) open(s *schema.Schema, o rowset.Options) (err error) {
	for i := range e.Added {
		a := &e.Added[i]
		if a.set != nil {
			continue
		}
		if a.set, err = rowset.Open(s, a.Row, o); err != nil {
			a.set = nil
			return err
		}
	}
	for i := range e.Replaced {
		r := &e.Replaced[i]
		if !r.Flush || r.file != nil {
			continue
		}
		if r.file, err = r.Set.OpenDelta(r.Row.Redo[len(r.Row.Redo)-1]); err != nil {
			return err
		}
	}
	return nil
}

// closeAdded closes the rowsets that open has opened, unless a state has them.
func (e *Edit) closeAdded() {
	for i := range e.Added {
		if a := &e.Added[i]; a.set != nil {
			a.set.Unref()
			a.set = nil
		}
	}
}

// apply returns the state after the edit of st, with one reference. The metadata commit has
// happened. Rowsets that are not open are opened with o. After an error st is unchanged.
//
// Rowsets that are flushed are part of both states: their delta stores are replaced in place, so
// that their files stay open.
func (e *Edit) apply(st *tabletState, o rowset.Options) (*tabletState, error) {
	tableSchema, floor := st.schema, max(st.floor, e.Floor)
	if e.Alter != nil {
		tableSchema = e.Alter.schema
	}
	var sets, opened []*rowset.DiskRowSet
	defer func() {
		for _, d := range opened {
			d.Unref() // the state has references of its own
		}
		e.closeAdded()
	}()
	add := func(d *rowset.DiskRowSet, err error) error {
		if err == nil {
			opened, sets = append(opened, d), append(sets, d)
		}
		return err
	}
	if err := e.open(tableSchema.Schema, o); err != nil {
		return nil, err
	}
	trackers := make(map[*Replaced]*delta.Tracker)
	replaced := e.replaced()
	for _, d := range st.tree.Sets {
		r, edited := replaced[d]
		var err error
		switch {
		case edited && r == nil:
		case e.Alter != nil:
			m := d.Metadata()
			if edited {
				m = r.Row
			}
			err = add(rowset.Open(tableSchema.Schema, m, o))
		case !edited:
			sets = append(sets, d)
		case r.Flush:
			trackers[r] = r.tracker()
			sets = append(sets, d)
		default:
			err = add(d.Successor(r.Row))
		}
		if err != nil {
			return nil, err
		}
	}
	for _, a := range e.Added {
		sets = append(sets, a.set)
		if a.Mem != nil {
			a.set.Adopt(a.Mem)
		}
	}
	for r, t := range trackers {
		r.Set.SetStores(r.Row, t)
	}
	mem, old := e.memRowSets(st)
	return newState(tableSchema, mem, old, sets, floor), nil
}

// tracker returns the delta stores of a flushed rowset.
func (r *Replaced) tracker() *delta.Tracker {
	t := *r.Set.Tracker()
	t.Redo, t.Mem = append(slices.Clone(t.Redo), r.file), r.Mem
	return &t
}

// reopened returns the rowsets of st that apply replaces with newly opened rowsets that share some
// of their blocks.
func (e *Edit) reopened(st *tabletState) (sets []*rowset.DiskRowSet) {
	if e.Alter != nil {
		return st.tree.Sets
	}
	for _, r := range e.Replaced {
		if !r.Flush {
			sets = append(sets, r.Set)
		}
	}
	return sets
}

// event returns the event for the edit, whether it was committed or not. The job adds what the edit
// does not contain.
func (e *Edit) event() compaction.Event {
	ev := compaction.Event{Kind: e.Kind, Why: e.Why, RowsRead: e.RowsRead, RowsWritten: e.RowsWritten,
		BytesRead: e.BytesRead, BytesWritten: e.BytesWritten}
	for _, d := range e.Removed {
		ev.Inputs = append(ev.Inputs, describe(d.Metadata()))
	}
	for _, a := range e.Added {
		ev.Outputs = append(ev.Outputs, describe(a.Row))
	}
	for _, r := range e.Replaced {
		if !r.Flush {
			ev.Inputs = append(ev.Inputs, describe(r.Set.Metadata()))
		}
		if r.Row != nil {
			ev.Outputs = append(ev.Outputs, describe(r.Row))
		}
	}
	return ev
}
