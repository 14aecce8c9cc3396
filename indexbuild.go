package oribi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/meta"
	"github.com/oribi-db/oribi/internal/store"
	"github.com/oribi-db/oribi/internal/tablet"
)

// indexEdit adds an index, or drops one.
type indexEdit struct {
	add  *meta.Table // nil: drop
	drop string
}

// alterIndex carries out the change of an index.
func (t *Table) alterIndex(ctx context.Context, edit *indexEdit) error {
	if edit.add == nil {
		entries, err := t.findIndex(edit.drop)
		if err == nil {
			err = t.store.dropIndex(entries)
		}
		return err
	}
	entries, err := t.addIndex(edit.add)
	if err == nil {
		err = t.buildIndex(ctx, entries)
	}
	if err != nil && entries != nil {
		err = errors.Join(err, t.store.dropIndex(entries))
	}
	return err
}

// addIndex adds an index without entries. If there is the same one and it is not complete, addIndex returns it.
func (t *Table) addIndex(row *meta.Table) (*store.Table, error) {
	x := row.Index
	x.Of = t.tab.Number
	known := t.entry.Indexes()
	for _, entries := range known {
		old := entries.Index()
		switch {
		case old.Name != x.Name:
		case old.Building && old.Unique == x.Unique && slices.Equal(old.Columns, x.Columns):
			return entries, nil
		default:
			return nil, fmt.Errorf("index %q: %w", x.Name, fault.ErrExists)
		}
	}
	if len(known) >= meta.MaxIndexes {
		return nil, fmt.Errorf("index %q: the table has %d indexes: %w", x.Name, len(known), fault.ErrSchema)
	}
	if err := t.store.core.ClaimReserve(); err != nil {
		return nil, err
	}
	faces, err := t.store.core.Writer.Create([]*meta.Table{row})
	if err != nil {
		return nil, err
	}
	return faces[0].(*Table).entry, nil
}

// buildIndex adds the entries of all rows to an index, and makes it complete.
func (t *Table) buildIndex(ctx context.Context, entries *store.Table) error {
	// Write batches that began earlier do not know the index. Their rows must be visible to the scan.
	w, err := t.tab.PrepareAll()
	if err != nil {
		return err
	}
	w.Release()
	if err := t.store.core.WaitLSN(ctx, t.store.core.LastLSN()); err != nil {
		return err
	}
	c := rowsChange{t: t, op: opReindex, o: collectBulk([]BulkOption{InPieces(), NoSync}), b: t.store.newBulkBatch()}
	if _, err := c.run(ctx); err != nil {
		return err
	}
	return entries.Alter(ctx, func(row *meta.Table) ([]tablet.Retype, error) {
		x := *row.Index
		x.Building, x.Since = false, t.store.core.Visible()
		row.Index = &x
		return nil, nil
	})
}

// dropIndex removes an index.
func (s *Store) dropIndex(entries *store.Table) error {
	err := s.core.ClaimReserve()
	if err == nil {
		err = s.core.Writer.Drop([]*tablet.Tablet{entries.Tablet})
	}
	if err == nil {
		s.core.Reclaim(context.Background())
	}
	return err
}

// buildIndexes completes, in the background, the indexes that an earlier process has begun.
func (s *Store) buildIndexes() {
	if s.core.Writer == nil || s.opts.Manual {
		return
	}
	for _, t := range s.sortedTables() {
		for _, entries := range t.entry.Indexes() {
			if !entries.Index().Building {
				continue
			}
			if s.enterWriting() != nil {
				return
			}
			go func() {
				defer s.leave()
				ctx := s.core.Background.Context()
				if err := t.buildIndex(ctx, entries); err != nil && ctx.Err() == nil {
					s.opts.Logger.Error("index is not complete", slog.String("table", t.Name()),
						slog.String("index", entries.Index().Name), slog.Any("err", err))
				}
			}()
		}
	}
}
