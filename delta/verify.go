package delta

import (
	"fmt"
	"io"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/cfile"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/dump"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/schema"
)

// Verify reads the whole file and checks what readers assume: every cblock; every list against s,
// as described at Tracker.Schema; row IDs below rows, the number of rows of the rowset; the order
// of timestamps within a row, which differs between redos and undos; and the statistics, by which
// readers skip files. Errors: ErrCorrupt.
func (f *File) Verify(s *schema.Schema, rows uint64, undo bool) error {
	if err := f.cells.Verify(); err != nil {
		return fmt.Errorf("delta: %w", err)
	}
	if s == nil {
		s = noSchema
	}
	stats := emptyStats()
	var last change.Delta
	var count int64
	var bad error
	c := cursor{file: f, schema: s}
	err := c.scan(0, maxRow+1, func(b *deltaBlock, i, j int) {
		for d := range b.entriesOf(i, j) {
			switch {
			case bad != nil:
				return
			case uint64(d.Row) >= rows:
				bad = fault.Corruptf("row %d in a rowset of %d", d.Row, rows)
			case count > 0 && d.Row == last.Row && (undo && d.TS > last.TS || !undo && d.TS < last.TS):
				bad = fault.Corruptf("row %d: change at %d after one at %d", d.Row, uint64(d.TS), uint64(last.TS))
			}
			stats.add(d.TS, d.List)
			last = d
			count++
		}
	})
	switch {
	case err != nil:
		return err
	case bad != nil:
		return f.damaged(bad)
	case count != f.Len():
		return f.damaged(fault.Corruptf("%d deltas found, the file says %d", count, f.Len()))
	case !stats.equal(&f.stats):
		return f.damaged(fault.Corruptf("statistics %+v, the deltas make it %+v", f.stats, stats))
	}
	return nil
}

// Dump prints the statistics and every delta of a delta file next to its bytes. Offsets count from
// the beginning of each cell, since cells are stored in compressed cblocks. The surrounding cfile
// is not printed.
func Dump(w io.Writer, data []byte) error {
	f, err := OpenFile(&block.Memory{Bytes: data}, cfile.ReaderOptions{})
	if err != nil {
		return err
	}
	out := dump.New(w)
	out.Section("%d deltas", f.Len())
	message, _ := f.cells.Metadata(statsKey)
	out.Field(0, message, "%s: deletes %d, reinserts %d, timestamps %d to %d", statsKey,
		f.stats.Deletes, f.stats.Reinserts, uint64(f.stats.Min), uint64(f.stats.Max))
	for _, c := range f.stats.Columns {
		out.Note("column %d: %d updates", c.ID, c.Updates)
	}
	c := cursor{file: f, schema: noSchema}
	err = c.scan(0, maxRow+1, func(b *deltaBlock, i, j int) {
		for d := range b.entriesOf(i, j) {
			dumpDelta(out, d)
		}
	})
	out.End()
	if err != nil {
		return err
	}
	return out.Err()
}

func dumpDelta(out *dump.Writer, d change.Delta) {
	key := AppendKey(nil, d.Row, d.TS)
	out.Section("row %d at %d: %s", d.Row, uint64(d.TS), d.List.Kind())
	defer out.End()
	out.Field(0, key, "delta key")
	out.Field(int64(len(key)), d.List, "change list")
	columns := d.List.Columns()
	for id, cell, ok := columns.Next(); ok; id, cell, ok = columns.Next() {
		if cell == nil {
			out.Note("column %d: NULL", id)
		} else {
			out.Note("column %d: %x", id, cell)
		}
	}
}
