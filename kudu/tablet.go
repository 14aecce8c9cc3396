package kudu

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/cfile"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/budget"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/kudufs"
	"github.com/oribi-db/oribi/internal/kudupb"
	"github.com/oribi-db/oribi/internal/kuduwal"
	"github.com/oribi-db/oribi/keyenc"
	"github.com/oribi-db/oribi/memrowset"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/rowset"
	"github.com/oribi-db/oribi/scan"
	"github.com/oribi-db/oribi/schema"
)

// tablet is the state of one tablet: the rowsets that its superblock names, and the operations that
// only its log has. replay adds the operations: inserted rows to mem, changes of rows in rowsets
// with rowset.DiskRowSet.Apply.
type tablet struct {
	id    string
	fs    *kudufs.Directory
	super *kudupb.TabletSuperBlockPB
	warn  func(text string)

	// schema is the last schema of the table, with which all its tablets are read; format and
	// encoder belong to it. The superblock of this tablet may have an older schema, if the server
	// stopped before it altered this tablet.
	schema  *schema.Schema
	format  *change.RowFormat
	encoder *keyenc.Encoder

	sets []*rowset.DiskRowSet          // by ID in the superblock's order
	byID map[uint64]*rowset.DiskRowSet // by the ID of the rowset
	tree *rowset.Tree                  // by key
	mem  *memrowset.MemRowSet

	memory *budget.Budget // of mem and the delta mem stores of sets

	findings []kuduwal.Finding // about the log; set by replay

	newest mvcc.Timestamp // of all operations in the log, also those that are in rowsets; set by replay
}

// openTablet opens the rowsets of a tablet for reads with schema s, and replays its log.
func (d *Directory) openTablet(ctx context.Context, from *Tablet, s *schema.Schema) (t *tablet, err error) {
	t = &tablet{id: from.ID, fs: d.fs, super: from.super, warn: d.warn, schema: s, format: change.NewRowFormat(s),
		encoder: keyenc.NewEncoder(s),
		byID:    map[uint64]*rowset.DiskRowSet{}, mem: memrowset.New(s, d.memory.Grower(budget.MemRowSet)),
		memory: d.memory}
	defer func() {
		if err != nil {
			t.close()
			err = fmt.Errorf("tablet %s: %w", t.id, err)
		}
	}()
	options := rowset.Options{Blocks: blocks{d.fs}, Cache: d.cache, Grow: d.memory.Grower(budget.Delta)}
	for _, m := range t.super.Rowsets {
		if err := ctx.Err(); err != nil {
			return t, err
		}
		set, err := openRowSet(s, m, options)
		if err != nil {
			return t, err
		}
		t.sets = append(t.sets, set)
		t.byID[m.GetId()] = set
	}
	t.tree = rowset.NewTree(t.sets)
	return t, replay(ctx, t)
}

// close closes the rowsets, and releases what only the log has. It is called once.
func (t *tablet) close() {
	for _, set := range t.sets {
		if mem := set.Tracker().Mem; mem != nil {
			mem.Release()
		}
		set.Unref()
	}
	t.mem.Release()
}

// openRowSet opens a rowset from Kudu's metadata, with the bounds that its key file has.
func openRowSet(s *schema.Schema, m *kudupb.RowSetDataPB, o rowset.Options) (*rowset.DiskRowSet, error) {
	row, err := rowsetMetadata(m)
	if err == nil {
		err = readBounds(s, row, o)
	}
	if err != nil {
		return nil, fmt.Errorf("rowset %d: %w", m.GetId(), err)
	}
	return rowset.Open(s, row, o)
}

// rowsetMetadata converts Kudu's message. Bounds and the number of rows are in the key file.
func rowsetMetadata(m *kudupb.RowSetDataPB) (*rowset.Metadata, error) {
	r := &rowset.Metadata{
		ID:             m.GetId(),
		Bloom:          block.ID(m.GetBloomBlock().GetId()),
		KeyIndex:       block.ID(m.GetAdhocIndexBlock().GetId()),
		LiveRows:       m.GetLiveRowCount(),
		LastDurableDMS: m.GetLastDurableDmsId(),
	}
	seen := make(map[schema.ColumnID]bool, len(m.Columns))
	for _, c := range m.Columns {
		id := schema.ColumnID(c.GetColumnId())
		if seen[id] {
			return nil, fault.Corruptf("two files of column %d", id)
		}
		seen[id] = true
		r.Columns = append(r.Columns, rowset.ColumnBlock{ID: id, Block: block.ID(c.GetBlock().GetId())})
	}
	for _, b := range m.RedoDeltas {
		r.Redo = append(r.Redo, block.ID(b.GetBlock().GetId()))
	}
	for _, b := range m.UndoDeltas {
		r.Undo = append(r.Undo, block.ID(b.GetBlock().GetId()))
	}
	return r, nil
}

// readBounds sets the bounds of a rowset and the number of its rows to those in its key file.
// Source: tablet spec §10.2.
func readBounds(s *schema.Schema, m *rowset.Metadata, o rowset.Options) error {
	id := m.KeyIndex
	if s.SingleKey() {
		for _, c := range m.Columns {
			if c.ID == s.Columns[0].ID {
				id = c.Block
			}
		}
	}
	if id == 0 {
		return fault.Corruptf("no key file")
	}
	src, err := o.Blocks.OpenBlock(id)
	if err != nil {
		return err
	}
	defer src.Close() // read-only: the error does not matter
	keys, err := cfile.Open(src, cfile.ReaderOptions{})
	if err != nil {
		return err
	}
	if m.Rows = keys.Rows(); m.Rows > rowset.MaxRows {
		return fault.Corruptf("%d rows", m.Rows)
	}
	var low, high bool
	m.MinKey, low = keys.Metadata("min_key")
	m.MaxKey, high = keys.Metadata("max_key")
	if !low || !high || bytes.Compare(m.MinKey, m.MaxKey) > 0 {
		return fault.Corruptf("block %d: the key file has no bounds, or they are not in order", uint64(id))
	}
	return nil
}

// readRows returns the number of rows as of the newest operation, which it reads.
func (t *tablet) readRows(ctx context.Context) (n int64, err error) {
	it, err := tableOf(t).Scan(scan.Options{Snapshot: mvcc.Everything}, false)
	if err != nil {
		return 0, err
	}
	for err == nil && it.Next() {
		n += int64(it.Batch().Selection.Count())
		err = ctx.Err()
	}
	return n, errors.Join(err, it.Close())
}

// liveRows returns the number of rows as of the newest operation by the counts of the rowsets.
// Rowsets of old servers have no count.
func (t *tablet) liveRows() (n int64) {
	for _, set := range t.sets {
		n += set.Metadata().LiveRows
		if mem := set.Tracker().Mem; mem != nil {
			n -= mem.Deleted()
		}
	}
	return n + t.mem.LiveRows()
}
