package cfile

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/encoding"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/schema"
)

// Plan: files of every type, encoding and codec are appended to another file, cblocks as they are
// stored where the file takes them, between cells that are encoded. It has the same cells as a file
// of all cells, and its indexes and its zone map are right.
func TestStoredBlocksHaveTheSameCells(t *testing.T) {
	seed, taken := seedtest.Seed(t), map[schema.Encoding]int{}
	for _, typ := range allTypes {
		for _, enc := range allEncodings {
			if !enc.Allowed(typ) {
				continue
			}
			seed++
			codecs := []schema.Compression{schema.NoCompression, schema.LZ4, schema.LZ4, schema.Zlib}
			o := WriterOptions{Type: typ, Encoding: enc, Compression: codecs[seed%4], Nullable: seed%3 == 0,
				BlockBytes: 4096, PositionalIndex: true}
			t.Run(fmt.Sprintf("type=%v/enc=%v/codec=%v/nullable=%v/seed=%d", typ, enc, o.Compression,
				o.Nullable, seed), func(t *testing.T) {
				taken[enc] += appendFiles(t, rand.New(rand.NewPCG(12, seed)), o)
			})
		}
	}
	for _, enc := range allEncodings {
		must.Equal(t, taken[enc] == 0, enc == schema.Prefix, enc, taken[enc])
	}
}

// appendFiles appends three files to one, and returns the number of cblocks that were taken as they
// were.
func appendFiles(t *testing.T, rng *rand.Rand, o WriterOptions) (taken int) {
	share := 0.0
	if o.Nullable {
		share = 0.2
	}
	cells := randomCells(rng, o.Type, 8000, share)
	if !o.Nullable && o.Type.Keyable() {
		cells = sortCells(o.Type, cells)
		o.ValueIndex = true
	}
	out := &block.Memory{Number: 18}
	w := must.Get(NewWriter(out, o))(t)
	for part := range 3 {
		own := cells[part*len(cells)/3 : (part+1)*len(cells)/3]
		n := rng.IntN(1 + len(own)/4)
		must.Do(t, w.Append(vectorOf(o.Type, own[:n])))
		if own = own[n:]; len(own) > 0 {
			taken += appendFile(t, w, open(t, writeSteps(t, rng, o, own), nil))
		}
	}
	must.Do(t, w.Finish())
	r := open(t, out, nil)
	checkCells(t, r, cells, 1000)
	must.Do(t, r.Verify())
	return taken
}

// appendFile appends all cells of r.
func appendFile(t *testing.T, w *Writer, r *Reader) (taken int) {
	t.Helper()
	for row := batch.Ordinal(0); int64(row) < r.Rows(); {
		i, first, end, err := r.BlockOf(row)
		must.Do(t, err, i, end)
		must.Equal(t, row, first, i, end)
		b := must.Get(r.Stored(i))(t)
		ok := false
		if w.Takes(r) {
			ok, err = w.AppendStored(b)
		}
		b.Release()
		if ok {
			taken++
		} else if err == nil {
			v := batch.NewVector(r.Info().Type, 0)
			if _, err = r.NewColumnReader().ReadVector(row, int(end-row), v); err == nil {
				err = w.Append(v)
			}
		}
		must.Do(t, err)
		row = end
	}
	return taken
}

// words returns n cells, of which there are a few distinct ones, in an order that depends on shift.
func words(n, distinct, shift int) [][]byte {
	cells := make([][]byte, n)
	for i := range cells {
		cells[i] = fmt.Appendf(nil, "word %d", (i+shift)%distinct)
	}
	return cells
}

// Codes are taken if the dictionaries begin with the same words, and as long as they fit.
func TestStoredCodesNeedTheSameDictionary(t *testing.T) {
	rng := seedtest.Rand(t)
	o := WriterOptions{Type: schema.String, Encoding: schema.Dictionary, PositionalIndex: true, BlockBytes: 16 << 10}
	for _, test := range []struct {
		name   string
		before [][]byte // cells of the file before
		cells  [][]byte
		taken  bool
	}{
		{"nothing before", nil, words(4000, 5, 0), true},
		{"the same words", words(100, 5, 0), words(4000, 5, 0), true},
		{"the first ones", words(100, 3, 0), words(4000, 5, 0), true},
		{"more words", words(100, 5, 0), words(4000, 3, 0), true},
		{"another order", words(100, 5, 0), words(4000, 5, 1), false},
		{"a word later", words(100, 1, 0), slices.Concat(words(1, 1, 1), words(4000, 5, 0)), true},
		{"the whole dictionary", nil, words(4000, 1500, 0), true},
		{"too many words", nil, words(4000, 1000, 0), false},
		{"a value index", nil, words(4000, 1, 0), false},
	} {
		to := o
		if test.name == "too many words" {
			to.BlockBytes /= 2
		}
		to.ValueIndex = test.name == "a value index"
		w := must.Get(NewWriter(&block.Memory{Number: 18}, to))(t)
		must.Do(t, w.Append(vectorOf(o.Type, test.before)))
		r := open(t, writeSteps(t, rng, o, test.cells), nil)
		b := must.Get(r.Stored(0))(t)
		must.Equal(t, must.Get(w.AppendStored(b))(t), test.taken, test.name)
		b.Release()
		if to.ValueIndex {
			continue // the cells below do not ascend
		}
		must.Do(t, w.Append(vectorOf(o.Type, words(3000, 3000, 7000))))
		must.Do(t, w.Finish())
	}
}

// Cblocks without codes are not taken while the values may get codes.
func TestStoredPlainBlocksGetCodes(t *testing.T) {
	o := WriterOptions{Type: schema.String, Encoding: schema.Dictionary, PositionalIndex: true,
		BlockBytes: 16 << 10, NoWords: true}
	r := open(t, writeSteps(t, seedtest.Rand(t), o, words(4000, 5, 0)), nil)
	for _, test := range []struct {
		name    string
		noWords bool
		before  [][]byte
		taken   bool
	}{
		{"no words yet", false, nil, false},
		{"room in the dictionary", false, words(100, 5, 0), false},
		{"a full dictionary", false, words(9000, 3000, 0), true},
		{"no dictionary", true, nil, true},
	} {
		to := o
		to.NoWords = test.noWords
		w, err := NewWriter(&block.Memory{Number: 18}, to)
		if err == nil {
			err = w.Append(vectorOf(o.Type, test.before))
		}
		must.Do(t, err)
		b := must.Get(r.Stored(0))(t)
		must.Equal(t, must.Get(w.AppendStored(b))(t), test.taken, test.name)
		b.Release()
	}
}

// Cblocks that are small, or much smaller than the file's other cblocks, are encoded anew.
func TestStoredBlocksHaveUsualSizes(t *testing.T) {
	rng := seedtest.Rand(t)
	o := WriterOptions{Type: schema.Int64, PositionalIndex: true}
	for _, test := range []struct {
		rows, from, to int
		taken          bool
	}{
		{5000, 0, 0, false},
		{9000, 0, 0, true},
		{1000, 0, 16 << 10, true},
		{9000, 0, 16 << 10, false},
		{9000, 0, 64 << 10, true},
	} {
		from, to := o, o
		from.BlockBytes, to.BlockBytes = test.from, test.to
		r := open(t, writeSteps(t, rng, from, randomCells(rng, o.Type, test.rows, 0)), nil)
		w := must.Get(NewWriter(&block.Memory{Number: 18}, to))(t)
		b := must.Get(r.Stored(0))(t)
		must.Equal(t, must.Get(w.AppendStored(b))(t), test.taken, test)
		b.Release()
	}
}

func TestStoredFindsDamage(t *testing.T) {
	src := writeSteps(t, seedtest.Rand(t), WriterOptions{Type: schema.Int64, PositionalIndex: true},
		randomCells(seedtest.Rand(t), schema.Int64, 9000, 0))
	src.Bytes[1000] ^= 1
	must.Fail(t, must.Err(open(t, src, nil).Stored(0)), fault.ErrCorrupt)
}

// otherWords writes a dictionary of other words.
type otherWords struct {
	encoding.DictionaryBuilder
	words [][]byte
}

func (o otherWords) FinishDictionary(dst []byte) []byte {
	b, err := encoding.NewBuilder(encoding.BuilderOptions{Type: schema.String, Encoding: schema.Plain})
	if err != nil {
		panic(err)
	}
	b.Append(vectorOf(schema.String, o.words), 0, len(o.words))
	return b.Finish(dst, 0)
}

// Codes are valid in the dictionary of their file: under another, they might mean other words.
func TestStoredChecksCodes(t *testing.T) {
	for _, distinct := range []int{2, 3} {
		out := &block.Memory{Number: 17}
		w := must.Get(
			NewWriter(out, WriterOptions{Type: schema.String, Encoding: schema.Dictionary, PositionalIndex: true}))(t)
		cells := append(words(9000, 2, 0), words(distinct, distinct, 0)...)
		must.Do(t, w.Append(vectorOf(schema.String, cells)))
		w.words = otherWords{w.words, words(2, 2, 0)}
		must.Do(t, w.Finish())
		b, err := open(t, out, nil).Stored(0)
		if bad := distinct > 2; bad != errors.Is(err, fault.ErrCorrupt) || !bad && err != nil {
			t.Errorf("%d words of 2: %v", distinct, err)
		}
		if err == nil {
			b.Release()
		}
	}
}

// Seek searches the dictionary of a file with a value index, so its words ascend, also those that no
// cell has.
func TestVerifyFindsWordsThatDoNotAscend(t *testing.T) {
	for _, test := range []struct {
		words [][]byte
		bad   bool
	}{
		{[][]byte{[]byte("b"), []byte("c")}, false},
		{[][]byte{[]byte("b"), []byte("a")}, true},
		{[][]byte{[]byte("b"), []byte("b")}, true},
	} {
		out := &block.Memory{Number: 17}
		w, err := NewWriter(out,
			WriterOptions{Type: schema.String, Encoding: schema.Dictionary, PositionalIndex: true, ValueIndex: true})
		if err == nil {
			err = w.Append(vectorOf(schema.String, [][]byte{[]byte("b"), []byte("b")}))
		}
		must.Do(t, err)
		w.words = otherWords{w.words, test.words}
		must.Do(t, w.Finish())
		if err := open(t, out, nil).Verify(); test.bad != errors.Is(err, fault.ErrCorrupt) || !test.bad && err != nil {
			t.Errorf("words %q: %v", test.words, err)
		}
	}
}
