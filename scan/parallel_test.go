package scan

import (
	"bytes"
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
)

// fakeParts returns rows [0, n) in parts of a few rows, and the fakes that were opened.
func fakeParts(n int) (parts []Opener, opened func() []*fake) {
	var fakes []*fake
	var used []atomic.Bool
	for first := 0; first < n; first += 7 {
		f := &fake{sizes: func() int { return 3 }, noise: func() bool { return false }, failAt: -1}
		for i := first; i < min(n, first+7); i++ {
			f.rows = append(f.rows, rowOf(i))
		}
		fakes = append(fakes, f)
	}
	used = make([]atomic.Bool, len(fakes))
	for i, f := range fakes {
		parts = append(parts, func() (Iterator, error) {
			if used[i].Swap(true) {
				return nil, errors.New("opened twice")
			}
			return f, nil
		})
	}
	return parts, func() []*fake {
		var out []*fake
		for i, f := range fakes {
			if used[i].Load() {
				out = append(out, f)
			}
		}
		return out
	}
}

func TestParallelReturnsAllRowsOnce(t *testing.T) {
	for workers := range 6 {
		parts, opened := fakeParts(200)
		it := Parallel(parts, workers)
		got := read(t, it, true)
		must.Do(t, it.Close())
		slices.SortFunc(got, func(a, b row) int { return bytes.Compare(a.key, b.key) })
		var want []row
		for i := range 200 {
			want = append(want, rowOf(i))
		}
		compareRows(t, got, want)
		for i, f := range opened() {
			must.Equal(t, f.closed, 1, workers, "workers: part", i, "calls of Close")
		}
	}
}

func TestParallelClosedEarlyClosesOpenParts(t *testing.T) {
	for steps := range 20 {
		parts, opened := fakeParts(200)
		it := Parallel(parts, 4)
		for range steps {
			must.Equal(t, it.Next(), true, "no batch")
		}
		must.Do(t, errors.Join(it.Close(), it.Close()))
		must.Equal(t, it.Next(), false, "closed")
		for i, f := range opened() {
			must.Equal(t, f.closed, 1, "after", steps, "batches: part", i, "calls of Close")
		}
	}
}

func TestParallelReturnsErrorOfPart(t *testing.T) {
	for failing := range 29 {
		parts, opened := fakeParts(200)
		f, _ := parts[failing]()
		f.(*fake).failAt = 1
		parts[failing] = func() (Iterator, error) { return f, nil }
		it := Parallel(parts, 3)
		for it.Next() {
		}
		must.Fail(t, it.Close(), errFake, "part", failing)
		for i, f := range opened() {
			must.Equal(t, f.closed, 1, "part", failing, "fails: part", i, "calls of Close")
		}
	}
}

// typedIterator is an Iterator whose nil pointer an opener may return with an error.
type typedIterator struct{ Iterator }

func (*typedIterator) Close() error { panic("an iterator that was never opened is closed") }

func TestParallelReturnsTheErrorOfAnOpener(t *testing.T) {
	broken := errors.New("broken")
	fail := func() (Iterator, error) { return (*typedIterator)(nil), broken }
	for n := range 3 {
		p := Parallel([]Opener{fail, fail, fail}, 1+n)
		must.Equal(t, p.Next(), false, "a batch of an iterator that was not opened")
		must.Fail(t, p.Close(), broken, 1+n, "goroutines")
	}
}
