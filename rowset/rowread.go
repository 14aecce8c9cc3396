package rowset

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/cfile"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/schema"
)

// rowFile is the open row file of a rowset. It is immutable.
//
// Its images have the columns that the table had when it was written. A column that was dropped
// since is ignored; a column that was added since, which no file of the rowset has, is the default.
type rowFile struct {
	file   *cfile.Reader
	format *change.RowFormat // of the images in the file
	// By index in the rowset's schema: the column of format, or −1 for the default. It is nil if
	// both have the same columns.
	source []int
}

// rowFile returns the open row file. Errors: ErrCorrupt if it does not fit the rowset's other
// files.
func (d *DiskRowSet) rowFile() (*rowFile, error) {
	if v := d.rows.val.Load(); v != nil {
		return *v, nil
	}
	return d.rows.get(func() (*rowFile, error) {
		id := d.Metadata().RowFile
		src, err := d.openTail(id, d.rowFileTail())
		return openSource(d, id, src, err, func(src block.Source) (*rowFile, error) {
			// Without the cache: the rows that are read from a cblock are cached, not the cblock.
			r, err := cfile.Open(src, cfile.ReaderOptions{NoHeader: true, Limit: d.opts.Reads, Indexes: d.opts.Cache})
			if err == nil {
				var f *rowFile
				if f, err = d.newRowFile(r); err == nil {
					return f, nil
				}
			}
			return nil, fmt.Errorf("block %d: the row file: %w", id, err)
		})
	})
}

// openTail opens a block and reads n bytes of its end with it, if possible, in one read.
func (d *DiskRowSet) openTail(id block.ID, n int64) (Block, error) {
	b, ok := d.opts.Blocks.(TailBlocks)
	if !ok {
		return d.opts.Blocks.OpenBlock(id)
	}
	if d.opts.Reads != nil {
		d.opts.Reads.Acquire(n)
		defer d.opts.Reads.Release(n)
	}
	return b.OpenTail(id, n)
}

// maxRowFileTail is how much of a row file is read at once when it is opened, at most.
const maxRowFileTail = 1 << 20

// rowFileTail returns about how many bytes at the end of the row file its value index takes, with
// which a lookup reads nothing but the cblock of the row: an entry for each cblock, with the
// beginning of a key, a pointer and an offset.
func (d *DiskRowSet) rowFileTail() int64 {
	const entry, footer = 12, 1 << 10
	m := d.Metadata()
	blocks := min(m.RowFileBytes/rowFileBlockBytes+1, m.Rows)
	return min(blocks*int64(entry+max(len(m.MinKey), len(m.MaxKey)))+footer, m.RowFileBytes, maxRowFileTail)
}

// newRowFile compares a row file with the rowset.
func (d *DiskRowSet) newRowFile(r *cfile.Reader) (*rowFile, error) {
	m, info := d.Metadata(), r.Info()
	if !info.Keyed || !info.PositionalIndex || info.Encoding != schema.Plain || info.Rows != m.Rows {
		return nil, fault.Corruptf("has type %s, encoding %s, keys %t, %d rows, want %d", info.Type, info.Encoding,
			info.Keyed, info.Rows, m.Rows)
	}
	pair, _ := r.Metadata(rowFilePair)
	columns, blocks, err := parseRowColumns(pair)
	if err != nil {
		return nil, err
	}
	f := &rowFile{file: r, format: change.NewRowFormat(&schema.Schema{Columns: columns}),
		source: make([]int, len(d.columns))}
	same := len(columns) == len(d.columns)
	index := make(map[schema.ColumnID]int, len(columns))
	for i := range columns {
		if _, twice := index[columns[i].ID]; twice {
			return nil, fault.Corruptf("has column %d twice", columns[i].ID)
		}
		index[columns[i].ID] = i
		if columns[i].Type == schema.Array && d.Schema.IndexID(columns[i].ID) < 0 {
			columns[i].Type = schema.Binary // of a dropped column; nothing has the type of the elements
		}
	}
	for i := range d.columns {
		c, at, has := &d.Schema.Columns[i], -1, block.ID(0)
		if k, ok := index[c.ID]; ok {
			if at, has = k, blocks[k]; columns[k].Type != c.Type || columns[k].Nullable != c.Nullable {
				return nil, fault.Corruptf("has column %q with type %s, nullable %t", c.Name,
					columns[k].Type, columns[k].Nullable)
			}
			columns[k].Element = c.Element
		}
		if has != d.columns[i].block {
			return nil, fault.Corruptf("repeats block %d of column %q, the rowset has block %d",
				has, c.Name, d.columns[i].block)
		}
		f.source[i], same = at, same && at == i
	}
	if same {
		f.source, f.format = nil, d.rowFormat
	}
	return f, nil
}

// column returns the column of the images that is column col of the rowset's schema; −1: there is
// none.
func (f *rowFile) column(col int) int {
	if f.source == nil {
		return col
	}
	return f.source[col]
}

// mayHaveRowFile reports whether the rowset has a row file that was not found to be damaged so that
// it does not open.
func (d *DiskRowSet) mayHaveRowFile() bool { return d.Metadata().RowFile != 0 && !d.rowsOff.Load() }

// openStored returns the row file, or nil if the rowset has no row file that can be read. After an
// error that is not damage, for instance too many open files, the next call tries again.
func (d *DiskRowSet) openStored() *rowFile {
	if !d.mayHaveRowFile() {
		return nil
	}
	f, err := d.rowFile()
	if err != nil {
		d.rowsOff.Store(isDamage(err))
		d.noteDamage(err)
		return nil
	}
	return f
}

// StoredCells returns the base cells of a row from the row file, by index in the schema; nil if the
// rowset has no row file that can be opened. Errors: ErrCorrupt.
func (d *DiskRowSet) StoredCells(row batch.Ordinal) ([][]byte, error) {
	f := d.openStored()
	if f == nil {
		return nil, nil
	}
	cell, err := f.file.Cell(row)
	if err != nil {
		return nil, err
	}
	key, image, err := cfile.SplitKeyed(cell)
	if err != nil {
		return nil, err
	}
	b, err := d.makeBaseRow(f, row, key, image)
	if err != nil {
		return nil, err
	}
	cells := make([][]byte, len(d.columns))
	for c := range cells {
		cells[c] = b.rowFormat.Cell(b.image, c)
	}
	return cells, nil
}

// noteDamage notes that the row file is damaged, if err says so, and reports it once.
func (d *DiskRowSet) noteDamage(err error) {
	if isDamage(err) && d.rowsNoted.CompareAndSwap(false, true) && d.opts.Damaged != nil {
		m := d.Metadata()
		d.opts.Damaged(m.ID, m.RowFile, err)
	}
}

// RowFileDamaged reports whether a read or CheckRowFile has found damage in the row file.
func (d *DiskRowSet) RowFileDamaged() bool { return d.rowsNoted.Load() }

// isDamage reports whether err is about the bytes of a file: another try has the same result.
func isDamage(err error) bool {
	return errors.Is(err, fault.ErrCorrupt) || errors.Is(err, fault.ErrUnsupported)
}

// Near is shared by successive Gets of ascending keys: one read of a row file gets the cblocks of
// several of them that are adjacent. Not safe for concurrent use.
type Near struct {
	Next [][]byte // encoded keys that will be looked up after the current one
	run  cfile.KeyRun
}

// maxNear bounds how many further keys a read looks for. More rows than that do not fit in a read.
const maxNear = 1 << 10

// findStored returns the row with an encoded key, or nil if the key is absent. It reads at most one
// cblock, or, if near is not nil, one run of them.
func (d *DiskRowSet) findStored(f *rowFile, key []byte, near *Near) (b *baseRow, err error) {
	visit := func(row batch.Ordinal, image []byte) error {
		b, err = d.makeBaseRow(f, row, key, image)
		return err
	}
	if near != nil {
		err = f.file.VisitNear(&near.run, key, near.Next[:min(len(near.Next), maxNear)], visit)
	} else {
		err = f.file.VisitKey(key, visit)
	}
	return b, err
}

// makeBaseRow returns a copy of a row in the format of the rowset's schema.
func (d *DiskRowSet) makeBaseRow(f *rowFile, row batch.Ordinal, key, image []byte) (*baseRow, error) {
	if err := f.format.Check(image); err != nil {
		return nil, fmt.Errorf("rowset %d: row %d of the row file: %w", d.Metadata().ID, row, err)
	}
	n := len(key)
	var all []byte
	if f.source == nil {
		all = make([]byte, n+len(image))
		copy(all[copy(all, key):], image)
	} else {
		all = d.rowFormat.AppendRow(bytes.Clone(key), d.convert(f, image, make([][]byte, 0, len(f.source))))
	}
	return &baseRow{rowFormat: d.rowFormat, row: row, key: all[:n:n], image: all[n:]}, nil
}

// convert appends the cells of an image in the order of the rowset's schema. They alias the image.
func (d *DiskRowSet) convert(f *rowFile, image []byte, dst [][]byte) [][]byte {
	for col, at := range f.source {
		if at < 0 {
			dst = append(dst, d.Schema.Columns[col].ReadDefault)
		} else {
			dst = append(dst, f.format.Cell(image, at))
		}
	}
	return dst
}

// CheckRowFile verifies the row file, unless the rowset has none, and compares each of its rows
// with the columns. It does not report damage of the columns, which CheckFiles finds.
func (d *DiskRowSet) CheckRowFile() error {
	if d.Metadata().RowFile == 0 {
		return nil
	}
	err := d.checkRowFile()
	d.noteDamage(err)
	return err
}

func (d *DiskRowSet) checkRowFile() error {
	f, err := d.rowFile()
	if err != nil {
		return err
	}
	if err := f.file.Verify(); err != nil {
		return err
	}
	c := rowComparison{d: d, f: f}
	if c.base, c.columns = d.NewBaseReader(allColumns(len(d.columns))); c.columns == nil {
		if err := f.file.VisitEach(c.block); err != nil && c.columns == nil {
			return err
		}
	}
	if isDamage(c.columns) {
		return nil
	}
	return c.columns
}

// rowComparison compares a row file with the columns.
type rowComparison struct {
	d       *DiskRowSet
	f       *rowFile
	base    *BaseReader
	columns error           // of base: the comparison ends
	vectors []*batch.Vector // rows [from, from+n)
	from    batch.Ordinal
	n       int
	keys    [][]byte
	cells   [][]byte
	row     []byte
}

// block compares the rows of a cblock, which follow the rows of the last call.
func (c *rowComparison) block(first batch.Ordinal, cells cfile.Cells) error {
	for i := range cells.Len() {
		row := first + batch.Ordinal(i)
		for int(row-c.from) >= c.n {
			if c.vectors, c.from, c.n, c.columns = c.base.Next(); c.columns != nil {
				return c.columns
			}
			if c.n == 0 {
				return fault.Corruptf("row %d: the columns end at row %d", row, c.from)
			}
			c.keys = change.AppendVectorKeys(c.keys[:0], c.d.encoder, c.vectors, 0, c.n)
		}
		cell, err := cells.Cell(i)
		if err != nil {
			return err
		}
		key, image, err := cfile.SplitKeyed(cell)
		if err != nil {
			return err
		}
		b, err := c.d.makeBaseRow(c.f, row, key, image)
		if err != nil {
			return err
		}
		c.cells = c.cells[:0]
		for _, v := range c.vectors {
			c.cells = append(c.cells, v.Cell(int(row-c.from)))
		}
		c.row = c.d.rowFormat.AppendRow(c.row[:0], c.cells)
		if !bytes.Equal(b.key, c.keys[row-c.from]) || !bytes.Equal(b.image, c.row) {
			return fault.Corruptf("rowset %d: row %d of the row file differs from the columns", c.d.Metadata().ID, row)
		}
	}
	return nil
}

// allColumns returns 0, 1, …, n−1.
func allColumns(n int) []int {
	cols := make([]int, n)
	for i := range cols {
		cols[i] = i
	}
	return cols
}
