package encoding

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/schema"
)

// Select compares codes if the matching words have adjacent codes, however the words are ordered,
// and looks up codes otherwise. Both find the same rows.
func TestSelectOfCodesAgreesWithWords(t *testing.T) {
	r := seedtest.Rand(t)
	for _, words := range []int{2, 7, 16, 300, 3000} {
		cells := make([][]byte, 9000)
		for i := range cells {
			cells[i] = fmt.Appendf(nil, "%04d", (i+words/2)%words) // the dictionary begins in the middle
		}
		b := mustBuilder(t, BuilderOptions{Type: schema.String, Encoding: schema.Dictionary, BlockBytes: 1 << 20})
		payloads, _, dict := buildAll(b, schema.String, cells, len(cells))
		d := must.Get(ParseDictionary(dict))(t)
		block := must.Get(
			Parse(Params{Type: schema.String, Encoding: schema.Dictionary, Payload: payloads[0], Dict: d}))(t)
		for range 20 {
			checkSelect(t, block, schema.String, cells[:block.Len()], r)
		}
	}
}

func TestSelectRefusesCodesBeyondTheDictionary(t *testing.T) {
	cells := make([][]byte, 500)
	for i := range cells {
		cells[i] = []byte{byte('a' + i%7), byte('a' + i%7)}
	}
	b := mustBuilder(t, BuilderOptions{Type: schema.String, Encoding: schema.Dictionary, BlockBytes: 1 << 20})
	payloads, _, dict := buildAll(b, schema.String, cells, len(cells))
	d := must.Get(ParseDictionary(dict))(t)
	for words := 2; words <= 7; words++ {
		known := &batch.Dictionary{Words: d.Words[:words]}
		block := must.Get(
			Parse(Params{Type: schema.String, Encoding: schema.Dictionary, Payload: payloads[0], Dict: known}))(t)
		for _, op := range []batch.Operator{batch.Eq, batch.Ne} {
			p := &batch.Predicate{Type: schema.String, Op: op, Values: [][]byte{d.Words[1]}}
			sel := batch.MakeBitmap(500)
			sel.SetRange(0, 500)
			handled, err := block.Select(p, 0, 500, sel, 0)
			if ok := words == 7; !handled || ok != (err == nil) || !ok && !errors.Is(err, fault.ErrCorrupt) {
				t.Errorf("%s, %d of 7 words: handled %v, %v", op, words, handled, err)
			}
		}
	}
}

// Chunks with the same planes are tested and added up in one call, which other chunks interrupt.
func TestRunsOfChunksAgreeWithCells(t *testing.T) {
	r := seedtest.Rand(t)
	longest := 0
	for round := range 10 {
		typ := []schema.Type{schema.Int64, schema.Uint32, schema.Date, schema.Int16, schema.Decimal64}[round%5]
		chunk := chunkBytes / typ.Width()
		n := 5*chunk + r.IntN(2*chunk)
		cells, numbers := make([][]byte, n), make([]int64, n)
		significant := 5 + r.IntN(8)
		for i := range cells {
			x := r.Int64N(1 << significant)
			if round%3 == 0 && i/chunk == 2 && signed(typ) {
				x -= 3
			}
			numbers[i], cells[i] = x, binary.LittleEndian.AppendUint64(nil, uint64(x))[:typ.Width()]
		}
		w := mustBuilder(t, BuilderOptions{Type: typ, Encoding: schema.Bitshuffle, BlockBytes: 1 << 20})
		w.Append(vectorOf(typ, cells), 0, n)
		block := must.Get(Parse(Params{Type: typ, Encoding: schema.Bitshuffle, Payload: w.Finish(nil, 0),
			Chunks: &chunkMap{m: map[int][]byte{}}}))(t)
		b := block.(*shuffled)
		for range 4 {
			from, at := chunk*r.IntN(3), 64*r.IntN(3)
			k := n - from - r.IntN(chunk)
			if r.IntN(4) == 0 {
				from, at = from+8*r.IntN(3), at+r.IntN(3)
				k -= 20
			}
			sel := batch.Bitmap(randomSelection(r, at+k+100))
			ps := []*batch.Predicate{{Type: typ, Op: batch.Operator(1 + r.IntN(6)), Values: [][]byte{cells[r.IntN(n)]}}}
			if r.IntN(2) == 0 {
				ps = []*batch.Predicate{{Type: typ, Op: batch.Ge, Values: [][]byte{cells[r.IntN(n)]}},
					{Type: typ, Op: batch.Lt, Values: [][]byte{cells[r.IntN(n)]}}}
			}
			got, want := slices.Clone(sel), int64(0)
			handled := must.Get(b.SelectAll(ps, from, k, got, at))(t)
			must.Equal(t, handled, true)
			longest = max(longest, b.runOf(from, k, at))
			for i := range at + k + 100 {
				pass, inside := sel.Get(i), i >= at && i < at+k
				if pass && inside {
					want += numbers[from+i-at]
					for _, p := range ps {
						pass = pass && p.EvalCell(cells[from+i-at])
					}
				}
				must.Equal(t, got.Get(i), pass, typ, from, i, at)
			}
			var s Sum
			if _, err := b.Sum(from, k, sel, at, &s); err != nil || bigSum(&s).Int64() != want ||
				s.Count() != int64(sel.CountRange(at, at+k)) {
				t.Fatalf("%s: values from %d: sum %d of %d, want %d, %v", typ, from, bigSum(&s), s.Count(), want, err)
			}
		}
	}
	if runs && longest < 3 {
		t.Errorf("runs of up to %d chunks", longest)
	}
}
