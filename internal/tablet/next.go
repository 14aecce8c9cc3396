package tablet

import (
	"bytes"

	"github.com/oribi-db/oribi/internal/meta"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/rowset"
)

// Next is the next state of a follower's table: the state after an Edit that the writer has
// committed. Its Replayer brings the new stores of the state up to date; nobody else sees the state
// before Install. Next shares all other stores with the current state of the table, which its
// readers keep, and in which they do not see what the Replayer applies.
//
// The caller ends a Next by Install or by Abort, and has one of a table at a time. Not for concurrent
// use.
type Next struct {
	*Replayer
	edit    Edit
	before  *tabletState // the current one
	dropped []interface{ Release() }
}

// Next returns the next state of a follower's table from its metadata: the table's row, and the rows
// of its rowsets, of which those with IDs in changed differ from the table's or are new. The table
// has the operations of the log up to hasUpTo; with 0, the stores in memory are not used, and the
// whole log is needed.
//
// The table keeps each store that the edit does not replace, with the operations that it has:
//
//	MemRowSet        if the schema and the flushed LSN are the same: it has the inserts after that LSN,
//	                 and the changes of their rows
//	delta mem store  if the schema and the included LSN of its rowset are the same: it has the changes
//	                 after that LSN
//
// The Replayer applies the operations up to hasUpTo only to the others. That is exact, as with a
// rowset whose included LSN is that high: when an operation was logged, its row was live in one
// store, so it is live in no other store when its turn comes.
func (t *Tablet) Next(
	row *meta.Table, sets []*rowset.Metadata, changed map[uint64]bool, hasUpTo lsn.LSN,
) (*Next, error) {
	before, err := t.acquire()
	if err != nil {
		return nil, err
	}
	e := t.editTo(before, row, sets, changed, hasUpTo > 0)
	n := &Next{before: before, dropped: e.dropped(before), edit: e}
	n.Replayer = &Replayer{t: t, row: row, hasUpTo: hasUpTo, newMem: e.Mem != nil, newSets: map[uint64]bool{}}
	for _, a := range e.Added {
		n.newSets[a.Row.ID] = true
	}
	if n.st, err = e.apply(before, t.opts.RowSets); err != nil {
		before.release()
		return nil, err
	}
	return n, nil
}

// editTo returns the edit of st that leads to the metadata that Next is called with. Unless keep is
// set, it replaces all stores.
func (t *Tablet) editTo(
	st *tabletState, row *meta.Table, sets []*rowset.Metadata, changed map[uint64]bool, keep bool,
) Edit {
	e := Edit{FlushedLSN: row.FlushedLSN, AutoIncrement: row.AutoIncrement, Retained: mvcc.Retained{Floor: row.HistoryFloor}}
	tableSchema := st.schema
	if !sameSchema(t.Metadata(), row) {
		tableSchema, keep = tableSchemaOf(row), false
		e.Alter = &alteration{row: row, schema: tableSchema}
	}
	if !keep || t.Metadata().FlushedLSN != row.FlushedLSN {
		e.Mem = t.newMem(tableSchema)
	}
	rows := make(map[uint64]*rowset.Metadata, len(sets))
	for _, m := range sets {
		rows[m.ID] = m
	}
	for _, d := range st.tree.Sets {
		had := d.Metadata()
		m := rows[had.ID]
		switch {
		case m == nil || !keep:
			e.Removed = append(e.Removed, d)
			continue
		case !changed[had.ID]:
		case m.IncludedLSN == had.IncludedLSN:
			e.Replaced = append(e.Replaced, Replaced{Set: d, Row: m})
		default:
			e.Removed = append(e.Removed, d)
			continue
		}
		delete(rows, had.ID)
	}
	for _, m := range sets {
		if rows[m.ID] != nil {
			e.Added = append(e.Added, Added{Row: m})
		}
	}
	return e
}

// From returns the LSN from which on the log must be replayed, or lsn.Max if the stores have all
// operations up to hasUpTo.
func (n *Next) From() lsn.LSN {
	from := lsn.Max
	if n.newMem {
		from = n.row.FlushedLSN + 1
	}
	for _, a := range n.edit.Added {
		from = min(from, a.Row.IncludedLSN+1)
	}
	return from
}

// Install makes the state the table's, with its metadata.
func (n *Next) Install() {
	t := n.t
	for _, m := range n.dropped {
		m.Release()
	}
	t.metadata.Store(n.row)
	t.nextID.Store(n.row.NextRowSetID)
	t.auto = max(t.auto, n.edit.AutoIncrement)
	t.install(n.st)
	n.before.release()
}

// Abort closes the files and releases the memory that only the next state has.
func (n *Next) Abort() {
	if n.newMem {
		n.st.mem.Release()
	}
	for _, d := range n.st.tree.Sets {
		if m := d.Tracker().Mem; m != nil && n.newSets[d.Metadata().ID] {
			m.Release()
		}
	}
	n.st.release()
	n.before.release()
}

// sameSchema reports whether two rows of a table differ only in settings on which its stores do not
// depend.
func sameSchema(a, b *meta.Table) bool {
	copied := *b
	copied.Name, copied.Comment = a.Name, a.Comment
	copied.HistorySec, copied.HistoryFloor = a.HistorySec, a.HistoryFloor
	copied.FlushedLSN, copied.NextRowSetID = a.FlushedLSN, a.NextRowSetID
	copied.AutoIncrement, copied.RowFile = a.AutoIncrement, a.RowFile
	return bytes.Equal(a.Encode(), copied.Encode())
}
