package oribi

import (
	"bytes"
	"slices"

	"github.com/oribi-db/oribi/internal/conflict"
	"github.com/oribi-db/oribi/internal/keyindex"
	"github.com/oribi-db/oribi/internal/rowunion"
)

// Cursor returns a cursor over the rows that the options select, as Table.Cursor does. Each move sees
// the writes that the transaction has made until then, and not those that it was rolled back past. The
// position is a key: Next moves to the first row after it, whether its row still exists or not. Row
// returns the row as it was at the move.
//
// The rows that the cursor has passed, and the keys between them, count as read. The end of the
// transaction closes the cursor: later moves return false, with ErrTxEnded.
func (tx *Tx) Cursor(t *Table, opts ...TxCursorOption) *Cursor {
	c := &Cursor{scan: Scan{t: t, ctx: tx.ctx}}
	collectInto(&c.scan.o, opts)
	tx.bindCursor(c)
	return c
}

func (tx *Tx) bindCursor(c *Cursor) {
	c.tx, c.run.last = &txCursor{c: c, tx: tx, key: []byte{}}, -1
	tx.cursors = append(tx.cursors, c)
}

// txCursor merges the rows on which a cursor moves, the base, with those that the transaction has
// written:
//
//	base     a   c   d   f
//	written    b     d (deleted)
//	moves    a b c       f
//
// There is no row of the base between the position of the base and that of the cursor, in either
// direction, except for rows that the transaction has deleted.
//
// The rows of a batch up to the next key that was written are a cursorRun.
type txCursor struct {
	c     *Cursor
	tx    *Tx
	turns int // of the transaction, at the last move

	at    position
	key   []byte   // encoded, of the current row, unless it is ahead of it in a run; never nil
	cells [][]byte // of the current row, if the transaction has written it; else nil

	own    *keyindex.Cursor // at the first written key after the position in direction dir; nil if not known
	dir    direction
	keys   int             // that were written when own was made
	walked *conflict.Range // the last range that was read, or nil
	clock  int             // the column with the time at which rows expire, by index in the request; below 0: none
}

// begin implements cursorTx.
func (w *txCursor) begin() error {
	c, tx := w.c, w.tx
	if tx.ended {
		return callErr("", ErrTxEnded)
	}
	if !c.begun || tx.hold != nil {
		if err := tx.reading(c.scan.t); err != nil {
			return err
		}
	}
	if w.turns != tx.turns && c.begun {
		w.catchUp()
		at := w.at
		c.release()
		w.at = at
	}
	w.turns = tx.turns
	if c.begun {
		return nil
	}
	At(tx.snapshot).apply(&c.scan.o)
	if err := c.begin(); err != nil {
		return err
	}
	w.clock = -1
	if clock := c.view.Clock(); clock >= 0 {
		if w.clock = slices.Index(c.request.Columns, clock); w.clock < 0 {
			w.clock = len(c.request.Columns)
			c.request.Columns = append(slices.Clip(c.request.Columns), clock)
		}
	}
	if w.at == onRow {
		c.seek(forward, w.key)
	}
	return nil
}

// row implements cursorTx.
func (w *txCursor) row() (cells [][]byte, ok bool) { return w.cells, w.at == onRow }

// reset implements cursorTx.
func (w *txCursor) reset() {
	w.catchUp()
	w.at, w.cells, w.own, w.c.run.last = beforeFirst, nil, nil, -1
}

// close implements cursorTx.
func (w *txCursor) close() {
	w.tx.cursors = slices.DeleteFunc(w.tx.cursors, func(c *Cursor) bool { return c == w.c })
}

// seek implements cursorTx.
func (w *txCursor) seek(d direction, key []byte) bool {
	c := w.c
	w.catchUp()
	lower, upper := bytes.Clone(c.request.Lower), bytes.Clone(c.request.Upper)
	switch {
	case d == forward && bytes.Compare(key, lower) > 0:
		lower = bytes.Clone(key)
	case d == backward && key != nil && (upper == nil || bytes.Compare(key, upper) < 0):
		upper = bytes.Clone(key)
	}
	p := w.tx.batch.ops(c.scan.t)
	w.own, c.run.last = nil, -1
	from, to := lower, upper
	if p != nil {
		if len(c.scan.o.where) == 0 {
			from, to = p.gaps.Narrow(lower, upper, d == backward)
		}
		p.extend()
		w.dir, w.keys, w.own = d, p.index.Keys(), p.index.Range(from, to, d == backward)
	}
	switch {
	case to != nil && bytes.Compare(from, to) >= 0:
		c.at = d.end()
	case d == forward:
		c.seek(d, from)
	default:
		c.seek(d, to)
	}
	found, passed := w.settle(d, p)
	if c.err != nil {
		return false
	}
	if !found {
		return w.read(lower, upper) && false
	}
	next := append(bytes.Clone(w.key), 0)
	gap := keyindex.Range{Lower: lower, Upper: w.key}
	if d == backward {
		gap = keyindex.Range{Lower: next, Upper: upper}
		lower = w.key
	} else {
		upper = next
	}
	if passed && len(c.scan.o.where) == 0 {
		p.gaps.Add(gap.Lower, gap.Upper)
	}
	w.setRun(d, p)
	return w.read(lower, upper)
}

// step implements cursorTx.
func (w *txCursor) step(d direction) bool {
	c := w.c
	switch {
	case w.at == d.end():
		return false
	case w.at != onRow:
		return w.seek(d, nil)
	}
	w.catchUp()
	c.run.last = -1
	for c.at == onRow && !before(w.key, c.keyAt(c.on, c.row), d) || c.at == (1-d).end() {
		if c.step(d); c.err != nil {
			return false
		}
	}
	p := w.tx.batch.ops(c.scan.t)
	if p != nil {
		w.search(d, p)
	}
	found, _ := w.settle(d, p)
	switch walked := w.walked; { // which includes the row before
	case c.err != nil:
		return false
	case found:
		walked.ExtendTo(w.key)
		w.setRun(d, p)
	case d == forward:
		walked.Extend(walked.Lower, c.request.Upper)
	default:
		walked.Extend(c.request.Lower, walked.Upper)
	}
	return found
}

// setRun sets the run that begins with the current row.
func (w *txCursor) setRun(d direction, p *tableOps) {
	c := w.c
	if w.cells != nil || c.on != d || w.clock >= 0 || w.tx.hold != nil {
		return
	}
	b := c.sides[d].b
	last := b.Selection.Prev(b.Len - 1)
	if p != nil {
		if own := w.own.Key(); own != nil {
			last = w.upTo(d, own)
		}
		if lower, upper, ok := p.deleted.Next(w.key, d == backward); ok && d == forward {
			last = min(last, w.upTo(d, lower))
		} else if ok {
			last = min(last, w.upTo(d, upper))
		}
	}
	c.run = cursorRun{dir: d, last: last, writes: &w.tx.writes, at: w.tx.writes}
}

// upTo returns the last row of the base's batch before a key in direction d. The current one is before it.
func (w *txCursor) upTo(d direction, key []byte) int {
	c := w.c
	b := c.sides[d].b
	low, high := c.row, b.Len // selected rows up to low are before the key, those from high on are not
	for step := 1; low+1 < high; {
		i := low + step
		if step == 0 || i >= high {
			i = low + (high-low)/2
		}
		if row := b.Selection.Next(i); row < 0 || row >= high || !before(c.keyAt(d, row), key, d) {
			high, step = i, 0
		} else {
			low, step = row, 2*step
		}
	}
	return b.Selection.Prev(low)
}

// before reports whether a is before b in direction d.
func before(a, b []byte, d direction) bool {
	if d == backward {
		a, b = b, a
	}
	return bytes.Compare(a, b) < 0
}

// catchUp sets key, and adds the rows up to it to what the transaction has read.
func (w *txCursor) catchUp() {
	if r := &w.c.run; r.ahead {
		r.ahead = false
		w.key = append(w.key[:0], w.c.keyAt(w.c.on, w.c.row)...)
		w.walked.ExtendTo(w.key)
	}
}

// search sets own for a step from the current row in direction d.
func (w *txCursor) search(d direction, p *tableOps) {
	p.extend()
	n := p.index.Keys()
	if w.own != nil && w.dir == d && w.keys == n {
		return
	}
	w.dir, w.keys = d, n
	if d == forward {
		w.own = p.index.Range(append(bytes.Clone(w.key), 0), w.c.request.Upper, false)
	} else {
		w.own = p.index.Range(w.c.request.Lower, bytes.Clone(w.key), true)
	}
}

// settle makes the first row in direction d the current one: a row of the base, or a row that was
// written. It reports whether there is one, and whether it has passed rows that were deleted.
func (w *txCursor) settle(d direction, p *tableOps) (found, passed bool) {
	c := w.c
	for c.err == nil {
		var base, own []byte
		if c.at == onRow {
			base = c.keyAt(c.on, c.row)
		}
		if p != nil {
			own = w.own.Key()
		}
		order := 0 // of own and base
		switch {
		case base == nil && own == nil:
			w.at, w.cells, w.own = d.end(), nil, nil
			return false, passed
		case base == nil:
			order = -1
		case own == nil:
			order = 1
		case d == forward:
			order = bytes.Compare(own, base)
		default:
			order = bytes.Compare(base, own)
		}
		if order > 0 {
			if p == nil || !w.skip(d, p, base) {
				w.enter(base, nil)
				return true, passed
			}
			passed = true
			continue
		}
		w.own.Next()
		cells, err := w.tx.row(c.scan.t, &c.view, own)
		if err != nil {
			c.fail(err)
			return false, passed
		}
		if cells != nil && rowunion.Selects(&c.request.Filter, c.view.Schema, cells) {
			w.enter(own, cells)
			return true, passed
		}
		if passed = true; order == 0 {
			c.step(d)
		}
	}
	return false, passed
}

// skip moves the base past the range of deleted rows that contains its key. It reports whether there
// is one.
func (w *txCursor) skip(d direction, p *tableOps, key []byte) bool {
	r, ok := p.deleted.Find(key)
	switch {
	case !ok:
		return false
	case d == backward:
		w.c.seek(backward, append([]byte{}, r.Lower...))
	case r.Upper == nil:
		w.c.at = afterLast
	default:
		w.c.seek(forward, r.Upper)
	}
	return true
}

// enter makes a row the current one: the base's, or one with cells, which the transaction has written.
func (w *txCursor) enter(key []byte, cells [][]byte) {
	c, tx := w.c, w.tx
	w.at, w.key, w.cells = onRow, append(w.key[:0], key...), cells
	switch {
	case w.clock < 0:
	case cells != nil:
		tx.until = min(tx.until, c.view.Until(cells))
	default:
		tx.until = min(tx.until, c.view.UntilCell(c.cell(nil, w.clock)))
	}
}

// read adds a range to what the transaction has read. It returns false if there is no memory for it.
func (w *txCursor) read(lower, upper []byte) bool {
	if w.walked != nil && w.walked.Extend(lower, upper) {
		return true
	}
	w.walked = w.tx.reads.AddRange(w.c.scan.t.tab.Number, lower, upper)
	w.c.fail(w.tx.count())
	return w.c.err == nil
}
