package hfile

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"

	"go.uber.org/goleak"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/memtest"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
)

// gzipFile returns a GZ file of n puts in small blocks, with an index of several levels.
func gzipFile(t *testing.T, n int) *block.Memory {
	t.Helper()
	out := new(block.Memory)
	w := must.Get(NewWriter(out, WriterOptions{Codec: GZ, BlockBytes: 200, IndexBlockBytes: 400}))(t)
	for i := range n {
		must.Do(t, w.Append(Cell{Key: Key{Row: aheadRow(i), Timestamp: math.MaxInt64, Type: Put},
			Value: aheadRow(i * 7)}))
	}
	must.Do(t, w.Finish())
	return out
}

// aheadReader opens a file of gzipFile. For the rest of the test there are CPUs to read ahead.
func aheadReader(t *testing.T, n int) (*Reader, *block.Memory) {
	t.Helper()
	file := gzipFile(t, n)
	r := must.Get(Open(file, ReaderOptions{}))(t)
	cpus := runtime.GOMAXPROCS(4)
	t.Cleanup(func() { runtime.GOMAXPROCS(cpus) })
	return r, file
}

func aheadRow(i int) []byte { return fmt.Appendf(nil, "row %06d", i) }

// Iterations read compressed blocks ahead. Each range returns its cells, wherever the loop ends.
func TestIterationsReadAhead(t *testing.T) {
	const n = 2000
	r, _ := aheadReader(t, n)
	if r.Trailer().IndexLevels < 3 {
		t.Fatalf("%d levels of the index", r.Trailer().IndexLevels)
	}
	for _, bounds := range [][2]int{{0, n}, {0, 1}, {3, 9}, {17, 600}, {1990, n}, {n, n}} {
		for _, limit := range []int{n, 1, 40} {
			i := bounds[0]
			for c, err := range r.CellsBetween(aheadRow(bounds[0]), aheadRow(bounds[1])) {
				must.Do(t, err)
				must.Equal(t, c.Row, aheadRow(i), bounds, i)
				must.Equal(t, c.Value, aheadRow(i*7), bounds, i)
				if i++; i == bounds[0]+limit {
					break
				}
			}
			must.Equal(t, i, min(bounds[1], bounds[0]+limit), bounds)
		}
	}
}

// The error of a damaged block comes after all cells before it, and not if the loop ends earlier.
func TestErrorOfABlockReadAheadComesInOrder(t *testing.T) {
	const n = 500
	r, file := aheadReader(t, n)
	c := r.NewCursor(CursorOptions{})
	if code, err := c.SeekTo(FirstOnRow(aheadRow(n / 2))); err != nil || code == BeforeFile {
		t.Fatal(code, err)
	}
	file.Bytes[c.leaf().offset+headerLen+5] ^= 1
	cells := 0
	var err error
	for _, err = range r.Cells() {
		if err == nil {
			cells++
		}
	}
	if !errors.Is(err, ErrCorrupt) || cells < n/2-20 || cells > n/2 {
		t.Errorf("%d cells, then %v", cells, err)
	}
	for _, err := range r.CellsBetween(nil, aheadRow(cells-1)) {
		must.Do(t, err)
	}
}

// With ReadAhead a cursor that also seeks, back and forth, is where one without it is.
func TestCursorThatReadsAheadSeeks(t *testing.T) {
	const n = 2000
	r, _ := aheadReader(t, n)
	rng := rand.New(rand.NewPCG(seedtest.Seed(t), 0))
	ahead, plain := r.NewCursor(CursorOptions{ReadAhead: true}), r.NewCursor(CursorOptions{})
	for range 300 {
		k := FirstOnRow(aheadRow(rng.IntN(n + 1)))
		if rng.IntN(3) == 0 {
			ok, err := ahead.SeekBefore(k)
			if want, _ := plain.SeekBefore(k); err != nil || ok != want {
				t.Fatalf("before %q: %v, %v", k.Row, ok, err)
			}
		} else {
			code, err := ahead.SeekTo(k)
			if want, _ := plain.SeekTo(k); err != nil || code != want {
				t.Fatalf("%q: %v, %v", k.Row, code, err)
			}
		}
		for range rng.IntN(60) {
			must.Equal(t, ahead.Next(), plain.Next(), k.Row)
			if got, want := ahead.Cell(),
				plain.Cell(); !bytes.Equal(got.Row, want.Row) || !bytes.Equal(got.Value, want.Value) {
				t.Fatalf("after %q: %q, want %q", k.Row, got.Row, want.Row)
			}
		}
	}
	must.Do(t, errors.Join(ahead.Close(), plain.Close()))
}

func TestCloseEndsWorkers(t *testing.T) {
	r, _ := aheadReader(t, 500)
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	for steps := range 60 {
		c := r.NewCursor(CursorOptions{ReadAhead: true})
		for range steps {
			c.Next()
		}
		must.Do(t, c.Close(), steps)
		must.Equal(t, c.ahead.running, 0, steps)
		if c.Close() != nil || c.Next() {
			t.Fatal("a closed cursor moves")
		}
	}
}

// Workers read while the cursor does nothing.
func TestWorkersReadWithoutTheCursor(t *testing.T) {
	r, _ := aheadReader(t, 500)
	c := r.NewCursor(CursorOptions{ReadAhead: true})
	defer c.Close()
	for c.ahead.blocks < 5 {
		if !c.Next() {
			t.Fatal(c.Err())
		}
	}
	a := c.ahead
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.queue) < a.workers {
		t.Fatalf("%d blocks are requested", len(a.queue))
	}
	for a.running > 0 {
		a.changed.Wait()
	}
	for _, b := range a.queue {
		if b.state != aheadReady || b.err != nil || b.block.offset != b.entry.offset {
			t.Errorf("block at byte %d: state %d, %v", b.entry.offset, b.state, b.err)
		}
	}
}

// Blocks that are much larger than in the file are not read ahead.
func TestReadingAheadTakesLittleMemory(t *testing.T) {
	out := new(block.Memory)
	w := must.Get(NewWriter(out, WriterOptions{Codec: GZ}))(t)
	value := make([]byte, 8<<20)
	for i := range 8 {
		must.Do(t, w.Append(Cell{Key: Key{Row: aheadRow(i), Timestamp: math.MaxInt64, Type: Put},
			Value: value}))
	}
	must.Do(t, w.Finish())
	cpus := runtime.GOMAXPROCS(4)
	defer runtime.GOMAXPROCS(cpus)
	n := memtest.Allocated(func() {
		var r *Reader
		r = must.Get(Open(out, ReaderOptions{}))(t)
		for _, err := range r.Cells() {
			must.Do(t, err)
		}
	})
	if limit := int64(32*len(out.Bytes) + 32<<20); n > limit {
		t.Errorf("%d bytes allocated for a file of %d, at most %d", n, len(out.Bytes), limit)
	}
}
