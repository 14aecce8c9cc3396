package oribi

import (
	"context"
	"fmt"

	"github.com/oribi-db/oribi/compaction"
)

// CompactionResult is what a flush or compaction of a table did.
type CompactionResult = compaction.Result

// Flush writes what the table holds in memory to disk: new rows to rowsets, changes to delta files.
// What is written meanwhile stays in memory; the table's writers wait for the metadata commit at
// the end, readers for nothing. Errors: ctx's; ErrReadOnly; ErrNoSpace; ErrPoisoned; ErrClosed.
func (t *Table) Flush(ctx context.Context) error {
	_, err := t.FlushResult(ctx)
	return err
}

// FlushResult is Flush that tells what it did.
func (t *Table) FlushResult(ctx context.Context) (CompactionResult, error) {
	return t.work(ctx, "flush", t.tab.Flush)
}

// Compact flushes, then merges until no rowsets overlap and no change waits beside them that could
// be part of them. Old versions stay readable as far as the table's history goes. What it has
// replaced takes no space on return, save what readers hold. Locks and errors as Flush.
func (t *Table) Compact(ctx context.Context) error {
	_, err := t.CompactResult(ctx)
	return err
}

// CompactResult is Compact that tells what it did.
func (t *Table) CompactResult(ctx context.Context) (CompactionResult, error) {
	return t.work(ctx, "compact", func(ctx context.Context) (CompactionResult, error) {
		r, err := t.tab.Compact(ctx)
		if err == nil {
			t.store.reclaim(ctx)
		}
		return r, err
	})
}

// Merge rewrites the rowsets that a policy chose.
func (t *Table) Merge(ctx context.Context, c compaction.Choice) error {
	_, err := t.work(ctx, "merge", func(ctx context.Context) (CompactionResult, error) {
		return CompactionResult{}, t.tab.Merge(ctx, c)
	})
	return err
}

func (t *Table) work(ctx context.Context, what string, do func(context.Context) (CompactionResult, error)) (CompactionResult, error) {
	if err := t.store.enterWriting(); err != nil {
		return CompactionResult{}, err
	}
	defer t.store.leave()
	r, err := do(ctx)
	if err != nil {
		return r, fmt.Errorf("oribi: %s: %w", what, err)
	}
	return r, nil
}

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
// Errors: as Flush; ErrNoColumn for a column that the table does not have; ErrSchema for one of the
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
