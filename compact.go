package oribi

import (
	"context"
	"errors"
	"fmt"

	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/tablet"
)

// CompactionResult describes a flush or compaction of a table, without what it did to the table's indexes.
type CompactionResult = compaction.Result

// Flush writes the table's memory to disk: new rows to rowsets, changes to delta files. What other
// goroutines write during the flush stays in memory, and so do changes of rowsets that are being
// compacted, for which it does not wait. Neither writers nor readers of the table wait for the
// disk. Errors: ctx.Err(); ErrReadOnly; ErrNoSpace; ErrPoisoned; ErrClosed.
func (t *Table) Flush(ctx context.Context) error {
	_, err := t.FlushResult(ctx)
	return err
}

// FlushResult is like Flush but also describes the flush.
func (t *Table) FlushResult(ctx context.Context) (CompactionResult, error) {
	return t.workAll(ctx, "flush", (*tablet.Tablet).Flush)
}

// FlushTables is Flush for several tables, for all of a store with s.Tables(). Small tables share
// files and metadata commits, so thousands take a fraction of the time of as many calls of Flush.
// Each table is flushed completely or not at all, and keeps its rows in memory in the latter case. A
// table that was dropped is no error. Errors: as for Flush, after which some tables may have been
// flushed.
func (s *Store) FlushTables(ctx context.Context, tables ...*Table) error {
	if err := s.enterWriting(); err != nil {
		return err
	}
	defer s.leave()
	err := ctx.Err()
	for _, t := range tables {
		if t.store != s {
			err = fmt.Errorf("table %q belongs to another store: %w", t.tab.Name(), fault.ErrNoTable)
		}
	}
	if err == nil {
		list := tablets(tables)
		for _, t := range list[:len(tables):len(tables)] {
			list = append(list, t.Indexes()...)
		}
		_, err = s.core.Writer.FlushAll(ctx, list)
		s.core.Background.Poke()
	}
	return callErr("flush tables", err)
}

// Compact flushes the table, then merges rowsets until none overlap and all changes that can be
// part of the base data are. It waits for running flushes and compactions of the table, and later
// ones wait for it. Old versions stay readable as far as the table's history goes. When
// Compact returns, the replaced files take no space, except those that running reads use. Writers
// wait and errors are as for Flush.
func (t *Table) Compact(ctx context.Context) error {
	_, err := t.CompactResult(ctx)
	return err
}

// CompactResult is like Compact but also describes the compaction.
func (t *Table) CompactResult(ctx context.Context) (CompactionResult, error) {
	return t.workAll(ctx, "compact", func(tab *tablet.Tablet, ctx context.Context) (CompactionResult, error) {
		r, err := tab.Compact(ctx)
		if err == nil {
			t.store.core.Reclaim(ctx)
		}
		return r, err
	})
}

// Merge rewrites the rowsets that a policy chose; a choice of none does nothing. Memory can be
// flushed in the meantime, and other rowsets compacted. A choice that
// Choice.Check refuses is an error, and an event with that error. It may refuse an older choice, if
// background work has replaced a rowset since the Layout of which it was made. Writers wait and
// errors are as for Flush; ErrNotFound for a rowset that the table does not have.
func (t *Table) Merge(ctx context.Context, c compaction.Choice) error {
	_, err := t.work(ctx, "merge", func(ctx context.Context) (CompactionResult, error) {
		return CompactionResult{}, t.tab.Merge(ctx, c)
	})
	return err
}

// MergeBy merges the rowsets that a policy picks until it picks none, as is done in the background
// with Options.Policy. budget is the number of bytes that it passes to the policy. It does not
// flush memory. It also ends when the policy picks only rowsets that this call has written and
// whose merges have left neither fewer rowsets nor fewer overlaps. Writers wait and errors are as
// for Merge; a panic of the policy is an error.
func (t *Table) MergeBy(ctx context.Context, p compaction.Policy, budget int64) (CompactionResult, error) {
	return t.workAll(ctx, "merge", func(tab *tablet.Tablet, ctx context.Context) (CompactionResult, error) {
		if p == nil {
			return CompactionResult{}, errors.New("no policy")
		}
		if err := compaction.Validate(p); err != nil {
			return CompactionResult{}, fmt.Errorf("policy: %w", err)
		}
		return tab.MergeBy(ctx, p, budget)
	})
}

func (t *Table) work(
	ctx context.Context, what string, do func(context.Context) (CompactionResult, error),
) (CompactionResult, error) {
	if err := t.store.enterWriting(); err != nil {
		return CompactionResult{}, err
	}
	defer t.store.leave()
	var r CompactionResult
	err := ctx.Err()
	if err == nil {
		r, err = do(ctx)
		t.store.core.Background.Poke()
	}
	if err != nil {
		return r, callErr(fmt.Sprintf("%s table %q", what, t.tab.Name()), err)
	}
	return r, nil
}

// workAll is work on the table and its indexes. The result describes what it does to the table.
func (t *Table) workAll(
	ctx context.Context, what string, do func(*tablet.Tablet, context.Context) (CompactionResult, error),
) (CompactionResult, error) {
	return t.work(ctx, what, func(ctx context.Context) (CompactionResult, error) {
		r, err := do(t.tab, ctx)
		for _, x := range t.tab.Indexes() {
			if err == nil {
				_, err = do(x, ctx)
			}
		}
		return r, err
	})
}

// FlushDeltas writes the changes in memory of rows on disk to delta files. New rows stay in memory.
// Writers wait and errors are as for Flush.
func (t *Table) FlushDeltas(ctx context.Context) (CompactionResult, error) {
	return t.workAll(ctx, "flush deltas", (*tablet.Tablet).FlushDeltas)
}

// CompactMinor merges the redo files of each rowset that has several into one, so that reads open
// fewer files. It does not flush memory. The table's writers wait only while the result is
// committed. Errors: as for Flush.
func (t *Table) CompactMinor(ctx context.Context) (CompactionResult, error) {
	return t.workAll(ctx, "minor compaction", (*tablet.Tablet).CompactMinor)
}

// CompactMajor applies the changes in redo files to the base data of the named columns, or of all
// columns if none are named. It writes undos that lead back as far as the table's history goes.
// Reads of the newest state then have no changes to apply. Other columns, keys, and deletes stay as
// they are. It does not flush memory, and writers wait as for CompactMinor.
//
// Errors: as for Flush; ErrNoColumn for a column that the table does not have; ErrSchema for a
// key column.
func (t *Table) CompactMajor(ctx context.Context, columns ...string) (CompactionResult, error) {
	return t.work(ctx, "major compaction", func(ctx context.Context) (CompactionResult, error) {
		return t.tab.CompactMajor(ctx, columns)
	})
}

// Recompress rewrites columns of rowsets on disk so that they take less space: those for which the
// schema wants a form other than that of a flush, if the rewrite pays. By default, these are the
// byte strings, in LZ4 by a slower compressor; a column with the compression schema.LZ4HC or
// schema.Dense says more. Changes of these columns in redo files become part of them, as in
// CompactMajor. Rows and their history stay as they are. Background work does the same with rowsets
// at rest, see Options.RecompressAfter. It does not flush memory. Writers wait and errors are as
// for CompactMinor.
func (t *Table) Recompress(ctx context.Context) (CompactionResult, error) {
	return t.workAll(ctx, "recompress", (*tablet.Tablet).Recompress)
}

// CollectUndos removes versions that are older than the table's history, as far as it can without a
// rewrite: whole undo files, and rowsets in which every row is deleted or expired. Writers wait and
// errors are as for CompactMinor.
func (t *Table) CollectUndos(ctx context.Context) (CompactionResult, error) {
	return t.workAll(ctx, "undo gc", (*tablet.Tablet).CollectUndos)
}
