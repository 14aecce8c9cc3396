package encoding

import (
	"errors"
	"fmt"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/fault"
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
		d, err := ParseDictionary(dict)
		if err != nil {
			t.Fatal(err)
		}
		block, err := Parse(Params{Type: schema.String, Encoding: schema.Dictionary, Payload: payloads[0], Dict: d})
		if err != nil {
			t.Fatal(err)
		}
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
	d, err := ParseDictionary(dict)
	if err != nil {
		t.Fatal(err)
	}
	for words := 2; words <= 7; words++ {
		known := &batch.Dictionary{Words: d.Words[:words]}
		block, err := Parse(Params{Type: schema.String, Encoding: schema.Dictionary, Payload: payloads[0], Dict: known})
		if err != nil {
			t.Fatal(err)
		}
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
