package oribi

import (
	"context"

	"github.com/oribi-db/oribi/compaction"
)

// FlushDeltas writes the changes that the table holds in memory of rows on disk to delta files; new
// rows stay in memory. Locks and errors as Flush.
func (t *Table) FlushDeltas(ctx context.Context) (CompactionResult, error) {
	return t.work(ctx, "flush deltas", t.tab.FlushDeltas)
}

// CompactMinor makes one file of the redo files of each rowset that has several, so that reads open
// fewer. It sees files only: what memory holds stays there. Writers of the table wait only while it
// is committed. Errors as Flush.
func (t *Table) CompactMinor(ctx context.Context) (CompactionResult, error) {
	return t.work(ctx, "minor compaction", t.tab.CompactMinor)
}

// CompactMajor brings the changes that redo files hold of the named columns, or of all, into the
// columns' base files, and writes undos that lead back from them, as far as the table's history
// goes. Reads at the newest state find nothing to apply any more; other columns, keys and DELETEs
// stay as they are. Memory and locks as CompactMinor.
//
// Errors: as Flush; ErrNotFound for a column that the table does not have; ErrSchema for one of the
// key.
func (t *Table) CompactMajor(ctx context.Context, columns ...string) (CompactionResult, error) {
	return t.work(ctx, "major compaction", func(ctx context.Context) (CompactionResult, error) { return t.tab.CompactMajor(ctx, columns) })
}

// CollectUndos gives back what the table's history no longer holds, as far as that goes without
// rewriting: whole undo files, and rowsets of which every row has been deleted. Locks and errors as
// CompactMinor.
func (t *Table) CollectUndos(ctx context.Context) (CompactionResult, error) {
	return t.work(ctx, "undo gc", t.tab.CollectUndos)
}

// compactDeltas does delta compactions of a table until the rules choose none.
func (b *background) compactDeltas(t *Table) {
	for b.ctx.Err() == nil {
		infos, err := t.tab.Deltas()
		if err != nil {
			return // dropped or closed
		}
		choice := compaction.PickDeltas(infos)
		if choice.Kind == "" || !b.run("delta compaction", t, func() error { return t.tab.CompactDeltas(b.ctx, choice) }) {
			return
		}
	}
}
