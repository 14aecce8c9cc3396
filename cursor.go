package oribi

import (
	"bytes"
	"context"
	"slices"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/bind"
	"github.com/oribi-db/oribi/scan"
	"github.com/oribi-db/oribi/schema"
)

// Cursor moves among the rows of a table in key order, in both directions. All moves see the state
// of the first one; those of a cursor of a transaction see what the transaction sees, see Tx.Cursor.
// Not safe for concurrent use.
//
// A cursor is on a row, before the first row, or after the last one. At the beginning it is before
// the first row. Each move returns true if the cursor is on a row afterwards. If it returns false,
// there is no such row, or the cursor has ended with an error, which Err returns:
//
//	c := table.Cursor(ctx)
//	defer c.Close()
//	for ok := c.Seek("m"); ok; ok = c.Next() {
//		use(c.Row())
//	}
//	err := c.Err()
//
// A cursor uses no index: a predicate is tested for each row that it passes.
//
// A move to a distant row reads 16 rows there, and more with each further read in the same
// direction. Moves to and fro among rows in memory read nothing.
type Cursor struct {
	scan    Scan // of the rows that the cursor reads
	begun   bool // view, request, columns and keys are set
	closed  bool
	view    view
	bounds  bounds
	request scan.Options
	columns []schema.Column // those that the caller asked for, the first ones of the request
	all     []int           // their indexes
	keys    []int           // the key columns, by index in the request

	tx  cursorTx // of a cursor of a transaction; else nil
	run cursorRun

	at    position      // among the rows of the state, also in a transaction
	on    direction     // the side with the current row
	row   int           // in its batch
	sides [2]cursorSide // by direction
	cells [][]byte      // of the current row, if valid is set
	valid bool
	key   []byte // of the last Seek; never nil
	last  []byte // of the last call of keyAt; never nil
	err   error
}

// cursorTx is a transaction as a cursor of it needs it: it merges the rows on which the cursor moves
// with those that the transaction has written.
type cursorTx interface {
	// begin begins a move. It sets the state that the cursor reads, if that is another one than before.
	begin() error
	// seek moves to the first row in direction d from a key on, as Cursor.seek does.
	seek(d direction, key []byte) bool
	// step moves to the next row in direction d.
	step(d direction) bool
	// row reports whether the cursor is on a row, and returns all cells of it if the transaction has
	// written it.
	row() (cells [][]byte, ok bool)
	// reset makes the position one before the first row.
	reset()
	// catchUp makes what the transaction has read include the current row.
	catchUp()
	// close is called when the cursor is closed.
	close()
}

// cursorRun is rows along which a cursor of a transaction moves without a look at what was written.
type cursorRun struct {
	dir    direction
	last   int  // of the rows of the batch of side dir, on which the cursor is; below 0: there is no run
	writes *int // of the transaction: it has not written as long as
	at     int  // it is this
	ahead  bool // the cursor has moved since the last call of cursorTx.catchUp
}

// direction is one in which a cursor reads.
type direction int

const (
	forward direction = iota
	backward
)

// position is where a cursor is.
type position int

const (
	beforeFirst position = iota
	onRow
	afterLast
)

// end returns the position after all rows in direction d.
func (d direction) end() position {
	if d == forward {
		return afterLast
	}
	return beforeFirst
}

// cursorSide is an iterator and its current batch, which has its rows in the order of the iterator.
// If a cursor has one in both directions, there is no row between the first rows of the two.
type cursorSide struct {
	it scan.Iterator      // nil: none
	b  *batch.RecordBatch // not nil if it is not

	// strings has the cells of b by column, nil for a column that is not one of byte strings without
	// NULLs and dictionary: a shorter way than batch.Vector.Cell to the keys and values of package kv.
	strings [][][]byte
}

// set makes b the current batch.
func (s *cursorSide) set(b *batch.RecordBatch) {
	s.b, s.strings = b, s.strings[:0]
	for _, v := range b.Columns {
		words := v.Bytes
		if !v.Type.Variable() || v.Present != nil || v.Dict != nil {
			words = nil
		}
		s.strings = append(s.strings, words)
	}
}

// cell returns a cell of b.
func (s *cursorSide) cell(row, col int) []byte {
	if words := s.strings[col]; words != nil {
		if word := words[row]; word != nil {
			return word
		}
	}
	return s.b.Columns[col].Cell(row)
}

// Cursor returns a cursor over the rows that the options select. It reads nothing yet. The caller
// closes it: until then it keeps the history that it sees, as a running scan does.
func (t *Table) Cursor(ctx context.Context, opts ...CursorOption) *Cursor {
	c := &Cursor{scan: Scan{t: t, ctx: ctx}}
	collectInto(&c.scan.o, opts)
	return c
}

// First moves to the first row.
func (c *Cursor) First() bool { return c.ready() && c.move(forward, nil) }

// Last moves to the last row.
func (c *Cursor) Last() bool { return c.ready() && c.move(backward, nil) }

// Seek moves to the first row whose key is not below key: the values of the key columns or of the
// first ones, or a single Key. If there is none, the cursor is after the last row.
// Errors: ErrRow for a key that does not fit.
func (c *Cursor) Seek(key ...any) bool {
	return c.encode(key) && c.move(forward, c.key)
}

// SeekBefore moves to the last row whose key is below key, which is given as in Seek. If there is
// none, the cursor is before the first row.
func (c *Cursor) SeekBefore(key ...any) bool {
	return c.encode(key) && c.move(backward, c.key)
}

// Next moves to the next row: from before the first row to the first one.
func (c *Cursor) Next() bool { return c.next(forward) }

// Prev moves to the previous row: from after the last row to the last one.
func (c *Cursor) Prev() bool { return c.next(backward) }

// Row returns the current row, nil if the cursor is not on a row.
func (c *Cursor) Row() Row {
	if _, ok := c.current(); !ok {
		return nil
	}
	for len(c.all) < len(c.columns) {
		c.all = append(c.all, len(c.all))
	}
	return bind.Row(c.columns, c.all, c.Cells())
}

// Key returns the key of the current row, nil if the cursor is not on a row.
func (c *Cursor) Key() Key {
	own, ok := c.current()
	if !ok {
		return nil
	}
	key := make(Key, len(c.keys))
	for i, col := range c.keys {
		key[i] = bind.Value(&c.view.Schema.Columns[i], c.cell(own, col))
	}
	return key
}

// Cells returns the cells of the current row, nil for NULL, in the order of Columns or of the
// schema; nil if the cursor is not on a row. They are valid until the next move; byte strings may
// be kept.
func (c *Cursor) Cells() [][]byte {
	own, ok := c.current()
	if !ok {
		return nil
	}
	if !c.valid {
		c.cells, c.valid = c.cells[:0], true
		if own == nil {
			for _, v := range c.sides[c.on].b.Columns[:len(c.columns)] {
				c.cells = append(c.cells, v.Cell(c.row))
			}
			return c.cells
		}
		for i := range c.columns {
			c.cells = append(c.cells, c.cell(own, i))
		}
	}
	return c.cells
}

// Cell returns element i of Cells without the others; nil if the cursor is not on a row.
func (c *Cursor) Cell(i int) []byte {
	if c.run.ahead {
		return c.sides[c.on].cell(c.row, i)
	}
	own, ok := c.current()
	if !ok {
		return nil
	}
	return c.cell(own, i)
}

// current reports whether the cursor is on a row, and returns all cells of it if the transaction of
// the cursor has written it.
func (c *Cursor) current() (own [][]byte, ok bool) {
	if c.tx != nil && !c.run.ahead {
		return c.tx.row()
	}
	return nil, c.at == onRow
}

// cell returns the cell of the current row in a column of the request; own is as current returns it.
func (c *Cursor) cell(own [][]byte, i int) []byte {
	if own != nil {
		return own[c.request.Columns[i]]
	}
	return c.sides[c.on].cell(c.row, i)
}

// Err returns the error with which the cursor ended: one of the options, ErrRow, ErrCorrupt,
// ErrClosed after the store was closed, or ctx.Err().
func (c *Cursor) Err() error { return c.err }

// Close ends the cursor and returns the error of Err. It may be called twice.
func (c *Cursor) Close() error {
	c.release()
	if c.tx != nil && !c.closed {
		c.tx.close()
	}
	c.closed = true
	return c.err
}

// release ends the reads of the cursor. The next move begins them again.
func (c *Cursor) release() {
	if c.tx != nil {
		c.tx.catchUp()
	}
	c.drop(forward)
	c.drop(backward)
	if c.begun {
		c.view.Release()
	}
	c.begun = false
	c.reset()
}

// reset makes the position one before the first row.
func (c *Cursor) reset() {
	c.at = beforeFirst
	if c.tx != nil {
		c.tx.reset()
	}
}

// fail ends the cursor with an error, unless err is nil.
func (c *Cursor) fail(err error) {
	if err != nil && c.err == nil {
		c.err = c.scan.errorf(err)
	}
	if c.err != nil {
		c.reset()
	}
}

// ready begins a move. It returns false if the cursor has ended.
func (c *Cursor) ready() bool {
	if c.err != nil || c.closed {
		return false
	}
	if c.tx != nil {
		if c.err = c.tx.begin(); c.err != nil {
			c.reset()
			return false
		}
	}
	if !c.begun {
		if c.err = c.begin(); c.err != nil {
			c.reset()
			return false
		}
	}
	if err := c.scan.interrupted(); err != nil {
		c.fail(err)
		return false
	}
	c.valid = false
	return true
}

// begin acquires the state of the table and resolves the options.
func (c *Cursor) begin() error {
	t := c.scan.t
	if err := t.store.enter(); err != nil {
		return err
	}
	defer t.store.leave()
	c.scan.o.noIndex = true // an index has its keys sorted for one direction, from one place on
	v, o, err := c.scan.open(&c.bounds)
	if err != nil {
		return err
	}
	c.view, c.begun = v, true
	c.key, c.last = []byte{}, []byte{} // never nil, which is no bound: the key of "" has no bytes
	c.columns, c.keys = c.scan.o.columnsOf(v.TableSchema, o.Columns), c.keys[:0]
	for i := range v.Schema.Keys {
		at := slices.Index(o.Columns, i)
		if at < 0 {
			at = len(o.Columns)
			o.Columns = append(slices.Clip(o.Columns), i)
		}
		c.keys = append(c.keys, at)
	}
	o.Limit, o.MostRows = cursorRows, cursorMost
	c.request = o
	return nil
}

// encode begins a move to a key. It returns false if the cursor has ended.
func (c *Cursor) encode(key []any) bool {
	if !c.ready() {
		return false
	}
	var one any = Key(key)
	if len(key) == 1 {
		one = key[0]
	}
	k, err := c.scan.t.appendKey(c.key[:0], c.view.TableSchema, one, true)
	if err != nil {
		c.err = err
		c.reset()
		return false
	}
	c.key = k
	return true
}

// move moves to the first row in direction d from a key on, as seek does.
func (c *Cursor) move(d direction, key []byte) bool {
	if c.tx != nil {
		return c.tx.seek(d, key)
	}
	return c.seek(d, key)
}

// next moves to the next row in direction d.
func (c *Cursor) next(d direction) bool {
	if r := &c.run; c.tx != nil && r.last >= 0 && r.dir == d && *r.writes == r.at {
		if i := c.sides[d].b.Selection.Next(c.row + 1); i >= 0 && i <= r.last {
			c.row, c.valid, r.ahead = i, false, true
			return true
		}
	}
	switch {
	case !c.ready():
		return false
	case c.tx != nil:
		return c.tx.step(d)
	}
	return c.step(d)
}

// seek moves to the first row in direction d from a key on, inclusive forward and exclusive backward;
// nil, unlike an empty key, is the end of the range.
func (c *Cursor) seek(d direction, key []byte) bool {
	if i, ok := c.find(key); ok {
		if d == backward {
			i = c.sides[forward].b.Selection.Prev(i - 1)
		}
		if i >= 0 {
			return c.enter(forward, i)
		}
	}
	return c.jump(d, key)
}

// step moves to the next row in direction d.
func (c *Cursor) step(d direction) bool {
	switch {
	case c.at == d.end():
		return false
	case c.at != onRow:
		return c.jump(d, nil)
	}
	b := c.sides[c.on].b
	if c.on == d {
		if i := b.Selection.Next(c.row + 1); i >= 0 {
			return c.enter(d, i)
		}
		c.drop(1 - d)
		return c.err == nil && c.advance(d)
	}
	if i := b.Selection.Prev(c.row - 1); i >= 0 {
		return c.enter(c.on, i)
	}
	if next := c.sides[d].b; next != nil {
		return c.enter(d, next.Selection.Next(0))
	}
	from := c.keyAt(c.on, c.row)
	if d == forward {
		from = append(from, 0) // the least key above
	}
	return c.open(d, from)
}

// enter makes a row of a side's batch the current one.
func (c *Cursor) enter(d direction, row int) bool {
	c.at, c.on, c.row = onRow, d, row
	return true
}

// jump is seek without a look at the rows that were read.
func (c *Cursor) jump(d direction, key []byte) bool {
	c.drop(forward)
	c.drop(backward)
	return c.err == nil && c.open(d, key)
}

// open is jump while the other side stays: its first row is next to key.
func (c *Cursor) open(d direction, key []byte) bool {
	s := c.scan.t.store
	if err := s.enter(); err != nil {
		c.fail(err)
		return false
	}
	defer s.leave()
	o := c.request
	switch {
	case d == backward:
		if o.Descending = true; key != nil && (o.Upper == nil || bytes.Compare(key, o.Upper) < 0) {
			o.Upper = bytes.Clone(key)
		}
	case bytes.Compare(key, o.Lower) > 0:
		o.Lower = bytes.Clone(key)
	}
	it, err := c.view.Ref().Scan(o, true)
	if err != nil {
		c.fail(err)
		return false
	}
	c.sides[d].it = it
	return c.advance(d)
}

// advance moves to the next batch of a side.
func (c *Cursor) advance(d direction) bool {
	s := &c.sides[d]
	if s.it.Next() {
		s.set(s.it.Batch())
		return c.enter(d, s.b.Selection.Next(0))
	}
	c.at = d.end()
	c.drop(d)
	return false
}

// drop closes a side.
func (c *Cursor) drop(d direction) {
	if s := &c.sides[d]; s.it != nil {
		c.fail(s.it.Close())
		clear(s.strings)
		*s = cursorSide{strings: s.strings[:0]}
	}
}

// keyAt returns the encoded key of a row of a side's batch, valid until the next call. It may be
// appended to, but not changed.
func (c *Cursor) keyAt(d direction, row int) []byte {
	if s := &c.sides[d]; len(c.keys) == 1 && s.strings[c.keys[0]] != nil { // encoded as it is
		return slices.Clip(s.cell(row, c.keys[0]))
	}
	c.last = c.last[:0]
	for i, col := range c.keys {
		c.last = c.view.Encoder.AppendCell(c.last, i, c.sides[d].cell(row, col))
	}
	return c.last
}

// find returns the first row of the forward side's batch that is not below a key, if the key is
// within the range of the batch's keys.
func (c *Cursor) find(key []byte) (row int, ok bool) {
	b := c.sides[forward].b
	if b == nil || key == nil {
		return 0, false
	}
	low, high := b.Selection.Next(0), b.Selection.Prev(b.Len-1)
	if bytes.Compare(c.keyAt(forward, low), key) > 0 || bytes.Compare(c.keyAt(forward, high), key) < 0 {
		return 0, false
	}
	for low < high { // the row is in [low, high]
		mid := b.Selection.Prev((low + high) / 2)
		if bytes.Compare(c.keyAt(forward, mid), key) < 0 {
			low = b.Selection.Next(mid + 1)
		} else {
			high = mid
		}
	}
	return high, true
}
