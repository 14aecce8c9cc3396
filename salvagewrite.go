package oribi

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"io"
	"slices"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/blockmanager"
	"github.com/oribi-db/oribi/internal/meta"
	"github.com/oribi-db/oribi/rowset"
)

// Info describes the new store.
func (v *salvager) Info() ImageInfo {
	s := v.s
	c := s.blocks.Counters()
	return ImageInfo{UUID: hex.EncodeToString(s.instance.id[:]), Timestamp: s.pub.Visible(), BlockSize: s.instance.blockSize,
		Epoch: max(c.Epoch, v.log.epoch), Mark: c.Mark, LogStart: max(c.LogStart, 1), LogEnd: s.lastLSN.Load()}
}

// build decides which rowsets are copied and writes the others anew. All rows of the metadata are
// known afterwards.
//
// What the log changes in a rowset that is copied, opening the new store will change there. A
// rowset that is written anew contains the whole log.
func (v *salvager) build(b *blockmanager.Builder) error {
	v.rows = append(v.rows, blockmanager.Row{Key: meta.StoreKey(), Value: v.s.stored.Encode()})
	for _, t := range v.s.sortedTables() {
		w := tableSalvager{v: v, b: b, t: t, row: *t.tab.Metadata()}
		if err := t.tab.Sets(v.ctx, w.rowset); err != nil {
			return fmt.Errorf("table %q: %w", w.row.Name, err)
		}
		v.rows = append(v.rows, blockmanager.Row{Key: meta.TableKey(w.row.Number), Value: w.row.Encode()})
	}
	slices.SortFunc(v.whole, func(a, b blockmanager.BlockInfo) int { return cmp.Compare(a.ID, b.ID) })
	return nil
}

// tableSalvager salvages one table.
type tableSalvager struct {
	v   *salvager
	b   *blockmanager.Builder
	t   *Table
	row meta.Table // of the new store
}

// rowset salvages one rowset.
func (w *tableSalvager) rowset(d *rowset.DiskRowSet) error {
	m := *d.Metadata()
	damaged := func(id block.ID) bool { return w.v.bad[id] != nil || w.v.blocks[id].ID == 0 }
	if m.RowFile != 0 && damaged(m.RowFile) || m.KeyDirectory != 0 && damaged(m.KeyDirectory) {
		m.DropRowFile() // other files have what they have
	}
	ids := m.Blocks(nil)
	if slices.ContainsFunc(ids, damaged) {
		return w.rewrite(d)
	}
	for _, id := range ids {
		w.v.whole = append(w.v.whole, w.v.blocks[id].BlockInfo)
	}
	w.add(&m)
	return nil
}

func (w *tableSalvager) add(m *rowset.Metadata) {
	w.v.rows = append(w.v.rows, blockmanager.Row{Key: meta.RowSetKey(w.row.Number, m.ID), Value: m.Encode()})
}

// rewrite writes the rows of a damaged rowset to new ones.
func (w *tableSalvager) rewrite(d *rowset.DiskRowSet) error {
	v, m := w.v, d.Metadata()
	nextID := func() uint64 {
		w.row.NextRowSetID++
		return w.row.NextRowSetID - 1
	}
	out := rowset.NewRollingWriter(w.b, d.Schema, nextID, v.s.opts.RowSetBytes)
	out.RowFiles = w.row.RowFile
	o := rowset.SalvageOptions{FillNull: v.o.fillNull, Floor: w.row.HistoryFloor}
	err := d.Salvage(v.ctx, o, out.Append, func(l rowset.Lost) {
		v.lose(w.row.Name, l.Block, l.Rows, lostText(&l))
	})
	if err != nil {
		return err
	}
	sets, err := out.Finish()
	if err != nil {
		return err
	}
	for _, n := range sets {
		n.IncludedLSN, n.MaxTimestamp = v.s.lastLSN.Load(), max(n.MaxTimestamp, m.MaxTimestamp)
		w.add(n)
	}
	v.advance(m.Bytes)
	return nil
}

// loseRowSet reports a rowset that cannot be opened at all.
func (v *salvager) loseRowSet(t *meta.Table, m *rowset.Metadata, err error) {
	v.report(Loss{Table: t.Name, File: metaName, Rows: m.Rows, Lost: fmt.Sprintf("rowset %d: %v", m.ID, err)})
}

// lostText describes what the damage of one block costs.
func lostText(l *rowset.Lost) string {
	newest := fmt.Sprintf("the newest of %d", l.Newest)
	switch {
	case l.Changes:
		return fmt.Sprintf("changes of %d rows, %s", l.Rows, newest)
	case l.Filled:
		return fmt.Sprintf("column %q: filled with NULL in %d rows, in the newest version of %d", l.Column, l.Rows, l.Newest)
	}
	return fmt.Sprintf("column %q: versions of %d rows, %s", l.Column, l.Rows, newest)
}

// Rows calls fn with each row of the new metadata.
func (v *salvager) Rows(fn func(key, value []byte) error) error {
	for _, r := range v.rows {
		if err := fn(r.Key, r.Value); err != nil {
			return err
		}
	}
	return nil
}

// Records calls fn with each record of the new log.
func (v *salvager) Records(fn func(record []byte) error) error { return v.log.write(fn) }

// Blocks calls fn with each block that is copied.
func (v *salvager) Blocks(fn func(b ImageBlock, open func() (io.ReadCloser, error)) error) error {
	for _, b := range v.whole {
		err := fn(ImageBlock{uint64(b.ID), b.Length, b.Sum}, func() (io.ReadCloser, error) { return v.s.blocks.ReadBlock(b.ID) })
		if err != nil {
			return err
		}
		v.advance(b.Length)
	}
	return nil
}
