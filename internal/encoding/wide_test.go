package encoding

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/schema"
)

// With more than 65536 words codes take 4 bytes each. The payload also has more chunks than fit in
// the block's inline array of offsets.
func TestDictionariesOver65536WordsUse4ByteCodes(t *testing.T) {
	r := seedtest.Rand(t)
	cells := make([][]byte, 70_000)
	for i := range cells {
		cells[i] = fmt.Appendf(nil, "%06d", i)
	}
	o := BuilderOptions{Type: schema.String, Encoding: schema.Dictionary, BlockBytes: 4 << 20}
	payloads, _, words := buildAll(mustBuilder(t, o), schema.String, cells, len(cells))
	must.Equal(t, len(payloads), 1)
	dict := must.Get(ParseDictionary(words))(t)
	p := Params{Type: schema.String, Encoding: schema.Dictionary, Payload: payloads[0], Dict: dict}
	block := must.Get(Parse(p))(t)
	must.Do(t, checkBlock(block, schema.String, 0, cells, r))
	checkSelect(t, block, schema.String, cells, r)
	checkCodes(t, block, cells, r)
	p.Dict = &batch.Dictionary{Words: dict.Words[:len(dict.Words)-1]}
	block = must.Get(Parse(p))(t)
	must.Fail(t, block.(CodeBlock).Codes(0, len(cells), make([]uint32, len(cells))),
		fault.ErrCorrupt, "a code beyond the dictionary")
	must.Fail(t, must.Err(block.Cell(len(cells)-1)), fault.ErrCorrupt, "cell of a code beyond the dictionary")
}

// An invalid LZ4 stream is an error of each call that needs its chunk, with and without a cache of
// chunks.
func TestReadsOfBadChunksReturnErrors(t *testing.T) {
	v := batch.NewVector(schema.Int64, 5000)
	for i := range batch.Values[int64](v) {
		batch.Values[int64](v)[i] = int64(i)
	}
	b := mustBuilder(t, BuilderOptions{Type: schema.Int64, Encoding: schema.Bitshuffle})
	b.AppendAll(v, 0, v.Len)
	good := b.Finish(nil, 0)
	bad := bytes.Clone(good)
	second := shuffleHeaderLen + chunkHeaderLen + int(binary.BigEndian.Uint32(bad[shuffleHeaderLen:]))
	for i := second + chunkHeaderLen; i < second+chunkHeaderLen+12; i++ {
		bad[i] = 0xff
	}
	target := binary.LittleEndian.AppendUint64(nil, 1500)
	for _, chunks := range []Chunks{nil, &chunkMap{m: map[int][]byte{}}} {
		block := must.Get(
			Parse(Params{Type: schema.Int64, Encoding: schema.Bitshuffle, Payload: bad, Chunks: chunks}))(t)
		out := batch.NewVector(schema.Int64, v.Len)
		for name, use := range map[string]func() error{
			"whole chunk":     func() error { return block.Decode(1024, 1024, out, 0) },
			"part of a chunk": func() error { return block.Decode(1500, 3, out, 0) },
			"cell": func() error {
				_, err := block.Cell(1500)
				return err
			},
			"seek": func() error {
				_, _, err := block.Seek(target)
				return err
			},
		} {
			must.Fail(t, use(), fault.ErrCorrupt, name)
		}
		must.Do(t, block.Decode(0, 1024, out, 0))
		must.Fail(t, must.Err2(block.Seek([]byte{1})), fault.ErrUnsupported, "seek for a cell of one byte")
	}
}
