package cfile

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/cache"
	"github.com/oribi-db/oribi/internal/compress"
	"github.com/oribi-db/oribi/internal/corpustest"
	"github.com/oribi-db/oribi/internal/encoding"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/memtest"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/schema"
)

// arrayCell is a cell of a column of arrays: its elements, nil for NULL elements. A nil *arrayCell
// is a NULL cell.
type arrayCell [][]byte

func (c *arrayCell) String() string {
	if c == nil {
		return "NULL"
	}
	return fmt.Sprintf("%x", *c)
}

func equalArrays(a, b *arrayCell) bool {
	if a == nil || b == nil {
		return a == b
	}
	return slices.EqualFunc(*a, *b, func(x, y []byte) bool { return bytes.Equal(x, y) && (x == nil) == (y == nil) })
}

// arraysOf returns the cells as a vector.
func arraysOf(typ schema.Type, cells []*arrayCell) *batch.Vector {
	v := batch.NewArrays(typ)
	for _, c := range cells {
		if c == nil {
			v.AppendNullArray()
		} else {
			v.AppendArray(*c)
		}
	}
	return v
}

// arrayOf copies cell i of a vector.
func arrayOf(v *batch.Vector, i int) *arrayCell {
	from, to := v.Array(i)
	c := arrayCell{}
	for k := from; k < to; k++ {
		c = append(c, append([]byte(nil), v.Elements.Cell(k)...))
		if e := v.Elements.Cell(k); e != nil && len(e) == 0 {
			c[len(c)-1] = []byte{}
		}
	}
	if v.IsNull(i) {
		if len(c) > 0 {
			panic("a NULL cell has elements")
		}
		return nil
	}
	return &c
}

// arraysOf returns the expected cells of a file.
func (g *goldenFile) arraysOf(t *testing.T, dir string, typ schema.Type) []*arrayCell {
	t.Helper()
	var cells []*arrayCell
	for _, line := range corpustest.Lines(t, filepath.Join(dir, g.Values)) {
		var texts []json.RawMessage
		must.Do(t, json.Unmarshal([]byte(line), &texts))
		if texts == nil {
			cells = append(cells, nil)
			continue
		}
		c := arrayCell{}
		for _, text := range texts {
			c = append(c, cellOf(t, typ, string(text)))
		}
		cells = append(cells, &c)
	}
	return cells
}

// checkArrays compares a whole file with the expected cells, in windows of n cells.
func checkArrays(t testing.TB, r *Reader, want []*arrayCell, n int) {
	t.Helper()
	if r.Rows() != int64(len(want)) || !r.Info().Array {
		t.Fatalf("%d rows, want %d; %+v", r.Rows(), len(want), r.Info())
	}
	c, v := r.NewColumnReader(), &batch.Vector{Type: r.Info().Type}
	for at := 0; at < len(want); at += v.Len {
		got, err := c.ReadVector(batch.Ordinal(at), n, v)
		must.Do(t, err, at)
		if got != v.Len || got == 0 || got > n || v.Elements.Len != int(v.Offsets[got]) {
			t.Fatalf("%d rows from %d, vector of %d with %d elements", got, at, v.Len, v.Elements.Len)
		}
		for i := range got {
			if cell := arrayOf(v, i); !equalArrays(cell, want[at+i]) {
				t.Fatalf("row %d: %v, want %v", at+i, cell, want[at+i])
			}
		}
		if nulls := slices.Index(want[at:at+got], nil); nulls < 0 && v.Present != nil {
			t.Fatalf("rows from %d: presence bitmap without a NULL", at)
		}
	}
	if got, err := c.ReadVector(batch.Ordinal(len(want)), n, v); got != 0 || err != nil || v.Len != 0 {
		t.Fatalf("%d rows after the last, %v", got, err)
	}
}

func readGoldenArrays(t *testing.T, dir string, g *goldenFile, id block.ID) {
	typ := g.typ(t)
	cells := g.arraysOf(t, dir, typ)
	src := load(t, filepath.Join(dir, g.Name+".cfile"), id)
	for _, o := range []ReaderOptions{{Arrays: true}, {Arrays: true, Cache: cache.New(1 << 20)}} {
		r := must.Get(Open(src, o))(t)
		info := r.Info()
		if info.Type != typ || info.Encoding.String() != g.Encoding || info.Compression.String() != g.Compression ||
			info.Nullable != g.Nullable || info.Checksums != g.Checksums || !info.Array {
			t.Fatalf("info %+v", info)
		}
		checkArrays(t, r, cells, 4096)
		checkArrays(t, r, cells, 7)
		must.Do(t, r.Verify())
		must.Equal(t, len(must.Get(r.BlockPointers())(t)), g.DataBlocks)
	}
}

// exampleArrays are the cells of the spec's example; exampleArrayOptions are the options of its
// file.
func exampleArrays() []*arrayCell {
	le := func(values ...uint32) *arrayCell {
		c := arrayCell{}
		for _, v := range values {
			c = append(c, binary.LittleEndian.AppendUint32(nil, v))
		}
		return &c
	}
	return []*arrayCell{le(1, 2), le(), nil, le(3, 4), le(5, 6, 7, 8), {nil}, le(9)}
}

var exampleArrayOptions = WriterOptions{Type: schema.Int32, Encoding: schema.Plain, Nullable: true, Array: true,
	PositionalIndex: true, Exact: true}

// The complete example file of the spec.
func TestArrayFileBytes(t *testing.T) {
	got := writeAll(t, exampleArrayOptions, arraysOf(schema.Int32, exampleArrays()))
	want := must.Hex(t, strings.Join(strings.Fields(`
		6b 75 64 75 63 66 6c 32 00 00 00 00 02 94 3a d3 0a 07 04 10 01 03 02 0f 03 02 00 00 00 00 00 02
		00 04 00 01 00 01 00 02 03 7b 09 00 00 00 00 00 00 00 01 00 00 00 02 00 00 00 03 00 00 00 04 00
		00 00 05 00 00 00 06 00 00 00 07 00 00 00 08 00 00 00 09 00 00 00 08 84 59 83 04 00 00 00 00 10
		4a 00 00 00 00 08 01 10 00 04 00 00 00 b6 d1 1d 77 61 37 6f 2a 08 05 10 01 18 07 22 06 0a 04 08
		5a 10 17 30 01 40 01 50 03 60 01 6b 75 64 75 63 66 6c 32 16 00 00 00`), ""))
	must.Equal(t, got.Bytes, want)
}

// randomArrays returns cells: some NULL, some empty, some with long runs of NULL elements, some
// with many elements.
func randomArrays(rng *rand.Rand, typ schema.Type, n int, nullable bool) []*arrayCell {
	cells := make([]*arrayCell, n)
	for i := range cells {
		size := []int{0, 1, 3, 20, 200}[rng.IntN(5)]
		if size > 0 {
			size = rng.IntN(size) + 1
		}
		if nullable && rng.IntN(6) == 0 {
			continue
		}
		c := arrayCell(randomCells(rng, typ, size, []float64{0, 0.5, 1}[rng.IntN(3)]))
		cells[i] = &c
		if i > 0 && cells[i-1] != nil && rng.IntN(3) == 0 {
			cells[i] = cells[i-1]
		}
	}
	return cells
}

// Files of every element type and encoding return the arrays that were written, in batches of any
// size.
func TestArraysRoundTrip(t *testing.T) {
	seed := uint64(0)
	for _, typ := range allTypes {
		for _, enc := range allEncodings {
			if !enc.Allowed(typ) {
				continue
			}
			for _, nullable := range []bool{false, true} {
				seed++
				rng := rand.New(rand.NewPCG(51, seed))
				o := WriterOptions{Type: typ, Encoding: enc, Nullable: nullable, Array: true,
					PositionalIndex: true, Exact: rng.IntN(2) == 0,
					Compression: []schema.Compression{schema.NoCompression, schema.LZ4, schema.Snappy,
						schema.Zlib}[rng.IntN(4)],
					BlockBytes: []int{0, 512, 4096}[rng.IntN(3)], IndexBlockBytes: []int{0, 60}[rng.IntN(2)]}
				t.Run(fmt.Sprintf("type=%v/enc=%v/nullable=%v/seed=%d", typ, enc, nullable, seed), func(t *testing.T) {
					cells := randomArrays(rng, typ, 1+rng.IntN(400), nullable)
					src := writeArrays(t, rng, o, cells)
					r := open(t, src, nil)
					checkArrays(t, r, cells, 4096)
					checkArrays(t, r, cells, 1+rng.IntN(60))
					checkWindowsOfArrays(t, rng, r, cells)
					must.Do(t, r.Verify())
				})
			}
		}
	}
}

func writeArrays(t testing.TB, rng *rand.Rand, o WriterOptions, cells []*arrayCell) *block.Memory {
	t.Helper()
	out := &block.Memory{Number: 17}
	w := must.Get(NewWriter(out, o))(t)
	v := arraysOf(o.Type, cells)
	for from := 0; from < v.Len; {
		to := min(v.Len, from+1+rng.IntN(100))
		must.Do(t, w.appendRange(v, from, to))
		from = to
	}
	if err := w.Finish(); err != nil || w.Rows() != int64(len(cells)) || w.Bytes() != int64(len(out.Bytes)) {
		t.Fatal(w.Rows(), w.Bytes(), err)
	}
	return out
}

func checkWindowsOfArrays(t *testing.T, rng *rand.Rand, r *Reader, cells []*arrayCell) {
	t.Helper()
	c, v := r.NewColumnReader(), &batch.Vector{Type: r.Info().Type}
	sel := batch.MakeBitmap(len(cells))
	for range 20 {
		at, n := rng.IntN(len(cells)), 1+rng.IntN(50)
		got := must.Get(c.ReadVector(batch.Ordinal(at), n, v))(t)
		must.Equal(t, got, min(n, len(cells)-at), at)
		for i := range got {
			if cell := arrayOf(v, i); !equalArrays(cell, cells[at+i]) {
				t.Fatalf("row %d: %v, want %v", at+i, cell, cells[at+i])
			}
		}
		for _, op := range []batch.Operator{batch.IsNull, batch.NotNull} {
			p := &batch.Predicate{Type: r.Info().Type, Op: op}
			sel := sel.Resize(n)
			sel.SetRange(0, n)
			must.Equal(t, must.Get(c.Select(batch.Ordinal(at), n, p, sel))(t), true)
			decoded := batch.MakeBitmap(n)
			decoded.SetRange(0, n)
			p.Eval(v, decoded)
			for i := range got {
				if want := (cells[at+i] == nil) == (op == batch.IsNull); sel.Get(i) != want || decoded.Get(i) != want {
					t.Fatalf("row %d %v: %v, decoded %v", at+i, op, sel.Get(i), decoded.Get(i))
				}
			}
		}
	}
	p := &batch.Predicate{Type: r.Info().Type, Op: batch.In}
	must.Equal(t, must.Get(c.Select(0, 1, p, batch.MakeBitmap(1)))(t), false, "a list of values on arrays")
}

// Vectors are limited in size even if NULL elements take almost no bytes in the file.
func TestLongArraysAreReadInParts(t *testing.T) {
	long := make(arrayCell, encoding.MaxElements)
	cells := slices.Repeat([]*arrayCell{&long}, 40)
	o := WriterOptions{Type: schema.Int32, Encoding: schema.Plain, Compression: schema.NoCompression,
		Array: true, PositionalIndex: true}
	src := writeArrays(t, rand.New(rand.NewPCG(52, 1)), o, cells)
	r := open(t, src, nil)
	if len(src.Bytes) > 4096 {
		t.Errorf("%d bytes for NULLs", len(src.Bytes))
	}
	if bs, err := r.BlockPointers(); err != nil || len(bs) < 2 {
		t.Errorf("%d cblocks, %v", len(bs), err)
	}
	checkArrays(t, r, cells, 4096)
	must.Do(t, r.Verify())
	c, v := r.NewColumnReader(), &batch.Vector{Type: schema.Int32}
	if n, err := c.ReadVector(3, 30, v); err != nil || v.Elements.Len > readElements ||
		n != readElements/encoding.MaxElements {
		t.Errorf("%d cells of %d elements: %v", n, v.Elements.Len, err)
	}
}

func TestWriterRefusesInvalidArrays(t *testing.T) {
	cells := func(c ...*arrayCell) *batch.Vector { return arraysOf(schema.Int8, c) }
	o := WriterOptions{Type: schema.Int8, Array: true, PositionalIndex: true}
	long := make(arrayCell, encoding.MaxElements+1)
	for name, v := range map[string]*batch.Vector{
		"NULL": cells(&arrayCell{{1}}, nil), "too long": cells(&long),
		"no arrays": vectorOf(schema.Int8, [][]byte{{1}}),
	} {
		w := must.Get(NewWriter(&block.Memory{}, o))(t)
		must.Fail(t, w.Append(v), fault.ErrSchema, name)
		if w.Finish() == nil {
			t.Errorf("%s: Finish succeeded", name)
		}
	}
	w := must.Get(NewWriter(&block.Memory{}, WriterOptions{Type: schema.Int8, PositionalIndex: true}))(t)
	must.Fail(t, w.Append(cells(&arrayCell{{1}})), fault.ErrSchema, "arrays in a column of int8")
	o.ValueIndex = true
	must.Fail(t, must.Err(NewWriter(&block.Memory{}, o)), fault.ErrUnsupported)
}

// arrayFile writes a file with one cblock of INT8 arrays in PLAIN encoding.
func arrayFile(nullable bool, rows int64, payload []byte) *block.Memory {
	b := newBuilder(compress.None)
	d, _, _ := b.writeBlock(payload)
	o := WriterOptions{Type: schema.Int8, Encoding: schema.Plain, Compression: schema.NoCompression,
		Nullable: nullable, Array: true}
	return b.finish(o, rows, b.node(false, d), BlockPointer{}, BlockPointer{})
}

// The prologue of the cells {1,2} {} NULL {3}, and invalid ones. Spec checklist §12.3, items 50 and
// 51.
func TestMalformedArrayProloguesAreRefused(t *testing.T) {
	const values = "03 00 00 00 00 00 00 00 01 02 03"
	good := "03 04 | 02 06 01 | 09 03 02 00 00 00 00 00 01 00 | 02 03 0b |"
	file := func(nullable bool, text string) error {
		return readAll(arrayFile(nullable, 4, must.Hex(t, strings.NewReplacer(" ", "", "|", "").Replace(text))))
	}
	must.Do(t, file(true, good+values))
	for name, text := range map[string]string{
		"empty":                       "",
		"elements cut short":          "80",
		"no cells":                    "03",
		"no bitmap of elements":       "03 04",
		"bitmap of elements overruns": "03 04 20 06 01",
		"no counts":                   "03 04 02 06 01",
		"counts overrun":              "03 04 02 06 01 0a 03 02 00 00 00 00 00 01 00",
		"no bitmap of cells":          "03 04 02 06 01 09 03 02 00 00 00 00 00 01 00",
		"bitmap of cells overruns":    "03 04 02 06 01 09 03 02 00 00 00 00 00 01 00 02 03",
		"no values":                   good,
		"one element too many":        strings.Replace(good, "03 04 |", "04 04 |", 1) + values,
		"one cell too many":           strings.Replace(good, "03 04 |", "03 05 |", 1) + values,
		"one count too many": strings.Replace(good, "09 03 02 00 00 00 00 00 01 00",
			"0b 03 02 00 00 00 00 00 01 00 00 00", 1) + values,
		"one count too few": strings.Replace(good, "09 03 02 00 00 00 00 00 01 00",
			"07 03 02 00 00 00 00 00", 1) + values,
		"half a count": strings.Replace(good, "09 03 02 00 00 00 00 00 01 00",
			"0a 03 02 00 00 00 00 00 01 00 00", 1) + values,
		"run of counts too long": strings.Replace(good, "09 03 02 00 00 00 00 00 01 00", "03 0a 00 00",
			1) + values,
		"run of counts of no cells": strings.Replace(good, "09 03 02 00 00 00 00 00 01 00", "03 00 00 00",
			1) + values,
		"run of counts without value": strings.Replace(good, "09 03 02 00 00 00 00 00 01 00", "02 08 00",
			1) + values,
		"header of a run too long": strings.Replace(good, "09 03 02 00 00 00 00 00 01 00",
			"06 88 80 80 80 80 00", 1) + values,
		"more elements than there are": strings.Replace(good, "09 03 02 00 00 00 00 00 01 00",
			"09 03 02 00 00 00 00 00 02 00", 1) + values,
		"fewer elements than there are": strings.Replace(good, "09 03 02 00 00 00 00 00 01 00",
			"09 03 02 00 00 00 00 00 00 00", 1) + values,
		"NULL cell with elements": strings.Replace(good, "09 03 02 00 00 00 00 00 01 00",
			"09 03 02 00 00 00 01 00 00 00", 1) + values,
		"NULL cells with elements": strings.Replace(good,
			"03 04 | 02 06 01 | 09 03 02 00 00 00 00 00 01 00", "04 04 | 02 08 01 | 03 08 01 00",
			1) + "04 00 00 00 00 00 00 00 01 02 03 04",
		"fewer values than elements": strings.Replace(good, "02 06 01", "02 03 03", 1) + values,
		"trailing bytes after the counts": strings.Replace(good, "09 03 02 00 00 00 00 00 01 00",
			"0b 03 02 00 00 00 00 00 01 00 02 00", 1) + values,
		"bitmap of no elements": "00 04 | 02 06 01 | 03 08 00 00 | 02 08 01 |00 00 00 00 00 00 00 00",
	} {
		must.Fail(t, file(true, text), fault.ErrCorrupt, name)
	}
	must.Fail(t, file(false, good+values), fault.ErrCorrupt, "NULL cell in a column that is not nullable")
}

// Counts stored as runs give the same results as a list of counts.
func TestCountsAgreeWithList(t *testing.T) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(53, seed))
		var p encoding.ArrayPrologue
		p.Reset()
		var list []int
		for range rng.IntN(300) {
			n, times := []int{0, 1, 2, 300}[rng.IntN(4)], 1+rng.IntN(30)*rng.IntN(2)
			if rng.IntN(5) == 0 {
				p.AddNulls(times)
				list = append(list, make([]int, times)...)
				continue
			}
			for range times {
				p.AddCell(n)
				list = append(list, n)
			}
		}
		total := 0
		for _, n := range list {
			total += n
		}
		p.AddElements(total, false)
		payload := p.Finish(nil)
		b := &dataBlock{}
		must.Equal(t, len(must.Get(b.parseArrays(append(payload, 9), true))(t)), 1, seed)
		sum := 0
		for i := range list {
			must.Equal(t, b.arrays.counts.before(i), sum, seed, i)
			sum += list[i]
		}
		must.Equal(t, b.arrays.counts.before(len(list)), total, seed)
	}
}

// A column of 2^31 empty arrays, or of as many NULL elements, takes little memory.
func TestHostileArraysTakeLittleMemory(t *testing.T) {
	run := func(cells uint32) []byte { return binary.AppendUvarint(nil, uint64(cells)<<1) }
	const many = 1<<30 - 1
	field := func(b ...[]byte) []byte {
		f := bytes.Join(b, nil)
		return append(binary.AppendUvarint(nil, uint64(len(f))), f...)
	}
	number := func(n uint64) []byte { return binary.AppendUvarint(nil, n) }
	for name, payload := range map[string][]byte{
		"empty cells": bytes.Join([][]byte{number(0), number(many), field(), field(run(many), []byte{0, 0}),
			field(run(many), []byte{1}), make([]byte, 8)}, nil),
		"NULL cells": bytes.Join([][]byte{number(0), number(many), field(), field(run(many), []byte{0, 0}),
			field(run(many), []byte{0}), make([]byte, 8)}, nil),
		"NULL elements": bytes.Join([][]byte{number(65535 * 16000), number(16000),
			field(run(65535*16000), []byte{0}), field(run(16000), []byte{0xff, 0xff}),
			field(run(16000), []byte{1}), make([]byte, 8)}, nil),
	} {
		rows := int64(many)
		if name == "NULL elements" {
			rows = 16000
		}
		src := arrayFile(true, rows, payload)
		peak := memtest.Allocated(func() {
			r, err := Open(src, ReaderOptions{Arrays: true})
			must.Do(t, err, name)
			c, v := r.NewColumnReader(), &batch.Vector{Type: schema.Int8}
			must.Equal(t, must.Get(c.ReadVector(batch.Ordinal(rows-1), 4096, v))(t), 1, name)
			if n, err := c.ReadVector(3, 4096, v); n == 0 || err != nil {
				t.Errorf("%s: %d, %v", name, n, err)
			}
		})
		if peak > 2<<20 {
			t.Errorf("%s: %d bytes allocated", name, peak)
		}
	}
}

func TestArraysHaveNoSingleCells(t *testing.T) {
	src := arrayFile(true, 4, must.Hex(t, "03040206010903020000000000010002030b0300000000000000010203"))
	must.Fail(t, must.Err(Open(src, ReaderOptions{})), fault.ErrUnsupported, "opened without the option Arrays")
	r := open(t, src, nil)
	must.Fail(t, must.Err(r.Cell(0)), fault.ErrUnsupported)
	must.Fail(t, must.Err(r.DataBlocks()), fault.ErrUnsupported)
	must.Fail(t, must.Err(r.FindData(nil)), fault.ErrUnsupported)
}
