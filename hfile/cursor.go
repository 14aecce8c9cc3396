package hfile

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/oribi-db/oribi/internal/fault"
)

// View says whether a Cursor compares whole keys or rows.
type View uint8

// Views of a file.
const (
	ViewHBase View = iota // entries are cells, and their whole keys are compared
	ViewHudi              // entries are keys with values: only rows are compared
)

// CursorOptions are the options of a Cursor.
type CursorOptions struct {
	View View
	// ForwardOnly makes SeekTo refuse to go back, as Hudi's reader does, see ErrBackward.
	ForwardOnly bool
	// LikeHBase repeats two answers of HBase 2.6.4 in blocks of encoding ROW_INDEX_V1, where its
	// seeks begin with the first cell of a row. SeekTo a key before the first cell of its row, but
	// after other rows of the block, is BeforeBlock at that cell instead of InRange. SeekBefore
	// stays at the first cell of a block that begins with the row of the key. Only in view HBase.
	LikeHBase bool
	// ReadAhead is for scans without a cache: goroutines read, check, and uncompress the next
	// blocks while the caller uses entries. There is one less than GOMAXPROCS, at most
	// three, and the cursor keeps up to seven blocks instead of one. Seeks do not become faster.
	// Close waits until the goroutines have ended; without Close they end after a few blocks.
	ReadAhead bool
}

// SeekCode is the result of Cursor.SeekTo: where the cursor is, relative to the key. Source: hfile
// spec §11.
type SeekCode int8

// Results of SeekTo. The index of a file may have keys between the last key of a block and the
// first one of the next: a key sought between the two is before that block.
const (
	BeforeBlock SeekCode = -2 // before the first entry of a block; the cursor is there
	BeforeFile  SeekCode = -1 // before the first entry of the file: view HBase: no current entry; Hudi: the first entry
	Found       SeekCode = 0  // equal; the cursor is at the first entry with this key
	InRange     SeekCode = 1  // not found; the cursor is at the last entry before the key
	AfterFile   SeekCode = 2  // after the last entry of the file: no current entry; only in view Hudi
)

// ErrBackward is the error of SeekTo to a key before the current one, with ForwardOnly.
var ErrBackward = errors.New("hfile: a forward-only cursor cannot go back: use a new one")

// Cursor is a position in the entries of a file. It begins before the first one.
//
//	c := r.NewCursor(hfile.CursorOptions{})
//	for c.Next() {
//		use(c.Cell()) // valid until the cursor moves
//	}
//	return c.Close() // the first error
//
// The first error ends its use: later calls return it. Not safe for concurrent use.
type Cursor struct {
	r      *Reader
	view   View
	once   bool // ForwardOnly
	quirks bool // LikeHBase
	w      walker
	place  place
	err    error
	levels []indexLevel // from the root to the leaf

	block *loadedBlock // whose cells w walks; nil before the first
	ahead *readAhead   // nil if blocks are read when the cursor reaches them
	own   loadedBlock  // memory for block, where no cache has it
	buf   blockBuffer
	seeks int // in block
}

// place is where a Cursor is relative to the entries.
type place uint8

const (
	beforeFirst place = iota
	onEntry
	afterLast
)

// indexLevel is the position of a Cursor in one level of the index.
type indexLevel struct {
	block *loadedBlock // nil in the root
	i     int          // the entry
	own   loadedBlock  // memory for block, where no cache has it
	buf   blockBuffer
}

// NewCursor returns a cursor before the first entry.
func (r *Reader) NewCursor(o CursorOptions) *Cursor {
	quirks := o.LikeHBase && o.View == ViewHBase && r.layout.encoding == EncodingRowIndexV1
	c := &Cursor{r: r, view: o.View, once: o.ForwardOnly, quirks: quirks,
		levels: make([]indexLevel, r.trailer.IndexLevels)}
	if o.ReadAhead {
		c.ahead = newReadAhead(r)
	}
	return c
}

// entries returns the number of entries at a level.
func (c *Cursor) entries(level int) int {
	if level == 0 {
		return len(c.r.root)
	}
	return c.levels[level].block.entries
}

// entry returns the entry of the index at which a level is.
func (c *Cursor) entry(level int) indexEntry {
	l := &c.levels[level]
	if level == 0 {
		return c.r.root[l.i]
	}
	return nthEntry(l.block.payload, l.block.entries, l.i)
}

// leaf returns the entry of the current data block.
func (c *Cursor) leaf() indexEntry { return c.entry(len(c.levels) - 1) }

// leafAfter returns the entry of the data block that is i+1 after the current one, if the same
// block of the index has it.
func (c *Cursor) leafAfter(i int) (indexEntry, bool) {
	level := len(c.levels) - 1
	l := &c.levels[level]
	if i += l.i + 1; i >= c.entries(level) {
		return indexEntry{}, false
	}
	if level == 0 {
		return c.r.root[i], true
	}
	return nthEntry(l.block.payload, l.block.entries, i), true
}

// load returns the block of an entry, from the cache or with the given memory.
func (c *Cursor) load(own *loadedBlock, buf *blockBuffer, e indexEntry, magic string) (*loadedBlock, error) {
	if c.r.cache != nil {
		return c.r.readBlock(e.offset, e.size, magic)
	}
	if err := c.r.loadInto(own, buf, e.offset, e.size, magic); err != nil {
		return nil, err
	}
	return own, nil
}

// loadIndex reads the block of the index at a level from 1 on, which the level above names.
func (c *Cursor) loadIndex(level int) error {
	l, e := &c.levels[level], c.entry(level-1)
	if l.block != nil && l.block.offset == e.offset && l.block.header.size == int(e.size) {
		return nil
	}
	l.block = nil
	b, err := c.load(&l.own, &l.buf, e, c.r.indexMagic(level))
	l.block = b
	return err
}

// loadData reads the data block that the last level names, and moves before its first cell.
func (c *Cursor) loadData() error {
	e := c.leaf()
	if c.block != nil && c.block.offset == e.offset && c.block.header.size == int(e.size) && c.w.bad == "" {
		c.w.rewind()
		return nil
	}
	c.block, c.seeks = nil, 0
	layout, err := c.r.cellLayout()
	if err != nil {
		return err
	}
	var b *loadedBlock
	err = errNotAhead
	if c.ahead != nil {
		b, err = c.ahead.load(e, c.leafAfter)
	}
	if err == errNotAhead {
		b, err = c.load(&c.own, &c.buf, e, c.r.dataMagic())
	}
	if err != nil {
		return err
	}
	if err := c.w.open(layout, b.payload); err != nil {
		return c.r.at(b.offset, err)
	}
	c.block = b
	return nil
}

// down reads the blocks of the index below a level, and the data block: the first ones, or, with
// last, the last ones.
func (c *Cursor) down(level int, last bool) error {
	for level++; level < len(c.levels); level++ {
		if err := c.loadIndex(level); err != nil {
			return err
		}
		c.levels[level].i = 0
		if last {
			c.levels[level].i = c.entries(level) - 1
		}
	}
	return c.loadData()
}

// floor reads the last data block whose key in the index is not after t. It returns false if there
// is none.
func (c *Cursor) floor(t *target) (bool, error) {
	i := c.r.floorRoot(t)
	if i < 0 {
		return false, nil
	}
	c.levels[0].i = i
	for level := 1; level < len(c.levels); level++ {
		if err := c.loadIndex(level); err != nil {
			return false, err
		}
		if i = floorBlock(c.levels[level].block, t); i < 0 {
			return false, c.r.at(c.levels[level].block.offset,
				fault.Corruptf("index: its first key is after its key in the level above"))
		}
		c.levels[level].i = i
	}
	return true, c.loadData()
}

// nextBlock moves to the next data block. It returns false after the last one. Blocks ascend in the
// file: otherwise an index could send the cursor round in circles.
func (c *Cursor) nextBlock() (bool, error) {
	old := c.leaf()
	for level := len(c.levels) - 1; level >= 0; level-- {
		if c.levels[level].i+1 < c.entries(level) {
			c.levels[level].i++
			return true, c.downFrom(level, old, false)
		}
	}
	return false, nil
}

// previousBlock moves to the previous data block. It returns false before the first one.
func (c *Cursor) previousBlock() (bool, error) {
	old := c.leaf()
	for level := len(c.levels) - 1; level >= 0; level-- {
		if c.levels[level].i > 0 {
			c.levels[level].i--
			return true, c.downFrom(level, old, true)
		}
	}
	return false, nil
}

// downFrom is down, and checks that the data block is after old, or, with last, before it.
func (c *Cursor) downFrom(level int, old indexEntry, last bool) error {
	if err := c.down(level, last); err != nil {
		return err
	}
	e := c.leaf()
	first, second := old, e
	if last {
		first, second = e, old
	}
	if end := first.offset + int64(first.size); second.offset < end {
		return c.r.at(second.offset, errNotAscending(end))
	}
	return nil
}

// fail keeps the first error and returns it.
func (c *Cursor) fail(err error) error {
	if c.err == nil && err != nil {
		c.err, c.place = err, afterLast
	}
	return c.err
}

// stepError returns the error of a step of c.w that returned false, nil at the end of the block.
func (c *Cursor) stepError() error {
	if err := c.w.err(); err != nil {
		return c.r.at(c.block.offset, err)
	}
	return nil
}

// First moves to the first entry. It returns false in a file without entries, and after an error.
func (c *Cursor) First() bool {
	if c.err != nil {
		return false
	}
	if len(c.r.root) == 0 {
		c.place = afterLast
		return false
	}
	c.levels[0].i = 0
	err := c.down(0, false)
	if err == nil {
		err = c.firstOfBlock()
	}
	return c.fail(err) == nil
}

// firstOfBlock moves to the first cell of the block, before which c.w is.
func (c *Cursor) firstOfBlock() error {
	if !c.w.step() {
		return c.stepError()
	}
	c.place = onEntry
	return nil
}

// Next moves to the next entry: from the start to the first one. It returns false after the last
// one, and after an error.
func (c *Cursor) Next() bool {
	if c.place == onEntry && c.w.step() {
		return true
	}
	return c.nextSlow()
}

// nextSlow is Next where the next entry is not in the block.
func (c *Cursor) nextSlow() bool {
	if c.err != nil || c.place == afterLast {
		return false
	}
	if c.place == beforeFirst {
		return c.First()
	}
	if c.fail(c.stepError()) != nil {
		return false
	}
	more, err := c.nextBlock()
	if err == nil && more {
		err = c.firstOfBlock()
	}
	if c.fail(err) != nil {
		return false
	}
	if !more {
		c.place = afterLast
	}
	return more
}

// Valid reports whether there is a current entry.
func (c *Cursor) Valid() bool { return c.place == onEntry }

// Cell returns the current entry. Without one, for example after the last entry, it returns the
// zero Cell. The cell is valid until the cursor moves; Clone copies it.
func (c *Cursor) Cell() (cell Cell) {
	if c.place == onEntry {
		c.w.fill(&cell)
	}
	return cell
}

// KeyValue returns the current entry in Hudi's view: its row and value. It is valid until the
// cursor moves.
func (c *Cursor) KeyValue() KeyValue {
	if c.place != onEntry {
		return KeyValue{}
	}
	cell := c.w.current()
	return KeyValue{cell.Row, cell.Value}
}

// Err returns the first error.
func (c *Cursor) Err() error { return c.err }

// Close ends the use of the cursor and returns the first error. Later calls return the same.
func (c *Cursor) Close() error {
	if c.ahead != nil {
		c.ahead.stop()
	}
	err := c.err
	if err == nil {
		c.err = fmt.Errorf("hfile: cursor: %w", ErrClosed)
	}
	c.place, c.block = afterLast, nil
	if errors.Is(err, ErrClosed) {
		return nil
	}
	return err
}

// target returns the key to look for in the cursor's view.
func (c *Cursor) target(k Key) target {
	if c.view == ViewHudi {
		return target{Key: FirstOnRow(k.Row), cellRows: true, indexRows: c.r.Hudi()}
	}
	return target{Key: k}
}

// SeekTo moves to the given key, or close to it, as the SeekCode says. In view Hudi only k.Row is
// compared. With FirstOnRow(row), Next after InRange is the first entry of the row, if the row has
// entries.
//
// Errors: ErrBackward, after which the cursor is where it was; errors of reading a block.
func (c *Cursor) SeekTo(k Key) (SeekCode, error) {
	if c.err != nil {
		return 0, c.err
	}
	t := c.target(k)
	if c.once {
		if code, done, err := c.seekForward(&t); done {
			return code, err
		}
	}
	code, err := c.seek(&t)
	return code, c.fail(err)
}

// SeekGE moves to the first entry at or after the given key. It returns false if all entries are
// before the key; then the cursor is after the last entry. In view Hudi only k.Row is compared. With
// FirstOnRow(row) it moves to the first entry of the row, if the row has entries. A cursor that only
// goes forward stays where it is if its entry is not before the key.
//
// Errors: errors of reading a block.
func (c *Cursor) SeekGE(k Key) (bool, error) {
	if c.err != nil {
		return false, c.err
	}
	t := c.target(k)
	if c.once && (c.place == afterLast || c.place == onEntry && c.w.compare(&t) >= 0) {
		return c.place == onEntry, nil
	}
	return c.ceil(&t), c.err
}

// seekForward decides a seek of a forward-only cursor to a key that is not after its entry; done is
// false if it is after it. Source: hfile spec §11.
func (c *Cursor) seekForward(t *target) (code SeekCode, done bool, err error) {
	if c.place != onEntry {
		return AfterFile, c.place == afterLast, nil
	}
	switch n := c.w.compare(t); {
	case n < 0:
		return 0, false, nil
	case n == 0:
		return Found, true, nil
	}
	if c.w.at == c.w.start {
		if !t.after(c.leaf().key) {
			return BeforeBlock, true, nil
		}
		if c.firstBlock() {
			return BeforeFile, true, nil
		}
	}
	return 0, true, ErrBackward
}

// firstBlock reports whether the cursor is in the first data block.
func (c *Cursor) firstBlock() bool {
	for level := range c.levels {
		if c.levels[level].i > 0 {
			return false
		}
	}
	return true
}

// lastBlock reports whether the cursor is in the last data block.
func (c *Cursor) lastBlock() bool {
	for level := range c.levels {
		if c.levels[level].i+1 < c.entries(level) {
			return false
		}
	}
	return true
}

// seek is SeekTo in both directions.
func (c *Cursor) seek(t *target) (SeekCode, error) {
	ok, err := c.floor(t)
	if err != nil {
		return 0, err
	}
	if !ok {
		return c.seekBeforeFile(t)
	}
	n, last, err := c.ceilInBlock(t)
	switch {
	case err != nil:
		return 0, err
	case n == 0:
		return Found, nil
	case n < 0:
		return c.seekAtEnd(t)
	case last < 0:
		return BeforeBlock, nil
	}
	first := c.quirks && bytes.Equal(c.w.currentRow(), t.Row)
	ceil := c.w.at
	if c.moveTo(last); first && !bytes.Equal(c.w.currentRow(), t.Row) {
		c.moveTo(ceil)
		return BeforeBlock, nil
	}
	return InRange, nil
}

// seekBeforeFile is seek to a key before the first one of the index.
func (c *Cursor) seekBeforeFile(t *target) (SeekCode, error) {
	c.place = beforeFirst
	if c.view == ViewHBase {
		return BeforeFile, nil
	}
	if !c.First() {
		return AfterFile, c.err
	}
	if c.w.compare(t) == 0 {
		return Found, nil
	}
	return BeforeFile, nil
}

// seekAtEnd is seek to a key after the last cell of the block, where the cursor is.
func (c *Cursor) seekAtEnd(t *target) (SeekCode, error) {
	if c.view == ViewHBase {
		return InRange, nil
	}
	if c.lastBlock() {
		c.place = afterLast
		return AfterFile, nil
	}
	if t.indexRows {
		return InRange, nil
	}
	// In a file of HBase the cells of a row may begin in the next block, whose key in the index is
	// then of this row.
	last := c.w.at
	if _, err := c.nextBlock(); err != nil {
		return 0, err
	}
	if err := c.firstOfBlock(); err != nil {
		return 0, err
	}
	if c.w.compare(t) == 0 {
		return Found, nil
	}
	if _, err := c.previousBlock(); err != nil {
		return 0, err
	}
	c.moveTo(last)
	return InRange, nil
}

// ceilInBlock moves to the first cell of the block that is not before t, and returns its order
// relative to t: 0 or 1, and the offset of the cell before it, -1 if it is the first. Where all
// cells are before t, it moves to the last one and returns -1.
func (c *Cursor) ceilInBlock(t *target) (n, previous int, err error) {
	c.place = onEntry
	w := &c.w
	c.seeks++
	if c.block != &c.own || c.seeks > 1 && len(c.block.payload) <= ownSeekTable {
		if p := c.block.seeks.points(w); p != nil {
			p.seek(w, t)
		} else {
			w.rewind()
		}
	}
	previous = -1
	if w.next > w.start {
		previous = w.at
	}
	for w.bad == "" && w.step() {
		if n = w.compare(t); n >= 0 {
			return n, previous, nil
		}
		previous = w.at
	}
	return -1, previous, c.stepError()
}

// ownSeekTable is the largest payload for which a cursor makes a seek table without a cache.
const ownSeekTable = 1 << 20

// moveTo makes the cell at an offset of the current block the current one.
func (c *Cursor) moveTo(at int) {
	w := &c.w
	if !w.differences() {
		w.moveTo(at)
		return
	}
	c.restart(at)
	for w.next <= at && w.step() {
	}
}

// restart moves to a cell of a block of differences from which steps lead to the cell at an offset.
func (c *Cursor) restart(at int) {
	p := c.block.seeks.p.Load()
	if p != nil {
		if i := p.floor(at); i >= 0 {
			c.w.restore(&p.states[i], p.key(i))
			return
		}
	}
	c.w.rewind()
}

// SeekBefore moves to the last entry before the given key. It returns false if no entry is before
// the key; then the cursor is before the first entry. In view Hudi only k.Row is compared.
//
// Errors: errors of reading a block; ErrBackward with ForwardOnly.
func (c *Cursor) SeekBefore(k Key) (bool, error) {
	if c.err != nil {
		return false, c.err
	}
	if c.once && c.place != beforeFirst {
		return false, ErrBackward
	}
	t := c.target(k)
	ok, err := c.seekBefore(&t)
	if c.fail(err) != nil {
		return false, c.err
	}
	if !ok {
		c.place = beforeFirst
	}
	return ok, nil
}

func (c *Cursor) seekBefore(t *target) (bool, error) {
	for ok, err := c.floor(t); ok || err != nil; ok, err = c.previousBlock() {
		if err != nil {
			return false, err
		}
		n, previous, err := c.ceilInBlock(t)
		if err != nil {
			return false, err
		}
		if n >= 0 {
			if previous < 0 {
				continue
			}
			c.moveTo(previous)
		}
		if c.quirks {
			last := c.w.at
			if c.moveTo(c.w.start); !bytes.Equal(c.w.currentRow(), t.Row) {
				c.moveTo(last)
			}
		}
		return true, nil
	}
	return false, nil
}
