package encoding

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/schema"
)

// Fit returns the largest number of values that fit. The test computes the expected number from the
// values.
func TestFitCountsWhatDecodeCopies(t *testing.T) {
	const values, interval = 50, 7
	v := batch.NewVector(schema.Binary, values)
	sizes := make([]int, values) // bytes that Decode copies
	for i := range values {
		cell := append(bytes.Repeat([]byte{'x'}, 10+i), fmt.Appendf(nil, "%03d", i)...)
		v.SetCell(i, cell)
		if i%interval != 0 {
			sizes[i] = len(cell)
		}
	}
	b := must.Get(NewBuilder(BuilderOptions{Type: schema.Binary, Encoding: schema.Prefix, BlockBytes: 1 << 20,
		RestartInterval: interval}))(t)
	b.Append(v, 0, values)
	block := must.Get(Parse(Params{Type: schema.Binary, Encoding: schema.Prefix, Payload: b.Finish(nil, 0)}))(t)
	for from := range values {
		for _, limit := range []int{0, 1, 40, 41, 100, 500, 1 << 17} {
			want, size := 0, 0
			for from+want < values && (want == 0 || size+sizes[from+want] <= limit) {
				size += sizes[from+want]
				want++
			}
			if got, copied := block.(Copier).Fit(from, values-from, limit); got != want || copied != size {
				t.Fatalf("from %d, limit %d: %d of %d bytes, want %d of %d", from, limit, got, copied, want, size)
			}
		}
		if got, _ := block.(Copier).Fit(from, values-from, 1<<20); got != values-from {
			t.Fatalf("from %d: %d, want all", from, got)
		}
	}
}

// Reads of consecutive windows decode each entry once, even if restarts are far apart. Reads in any
// other order return the same values.
func TestConsecutiveWindowsDecodeEntriesOnce(t *testing.T) {
	const values, window = 20 * farRestarts, 100
	v := batch.NewVector(schema.Binary, values)
	for i := range values {
		v.SetCell(i, fmt.Appendf(nil, "%0*d", 4+i%7, i/3)) // values repeat, and a repeated one has an empty suffix
	}
	b := must.Get(NewBuilder(BuilderOptions{Type: schema.Binary, Encoding: schema.Prefix, BlockBytes: 16 << 20,
		RestartInterval: 10 * farRestarts}))(t)
	b.Append(v, 0, values)
	parsed := must.Get(Parse(Params{Type: schema.Binary, Encoding: schema.Prefix, Payload: b.Finish(nil, 0)}))(t)
	block := parsed.(*prefixBlock)
	windows := make([]*batch.Vector, 0, values/window+1)
	walked := 0
	walk := func(to int) {
		p := block.nearest(to)
		block.keep(&p)
		walked += to - p.next
	}
	test, sel := &batch.Predicate{Type: schema.Binary, Op: batch.Lt, Values: [][]byte{v.Cell(values / 2)}},
		batch.MakeBitmap(window)
	for from := 0; from < values; from += window {
		n := min(window, values-from)
		walk(from)
		must.Equal(t, must.Get(block.Select(test, from, n, sel, 0))(t), true)
		walk(from)
		block.Fit(from, n, 1)
		walk(from)
		got := batch.NewVector(schema.Binary, n)
		must.Do(t, block.Decode(from, n, got, 0))
		windows = append(windows, got)
	}
	if walked > 0 {
		t.Errorf("%d entries were decoded again", walked)
	}
	for i := range values { // after all windows: none may have been overwritten
		must.Equal(t, windows[i/window].Cell(i%window), v.Cell(i), i)
	}
	r := seedtest.Rand(t)
	for range 300 {
		i := r.IntN(values)
		must.Equal(t, must.Get(block.Cell(i))(t), v.Cell(i), i)
		n := min(values-i, 50)
		got := batch.NewVector(schema.Binary, n)
		must.Do(t, block.Decode(i, n, got, 0), i+n-1)
		must.Equal(t, got.Cell(n-1), v.Cell(i+n-1), i+n-1)
	}
}
