package kudu

import (
	"fmt"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/bloom"
	"github.com/oribi-db/oribi/cfile"
	"github.com/oribi-db/oribi/delta"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/kudupb"
	"github.com/oribi-db/oribi/internal/rowunion"
	"github.com/oribi-db/oribi/memrowset"
	"github.com/oribi-db/oribi/rowset"
	"github.com/oribi-db/oribi/schema"
)

// blocks checks each block that a rowset names. It reports whether all are intact.
func (v *verifier) blocks(t *Tablet, s *schema.Schema, m *kudupb.RowSetDataPB) (intact bool, err error) {
	intact = true
	rows := int64(-1) // of the columns; -1: not known yet
	check := func(what string, id *kudupb.BlockIdPB, check func(src block.Source) error) error {
		ok, err := v.block(t, fmt.Sprintf("rowset %d: %s", m.GetId(), what), block.ID(id.GetId()), check)
		intact = intact && ok
		return err
	}
	column := func(src block.Source) error {
		r, err := cfile.Open(src, cfile.ReaderOptions{Arrays: true})
		if err != nil {
			return err
		}
		if rows < 0 {
			rows = r.Rows()
		}
		if r.Rows() != rows {
			return fault.Corruptf("%d rows, another column has %d", r.Rows(), rows)
		}
		return r.Verify()
	}
	for _, c := range m.Columns {
		if err := check(fmt.Sprintf("column %d", c.GetColumnId()), c.GetBlock(), column); err != nil {
			return false, err
		}
	}
	if !s.SingleKey() {
		if err := check("key index", m.GetAdhocIndexBlock(), column); err != nil {
			return false, err
		}
	}
	err = check("bloom file", m.GetBloomBlock(), func(src block.Source) error {
		r, err := bloom.Open(src, cfile.ReaderOptions{})
		if err != nil {
			return err
		}
		return r.Verify()
	})
	if err != nil {
		return false, err
	}
	if rows < 0 {
		rows = rowset.MaxRows
	}
	for i, b := range append(append([]*kudupb.DeltaDataPB{}, m.UndoDeltas...), m.RedoDeltas...) {
		undo := i < len(m.UndoDeltas)
		err := check("delta file", b.GetBlock(), func(src block.Source) error {
			f, err := delta.OpenFile(src, cfile.ReaderOptions{})
			if err != nil {
				return err
			}
			return f.Verify(s, uint64(rows), undo)
		})
		if err != nil {
			return false, err
		}
	}
	return intact, nil
}

// block checks one block, which only one file of one rowset may name.
func (v *verifier) block(
	t *Tablet, what string, id block.ID, check func(src block.Source) error,
) (intact bool, err error) {
	if err := v.ctx.Err(); err != nil {
		return false, err
	}
	f := Finding{Tablet: t.ID, File: v.d.fs.SuperblockPath(t.ID), Offset: -1, Block: id, Problem: what + ": "}
	if id == 0 {
		f.Problem += "the superblock names no block"
		v.report(f)
		return false, nil
	}
	if other, ok := v.named[id]; ok {
		f.Problem += "the superblock names the block of " + other
		v.report(f)
		return false, nil
	}
	v.named[id] = fmt.Sprintf("tablet %s, %s", t.ID, what)
	if _, file, err := v.d.fs.FindBlock(id); file != "" && err == nil {
		f.File = file
	}
	src, err := v.d.fs.OpenBlock(id)
	if err != nil {
		return false, v.damage(err, f)
	}
	err = check(src)
	if closeErr := src.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return false, v.damage(err, f)
	}
	return true, nil
}

// tableOf returns the table of one tablet, which the caller closes.
func tableOf(t *tablet) *Table {
	return &Table{Name: t.super.GetTableName(), Schema: t.schema,
		union: rowunion.Union{Tree: t.tree, Mems: []*memrowset.MemRowSet{t.mem}, Format: t.format}}
}
