package encoding

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/schema"
)

// What Fit says is the most that fits, counted on the values themselves.
func TestFitCountsWhatDecodeCopies(t *testing.T) {
	const values, interval = 50, 7
	v := batch.NewVector(schema.Binary, values)
	sizes := make([]int, values) // that Decode copies
	for i := range values {
		cell := append(bytes.Repeat([]byte{'x'}, 10+i), fmt.Appendf(nil, "%03d", i)...)
		v.SetCell(i, cell)
		if i%interval != 0 {
			sizes[i] = len(cell)
		}
	}
	b, err := NewBuilder(BuilderOptions{Type: schema.Binary, Encoding: schema.Prefix, BlockBytes: 1 << 20, RestartInterval: interval})
	if err != nil {
		t.Fatal(err)
	}
	b.Append(v, 0, values)
	block, err := Parse(Params{Type: schema.Binary, Encoding: schema.Prefix, Payload: b.Finish(nil, 0)})
	if err != nil {
		t.Fatal(err)
	}
	for from := range values {
		for _, limit := range []int{0, 1, 40, 41, 100, 500, 1 << 20} {
			want, size := 0, 0
			for from+want < values {
				if size += sizes[from+want]; size > limit && want > 0 {
					break
				}
				want++
			}
			if got := block.(Copier).Fit(from, values-from, limit); got != want {
				t.Fatalf("from %d, limit %d: %d, want %d", from, limit, got, want)
			}
		}
	}
}
