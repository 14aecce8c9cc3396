package model

import "github.com/oribi-db/oribi/internal/prooftest/script"

// Cursor is a cursor of a transaction over the rows that a read selects. Each move sees the writes of the
// transaction up to then.
type Cursor struct {
	x    *Tx
	t    *Table
	read script.Read
	on   bool     // on a row
	key  [][]byte // of that row
	end  bool     // else: after the last row, not before the first one
}

// Cursor returns a cursor before the first row.
func (x *Tx) Cursor(t *Table, rd script.Read) *Cursor { return &Cursor{x: x, t: t, read: rd} }

// Of reports whether the cursor moves over a table.
func (c *Cursor) Of(t *Table) bool { return c.t == t }

// Move moves the cursor and returns the row that it is on, nil for none.
func (c *Cursor) Move(m *script.Move) [][]byte {
	back := m.Where.Back()
	from, to := c.read.From, c.read.To
	var after [][]byte // a key, exclusive
	switch m.Where {
	case script.Seek:
		from = c.tighter(from, m.Key, false)
	case script.SeekBefore:
		to = c.tighter(to, m.Key, true)
	case script.Next:
		if !c.on && c.end {
			return nil
		}
		if c.on {
			from, after = c.key, c.key
		}
	case script.Prev:
		if !c.on && !c.end {
			return nil
		}
		if c.on {
			to = c.key
		}
	}
	walked := &txRange{read: &script.Read{From: from, To: to, Tests: c.read.Tests, Desc: back}}
	in := c.x.table(c.t)
	in.ranges = append(in.ranges, walked)
	passes, within := c.t.filter(walked.read), c.t.filter(&c.read)
	for _, row := range c.x.rows(c.t, back) {
		key := row[:c.t.Schema.Keys]
		if !passes(row) || !within(row) || after != nil && CompareKeys(c.t.Schema, key, after) <= 0 {
			continue
		}
		c.x.see(c.t, KeyText(key))
		c.on, c.key, walked.last = true, key, key
		return row
	}
	c.on, c.end = false, !back
	return nil
}

// tighter returns the one of two bounds, of which the first may be nil, that selects fewer rows. Each has cells of
// the first key columns; upper says that they are upper ones.
func (c *Cursor) tighter(a, b [][]byte, upper bool) [][]byte {
	if a == nil {
		return b
	}
	order := CompareKeys(c.t.Schema, a, b)
	if order == 0 { // rows that begin with the shorter one are at or after it
		order = len(a) - len(b)
	}
	if order < 0 == upper {
		return a
	}
	return b
}
