package encoding

import (
	"bytes"
	"slices"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/schema"
)

// Words that differ in their length only, or in bytes at the end, in the middle, or after the
// eighth have codes of their own, in the order in which they come, also from vectors of codes. The
// words of each payload are those that it needs.
func TestCodesOfSimilarWords(t *testing.T) {
	r := seedtest.Rand(t)
	var words [][]byte
	for n := range 20 {
		word := make([]byte, n)
		words = append(words, word)
		for i := range n {
			other := bytes.Clone(word)
			other[i] = 0x80
			words = append(words, other)
		}
	}
	b := mustBuilder(t, BuilderOptions{Type: schema.Binary, Encoding: schema.Dictionary,
		BlockBytes: 8192}).(DictionaryBuilder)
	d := &batch.Dictionary{Words: words}
	var first, used [][]byte // each word once, as it comes
	for range 4 {
		v := &batch.Vector{Type: schema.Binary}
		n := 1 + r.IntN(300)
		v.Reset(n)
		v.UseCodes(d, n)
		for i := range v.Codes {
			v.Codes[i] = uint32(r.IntN(len(words)))
		}
		want := &batch.Vector{Type: schema.Binary, Len: n}
		for _, c := range v.Codes {
			want.Bytes = append(want.Bytes, words[c])
		}
		given := v
		if r.IntN(2) == 0 {
			given = want
		}
		must.Equal(t, b.Coded(), true)
		must.Equal(t, b.Append(given, 0, n), n)
		var distinct [][]byte
		for _, cell := range want.Bytes {
			same := func(word []byte) bool { return bytes.Equal(word, cell) }
			if !slices.ContainsFunc(distinct, same) {
				distinct = append(distinct, cell)
			}
			if !slices.ContainsFunc(first, same) {
				first = append(first, cell)
			}
		}
		used = b.AppendUsed(used[:0])
		slices.SortFunc(used, bytes.Compare)
		slices.SortFunc(distinct, bytes.Compare)
		if !slices.EqualFunc(used, distinct, bytes.Equal) {
			t.Fatalf("%d words are used, want %d", len(used), len(distinct))
		}
		dict := must.Get(ParseDictionary(b.FinishDictionary(nil)))(t)
		if !slices.EqualFunc(dict.Words, first, bytes.Equal) {
			t.Fatalf("words %x, want %x", dict.Words, first)
		}
		block := must.Get(Parse(Params{Type: schema.Binary, Encoding: schema.Dictionary, Payload: b.Finish(nil, 0),
			Dict: dict}))(t)
		must.Do(t, checkBlock(block, schema.Binary, 0, want.Bytes, r))
		b.Reset()
	}
}
