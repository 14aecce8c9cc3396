package tablet

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/delta"
	"github.com/oribi-db/oribi/rowset"
	"github.com/oribi-db/oribi/schema"
)

// Files flushes the table, then calls use with its schema and the files of its rowsets, in the
// order of their first keys. Each file is read and verified in full before its rowset is passed on.
// They are as Kudu knows them, which has neither births, nor row files, nor files and changes of
// dropped columns: undo files replace births, and delta files with such changes are written again,
// both in memory. The files of a rowset are valid until the next one. sets can be ranged over
// several times. No flush, compaction, or alteration of the table runs concurrently. Errors:
// ErrCorrupt; the errors of Flush and of use. Source: tablet spec §8, §11.1.
func (t *Tablet) Files(ctx context.Context,
	use func(s *schema.Schema, sets iter.Seq2[rowset.Files, error]) error) error {
	return t.exclusively(ctx, func() error { return t.files(ctx, use) })
}

// files is Files for the owner of the table.
func (t *Tablet) files(ctx context.Context,
	use func(s *schema.Schema, sets iter.Seq2[rowset.Files, error]) error) error {
	if _, err := t.flush(ctx); err != nil {
		return err
	}
	st, err := t.acquire()
	if err != nil {
		return err
	}
	defer st.release()
	return use(st.schema.Schema, func(yield func(rowset.Files, error) bool) {
		for _, d := range st.tree.Sets {
			f, err := PlainFiles(ctx, d, st.schema.Schema, &rowset.Overlay{Base: t.opts.RowSets.Blocks})
			if err != nil {
				yield(rowset.Files{}, fmt.Errorf("table %q: rowset %d: %w", t.Name(), d.Metadata().ID, err))
				return
			}
			if !yield(f, nil) {
				return
			}
		}
	})
}

// PlainFiles returns the files of a rowset as Kudu knows them; see Tablet.Files. s is the schema of
// the table. blocks has the files, and gets those that are written again. Each file is verified.
func PlainFiles(ctx context.Context, d *rowset.DiskRowSet, s *schema.Schema,
	blocks *rowset.Overlay) (rowset.Files, error) {
	p := plainFiles{ctx: ctx, set: d, schema: s, blocks: blocks}
	m, err := p.prepare()
	return rowset.Files{Metadata: m, Blocks: blocks}, err
}

// plainFiles makes the files of one rowset as Kudu knows them.
type plainFiles struct {
	ctx    context.Context
	set    *rowset.DiskRowSet
	schema *schema.Schema // of the table
	blocks *rowset.Overlay
}

// prepare returns metadata that names the files.
func (p *plainFiles) prepare() (*rowset.Metadata, error) {
	if id, err := p.set.CheckFiles(); err != nil {
		return nil, fmt.Errorf("block %d: %w", id, err)
	}
	m := *p.set.Metadata()
	m.DropRowFile()
	m.Columns = slices.DeleteFunc(slices.Clone(m.Columns), func(c rowset.ColumnBlock) bool {
		return p.schema.IndexID(c.ID) < 0
	})
	var err error
	if m.Redo, err = p.deltas(m.Redo, false); err != nil {
		return nil, err
	}
	if m.Undo, err = p.deltas(m.Undo, true); err != nil {
		return nil, err
	}
	if len(m.Births) > 0 { // the oldest undos
		id, err := p.births(m.Births)
		if err != nil {
			return nil, err
		}
		m.Undo, m.Births = append(m.Undo, id), nil
	}
	return &m, p.sum(&m)
}

// sum sets the size of all files.
func (p *plainFiles) sum(m *rowset.Metadata) error {
	m.Bytes = 0
	for _, id := range m.Blocks(nil) {
		b, err := p.blocks.OpenBlock(id)
		if err != nil {
			return err
		}
		m.Bytes += b.Size()
		b.Close() // read-only: the error does not matter
	}
	return nil
}

// known keeps the columns of the table.
func (p *plainFiles) known(id schema.ColumnID) (schema.ColumnID, bool) {
	return id, p.schema.IndexID(id) >= 0
}

// deltas returns the delta files without changes of dropped columns. If one of them had the ID after
// the highest of the table, Kudu 1.18.1 would take its changes in a diff for its own mark of deleted
// rows. Source: tablet spec §2.4.
func (p *plainFiles) deltas(ids []block.ID, undo bool) (kept []block.ID, err error) {
	for _, id := range ids {
		f, err := p.set.OpenDelta(id)
		if err != nil {
			return nil, err
		}
		if !delta.Numbering(p.known).Keeps(f) {
			if id, err = p.renumber(f, undo); err != nil {
				return nil, err
			}
		}
		if id != 0 {
			kept = append(kept, id)
		}
	}
	return kept, nil
}

// renumber returns the block of a file without changes of dropped columns, 0 if no change is left.
func (p *plainFiles) renumber(f *delta.File, undo bool) (block.ID, error) {
	return p.write(func(sink block.Sink) (bool, error) {
		n, err := delta.Renumber(sink, f, undo, p.set.Schema, p.known)
		return n > 0, err
	})
}

// births returns the undo file that births stand for.
func (p *plainFiles) births(births []delta.Birth) (block.ID, error) {
	return p.write(func(sink block.Sink) (bool, error) {
		w, err := delta.NewWriter(sink, true)
		if err != nil {
			return false, err
		}
		var undos []change.Delta
		for _, b := range births {
			for from := uint64(b.First); from < uint64(b.First)+uint64(b.Rows); from += batch.WindowRows {
				if err := p.ctx.Err(); err != nil {
					return false, err
				}
				undos = b.AppendUndos(undos[:0], from, from+batch.WindowRows)
				for _, d := range undos {
					if err := w.Append(d); err != nil {
						return false, err
					}
				}
			}
		}
		_, err = w.Finish()
		return err == nil, err
	})
}

// write makes a block in memory with content, and returns its ID, or 0 if content wrote nothing.
func (p *plainFiles) write(content func(block.Sink) (some bool, err error)) (block.ID, error) {
	sink, err := p.blocks.Create()
	if err != nil {
		return 0, err
	}
	some, err := content(sink)
	if err != nil || !some {
		return 0, err
	}
	return sink.ID(), p.blocks.Finish(sink)
}
