package cfile

import (
	"bytes"
	"errors"
	"path/filepath"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/schema"
)

// The concatenation of runs equals the cells of ReadVector, for all of Kudu's files and from any
// row.
func TestReadRunsAgreesWithReadVector(t *testing.T) {
	goldenDirs(t, func(t *testing.T, dir string) {
		repeated := 0
		for _, g := range manifest(t, dir) {
			if g.Array || !g.PosIdx {
				continue
			}
			r, err := Open(load(t, filepath.Join(dir, g.Name+".cfile"), 1), ReaderOptions{})
			must.Do(t, err, g.Name)
			for _, from := range []int{0, int(g.NumValues) / 3} {
				repeated += checkRuns(t, r, from, int(g.NumValues)-from)
				checkRuns(t, r, from, min(int(g.NumValues)-from, 1000))
			}
		}
		if repeated == 0 {
			t.Error("no run in any file")
		}
	})
}

// checkRuns compares the cells and counts the runs of one cell.
func checkRuns(t *testing.T, r *Reader, from, n int) (repeated int) {
	t.Helper()
	c, want := r.NewColumnReader(), &batch.Vector{Type: r.Info().Type}
	if n == 0 {
		return 0
	}
	at, have := from, 0 // want has rows [at-have, at) without those already compared
	next := func() []byte {
		i := at - from
		if i >= have {
			k, err := c.ReadVector(batch.Ordinal(at), batch.WindowRows, want)
			if err != nil || k == 0 {
				t.Fatal(at, k, err)
			}
			from, have = at, k
			i = 0
		}
		at++
		return want.Cell(i)
	}
	end := from + n
	err := r.NewColumnReader().ReadRuns(batch.Ordinal(from), n, func(run Run) error {
		if run.Cells == nil {
			repeated++
		} else if run.Cells.Len != run.Rows {
			t.Fatalf("row %d: %d cells for %d rows", at, run.Cells.Len, run.Rows)
		}
		for i := range run.Rows {
			got := run.Cell
			if run.Cells != nil {
				got = run.Cells.Cell(i)
			}
			if cell := next(); !bytes.Equal(got, cell) || (got == nil) != (cell == nil) {
				t.Fatalf("row %d is %x, want %x", at-1, got, cell)
			}
		}
		return nil
	})
	must.Do(t, err, "runs end at row")
	must.Equal(t, at, end, "runs end at row")
	return repeated
}

// Runs of a column of one repeated cell, or of NULLs, take few steps, also in Verify.
func TestReadRunsPassesLongRunsAtOnce(t *testing.T) {
	const rows = 8 * maxBlockRows
	for name, cell := range map[string][]byte{"cell": {1}, "null": nil} {
		out := new(block.Memory)
		w := must.Get(NewWriter(out, WriterOptions{Type: schema.Bool, Encoding: schema.RLE, Nullable: true,
			PositionalIndex: true}))(t)
		v := batch.NewVector(schema.Bool, 1<<16)
		v.Fill(v.Len, cell)
		for range rows / v.Len {
			must.Do(t, w.Append(v))
		}
		must.Do(t, w.Finish())
		r, steps, sum := open(t, out, nil), 0, 0
		err := r.NewColumnReader().ReadRuns(0, rows, func(run Run) error {
			steps++
			sum += run.Rows
			if run.Cells != nil || !bytes.Equal(run.Cell, cell) {
				t.Fatalf("%s: run of %x", name, run.Cell)
			}
			return nil
		})
		if err != nil || sum != rows || steps > 10 {
			t.Errorf("%s: %d of %d rows in %d steps, %v", name, sum, rows, steps, err)
		}
		must.Do(t, r.Verify(), name)
		stop := errors.New("enough")
		steps = 0
		err = r.NewColumnReader().ReadRuns(0, rows, func(Run) error { steps++; return stop })
		if err != stop || steps != 1 {
			t.Errorf("%s: %d steps after the error, %v", name, steps, err)
		}
	}
	arrays := open(t, writeAll(t, exampleArrayOptions, arraysOf(schema.Int32, exampleArrays())), nil)
	must.Fail(t, arrays.NewColumnReader().ReadRuns(0, 1, nil), fault.ErrUnsupported)
}
