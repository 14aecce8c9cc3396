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

// The worked example of the format: {1,2} {} NULL {3,4} {5,6,7,8} {NULL} {9}.
func TestArrayPrologueMatchesTheWorkedExample(t *testing.T) {
	var p ArrayPrologue
	for range 2 {
		p.Reset()
		for _, n := range []int{2, 0, -1, 2, 4, 1, 1} {
			if n < 0 {
				p.AddNulls(1)
			} else {
				p.AddCell(n)
			}
		}
		p.AddElements(8, true)
		p.AddElements(1, false)
		p.AddElements(1, true)
		want := must.Hex(t, "0a 07 04 10 01 03 02 0f 03 02 00 00 00 00 00 02 00 04 00 01 00 01 00 02 03 7b")
		if got := p.Finish([]byte{7}); got[0] != 7 || !bytes.Equal(got[1:], want) {
			t.Errorf("% x, want % x", got[1:], want)
		}
		must.Equal(t, p.Cells(), 7)
		must.Equal(t, p.Elements(), 10)
	}
	p.Reset()
	p.AddNulls(5)
	must.Equal(t, p.Finish(nil), must.Hex(t, "00 05 00 03 0a 00 00 02 0a 00"))
}

// AppendAll puts all elements of one array into one payload even if they exceed BlockBytes. The
// payload is full afterwards.
func TestAppendAllExceedsBlockBytes(t *testing.T) {
	r := seedtest.Rand(t)
	for _, pair := range pairs() {
		t.Run(fmt.Sprintf("type=%s/enc=%s", pair.Type, pair.Encoding), func(t *testing.T) {
			b := mustBuilder(t, BuilderOptions{Type: pair.Type, Encoding: pair.Encoding, BlockBytes: 512})
			cells := randomCells(r, pair.Type, 300)
			if pair.Encoding == schema.RLE || pair.Type == schema.Bool {
				cells = randomCells(r, pair.Type, 40000)
			} else if pair.Type.Variable() {
				for i := range cells { // only new words
					cells[i] = fmt.Appendf(nil, "word %d", i*i)
				}
			} else {
				cells = append(cells, randomCells(r, pair.Type, 300)...)
			}
			v := vectorOf(pair.Type, cells)
			b.AppendAll(v, 0, 10)
			b.AppendAll(v, 10, 10)
			b.AppendAll(v, 10, len(cells))
			if b.Len() != len(cells) || !bytes.Equal(b.First(), cells[0]) ||
				!bytes.Equal(b.Last(), cells[len(cells)-1]) {
				t.Fatalf("%d of %d taken, %x to %x", b.Len(), len(cells), b.First(), b.Last())
			}
			if !b.Full() && pair.Encoding != schema.RLE { // more runs may fit
				t.Error("not full")
			}
			p := pair
			p.Payload = b.Finish(nil, 5)
			if d, ok := b.(DictionaryBuilder); ok {
				p.Dict = must.Get(ParseDictionary(d.FinishDictionary(nil)))(t)
				must.Equal(t, d.Words(), len(cells))
			}
			block := must.Get(Parse(p))(t)
			must.Do(t, checkBlock(block, pair.Type, batch.Ordinal(5), cells, r))
			b.Reset()
			b.AppendAll(v, 0, 1) // plain, if the dictionary is full
			p.Payload = b.Finish(nil, 0)
			block = must.Get(Parse(p))(t)
			must.Do(t, checkBlock(block, pair.Type, 0, cells[:1], r))
		})
	}
}
