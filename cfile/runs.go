package cfile

import (
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/encoding"
	"github.com/oribi-db/oribi/internal/fault"
)

// Run is some rows that follow one another: either all have one cell, or they stand in a vector.
type Run struct {
	Rows  int
	Cell  []byte        // of all rows, if Cells is nil; nil = NULL
	Cells *batch.Vector // of as many rows, not in dictionary form
}

// longRun is how many rows must have one cell to be handed out as such: shorter runs cost less as
// part of a vector.
const longRun = 64

// ReadRuns calls f for runs that make up the cells [ord, ord+n), as many of them as the file has,
// in order.
//
// Rows that the file holds as repeats of one cell (run-length encoding; NULLs of any encoding) come
// as one run for each cblock, however many they are, and all others as vectors of up to
// batch.WindowRows rows. So a sum or a count costs a step for a run in place of one for a row. A
// run holds during the call of f, byte strings as long as they are referenced. An error of f ends
// the reading and is returned. Errors: ErrCorrupt with block and byte offset;
// ErrUnsupported for a column of arrays. Source: cfile spec §4.4, §10.4.
func (c *ColumnReader) ReadRuns(ord batch.Ordinal, n int, f func(r Run) error) error {
	if c.r.info.Array {
		return fault.Unsupportedf("cfile: block %v: runs of a column of arrays", c.r.src.ID())
	}
	n = c.clip(ord, n)
	v := batch.Vector{Type: c.r.info.Type}
	for at := 0; at < n; {
		b, err := c.block(int64(ord) + int64(at))
		if err != nil {
			return err
		}
		from := int(int64(ord) + int64(at) - b.first)
		k := min(n-at, b.rows-from)
		used := error(nil) // what f returned is not ours to wrap
		err = b.eachRun(from, k, &v, func(r Run) error {
			used = f(r)
			return used
		})
		if used != nil {
			return used
		}
		if err != nil {
			return c.wrap(b, err)
		}
		at += k
	}
	return nil
}

// runMaker gathers parts of a cblock that are short, or differ, into vectors.
type runMaker struct {
	b    *dataBlock
	v    *batch.Vector
	f    func(r Run) error
	from int // rows [from, to) are not handed out yet
	to   int
}

// eachRun calls f for the runs of rows [from, from+n) of the block, which is not one of arrays.
// Vectors are read into v.
func (b *dataBlock) eachRun(from, n int, v *batch.Vector, f func(r Run) error) error {
	m := runMaker{b: b, v: v, f: f, from: from, to: from}
	var err error
	if b.nullable {
		err = b.nulls.each(from, n, func(k int, repeated, present bool) error {
			switch {
			case !repeated || k < longRun:
				m.to += k
				return nil
			case present:
				return m.values(m.to, k)
			}
			return m.repeat(k, nil)
		})
	} else {
		err = m.values(from, n)
	}
	if err != nil {
		return err
	}
	return m.flush()
}

// values takes rows [from, from+n), none of them NULL, which follow what was taken before.
func (m *runMaker) values(from, n int) error {
	runs, ok := m.b.values.(encoding.RunBlock)
	if !ok {
		m.to += n
		return nil
	}
	v, _ := m.b.span(from, n)
	return runs.Runs(v, n, func(k int, cell []byte) error {
		if cell == nil || k < longRun {
			m.to += k
			return nil
		}
		return m.repeat(k, cell)
	})
}

// repeat hands out n rows of one cell, behind what was taken before.
func (m *runMaker) repeat(n int, cell []byte) error {
	if err := m.flush(); err != nil {
		return err
	}
	m.from, m.to = m.to+n, m.to+n
	return m.f(Run{Rows: n, Cell: cell})
}

// flush hands out what was taken, in vectors.
func (m *runMaker) flush() error {
	for m.from < m.to {
		n, _ := m.b.fit(m.from, min(m.to-m.from, batch.WindowRows), readCopied)
		m.v.Reset(n)
		if err := m.b.decode(m.from, n, m.v, 0); err != nil {
			return err
		}
		m.from += n
		if err := m.f(Run{Rows: n, Cells: m.v}); err != nil {
			return err
		}
	}
	return nil
}
