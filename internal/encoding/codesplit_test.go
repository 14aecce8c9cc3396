package encoding

import (
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/fuzztest"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/schema"
)

// codedWords encodes words, each of one byte, in a block of codes.
func codedWords(t *testing.T, words []byte) (block Block, dict *batch.Dictionary) {
	t.Helper()
	cells := make([][]byte, len(words))
	for i := range cells {
		cells[i] = words[i : i+1]
	}
	b := mustBuilder(t, BuilderOptions{Type: schema.String, Encoding: schema.Dictionary, BlockBytes: 1 << 20})
	payloads, _, dictionary := buildAll(b, schema.String, cells, len(cells))
	dict = must.Get(ParseDictionary(dictionary))(t)
	block = must.Get(Parse(Params{Type: schema.String, Encoding: schema.Dictionary, Payload: payloads[0],
		Dict: dict}))(t)
	return block, dict
}

// checkCodeSplit compares the parts of values [from, from+n), whose selection begins at bit at of
// sel, with their words.
func checkCodeSplit(t *testing.T, x *CodeSplit, block Block, dict *batch.Dictionary, words []byte, from, n int,
	sel batch.Bitmap, at int) {
	t.Helper()
	parts := make([]batch.Bitmap, len(dict.Words))
	for c := range parts {
		parts[c] = append(batch.Bitmap{}, sel...)
	}
	must.Equal(t, must.Get(x.Split(block, from, n, parts, at))(t), true, from, from+n)
	for c, part := range parts {
		for i := range 64 * len(sel) {
			want := sel.Get(i)
			if i >= at && i < at+n {
				want = want && words[from+i-at] == dict.Words[c][0]
			}
			must.Equal(t, part.Get(i), want, c, from, from+n, i, at)
		}
	}
}

func TestCodeSplitAgreesWithWords(t *testing.T) {
	r := seedtest.Rand(t)
	x := new(CodeSplit)
	for round := range 12 {
		words, distinct, repeat := make([]byte, 1+r.IntN(20000)), 1+r.IntN(16), 1+r.IntN(40)
		for i := range words {
			if words[i] = byte(r.IntN(distinct)); round%3 == 0 && i >= repeat {
				words[i] = words[i-repeat] // planes that LZ4 makes small
			}
		}
		block, dict := codedWords(t, words)
		for k := range 8 {
			from, at := r.IntN(len(words)), r.IntN(200)
			if k%2 == 0 {
				from, at = from&^63, at&^63
			}
			n := 1 + r.IntN(len(words)-from)
			checkCodeSplit(t, x, block, dict, words, from, n, randomSelection(r, at+n), at)
		}
		x.Release()
	}
}

func TestCodeSplitRefusesOtherBlocks(t *testing.T) {
	words := []byte("abcdefgabcdefg")
	block, dict := codedWords(t, words)
	x, parts := new(CodeSplit), make([]batch.Bitmap, len(dict.Words))
	for c := range parts {
		parts[c] = batch.MakeBitmap(len(words))
		parts[c].SetRange(0, len(words))
	}
	must.Equal(t, must.Get(x.Split(block, 0, len(words), parts[:3], 0))(t), false, "too few parts")
	block.(*dictBlock).dict = &batch.Dictionary{Words: dict.Words[:5]}
	must.Fail(t, must.Err(x.Split(block, 0, len(words), parts[:5], 0)),
		fault.ErrCorrupt, "codes beyond the dictionary")
	numbers, _ := smallIntegers(t, schema.Int32, 20, false, func() uint64 { return 1 })
	must.Equal(t, must.Get(x.Split(numbers, 0, 20, parts, 0))(t), false, "a block without codes")
}

// InPlanes looks at the chunk of a value.
func TestInPlanes(t *testing.T) {
	r := seedtest.Rand(t)
	random, _ := smallIntegers(t, schema.Int64, 3000, false, func() uint64 { return r.Uint64() % 5000 })
	i := uint64(0)
	rising, _ := smallIntegers(t, schema.Int64, 3000, true, func() uint64 { i++; return i })
	words, _ := codedWords(t, []byte("abc"))
	for k, b := range []Block{random, rising, words} {
		must.Equal(t, InPlanes(b, b.Len()-1), runs && k == 0, k)
	}
}

// FuzzCodeSplit splits words that the input contains.
func FuzzCodeSplit(f *testing.F) {
	f.Add(uint16(300), uint16(7), uint16(64), []byte("\x01\x02\x03\x04\x05\x06\x07"))
	f.Add(uint16(9000), uint16(8190), uint16(3), []byte("aabba"))
	fuzztest.Run(f, func(t *testing.T, size, from, at uint16, input []byte) {
		words := make([]byte, 1+int(size)%20000)
		if len(input) > 0 {
			fill(words[:len(words)/len(input)*len(input)], input)
		}
		block, dict := codedWords(t, words)
		first, begin := int(from)%len(words), int(at)%300
		n := len(words) - first
		sel := batch.MakeBitmap(begin + n)
		sel.SetRange(begin/2, begin+n-n/3)
		checkCodeSplit(t, new(CodeSplit), block, dict, words, first, n, sel, begin)
	})
}
