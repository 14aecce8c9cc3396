package damaged

import (
	"bytes"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/cfile"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/schema"
)

// Column reads the base cells of one column in windows of rows.
type Column struct {
	Block block.ID     // 0: the rowset was written before the column was added
	Cells batch.Vector // of the last window that Read has read

	d    *RowSet
	col  int           // index in the schema
	bad  bool          // no cell can be read
	file *cfile.Reader // nil: the rowset has no such column, or bad
	lost batch.Bitmap  // of Cells; nil if no cell is lost
}

// Column opens a column by its index in the schema. Errors: errors of reading that are not damage.
func (d *RowSet) Column(col int) (*Column, error) {
	c := &Column{d: d, col: col}
	column := &d.Schema.Columns[col]
	for _, b := range d.Metadata.Columns {
		if b.ID == column.ID {
			c.Block = b.Block
		}
	}
	c.Cells.Type = column.Type
	f, err := d.set.File(col)
	if f == nil && err == nil {
		return c, nil
	}
	c.file, err = d.readable(c.Block, f, err, column)
	if err != nil && !Unreadable(err) {
		return nil, err
	}
	c.bad = err != nil
	return c, nil
}

// Lost reports whether cell i of the last window cannot be read.
func (c *Column) Lost(i int) bool { return c.bad || c.lost != nil && c.lost.Get(i) }

// Read reads the cells of rows [from, from+n), cblock by cblock if they cannot be read together.
// Errors: errors of reading that are not damage.
func (c *Column) Read(from batch.Ordinal, n int) error {
	c.lost = nil
	switch {
	case c.bad:
		return nil
	case c.file == nil:
		c.Cells.Fill(n, c.d.Schema.Columns[c.col].ReadDefault)
		return nil
	}
	err := c.d.set.ReadCells(c.file.NewColumnReader(), c.col, from, n, &c.Cells)
	if err == nil || !Unreadable(err) {
		return err
	}
	c.lost = batch.Bitmap(nil).Resize(n)
	c.Cells = batch.Vector{Type: c.d.Schema.Columns[c.col].Type}
	c.Cells.Reset(n)
	part := batch.Vector{Type: c.Cells.Type}
	for at := 0; at < n; {
		_, _, end, err := c.file.BlockOf(from + batch.Ordinal(at))
		if err == nil && int64(end) <= int64(from)+int64(at) {
			err = fault.Corruptf("cblock ends before it begins")
		}
		if err != nil {
			if !Unreadable(err) {
				return err
			}
			c.bad = true
			return nil
		}
		k := min(int(end-from), n) - at
		err = c.d.set.ReadCells(c.file.NewColumnReader(), c.col, from+batch.Ordinal(at), k, &part)
		switch {
		case err == nil:
			for i := range k {
				c.Cells.SetCell(at+i, part.Cell(i))
			}
		case Unreadable(err):
			c.lost.SetRange(at, at+k)
		default:
			return err
		}
		at += k
	}
	return nil
}

// Keys reads the key index of a compound key in ascending order of rows.
type Keys struct {
	d            *RowSet
	begun, ended bool
	index        *cfile.Reader
	next, blocks int // cblocks
	first        batch.Ordinal
	keys         [][]byte
}

// Keys returns a reader of the key index before the first row.
func (d *RowSet) Keys() *Keys { return &Keys{d: d, ended: d.Schema.SingleKey()} }

// Key returns the key of a row according to the key index, nil if it cannot be read. Rows ascend.
// Errors: errors of reading that are not damage.
func (k *Keys) Key(row batch.Ordinal) ([]byte, error) {
	if !k.begun && !k.ended {
		if err := k.begin(); err != nil {
			return nil, err
		}
	}
	if k.ended {
		return nil, nil
	}
	for k.next < k.blocks && int64(row) >= int64(k.first)+int64(len(k.keys)) {
		err := k.index.VisitData(k.next, func(first batch.Ordinal, cells cfile.Cells) error {
			k.first, k.keys = first, k.keys[:0]
			for i := range cells.Len() {
				key, err := cells.Cell(i)
				if err != nil {
					return err
				}
				k.keys = append(k.keys, bytes.Clone(key))
			}
			return nil
		})
		k.next++
		if err != nil && !Unreadable(err) {
			return nil, err
		}
	}
	if i := int64(row) - int64(k.first); i >= 0 && i < int64(len(k.keys)) {
		return k.keys[i], nil
	}
	return nil, nil
}

// begin opens the key index, and ends k if it cannot be read.
func (k *Keys) begin() error {
	k.begun = true
	f, err := k.d.set.KeyFile()
	k.index, err = k.d.readable(k.d.Metadata.KeyIndex, f, err, &schema.Column{Type: schema.Binary})
	if err == nil {
		k.blocks, err = k.index.DataBlocks()
	}
	if err != nil && Unreadable(err) {
		k.ended = true
		return nil
	}
	return err
}
