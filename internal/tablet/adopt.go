package tablet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/blockmanager"
	"github.com/oribi-db/oribi/delta"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/meta"
	"github.com/oribi-db/oribi/internal/rowunion"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/rowset"
	"github.com/oribi-db/oribi/scan"
	"github.com/oribi-db/oribi/schema"
)

// Adoption copies finished rowsets from elsewhere into blocks of the store, which one metadata
// commit makes the blocks of a new table. Add and Check verify the copy, so nothing that happens to
// the original later matters. Not safe for concurrent use.
type Adoption struct {
	// MaxTimestamp is the newest timestamp in the files.
	MaxTimestamp mvcc.Timestamp

	opts     Options
	schema   *TableSchema
	creation *blockmanager.Creation
	rows     []*rowset.Metadata
	nextID   schema.ColumnID // above the IDs of all columns in files, also of dropped columns
	auto     int64           // the highest value of an auto-incrementing column
}

// NewAdoption begins to copy rowsets of a table with schema s. The caller calls Abort at the end, also
// after the commit.
func NewAdoption(o Options, s *schema.Schema) *Adoption {
	a := &Adoption{opts: o, schema: newTableSchema(s, 0), creation: o.Store.NewCreation()}
	a.opts.RowSets.Blocks = uncommittedBlocks{a.creation}
	for i := range s.Columns {
		a.nextID = max(a.nextID, s.Columns[i].ID+1)
	}
	return a
}

// Abort discards the blocks unless they are committed.
func (a *Adoption) Abort() { a.creation.Abort() }

// Add copies a rowset and verifies the copy: checksums, bounds, the order of keys, bloom file and
// key index, changes, and counts. It needs memory for a window of rows with their changes. Errors:
// ErrCorrupt; ctx.Err(). Errors of the source and of the file system are returned as they are.
func (a *Adoption) Add(ctx context.Context, f rowset.Files) error {
	if f.Metadata == nil || f.Blocks == nil {
		return fault.Corruptf("a rowset without metadata or without blocks")
	}
	row, live, err := a.metadata(f.Metadata)
	if err == nil {
		err = a.copyBlocks(ctx, row, f.Blocks)
	}
	if err == nil {
		err = a.verify(ctx, row, live)
	}
	if err != nil {
		return fmt.Errorf("rowset %d: %w", f.Metadata.ID, err)
	}
	a.rows = append(a.rows, row)
	return nil
}

// metadata returns the copy's metadata, still with the blocks of the original, and the number of
// live rows that the original's metadata claims, or −1 if it claims none.
func (a *Adoption) metadata(from *rowset.Metadata) (row *rowset.Metadata, live int64, err error) {
	m := *from
	m.LiveRows, m.MaxTimestamp, m.IncludedLSN = max(m.LiveRows, 0), mvcc.Max, 0
	if m.Rows > rowset.MaxRows || m.LastDurableDMS < -1 {
		return nil, 0, fault.Corruptf("%d rows, delta store %d", m.Rows, m.LastDurableDMS)
	}
	if row, err = rowset.DecodeMetadata(m.Encode()); err != nil { // which checks it, and copies its slices
		return nil, 0, err
	}
	kept := row.Columns[:0]
	for _, c := range row.Columns {
		if c.ID == math.MaxInt32 {
			return nil, 0, fault.Corruptf("column %d", c.ID)
		}
		a.nextID = max(a.nextID, c.ID+1)
		if a.schema.Schema.IndexID(c.ID) >= 0 {
			kept = append(kept, c)
		}
	}
	row.Columns = kept
	row.ID, row.Bytes, row.RowFileBytes, row.KeyDirectoryBytes, row.Written = uint64(len(a.rows)), 0, 0, 0, 0
	return row, from.LiveRows, nil
}

// copyBlocks copies all blocks of row, and replaces their IDs in it.
func (a *Adoption) copyBlocks(ctx context.Context, row *rowset.Metadata, from rowset.Blocks) error {
	copyTo := func(id *block.ID) (n int64, err error) {
		if *id == 0 {
			return 0, nil
		}
		was := *id
		if *id, n, err = a.copyBlock(ctx, was, from); err != nil {
			return 0, fmt.Errorf("block %d: %w", was, err)
		}
		row.Bytes += n
		return n, nil
	}
	all := []*block.ID{&row.Bloom, &row.KeyIndex}
	for i := range row.Columns {
		all = append(all, &row.Columns[i].Block)
	}
	for _, list := range [][]block.ID{row.Redo, row.Undo} {
		for i := range list {
			all = append(all, &list[i])
		}
	}
	for _, id := range all {
		if _, err := copyTo(id); err != nil {
			return err
		}
	}
	var err error
	if row.RowFileBytes, err = copyTo(&row.RowFile); err == nil {
		row.KeyDirectoryBytes, err = copyTo(&row.KeyDirectory)
	}
	return err
}

// copyPieceBytes is how much of a block is copied at a time.
const copyPieceBytes = 1 << 20

func (a *Adoption) copyBlock(ctx context.Context, id block.ID, from rowset.Blocks) (block.ID, int64, error) {
	src, err := from.OpenBlock(id)
	if err != nil {
		return 0, 0, err
	}
	defer src.Close() // read-only: the error does not matter
	sink, err := a.creation.Create()
	if err != nil {
		return 0, 0, err
	}
	piece := make([]byte, min(src.Size(), copyPieceBytes))
	for at := int64(0); at < src.Size(); at += int64(len(piece)) {
		piece = piece[:min(int64(len(piece)), src.Size()-at)]
		if err := ctx.Err(); err != nil {
			return 0, 0, err
		}
		if n, err := src.ReadAt(piece, at); err != nil && (err != io.EOF || n < len(piece)) {
			return 0, 0, err
		}
		if _, err := sink.Write(piece); err != nil {
			return 0, 0, err
		}
	}
	return sink.ID(), sink.Size(), a.creation.Finish(sink)
}

// verify reads and verifies the copy of a rowset, and completes its metadata. live is the number of
// live rows that it should have, −1 if that is not known.
func (a *Adoption) verify(ctx context.Context, row *rowset.Metadata, live int64) error {
	d, err := rowset.Open(a.schema.Schema, row, a.opts.RowSets)
	if err != nil {
		return err
	}
	defer d.Unref()
	if id, err := d.CheckFiles(); err != nil {
		return fmt.Errorf("block %d: %w", id, err)
	}
	err = errors.Join(d.CheckRows(ctx), d.CheckRowFile(), d.CheckKeyDirectory())
	if err != nil {
		return err
	}
	it, err := a.liveRows([]*rowset.DiskRowSet{d})
	if err != nil {
		return err
	}
	if row.LiveRows, err = scan.CountAscending(ctx, it, keyDigits); err != nil {
		return err
	}
	if live >= 0 && live != row.LiveRows {
		return fault.Corruptf("%d live rows, the metadata says %d", row.LiveRows, live)
	}
	if err := a.noteChanges(d, row); err != nil {
		return err
	}
	return a.noteValues(ctx, d)
}

func keyDigits(key []byte) string { return fmt.Sprintf("%x", key) }

// liveRows returns the keys of rowsets as of the newest changes, in order.
func (a *Adoption) liveRows(sets []*rowset.DiskRowSet) (scan.Iterator, error) {
	r, err := scan.NewRequest(scan.Options{Schema: a.schema.Schema, Snapshot: mvcc.Everything, Keys: true})
	if err != nil {
		return nil, err
	}
	return rowunion.Union{Tree: rowset.NewTree(sets), Format: a.schema.RowFormat}.Scan(r, true), nil
}

// noteChanges notes the timestamps and columns of a rowset's changes.
func (a *Adoption) noteChanges(d *rowset.DiskRowSet, row *rowset.Metadata) error {
	row.MaxTimestamp = mvcc.Min
	for _, b := range row.Births {
		row.MaxTimestamp = max(row.MaxTimestamp, b.TS)
	}
	t := d.Tracker()
	for _, list := range [][]*delta.File{t.Undo, t.Redo} {
		for _, f := range list {
			stats := f.Stats()
			row.MaxTimestamp = max(row.MaxTimestamp, stats.Max)
			for _, c := range stats.Columns {
				if c.ID == math.MaxInt32 {
					return fault.Corruptf("block %d: column %d", f.ID, c.ID)
				}
				a.nextID = max(a.nextID, c.ID+1)
			}
		}
	}
	if row.MaxTimestamp > mvcc.Last {
		return fault.Corruptf("a change at %d, which is no time", uint64(row.MaxTimestamp))
	}
	a.MaxTimestamp = max(a.MaxTimestamp, row.MaxTimestamp)
	return nil
}

// noteValues notes the highest value of an auto-incrementing column, deleted rows included.
func (a *Adoption) noteValues(ctx context.Context, d *rowset.DiskRowSet) error {
	auto := a.schema.auto
	if auto < 0 {
		return nil
	}
	h, err := d.Histories(mvcc.Everything)
	if err != nil {
		return err
	}
	for {
		rows, err := h.Next()
		if rows == nil || err != nil {
			return err
		}
		for i := range rows.Keys {
			a.auto = max(a.auto, autoValue(rows.Batch.Columns[auto].Cell(i)))
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// Finish verifies that no key is live twice, and makes the blocks durable. Errors: ErrCorrupt;
// ctx.Err(); the errors of the file system.
func (a *Adoption) Finish(ctx context.Context) error {
	var sets []*rowset.DiskRowSet
	defer func() {
		for _, d := range sets {
			d.Unref()
		}
	}()
	for _, row := range a.rows {
		d, err := rowset.Open(a.schema.Schema, row, a.opts.RowSets)
		if err != nil {
			return err
		}
		sets = append(sets, d)
	}
	it, err := a.liveRows(sets)
	if err != nil {
		return err
	}
	if _, err := scan.CountAscending(ctx, it, keyDigits); err != nil {
		return err
	}
	return a.creation.Sync()
}

// Edit completes the metadata row of the table to which the rowsets belong, and returns the
// metadata commit that makes them part of it. at is an LSN that is durable in the log, below the
// LSNs of all operations on the table.
func (a *Adoption) Edit(table *meta.Table, at lsn.LSN) blockmanager.Edit {
	table.FlushedLSN, table.NextRowSetID, table.AutoIncrement = at, uint64(len(a.rows)), a.auto
	table.NextColumnID = max(table.NextColumnID, a.nextID)
	e := Edit{Created: []*blockmanager.Creation{a.creation}, Confirm: true}
	e.add(a.rows, at)
	e.stamp(a.opts.Store.Now())
	return e.metadata(table)
}

// RowSets returns the metadata of the rowsets.
func (a *Adoption) RowSets() []*rowset.Metadata { return a.rows }
