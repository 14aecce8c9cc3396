package rowset

import (
	"bytes"
	"slices"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/cfile"
	"github.com/oribi-db/oribi/delta"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// openReadable is openDeltas for a rowset that may be damaged. It leaves out the files that do not
// open; see unreadDeltas.
func (d *DiskRowSet) openReadable(dst *[]*delta.File, ids []block.ID) error {
	for _, id := range ids {
		f, err := d.OpenDelta(id)
		switch {
		case err == nil && f.Checksums():
			*dst = append(*dst, f)
		case err != nil && !Unreadable(err):
			return err
		}
	}
	return nil
}

// unreadDeltas returns the delta files that openReadable has left out, with the part of each that
// can be read.
func (d *DiskRowSet) unreadDeltas() (list []delta.Unread, err error) {
	m, t := d.Metadata(), d.Tracker()
	var births mvcc.Timestamp // all redos are younger
	for _, b := range m.Births {
		births = max(births, b.TS+1)
	}
	for i, ids := range [][]block.ID{m.Undo, m.Redo} {
		open := [][]*delta.File{t.Undo, t.Redo}[i]
		for _, id := range ids {
			if slices.ContainsFunc(open, func(f *delta.File) bool { return f.ID == id }) {
				continue
			}
			u := delta.Unread{Block: id, File: d.deltaNumber(id), Undo: i == 0, Max: m.MaxTimestamp}
			if !u.Undo {
				u.Min = births
			}
			u.Part, err = openBlock(d, id, func(src block.Source) (*delta.File, error) {
				return delta.OpenDamaged(src, d.readerOptions())
			})
			if err != nil && !Unreadable(err) {
				return nil, err
			}
			list = append(list, u)
		}
	}
	return list, nil
}

// deltaNumber returns the position of a delta file, see delta.SalvagedDelta.
func (d *DiskRowSet) deltaNumber(id block.ID) int {
	m := d.Metadata()
	return max(slices.Index(m.Undo, id), slices.Index(m.Redo, id))
}

// open prepares the reading of columns.
func (s *savedRows) open() error {
	d := s.d
	s.columns = make([]salvagedColumn, len(d.columns))
	for i := range s.columns {
		c := &s.columns[i]
		c.block = d.columns[i].block
		c.cells.Type = d.Schema.Columns[i].Type
		f, err := d.File(i)
		if f == nil && err == nil {
			continue
		}
		c.file, err = d.readable(c.block, f, err, &d.Schema.Columns[i])
		if err != nil && !Unreadable(err) {
			return err
		}
		c.bad = err != nil
	}
	return nil
}

// readable returns f, a file with as many cells as the rowset has rows that was opened with err, if
// all of it but some of its cells can be read; otherwise a file of the cblocks that can be
// read.
func (d *DiskRowSet) readable(id block.ID, f *cfile.Reader, err error, column *schema.Column) (*cfile.Reader, error) {
	if err == nil {
		err = f.CheckParts()
	}
	if err == nil && !f.Info().Checksums {
		err = fault.Corruptf("block %d: has no checksums", id)
	}
	if err == nil || !Unreadable(err) {
		return f, err
	}
	known := cfile.Known{Type: column.Stored(), Nullable: column.Nullable,
		Array: column.Type == schema.Array, Rows: d.Metadata().Rows}
	o := d.readerOptions()
	o.Arrays = true
	return openBlock(d, id, func(src block.Source) (*cfile.Reader, error) {
		f, err := cfile.OpenDamaged(src, o, known)
		if err != nil {
			return nil, err
		}
		if info := f.Info(); info.Type != known.Type || info.Array != known.Array ||
			info.Nullable && !known.Nullable || f.Rows() != known.Rows {
			return nil, fault.Corruptf("block %d: has type %s, arrays %t, nullable %t, %d rows", id, info.Type,
				info.Array, info.Nullable, f.Rows())
		}
		return f, nil
	})
}

// salvagedColumn is the base cells of one column in a window.
type salvagedColumn struct {
	block block.ID
	bad   bool          // no cell can be read
	file  *cfile.Reader // nil: the rowset has no such column, or bad
	cells batch.Vector
	lost  batch.Bitmap // of cells; nil if no cell is lost
}

func (c *salvagedColumn) isLost(i int) bool { return c.bad || c.lost != nil && c.lost.Get(i) }

// read reads rows [from, from+n), cblock by cblock if they cannot be read together.
func (c *salvagedColumn) read(d *DiskRowSet, col int, from batch.Ordinal, n int) error {
	c.lost = nil
	switch {
	case c.bad:
		return nil
	case c.file == nil:
		c.cells.Fill(n, d.Schema.Columns[col].ReadDefault)
		return nil
	}
	err := readFull(c.file.NewColumnReader(), d, &d.Schema.Columns[col], from, n, &c.cells)
	if err == nil || !Unreadable(err) {
		return err
	}
	c.lost = batch.Bitmap(nil).Resize(n)
	c.cells = batch.Vector{Type: d.Schema.Columns[col].Type}
	c.cells.Reset(n)
	part := batch.Vector{Type: c.cells.Type}
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
		if err = readFull(c.file.NewColumnReader(), d, &d.Schema.Columns[col],
			from+batch.Ordinal(at), k, &part); err != nil {
			if !Unreadable(err) {
				return err
			}
			c.lost.SetRange(at, at+k)
		} else {
			for i := range k {
				c.cells.SetCell(at+i, part.Cell(i))
			}
		}
		at += k
	}
	return nil
}

// keyWalk reads the key index of a compound key in ascending order of rows.
type keyWalk struct {
	begun, ended bool
	index        *cfile.Reader
	next, blocks int // cblocks
	first        batch.Ordinal
	keys         [][]byte
}

// key returns the key of a row according to the key index, nil if it cannot be read. Rows ascend.
func (k *keyWalk) key(d *DiskRowSet, row batch.Ordinal) ([]byte, error) {
	if d.Schema.SingleKey() || k.ended {
		return nil, nil
	}
	if !k.begun {
		k.begun = true
		f, err := d.KeyFile()
		k.index, err = d.readable(d.Metadata().KeyIndex, f, err, &schema.Column{Type: schema.Binary})
		if err == nil {
			k.blocks, err = k.index.DataBlocks()
		}
		if err != nil {
			k.ended = true
			if Unreadable(err) {
				return nil, nil
			}
			return nil, err
		}
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
