package rowset

import (
	"bytes"
	"context"
	"errors"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/bloom"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/delta"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/keydir"
)

// CheckDeep checks all that CheckFiles, CheckRows, CheckRowFile, and CheckKeyDirectory check, and
// also that each key is in the bloom file, that the changes of all files form one history of each
// row, and that the number of live rows is right. Unlike those it continues after a fault: it calls
// found with at most one fault of each block, and of the metadata, for which id is 0. It reads
// window by window. Errors: ctx.Err(), and errors of reading.
func (d *DiskRowSet) CheckDeep(ctx context.Context, found func(id block.ID, err error)) error {
	c := deepCheck{ctx: ctx, d: d, found: found, bad: map[block.ID]bool{}}
	for _, f := range d.checks() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := c.damage(f.id, f.verify()); err != nil {
			return err
		}
	}
	if err := c.keys(); err != nil {
		return err
	}
	if err := c.changes(); err != nil {
		return err
	}
	if c.badColumns(len(d.columns)) {
		return nil
	}
	return c.damage(d.Metadata().RowFile, d.CheckRowFile())
}

type deepCheck struct {
	ctx   context.Context
	d     *DiskRowSet
	found func(block.ID, error)
	bad   map[block.ID]bool // reported
}

// damage reports err if it is about the bytes of a block, or if there is no such block, and returns
// any other.
func (c *deepCheck) damage(id block.ID, err error) error {
	if err == nil || !isDamage(err) && !errors.Is(err, fault.ErrNotFound) {
		return err
	}
	if !c.bad[id] {
		c.bad[id] = true
		c.found(id, err)
	}
	return nil
}

// badColumns reports whether there is damage in one of the first n columns.
func (c *deepCheck) badColumns(n int) bool {
	for i := range n {
		if id := c.d.columns[i].block; id != 0 && c.bad[id] {
			return true
		}
	}
	return false
}

// keys checks the order of the keys, and looks up each one.
func (c *deepCheck) keys() error {
	d, m := c.d, c.d.Metadata()
	if c.badColumns(d.Schema.Keys) {
		return nil
	}
	index := m.KeyIndex
	if d.Schema.SingleKey() {
		index = d.columns[0].block
	}
	var dir *keydir.Directory
	if m.KeyDirectory != 0 {
		var err error
		if dir, err = d.readDirectory(); err != nil {
			if isDamage(err) {
				d.noteDirectoryDamage(err)
			}
			if err := c.damage(m.KeyDirectory, err); err != nil {
				return err
			}
		}
	}
	base, err := d.NewBaseReader(allColumns(d.Schema.Keys))
	if err != nil {
		return err
	}
	var keys [][]byte
	var last []byte
	for {
		if err := c.ctx.Err(); err != nil {
			return err
		}
		vectors, from, n, err := base.Next()
		if err != nil {
			return err
		}
		if n == 0 {
			break
		}
		keys = change.AppendVectorKeys(keys[:0], d.encoder, vectors, 0, n)
		for i, key := range keys {
			row := from + batch.Ordinal(i)
			switch {
			case row == 0 && !bytes.Equal(key, m.MinKey):
				err = c.damage(0, fault.Corruptf("the first key is not the lower bound"))
			case row > 0 && bytes.Compare(last, key) >= 0:
				return c.damage(d.columns[0].block, fault.Corruptf("row %d: keys do not ascend", row))
			}
			if err == nil {
				err = c.lookUp(row, key, index, dir)
			}
			if err != nil {
				return err
			}
			last = key
		}
		last = bytes.Clone(last) // the next window reuses the memory of keys
	}
	if !bytes.Equal(last, m.MaxKey) {
		return c.damage(0, fault.Corruptf("the last key is not the upper bound"))
	}
	if c.bad[0] || c.bad[index] {
		return nil
	}
	return c.damage(index, d.CheckBounds())
}

// lookUp looks up the key of a row in bloom file, key index, and key directory.
func (c *deepCheck) lookUp(row batch.Ordinal, key []byte, index block.ID, dir *keydir.Directory) error {
	d, m := c.d, c.d.Metadata()
	probe := bloom.MakeProbe(key)
	if !c.bad[m.Bloom] {
		filter, err := d.Filter()
		may := false
		if err == nil {
			may, err = filter.MayContain(probe)
		}
		if err == nil && !may {
			err = fault.Corruptf("the bloom file excludes the key %x of row %d", key, row)
		}
		if err := c.damage(m.Bloom, err); err != nil {
			return err
		}
	}
	if !c.bad[index] {
		at, found, err := d.seekExact(key)
		if err == nil && (!found || at != row) {
			err = fault.Corruptf("row %d is not found by its key %x", row, key)
		}
		if err := c.damage(index, err); err != nil {
			return err
		}
	}
	if dir != nil && !c.bad[m.KeyDirectory] && !dir.Contains(probe.Hash(), int64(row)) {
		err := fault.Corruptf("the key directory does not have row %d", row)
		d.noteDirectoryDamage(err)
		return c.damage(m.KeyDirectory, err)
	}
	return nil
}

// changes checks the changes and the number of rows that exist.
func (c *deepCheck) changes() error {
	st := c.d.state.Load() // metadata and deltas as of the same commit
	m, t := st.Meta, st.Deltas
	for _, list := range [][]*delta.File{t.Undo, t.Redo} {
		for _, f := range list {
			if c.bad[f.ID] {
				return nil
			}
		}
	}
	wrong := false
	live, err := t.Check(c.ctx, uint64(m.Rows), m.MaxTimestamp, func(id block.ID, err error) {
		wrong = true
		_ = c.damage(id, err)
	})
	if err != nil || wrong || live == m.LiveRows {
		return err
	}
	return c.damage(0, fault.Corruptf("%d rows exist, the metadata says %d", live, m.LiveRows))
}
