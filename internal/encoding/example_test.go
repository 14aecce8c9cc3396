package encoding_test

import (
	"fmt"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/encoding"
	"github.com/oribi-db/oribi/schema"
)

// A payload is built from present cells and read back in parts.
func Example() {
	in := batch.NewVector(schema.Int64, 5)
	copy(batch.Values[int64](in), []int64{10, 20, 30, 40, 50})

	w, err := encoding.NewBuilder(encoding.BuilderOptions{Type: schema.Int64})
	if err != nil {
		panic(err)
	}
	w.Append(in, 0, in.Len)
	payload := w.Finish(nil, 1000)

	block, err := encoding.Parse(encoding.Params{Type: schema.Int64, Payload: payload})
	if err != nil {
		panic(err)
	}
	out := batch.NewVector(schema.Int64, 3)
	if err := block.Decode(1, 3, out, 0); err != nil {
		panic(err)
	}
	fmt.Println(block.Ordinal(), block.Len(), batch.Values[int64](out))
	// Output: 1000 5 [20 30 40]
}
