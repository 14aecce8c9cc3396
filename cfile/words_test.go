package cfile

import (
	"slices"
	"testing"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/schema"
)

// A dictionary is vain if its words hardly repeat in many values, or until it was full. NULLs are no
// values.
func TestVainDictionary(t *testing.T) {
	nulls := make([][]byte, 60_000)
	for _, test := range []struct {
		name  string
		bytes int // BlockBytes
		cells [][]byte
		vain  bool
	}{
		{"few values", 1 << 20, words(2000, 2000, 0), false},
		{"many values", 1 << 20, words(1<<16, 40_000, 0), true},
		{"few values and NULLs", 1 << 20, slices.Concat(words(30_000, 30_000, 0), nulls), false},
		{"words that repeat", 1 << 20, words(1<<16, 20_000, 0), false},
		{"full", 32 << 10, words(4000, 4000, 0), true},
		{"full, with NULLs", 32 << 10, slices.Concat(nulls, words(4000, 4000, 0)), true},
		{"full of few words", 4 << 10, words(4000, 4000, 0), false},
	} {
		o := WriterOptions{Type: schema.String, Encoding: schema.Dictionary, Nullable: true,
			PositionalIndex: true, BlockBytes: test.bytes}
		w, err := NewWriter(new(block.Memory), o)
		if err == nil {
			err = w.Append(vectorOf(o.Type, test.cells))
		}
		if err == nil {
			err = w.Finish()
		}
		if vain := w.VainDictionary(); err != nil || vain != test.vain {
			t.Errorf("%s: vain %t, %v", test.name, vain, err)
		}
	}
}
