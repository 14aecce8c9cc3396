package rowset

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/bloom"
	"github.com/oribi-db/oribi/cfile"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/rowpage"
	"github.com/oribi-db/oribi/keyenc"
	"github.com/oribi-db/oribi/schema"
)

// rowFile is the open row file of a rowset. It is immutable.
//
// Its pages have the columns that the table had when it was written. A column that was dropped
// since is ignored; a column that was added since, which no file of the rowset has, is the default.
// A column that a major delta compaction has rewritten since is stale, and read from its file.
type rowFile struct {
	file     *cfile.Reader
	pageRows int // of all pages but the last
	columns  []schema.Column
	images   *change.RowFormat // of a file of version 1, whose pages are images; else nil
	pages    *rowpage.Format
	words    rowpage.Words
	// By index in the rowset's schema: the column of the file, usesDefault, or stale. It is nil if both
	// have the same columns.
	source []int
}

// Columns that a row file does not have.
const (
	usesDefault = -1 // all cells are the read default
	stale       = -2 // other cells have replaced those of the file
)

// storedPage is a page of a row file: a rowpage.Page, or the image of one row.
type storedPage struct {
	rowpage.Page
	images *change.RowFormat // nil for a rowpage.Page
	image  []byte
	key    []byte // of the row of the image
}

// parse makes p the page in the value of cell number of the file. The key is the one of the cell.
// The page has as many rows as the rowset of the given rows has there. Errors: ErrCorrupt.
func (f *rowFile) parse(p *storedPage, number batch.Ordinal, key, value []byte, rows int64) error {
	if p.images = f.images; p.images != nil {
		p.key, p.image = key, value
		return f.images.Check(value)
	}
	if err := f.pages.Parse(&p.Page, value, f.words); err != nil {
		return err
	}
	if want := min(int64(f.pageRows), rows-int64(number)*int64(f.pageRows)); int64(p.Rows()) != want {
		return fault.Corruptf("row page %d has %d rows, want %d", number, p.Rows(), want)
	}
	return nil
}

// rowCount returns the number of rows.
func (p *storedPage) rowCount() int {
	if p.images != nil {
		return 1
	}
	return p.Rows()
}

// has reports whether the page has the cells of a column of the file.
func (p *storedPage) has(col int) bool { return p.images != nil || p.Has(col) }

// cell returns the cell of a column of the file, nil for NULL. It aliases dst, which is extended, or
// the page.
func (p *storedPage) cell(dst []byte, col, row int) (_, cell []byte, err error) {
	if p.images != nil {
		return dst, p.images.Cell(p.image, col), nil
	}
	return p.Cell(dst, col, row)
}

// gather sets cells [at, at+to−from) of v to rows [from, to) of a column of the file.
func (p *storedPage) gather(v *batch.Vector, at, col, from, to int) error {
	if p.images != nil {
		if from < to {
			v.SetCell(at, p.images.Cell(p.image, col))
		}
		return nil
	}
	return p.Gather(v, at, col, from, to)
}

// rowScratch is the memory of a read of one page.
type rowScratch struct {
	page  storedPage
	bytes []byte
	key   []byte
	far   []byte // byte strings that are not in the page
	cells [][]byte
}

var rowScratches = sync.Pool{New: func() any { return new(rowScratch) }}

// release keeps the memory for the next read, without references to the page.
func (s *rowScratch) release() {
	clear(s.cells)
	s.page.key, s.page.image = nil, nil
	rowScratches.Put(s)
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
				if f, err = d.openRowFile(r); err == nil {
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
// which a lookup reads nothing but the cblock of the row: an entry for each page, with the beginning
// of a key, a pointer and an offset. Pages usually have a kilobyte or more.
func (d *DiskRowSet) rowFileTail() int64 {
	const entry, footer, leastPage = 12, 1 << 10, 1 << 10
	m := d.Metadata()
	blocks := min(m.RowFileBytes/leastPage+1, m.Rows)
	return min(blocks*int64(entry+max(len(m.MinKey), len(m.MaxKey)))+footer, m.RowFileBytes, maxRowFileTail)
}

// openRowFile compares a row file with the rowset.
func (d *DiskRowSet) openRowFile(r *cfile.Reader) (*rowFile, error) {
	m, info := d.Metadata(), r.Info()
	pair, _ := r.Metadata(rowFilePair)
	p, err := parseRowColumns(pair)
	if err != nil {
		return nil, err
	}
	if want := (m.Rows + int64(p.rows) - 1) / int64(p.rows); !info.Keyed || !info.PositionalIndex ||
		info.Encoding != schema.Plain || info.Rows != want {
		return nil, fault.Corruptf("has type %s, encoding %s, keys %t, %d pages, want %d", info.Type, info.Encoding,
			info.Keyed, info.Rows, want)
	}
	f := &rowFile{file: r, pageRows: p.rows, columns: p.columns, source: make([]int, len(d.columns))}
	if err := d.match(f, &p); err != nil {
		return nil, err
	}
	if p.version == rowFileImages {
		f.images = change.NewRowFormat(&schema.Schema{Columns: p.columns})
		return f, nil
	}
	f.pages = rowpage.NewFormat(p.columns)
	words, _ := r.Metadata(rowWordsPair)
	f.words, err = rowpage.ParseWords(words, len(p.columns))
	return f, err
}

// match sets f.source.
func (d *DiskRowSet) match(f *rowFile, p *rowColumns) error {
	same := len(p.columns) == len(d.columns)
	index := make(map[schema.ColumnID]int, len(p.columns))
	for i := range p.columns {
		c := &p.columns[i]
		if _, twice := index[c.ID]; twice {
			return fault.Corruptf("has column %d twice", c.ID)
		}
		index[c.ID] = i
		if c.Type == schema.Array && d.Schema.IndexID(c.ID) < 0 {
			c.Type = schema.Binary // of a dropped column; nothing has the type of the elements
		}
	}
	for i := range d.columns {
		c, at, has := &d.Schema.Columns[i], usesDefault, block.ID(0)
		if k, ok := index[c.ID]; ok {
			if at, has = k, p.blocks[k]; p.columns[k].Type != c.Type || p.columns[k].Nullable != c.Nullable {
				return fault.Corruptf("has column %q with type %s, nullable %t", c.Name,
					p.columns[k].Type, p.columns[k].Nullable)
			}
			p.columns[k].Element = c.Element
		}
		if has != d.columns[i].block {
			if at = stale; i < d.Schema.Keys || p.version == rowFileImages {
				return fault.Corruptf("repeats block %d of column %q, the rowset has block %d",
					has, c.Name, d.columns[i].block)
			}
		}
		f.source[i], same = at, same && at == i
	}
	if same {
		f.source = nil
	}
	return nil
}

// column returns the column of the file that is column col of the rowset's schema, usesDefault, or
// stale.
func (f *rowFile) column(col int) int {
	if f.source == nil {
		return col
	}
	return f.source[col]
}

// KeepsRowFile reports whether the rowset has a row file that is of use after columns cols, indexes
// in the schema, are rewritten: it still has half of the columns, and is not damaged.
func (d *DiskRowSet) KeepsRowFile(cols []int) bool {
	f := d.openStored()
	if f == nil || f.images != nil {
		return false
	}
	left := 0
	for col := range d.columns {
		switch {
		case !slices.Contains(cols, col):
			if f.column(col) != stale {
				left++
			}
		case col < d.Schema.Keys:
			return false
		}
	}
	return 2*left >= len(d.columns)
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

// StoredCells returns the base cells of a row from the row file, by index in the schema, and which
// of them the file has; nil if the rowset has no row file that can be opened. Errors: ErrCorrupt.
func (d *DiskRowSet) StoredCells(row batch.Ordinal) (cells [][]byte, has []bool, err error) {
	f := d.openStored()
	if f == nil {
		return nil, nil, nil
	}
	number := row / batch.Ordinal(f.pageRows)
	cell, err := f.file.Cell(number)
	if err != nil {
		return nil, nil, err
	}
	key, value, err := cfile.SplitKeyed(cell)
	if err != nil {
		return nil, nil, err
	}
	s := rowScratches.Get().(*rowScratch)
	defer s.release()
	if err := f.parse(&s.page, number, key, value, d.Metadata().Rows); err != nil {
		return nil, nil, err
	}
	image, missing, err := d.imageOf(f, s, row, nil, nil)
	if err != nil {
		return nil, nil, err
	}
	cells, has = make([][]byte, len(d.columns)), make([]bool, len(d.columns))
	for c := range cells {
		cells[c], has[c] = d.rowFormat.Cell(image, c), missing == nil || !missing[c]
	}
	return cells, has, nil
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

// findStored looks up a key in the row file. It reads at most one cblock, or, if near is not nil,
// one run of them.
func (l *lookup) findStored(d *DiskRowSet, f *rowFile, p bloom.Probe) (found bool, err error) {
	visit := func(number batch.Ordinal, at, value []byte) error {
		s := rowScratches.Get().(*rowScratch)
		defer s.release()
		err := f.parse(&s.page, number, at, value, d.Metadata().Rows)
		i := 0
		if err == nil {
			i, found, err = d.searchPage(f, s, p.Key)
		}
		if err != nil {
			return fmt.Errorf("rowset %d: page %d of the row file: %w", d.Metadata().ID, number, err)
		}
		if !found {
			return nil
		}
		l.row = number*batch.Ordinal(f.pageRows) + batch.Ordinal(i)
		if !l.base {
			return nil
		}
		all, missing, err := d.imageOf(f, s, l.row, p.Key, l.cols)
		if err != nil {
			return fmt.Errorf("rowset %d: row %d of the row file: %w", d.Metadata().ID, l.row, err)
		}
		n := len(p.Key)
		l.image, l.missing = all[n:], missing
		if missing == nil {
			d.keepBaseRow(p, l.row, all)
		}
		return nil
	}
	if near := l.near; near != nil {
		err = f.file.VisitNear(&near.run, p.Key, near.Next[:min(len(near.Next), maxNear)], visit)
	} else {
		err = f.file.VisitFloor(p.Key, visit)
	}
	return found, err
}

// seekPage is seekWith in the row file.
func (d *DiskRowSet) seekPage(f *rowFile, key []byte, pages *nearPages) (row batch.Ordinal, exact bool, err error) {
	visit := func(number batch.Ordinal, at, value []byte) error {
		s := rowScratches.Get().(*rowScratch)
		defer s.release()
		i, err := 0, f.parse(&s.page, number, at, value, d.Metadata().Rows)
		if err == nil {
			i, exact, err = d.searchPage(f, s, key)
		}
		if err != nil {
			return fmt.Errorf("rowset %d: page %d of the row file: %w", d.Metadata().ID, number, err)
		}
		row = number*batch.Ordinal(f.pageRows) + batch.Ordinal(i)
		return nil
	}
	if pages == nil {
		err = f.file.VisitFloor(key, visit)
	} else {
		err = pages.seek(f, key, visit)
	}
	return row, exact, err
}

// searchPage returns the first row of a page whose encoded key is at or after key, or the number of
// rows; found is true if it is the same key.
func (d *DiskRowSet) searchPage(f *rowFile, s *rowScratch, key []byte) (row int, found bool, err error) {
	if s.page.images != nil {
		c := bytes.Compare(s.page.key, key)
		return max(0, -c), c == 0, nil
	}
	if x, ok := d.integerKey(key); ok {
		if row, found, ok = s.page.Search(f.column(0), x); ok {
			return row, found, nil
		}
	}
	lo, hi := 0, s.page.Rows() // keys before lo are before key, keys from hi on are not
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if s.key, err = d.pageKey(f, s, mid); err != nil {
			return 0, false, err
		}
		switch c := bytes.Compare(s.key, key); {
		case c == 0:
			return mid, true, nil
		case c < 0:
			lo = mid + 1
		default:
			hi = mid
		}
	}
	return lo, false, nil
}

// integerKey returns the integer of an encoded key, or of a bound of a range, if the key is one column
// of a signed type of 8 bytes.
func (d *DiskRowSet) integerKey(key []byte) (x int64, ok bool) {
	if !d.Schema.SingleKey() || d.Schema.Columns[0].Type.Physical() != schema.Int64 || len(key) != 8 {
		return 0, false
	}
	return int64(keyenc.Head(key) ^ 1<<63), true
}

// pageKey returns the encoded key of a row of a page, in s.key.
func (d *DiskRowSet) pageKey(f *rowFile, s *rowScratch, row int) (key []byte, err error) {
	key = s.key[:0]
	for col := range d.Schema.Keys {
		at := f.column(col)
		if !s.page.Has(at) {
			return key, fault.Corruptf("key column %d is not in the page", col)
		}
		var cell []byte
		if s.bytes, cell, err = s.page.Cell(s.bytes[:0], at, row); err == nil && cell == nil {
			err = fault.Corruptf("key column %d is NULL", col)
		}
		if err != nil {
			return key, err
		}
		key = d.encoder.AppendCell(key, col, cell)
	}
	return key, nil
}

// imageOf returns key and the image of a row of a page in the format of the rowset's schema, in one
// allocation. Byte strings of columns cols that are not in the page are read from their columns if
// the page says where they are, and cells of cols that are stale if that reads no file. Otherwise the
// image has empty cells in these columns, which are missing; missing is nil if there are none.
func (d *DiskRowSet) imageOf(f *rowFile, s *rowScratch, id batch.Ordinal, key []byte,
	cols []int) (all []byte, missing []bool, err error) {
	row := int(id % batch.Ordinal(f.pageRows))
	s.cells, s.bytes, s.far = s.cells[:0], slices.Grow(s.bytes[:0], 16*len(d.columns)), s.far[:0]
	size := len(key)
	for col := range d.columns {
		c := &d.Schema.Columns[col]
		var cell []byte
		switch at := f.column(col); {
		case at == usesDefault:
			cell = c.ReadDefault
		case at == stale, !s.page.has(at):
			known := false
			switch {
			case !slices.Contains(cols, col):
			case at == stale:
				cell, known = d.freshCell(id, col)
			default:
				if cell, known, err = d.farCell(s, col, at, row); err != nil {
					return nil, nil, err
				}
			}
			if !known {
				if missing == nil {
					missing = make([]bool, len(d.columns))
				}
				missing[col], cell = true, zeroCell[:c.Type.Width()]
			}
		default:
			if s.bytes, cell, err = s.page.cell(s.bytes, at, row); err != nil {
				return nil, nil, err
			}
			if cell == nil && !c.Nullable {
				return nil, nil, fault.Corruptf("column %q is NULL", c.Name)
			}
			if c.Type == schema.Array && cell != nil {
				if err := schema.CheckArray(c.Element, cell); err != nil {
					return nil, nil, err
				}
			}
		}
		s.cells = append(s.cells, cell)
		size += len(cell) + 4
	}
	all = append(make([]byte, 0, size+len(d.columns)/8+1), key...)
	return d.rowFormat.AppendRow(all, s.cells), missing, nil
}

var zeroCell [16]byte

// freshCell returns a cell of a column that is stale in the row file. ok is false if that would have
// to read a file, and after an error, which is not one of the row file: the caller reads the column.
func (d *DiskRowSet) freshCell(row batch.Ordinal, col int) (cell []byte, ok bool) {
	cell, ok, err := d.quickCell(row, col)
	w := d.Schema.Columns[col].Type.Width()
	return cell, ok && err == nil && (cell == nil || w == 0 || len(cell) == w)
}

// farCell reads a byte string of column col, the column at of the row file, that is not in a page. ok
// is false if the page does not say where it is. If the byte string cannot be read there, the file
// of the column, or the row file, is damaged; a read of the column tells which.
func (d *DiskRowSet) farCell(s *rowScratch, col, at, row int) (cell []byte, ok bool, err error) {
	if s.page.IsNull(at, row) {
		return nil, d.Schema.Columns[col].Nullable, nil
	}
	piece, size, from, to, ok, err := s.page.Far(at, row)
	if err != nil || !ok {
		return nil, false, err
	}
	if from == to { // a piece without bytes is not NULL
		return []byte{}, true, nil
	}
	file, err := d.File(col)
	if err != nil || file == nil {
		return nil, false, nil
	}
	start := len(s.far)
	s.far = slices.Grow(s.far, size)
	b, err := file.ReadPiece(s.far[start:start:cap(s.far)], piece.Offset, size, piece.CRC)
	if err != nil {
		return nil, false, nil
	}
	s.far = s.far[:start+size]
	return b[from:to:to], true, nil
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
	scratch rowScratch
}

// block compares the pages of a cblock, which follow the pages of the last call.
func (c *rowComparison) block(first batch.Ordinal, cells cfile.Cells) error {
	for i := range cells.Len() {
		number := first + batch.Ordinal(i)
		cell, err := cells.Cell(i)
		if err != nil {
			return err
		}
		at, value, err := cfile.SplitKeyed(cell)
		if err == nil {
			err = c.f.parse(&c.scratch.page, number, at, value, c.d.Metadata().Rows)
		}
		if err != nil {
			return fmt.Errorf("rowset %d: page %d of the row file: %w", c.d.Metadata().ID, number, err)
		}
		for k := range c.scratch.page.rowCount() {
			if err := c.row(number*batch.Ordinal(c.f.pageRows)+batch.Ordinal(k), k, at); err != nil {
				return err
			}
		}
	}
	return nil
}

// row compares row k of the current page, whose separator is at.
func (c *rowComparison) row(row batch.Ordinal, k int, at []byte) (err error) {
	for int(row-c.from) >= c.n {
		if c.vectors, c.from, c.n, c.columns = c.base.Next(); c.columns != nil {
			return c.columns
		}
		if c.n == 0 {
			return fault.Corruptf("row %d: the columns end at row %d", row, c.from)
		}
		c.keys = change.AppendVectorKeys(c.keys[:0], c.d.encoder, c.vectors, 0, c.n)
	}
	d, s, i := c.d, &c.scratch, int(row-c.from)
	same := k > 0 || bytes.Compare(at, c.keys[i]) <= 0
	for col, v := range c.vectors {
		from := c.f.column(col)
		if from < 0 {
			continue
		}
		var cell []byte
		known := s.page.has(from)
		if known {
			s.bytes, cell, err = s.page.cell(s.bytes[:0], from, k)
		} else {
			s.far = s.far[:0]
			cell, known, err = d.farCell(s, col, from, k)
		}
		if err != nil {
			return fmt.Errorf("rowset %d: row %d of the row file: %w", d.Metadata().ID, row, err)
		}
		if !known {
			continue
		}
		want := v.Cell(i)
		same = same && (cell == nil) == (want == nil) && bytes.Equal(cell, want)
	}
	if !same {
		return fault.Corruptf("rowset %d: row %d of the row file differs from the columns", d.Metadata().ID, row)
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
