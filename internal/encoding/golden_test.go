package encoding

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/corpustest"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/schema"
)

// goldenBlock is a line of the manifest of single blocks written by Kudu.
type goldenBlock struct {
	Name, Layout, Type, Encoding string
	Ordinal                      uint32
	RestartInterval              int `json:"restart_interval"`
	Values                       []any
	Dictionary                   []string
}

func goldenBlocks(t *testing.T) (dir string, blocks []goldenBlock) {
	dir = filepath.Join(corpustest.Dir(t), "golden", "cfile", "encodings")
	for _, line := range corpustest.Lines(t, filepath.Join(dir, "manifest.jsonl")) {
		var g goldenBlock
		d := json.NewDecoder(strings.NewReader(line))
		d.UseNumber()
		must.Do(t, d.Decode(&g))
		blocks = append(blocks, g)
	}
	return dir, blocks
}

func TestKuduBlocksDecodeAndReencodeTheSame(t *testing.T) {
	r := seedtest.Rand(t)
	dir, blocks := goldenBlocks(t)
	for _, g := range blocks {
		t.Run(g.Name, func(t *testing.T) {
			payload := must.Hex(t, strings.Join(corpustest.Lines(t, filepath.Join(dir, g.Name+".hex")), ""))
			typ, _ := schema.TypeByName(g.Type)
			enc, _ := schema.EncodingByName(g.Encoding)
			present := batch.MakeBitmap(len(g.Values))
			var cells [][]byte
			if g.Layout == "array" {
				checkGoldenArrays(t, &g, typ, enc, payload)
				return
			}
			for i, value := range g.Values {
				if cell := cellOf(t, typ, value); cell != nil {
					cells = append(cells, cell)
					present.Set(i)
				}
			}
			rest, again := payload, []byte(nil)
			if g.Layout == "nullable" {
				var rows int
				var got batch.Bitmap
				var err error
				if rows, got, rest, err = ParseNullPrologue(payload); err != nil {
					t.Fatal(err)
				}
				must.Equal(t, rows, len(g.Values), got)
				must.Equal(t, got == nil, len(cells) == rows, got)
				for i := range got {
					must.Equal(t, got[i], present[i], got, present)
				}
				again = AppendNullPrologue(nil, rows, got)
			}
			p := Params{Type: typ, Encoding: enc, Payload: rest}
			if g.Dictionary != nil {
				p.Dict = new(batch.Dictionary)
				for _, w := range g.Dictionary {
					p.Dict.Words = append(p.Dict.Words, []byte(w))
				}
			}
			b := must.Get(Parse(p))(t)
			must.Do(t, checkBlock(b, typ, batch.Ordinal(g.Ordinal), cells, r))
			w := mustBuilder(t, BuilderOptions{Type: typ, Encoding: enc, RestartInterval: g.RestartInterval,
				Exact: true})
			if d, ok := w.(*dictBuilder); ok && g.Dictionary == nil {
				d.mode = modePlain
			}
			must.Equal(t, w.Append(vectorOf(typ, cells), 0, len(cells)), len(cells))
			again = w.Finish(again, batch.Ordinal(g.Ordinal))
			if !bytes.Equal(again, payload) {
				t.Errorf("written as\n%swant\n%s", hex.Dump(again), hex.Dump(payload))
			}
			if g.Layout == "dictionary" {
				must.Equal(t, len(must.Get(ParseDictionary(payload))(t).Words), len(cells))
			}
			if d, ok := w.(DictionaryBuilder); ok && g.Dictionary != nil {
				want := must.Hex(t, strings.Join(corpustest.Lines(t, filepath.Join(dir, g.Name+"-dictionary.hex")), ""))
				if got := d.FinishDictionary(nil); !bytes.Equal(got, want) {
					t.Errorf("dictionary written as %x, want %x", got, want)
				}
			}
		})
	}
}

// checkGoldenArrays builds a cblock of arrays from its values; prologue and payload must equal
// Kudu's. Package cfile, which reads whole files of arrays, reads the prologue.
func checkGoldenArrays(t *testing.T, g *goldenBlock, typ schema.Type, enc schema.Encoding, payload []byte) {
	var p ArrayPrologue
	p.Reset()
	w := mustBuilder(t, BuilderOptions{Type: typ, Encoding: enc, RestartInterval: g.RestartInterval, Exact: true})
	var cells [][]byte
	for _, value := range g.Values {
		elements, ok := value.([]any)
		if !ok {
			p.AddNulls(1)
			continue
		}
		p.AddCell(len(elements))
		for _, e := range elements {
			cell := cellOf(t, typ, e)
			p.AddElements(1, cell != nil)
			if cell != nil {
				cells = append(cells, cell)
			}
		}
	}
	w.AppendAll(vectorOf(typ, cells), 0, len(cells))
	prologue := p.Finish(nil)
	if got := w.Finish(prologue, batch.Ordinal(g.Ordinal)); !bytes.Equal(got, payload) {
		t.Fatalf("written as\n%swant\n%s", hex.Dump(got), hex.Dump(payload))
	}
	must.Equal(t, p.Cells(), len(g.Values))
	b := must.Get(Parse(Params{Type: typ, Encoding: enc, Payload: payload[len(prologue):]}))(t)
	must.Do(t, checkBlock(b, typ, batch.Ordinal(g.Ordinal), cells, seedtest.Rand(t)))
}
