package store

import (
	"fmt"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/meta"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/rowset"
)

// verifyNames compares the rows of tables and rowsets with one another and with the blocks, as of
// one commit.
func (s *Store) verifyNames(o *Verification) error {
	snap, err := s.Blocks.Snapshot()
	if err != nil {
		return err
	}
	defer snap.Close()
	o.missing = map[block.ID]bool{}
	// Commits are logged before the metadata contains them, so the log's end is read after the
	// snapshot.
	c := nameCheck{s: s, o: o, lengths: make(map[block.ID]int64, snap.Len()),
		owners: map[block.ID]string{},
		tables: map[uint32]*meta.Table{}, lastLSN: s.LastLSN()}
	for i := range snap.Len() {
		b := snap.Block(i)
		c.lengths[b.ID] = b.Length
	}
	if snap.LogStart > c.lastLSN+1 {
		c.wrong(0, "the log begins with LSN %d, after its last one, %d", snap.LogStart, c.lastLSN)
	}
	if err := snap.Rows(c.row); err != nil {
		return err
	}
	for i := range snap.Len() {
		if id := snap.Block(i).ID; c.owners[id] == "" {
			c.wrong(id, "no rowset names the block")
		}
	}
	return nil
}

// nameCheck does what verifyNames describes.
type nameCheck struct {
	s       *Store
	o       *Verification
	lengths map[block.ID]int64
	owners  map[block.ID]string
	tables  map[uint32]*meta.Table
	lastLSN lsn.LSN
}

func (c *nameCheck) wrong(id block.ID, format string, args ...any) {
	c.o.Report(c.o.place(c.s, id, fmt.Sprintf(format, args...)))
}

// row checks a row of the metadata. Rows of tables precede those of rowsets.
func (c *nameCheck) row(key, value []byte) error {
	kind, number, id, err := meta.ParseKey(key)
	if err != nil {
		return err
	}
	switch kind {
	case meta.TableRow:
		t, err := meta.DecodeTable(value)
		if err != nil {
			return err
		}
		c.tables[number] = t
		if t.Number != number {
			c.wrong(0, "table %q: number %d in the row of table %d", t.Name, t.Number, number)
		}
		if t.FlushedLSN > c.lastLSN {
			c.wrong(0, "table %q: flushed up to LSN %d, the log ends with %d", t.Name, t.FlushedLSN, c.lastLSN)
		}
	case meta.RowSetRow:
		m, err := rowset.DecodeMetadata(value)
		if err != nil {
			return err
		}
		t := c.tables[number]
		if t == nil {
			c.wrong(0, "rowset %d belongs to table %d, which is missing", id, number)
			return nil
		}
		if m.ID != id {
			c.wrong(0, "table %q: rowset %d in the row of rowset %d", t.Name, m.ID, id)
		}
		c.rowset(fmt.Sprintf("table %q: rowset %d", t.Name, m.ID), t, m)
	}
	return nil
}

func (c *nameCheck) rowset(name string, t *meta.Table, m *rowset.Metadata) {
	if m.IncludedLSN > c.lastLSN {
		c.wrong(0, "%s: includes LSNs up to %d, the log ends with %d", name, m.IncludedLSN, c.lastLSN)
	}
	for _, col := range m.Columns {
		if col.ID >= t.NextColumnID {
			c.wrong(col.Block, "%s: column %d, the next one is %d", name, col.ID, t.NextColumnID)
		}
	}
	whole, sum := true, int64(0)
	for _, id := range m.Blocks(nil) {
		if other := c.owners[id]; other != "" {
			c.wrong(id, "%s names the block, and so does %s", name, other)
		}
		c.owners[id] = name
		length, ok := c.lengths[id]
		if !ok {
			c.wrong(id, "%s names the block, which is missing", name)
			c.o.missing[id], whole = true, false
			continue
		}
		if id == m.RowFile && length != m.RowFileBytes || id == m.KeyDirectory && length != m.KeyDirectoryBytes {
			c.wrong(id, "%s: the block has %d bytes, the metadata says otherwise", name, length)
		}
		sum += length
	}
	if whole && sum != m.Bytes {
		c.wrong(0, "%s: blocks of %d bytes, the metadata says %d", name, sum, m.Bytes)
	}
}
