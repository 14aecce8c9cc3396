package handover

import (
	"context"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/cfile"
	"github.com/oribi-db/oribi/delta"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/kudufs"
	"github.com/oribi-db/oribi/internal/kudupb"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/rowset"
	"github.com/oribi-db/oribi/schema"
)

// Result describes an exported or installed table.
type Result struct {
	Tablet  string // its ID
	RowSets int
	Rows    int64 // as of now
	Bytes   int64 // of all blocks
}

// outgoing are the rowsets of a table on their way to a tablet.
type outgoing struct {
	ctx    context.Context
	writer *kudufs.Writer
	schema *schema.Schema                      // of the table
	ids    map[schema.ColumnID]schema.ColumnID // of the tablet's columns, by the table's

	rowsets []*kudupb.RowSetDataPB
	bytes   int64
	rows    int64
}

// add copies a rowset. One whose delta files overlap in time is written again: a server that merges
// it later would write the changes of a row file by file, not by time, and so lose history.
//
//	undo file 1: row 7: @46 b, @44 b    a major compaction of column b
//	undo file 2: row 7: @46 c, @44 c    one of column c
//	merged by a server: @46 b, @44 b, @46 c, @44 c; a read as of 45 ends at @44 b
func (o *outgoing) add(f rowset.Files) error {
	ok, err := byTime(f)
	if err != nil {
		return err
	}
	if !ok {
		return o.addPart(f, &partition{})
	}
	return o.addFiles(f)
}

// addPart writes the rows of a rowset that belong to a partition, with their history.
func (o *outgoing) addPart(f rowset.Files, p *partition) error {
	d, err := rowset.Open(o.schema, f.Metadata, rowset.Options{Blocks: f.Blocks})
	if err != nil {
		return err
	}
	defer d.Unref()
	parts, err := p.rewrite(o.ctx, d, o.schema)
	if err != nil {
		return err
	}
	for _, part := range parts {
		if err := o.addFiles(part); err != nil {
			return err
		}
	}
	return nil
}

// byTime reports whether each delta file of a rowset has only changes that are newer than all
// changes of the older files.
func byTime(f rowset.Files) (bool, error) {
	newer := mvcc.Max
	for _, id := range slices.Concat(reversed(f.Metadata.Redo), f.Metadata.Undo) {
		src, err := f.Blocks.OpenBlock(id)
		if err != nil {
			return false, err
		}
		file, err := delta.OpenFile(src, cfile.ReaderOptions{})
		src.Close() // read-only: the error does not matter
		if err != nil {
			return false, fmt.Errorf("block %d: %w", uint64(id), err)
		}
		stats := file.Stats()
		if stats.Max >= newer {
			return false, nil
		}
		newer = stats.Min
	}
	return true, nil
}

func reversed(ids []block.ID) []block.ID {
	out := slices.Clone(ids)
	slices.Reverse(out)
	return out
}

// addFiles copies the files of a rowset.
func (o *outgoing) addFiles(f rowset.Files) error {
	m := *f.Metadata
	m.ID, m.Columns = uint64(len(o.rowsets)), nil
	var err error
	put := func(id block.ID) block.ID {
		if err == nil && id != 0 {
			id, err = o.copy(f.Blocks, id)
		}
		return id
	}
	for _, c := range f.Metadata.Columns {
		m.Columns = append(m.Columns, rowset.ColumnBlock{ID: o.ids[c.ID], Block: put(c.Block)})
	}
	m.Bloom, m.KeyIndex = put(m.Bloom), put(m.KeyIndex)
	if err != nil {
		return err
	}
	if m.Redo, err = o.deltas(f, m.Redo, false); err != nil {
		return err
	}
	if m.Undo, err = o.deltas(f, m.Undo, true); err != nil {
		return err
	}
	m.DropRowFile()
	var row kudupb.RowSetRow // begins with Kudu's message
	if err := kudupb.DecodeRow("rowset", m.Encode(), &row); err != nil {
		return err
	}
	o.rowsets = append(o.rowsets, row.Data)
	o.rows += m.LiveRows
	o.writer.NextDirectory()
	return nil
}

// copy copies a block as it is.
func (o *outgoing) copy(blocks rowset.Blocks, id block.ID) (block.ID, error) {
	if err := o.ctx.Err(); err != nil {
		return 0, err
	}
	src, err := blocks.OpenBlock(id)
	if err != nil {
		return 0, err
	}
	defer src.Close() // read-only: the error does not matter
	return o.write(src)
}

func (o *outgoing) write(src block.Source) (block.ID, error) {
	o.bytes += src.Size()
	return o.writer.Copy(src, src.Size())
}

// deltas copies delta files, with the column IDs of the tablet.
func (o *outgoing) deltas(f rowset.Files, ids []block.ID, undo bool) ([]block.ID, error) {
	numbering := delta.Numbering(func(id schema.ColumnID) (schema.ColumnID, bool) {
		other, ok := o.ids[id]
		return other, ok
	})
	var out []block.ID
	for _, id := range ids {
		if err := o.ctx.Err(); err != nil {
			return nil, err
		}
		copied, err := o.delta(f.Blocks, id, undo, numbering)
		if err != nil {
			return nil, fmt.Errorf("block %d: %w", uint64(id), err)
		}
		if copied != 0 {
			out = append(out, copied)
		}
	}
	return out, nil
}

// delta copies a delta file. It returns 0 if no change is left.
func (o *outgoing) delta(blocks rowset.Blocks, id block.ID, undo bool, numbering delta.Numbering) (block.ID, error) {
	src, err := blocks.OpenBlock(id)
	if err != nil {
		return 0, err
	}
	defer src.Close() // read-only: the error does not matter
	file, err := delta.OpenFile(src, cfile.ReaderOptions{})
	if err != nil {
		return 0, err
	}
	if numbering.Keeps(file) {
		return o.write(src)
	}
	var other block.Memory
	n, err := delta.Renumber(&other, file, undo, o.schema, numbering)
	if err != nil || n == 0 {
		return 0, err
	}
	return o.write(&other)
}

// result returns what was copied to a tablet.
func (o *outgoing) result(tablet string) Result {
	return Result{Tablet: tablet, RowSets: len(o.rowsets), Rows: o.rows, Bytes: o.bytes}
}

// checkTypes returns an error if Kudu 1.18 does not know a type of the schema.
func checkTypes(s *schema.Schema) error {
	for i := range s.Columns {
		if c := &s.Columns[i]; c.Type == schema.Array {
			return fmt.Errorf("column %q has arrays, which Kudu 1.18 does not know: %w", c.Name, fault.ErrUnsupported)
		}
	}
	return nil
}

// sameIDs returns the numbering that changes nothing.
func sameIDs(s *schema.Schema) map[schema.ColumnID]schema.ColumnID {
	ids := map[schema.ColumnID]schema.ColumnID{}
	for i := range s.Columns {
		ids[s.Columns[i].ID] = s.Columns[i].ID
	}
	return ids
}

// setRowSets makes a superblock one of the rowsets.
func (o *outgoing) setRowSets(m *kudupb.TabletSuperBlockPB) {
	m.Rowsets, m.SupportsLiveRowCount = o.rowsets, proto.Bool(true)
}
