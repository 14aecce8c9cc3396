package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/oribi-db/oribi/blockmanager"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/meta"
	"github.com/oribi-db/oribi/internal/storedir"
	"github.com/oribi-db/oribi/internal/tablet"
	"github.com/oribi-db/oribi/internal/wal"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/rowset"
)

// Writer changes a store: it commits write batches and metadata, and removes the log that nothing
// needs. It is safe for concurrent use.
type Writer struct {
	*Commits
	core      *Core
	followers *storedir.Followers
}

// newWriter makes an open reader a writer.
func newWriter(c *Core, log *wal.Log, followers *storedir.Followers) *Writer {
	return &Writer{NewCommits(c.Timeline, log, c.Blocks, c.Options.Logger, c.RecentLimit()), c, followers}
}

// maxRecentBytes bounds the memory for the keys of recent write batches, which commits of transactions
// look through. Longer transactions compare the states of their tables instead.
const maxRecentBytes = 16 << 20

// RecentLimit returns the bound, which is lower in a store with little memory.
func (c *Core) RecentLimit() int64 { return min(maxRecentBytes, c.Options.MemoryLimit/16) }

// LogBegin returns the LSN below which the log may be removed.
func (w *Writer) LogBegin() lsn.LSN {
	return w.followers.LogBegin(w.core.Blocks.ConfirmedLogStart(), w.Log.Bytes() >= w.core.LogTarget())
}

// UselessLog returns how many bytes of the log a confirmation would remove.
func (w *Writer) UselessLog() int64 {
	return w.Log.Bytes() - w.Log.BytesFrom(w.followers.Removable(w.core.Blocks.LogStart()))
}

// ReleaseLog removes the log segments that the confirmed metadata does not need. A segment that
// cannot be removed takes space and does no other harm, so that is a warning, and the next call
// tries again. The error is of a poisoned store.
func (w *Writer) ReleaseLog() error {
	err := w.Log.Release(w.LogBegin())
	if err == nil || errors.Is(err, fault.ErrPoisoned) {
		return err
	}
	w.core.Options.Logger.Warn("removing log segments failed", slog.Any("err", err))
	return nil
}

// logNeeds returns an LSN that no operation is below which a table has in memory and not in files,
// apart from some tables, and no batch that is not published.
func (w *Writer) logNeeds(except map[*tablet.Tablet]bool) lsn.LSN {
	start := w.FirstUnpublished()
	for _, t := range w.core.sorted() {
		if !except[t.Tablet] {
			start = min(start, t.FirstLSN())
		}
	}
	return start
}

// Skippable returns how many bytes of the log SkipLog would make removable: those after log_start
// that no table needs, because batches are empty, or of dropped tables.
func (w *Writer) Skippable() int64 {
	return max(0, w.Log.BytesFrom(w.core.Blocks.LogStart())-w.Log.BytesFrom(w.logNeeds(nil)))
}

// SkipLog commits a log_start after all records that no table needs. Elsewhere that is done by
// flushes.
func (w *Writer) SkipLog() error {
	c := w.core
	c.metaMu.Lock()
	defer c.metaMu.Unlock()
	start := w.logNeeds(nil)
	if err := w.Log.Sync(start - 1); err != nil {
		w.Poison(err)
		return err
	}
	row := c.stored
	row.ClockHigh = max(row.ClockHigh, w.Visible())
	row.LogEnd = max(row.LogEnd, w.Log.Durable())
	return w.commitStored(blockmanager.Edit{LogStart: start}, row)
}

// commitStored commits an edit with the row of the store, under metaMu. Without LogStart in the edit,
// log_start stays as it is.
func (w *Writer) commitStored(edit blockmanager.Edit, stored meta.Store) error {
	edit.Put = append(edit.Put, blockmanager.Row{Key: meta.StoreKey(), Value: stored.Encode()})
	if err := w.core.Blocks.Commit(edit); err != nil {
		if !isNoSpace(err) {
			w.Poison(err)
		}
		return err
	}
	w.core.stored = stored
	return nil
}

// trimAbove is how much log Close leaves that need not be replayed, in bytes: reading that much
// takes the next Open less time than a new segment takes Close.
const trimAbove = 1 << 20

// TrimLog begins a new segment and drops the others if the files contain everything in the log.
// Otherwise the next Open would read, and a writer rewrite, a segment that is not needed.
func (w *Writer) TrimLog() error {
	if w.Poisoned() != nil || w.Log.Bytes() <= trimAbove {
		return nil
	}
	err := w.core.Blocks.Confirm()
	if err == nil && w.core.Blocks.ConfirmedLogStart() >= w.Log.Next() {
		if err = w.Log.Roll(); err == nil {
			err = w.ReleaseLog()
		}
	}
	if isNoSpace(err) {
		return nil // trimming only saves time
	}
	return err
}

// Confirm makes the anchor refuse older metadata, if it does not yet, and removes the log segments
// that this frees. A segment that cannot be removed is an error and does not poison.
func (w *Writer) Confirm() error {
	if err := w.Poisoned(); err != nil {
		return err
	}
	if err := w.core.Blocks.Confirm(); err != nil {
		if !isNoSpace(err) {
			w.Poison(err)
		}
		return err
	}
	return w.Log.Release(w.LogBegin())
}

// KeepEnds stores the highest promised timestamp and the last LSN, if the next Open would not find
// them otherwise. Without the last LSN, Open would take a log that was cut, or replaced by an older
// copy, for the log of a killed process.
func (w *Writer) KeepEnds() error {
	if w.Poisoned() != nil {
		return nil
	}
	stored := w.core.stored
	visible, promised := w.Visible(), w.Promised()
	promises := promised > max(visible, stored.ClockHigh)
	last := w.LastLSN()
	if !promises && last <= stored.LogEnd {
		return nil
	}
	if err := w.Log.Sync(last); err != nil {
		w.Poison(err)
		return err
	}
	stored.LogEnd = max(stored.LogEnd, last)
	stored.ClockHigh = max(stored.ClockHigh, visible) // log_start may pass over the record of visible
	if promises {
		stored.ClockHigh = promised
	}
	err := w.commitStored(blockmanager.Edit{LogStart: w.logNeeds(nil)}, stored)
	if isNoSpace(err) && !promises {
		return nil // nothing is lost without it
	}
	return err
}

// Add adds a table, durably, and returns its handle. edit, called when row has its number, returns
// the metadata commit with the row, and the table's rowsets. Errors: ErrExists; the errors of a
// metadata commit.
func (w *Writer) Add(row *meta.Table, edit func() (blockmanager.Edit, []*rowset.Metadata)) (any, error) {
	handles, err := w.add([]*meta.Table{row}, func() (blockmanager.Edit, [][]*rowset.Metadata) {
		commit, sets := edit()
		return commit, [][]*rowset.Metadata{sets}
	})
	if err != nil {
		return nil, err
	}
	return handles[0], nil
}

// add is Add for several tables in one metadata commit: all or none. edit returns the rowsets of each
// row. The row of an index of a new table comes after that of the table, and gets its number and name here.
func (w *Writer) add(rows []*meta.Table, edit func() (blockmanager.Edit, [][]*rowset.Metadata)) ([]any, error) {
	c := w.core
	c.metaMu.Lock()
	defer c.metaMu.Unlock()
	stored := c.stored
	of := uint32(0)
	for _, row := range rows {
		row.Number = stored.NextTable
		stored.NextTable++
		switch x := row.Index; {
		case x == nil:
			of = row.Number
		case x.Of == 0:
			x.Of = of
			fallthrough
		default:
			row.Name = meta.IndexTableName(x.Of, x.Name)
		}
		if c.Face(row.Name) != nil {
			return nil, fmt.Errorf("table %q: %w", meta.DisplayName(row.Name), fault.ErrExists)
		}
	}
	stored.ClockHigh = max(stored.ClockHigh, w.Visible())
	commit, sets := edit()
	if err := w.commitStored(commit, stored); err != nil {
		return nil, err
	}
	made, handles := make([]*Table, len(rows)), make([]any, len(rows))
	for i, row := range rows {
		tab, err := tablet.Open(c.TabletOptions(), row, sets[i])
		if err != nil { // memory does not show what the metadata says
			w.Poison(err)
			return nil, err
		}
		made[i] = c.newTable(tab)
		handles[i] = made[i].face
	}
	c.changeTables(func() {
		for i, row := range rows {
			c.tables[row.Name] = made[i]
		}
	})
	return handles, nil
}

// Create adds empty tables, durably, and returns their handles: all or none. Their names differ.
// Errors: the errors of Wait; ErrExists; the errors of a metadata commit.
func (w *Writer) Create(rows []*meta.Table) ([]any, error) {
	// The metadata row of a new table gets the log's last LSN as its flushed LSN, so the log must
	// be durable up to there first. Otherwise a power failure could remove the end of the log,
	// later batches would reuse its LSNs, and replay would take their inserts for flushed. metaMu
	// is acquired afterwards: a goroutine that holds it never waits for write batches.
	flushed := w.LastLSN()
	if err := w.Wait(context.Background(), flushed); err != nil {
		return nil, err
	}
	created := w.PhysicalTime()
	return w.add(rows, func() (blockmanager.Edit, [][]*rowset.Metadata) {
		edit := blockmanager.Edit{Confirm: true}
		for _, row := range rows {
			row.FlushedLSN, row.Created = flushed, created
			edit.Put = append(edit.Put, blockmanager.Row{Key: meta.TableKey(row.Number), Value: row.Encode()})
		}
		return edit, make([][]*rowset.Metadata, len(rows))
	})
}

// Drop removes tables with all their rows and versions, durably: all or none. It changes the order of
// tables, which differ. Errors: ErrNoTable, which names a table; the errors of a metadata commit.
func (w *Writer) Drop(tables []*tablet.Tablet) error {
	slices.SortFunc(tables, tablet.Compare)
	return tablet.Drop(tables, func() error {
		c := w.core
		c.metaMu.Lock()
		defer c.metaMu.Unlock()
		edit := blockmanager.Edit{Confirm: true}
		for _, t := range tables {
			for _, m := range t.RowSetMetadata() {
				edit.Dead = m.Blocks(edit.Dead)
				edit.Delete = append(edit.Delete, meta.RowSetKey(t.Number, m.ID))
			}
			edit.Delete = append(edit.Delete, meta.TableKey(t.Number))
		}
		// A table may have been what shows that an ingest in the log was committed, see
		// logCheck.decided.
		stored := c.stored
		stored.ClockHigh = max(stored.ClockHigh, w.Visible())
		if err := w.commitStored(edit, stored); err != nil {
			return err
		}
		c.changeTables(func() {
			for _, t := range tables {
				delete(c.tables, t.Metadata().Name) // a rename may have come before the drop
			}
		})
		return nil
	})
}

// Rename renames a table, durably. Errors: ErrExists; ErrNoTable; ctx.Err(); the errors of a metadata
// commit.
func (w *Writer) Rename(ctx context.Context, t *tablet.Tablet, name string) error {
	return t.Rename(name, func(row *meta.Table, install func()) error {
		c := w.core
		c.metaMu.Lock()
		defer c.metaMu.Unlock()
		old := t.Name()
		if row.Name == old {
			return nil
		}
		if c.Face(row.Name) != nil {
			return fault.ErrExists
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		edit := blockmanager.Edit{Confirm: true,
			Put: []blockmanager.Row{{Key: meta.TableKey(row.Number), Value: row.Encode()}}}
		if err := w.commitStored(edit, c.stored); err != nil {
			return err
		}
		c.changeTables(func() {
			c.tables[row.Name] = c.tables[old]
			delete(c.tables, old)
			install()
		})
		return nil
	})
}

// Capture calls capture at a moment between two metadata commits at which no change outside the log
// is in flight, and returns the end of the log at that moment.
func (w *Writer) Capture(capture func() error) (newest mvcc.Timestamp, last lsn.LSN, err error) {
	w.Gate.Block()
	defer w.Gate.Unblock()
	w.core.metaMu.Lock()
	defer w.core.metaMu.Unlock()
	if err := capture(); err != nil {
		return 0, 0, err
	}
	newest, last = w.End()
	return newest, last, nil
}

// commitMeta makes the metadata commit of a tablet.
//
// It finds log_start in this order, so that it misses no operation: first the first unpublished
// LSN, then the lowest LSN in the memory stores. An operation that is not in a store when
// commitMeta asks it was not applied, so not published, so its LSN is not below the first
// unpublished one. A table whose last commit is not installed yet has all stores from before it.
func (w *Writer) commitMeta(tables []tablet.MetaCommit) error {
	c := w.core
	c.metaMu.Lock()
	defer c.metaMu.Unlock()
	own := make(map[*tablet.Tablet]bool, len(tables))
	for i := range tables {
		own[tables[i].Table] = true
	}
	start := w.logNeeds(own)
	for i := range tables {
		start = min(start, tables[i].First())
	}
	// The log has to reach up to log_start: LSNs below it that a power cut took would be given
	// again, to batches that replay passes over.
	if err := w.Log.Sync(start - 1); err != nil {
		w.Poison(err)
		return err
	}
	edit := blockmanager.Edit{LogStart: start}
	for i := range tables {
		join(&edit, tables[i].Edit())
	}
	row := c.stored
	row.ClockHigh = max(row.ClockHigh, w.Visible())
	row.LogEnd = max(row.LogEnd, w.Log.Durable())
	if err := w.commitStored(edit, row); err != nil {
		return err
	}
	for i := range tables {
		w.Gate.Committed(tables[i].Table.Number)
		tables[i].Committed()
	}
	return nil
}

// join adds the edit of a table to an edit.
func join(edit *blockmanager.Edit, e blockmanager.Edit) {
	for _, c := range e.Created {
		if !slices.Contains(edit.Created, c) { // several tables may share one
			edit.Created = append(edit.Created, c)
		}
	}
	edit.Dead = append(edit.Dead, e.Dead...)
	edit.Delete = append(edit.Delete, e.Delete...)
	edit.Put = append(edit.Put, e.Put...)
	edit.Confirm = edit.Confirm || e.Confirm
}

// Wait syncs the log up to at and waits until all of it is published.
func (w *Writer) Wait(ctx context.Context, at lsn.LSN) error {
	if err := w.Log.Sync(at); err != nil {
		w.Poison(err)
		return err
	}
	return w.WaitLSN(ctx, at)
}
