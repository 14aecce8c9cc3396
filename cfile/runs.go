package cfile

import (
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/encoding"
	"github.com/oribi-db/oribi/internal/fault"
)

// Run is a range of consecutive rows, either all with the same cell or with their cells in a
// vector.
type Run struct {
	Rows  int
	Cell  []byte        // of all rows, if Cells is nil; nil = NULL
	Cells *batch.Vector // of as many rows, not in dictionary form
}

// longRun is the minimum number of equal cells that are passed as one run. Shorter runs are faster
// as part of a vector.
const longRun = 64

// ReadRuns calls f for consecutive runs that make up cells [ord, ord+n), clipped to the end of the
// file, in order.
//
// Rows stored as repeats of one cell (run-length encoding; NULLs in any encoding) are passed as one
// run per cblock, regardless of their number. All others are passed as vectors of up to
// batch.WindowRows rows. A sum or a count thus takes one step for a run instead of one for each
// row. A run is valid during the call of f; its byte strings are never overwritten. An error of f
// stops reading and is returned. Errors: ErrCorrupt with block and byte offset; ErrUnsupported for
// a column of arrays. Source: cfile spec §4.4, §10.4.
func (c *ColumnReader) ReadRuns(ord batch.Ordinal, n int, f func(r Run) error) error {
	if c.r.info.Array {
		return fault.Unsupportedf("cfile: block %v: cannot read runs of a column of arrays", c.r.src.ID())
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
		used := error(nil) // the error of f is returned without wrapping
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

// runMaker collects short and mixed parts of a cblock into vectors.
type runMaker struct {
	b    *dataBlock
	v    *batch.Vector
	f    func(r Run) error
	from int // rows [from, to) are not passed on yet
	to   int
}

// eachRun calls f for the runs of rows [from, from+n) of the cblock, which must not be one of
// arrays. Vectors are read into v.
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

// values adds rows [from, from+n), none of them NULL, which directly follow the rows added before.
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

// repeat passes on n rows of one cell, which directly follow the rows added before.
func (m *runMaker) repeat(n int, cell []byte) error {
	if err := m.flush(); err != nil {
		return err
	}
	m.from, m.to = m.to+n, m.to+n
	return m.f(Run{Rows: n, Cell: cell})
}

// flush passes on the rows added so far, in vectors.
func (m *runMaker) flush() error {
	for m.from < m.to {
		n, _ := m.b.fit(m.from, min(m.to-m.from, batch.WindowRows), maxReadCopyBytes)
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
