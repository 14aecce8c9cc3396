package hfile

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/oribi-db/oribi/block"
)

// gzipFile returns a GZ file of n puts in small blocks, with an index of several levels.
func gzipFile(t *testing.T, n int) *block.Memory {
	t.Helper()
	out := new(block.Memory)
	w, err := NewWriter(out, WriterOptions{Codec: GZ, BlockBytes: 200, IndexBlockBytes: 400})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if err := w.Append(Cell{Key: Key{Row: aheadRow(i), Timestamp: math.MaxInt64, Type: Put}, Value: aheadRow(i * 7)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Finish(); err != nil {
		t.Fatal(err)
	}
	return out
}

func aheadRow(i int) []byte { return fmt.Appendf(nil, "row %06d", i) }

// Iterations read compressed blocks ahead. Each range returns its cells, wherever the loop ends.
func TestIterationsReadAhead(t *testing.T) {
	const n = 2000
	file := gzipFile(t, n)
	r, err := Open(file, ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if r.Trailer().IndexLevels < 3 {
		t.Fatalf("%d levels of the index", r.Trailer().IndexLevels)
	}
	for _, bounds := range [][2]int{{0, n}, {0, 1}, {3, 9}, {17, 600}, {1990, n}, {n, n}} {
		for _, limit := range []int{n, 1, 40} {
			i := bounds[0]
			for c, err := range r.CellsBetween(aheadRow(bounds[0]), aheadRow(bounds[1])) {
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(c.Row, aheadRow(i)) || !bytes.Equal(c.Value, aheadRow(i*7)) {
					t.Fatalf("range %v: cell %q at %d", bounds, c.Row, i)
				}
				if i++; i == bounds[0]+limit {
					break
				}
			}
			if want := min(bounds[1], bounds[0]+limit); i != want {
				t.Errorf("range %v: ends at %d, want %d", bounds, i, want)
			}
		}
	}
}

// The error of a damaged block comes after all cells before it, and not if the loop ends earlier.
func TestErrorOfABlockReadAheadComesInOrder(t *testing.T) {
	const n = 500
	file := gzipFile(t, n)
	r, err := Open(file, ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c := r.NewCursor(CursorOptions{})
	if code, err := c.SeekTo(FirstOnRow(aheadRow(n / 2))); err != nil || code == BeforeFile {
		t.Fatal(code, err)
	}
	file.Bytes[c.leaf().offset+headerLen+5] ^= 1
	cells := 0
	for _, err = range r.Cells() {
		if err == nil {
			cells++
		}
	}
	if !errors.Is(err, ErrCorrupt) || cells < n/2-20 || cells > n/2 {
		t.Errorf("%d cells, then %v", cells, err)
	}
	for _, err := range r.CellsBetween(nil, aheadRow(cells-1)) {
		if err != nil {
			t.Error(err)
		}
	}
}
