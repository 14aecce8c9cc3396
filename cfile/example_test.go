package cfile_test

import (
	"fmt"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/cfile"
	"github.com/oribi-db/oribi/schema"
)

// Write a sorted column, seek a value and read from there.
func Example() {
	out := &block.Memory{}
	w, err := cfile.NewWriter(out, cfile.WriterOptions{Type: schema.Int64, PositionalIndex: true, ValueIndex: true})
	if err != nil {
		panic(err)
	}
	v := batch.NewVector(schema.Int64, 1000)
	for i := range batch.Values[int64](v) {
		batch.Values[int64](v)[i] = int64(10 * i)
	}
	if err := w.Append(v); err != nil {
		panic(err)
	}
	if err := w.Finish(); err != nil {
		panic(err)
	}

	r, err := cfile.Open(out, cfile.ReaderOptions{})
	if err != nil {
		panic(err)
	}
	key := batch.NewVector(schema.Int64, 1)
	batch.Values[int64](key)[0] = 4321
	ord, exact, err := r.Seek(key.Cell(0))
	if err != nil {
		panic(err)
	}
	n, err := r.NewColumnReader().ReadVector(ord, 3, v)
	if err != nil {
		panic(err)
	}
	fmt.Println(ord, exact, n, batch.Values[int64](v))
	// Output: 433 false 3 [4330 4340 4350]
}
