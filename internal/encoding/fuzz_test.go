package encoding

import (
	"bytes"
	"errors"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/coding"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/fuzztest"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/schema"
)

// fuzzTypes are the types that a target chooses from.
var fuzzTypes = struct{ fixed, integers, binary, boolean []schema.Type }{
	fixed: []schema.Type{schema.Int8, schema.Uint16, schema.Uint32, schema.Int32, schema.Uint64,
		schema.Timestamp, schema.Int128,
		schema.Float, schema.Double, schema.Decimal128, schema.Date},
	integers: []schema.Type{schema.Uint8, schema.Int16, schema.Uint32, schema.Date, schema.Int64, schema.Decimal64},
	binary:   []schema.Type{schema.String, schema.Binary, schema.Varchar},
	boolean:  []schema.Type{schema.Bool},
}

// fuzzWords are the words of the dictionary, of which the input chooses how many are used.
var fuzzWords = stringCells("", "a", "ab", "b", "b\x00", "ba", "c", "\xff")

// fuzz tests one encoding. The fuzzer chooses the type, options (restart interval, size of
// payloads, batches, size of the dictionary, whether chunks are cached, Kudu's bytes or ours) and
// an input, which is used in two ways:
//
//   - as a payload: Parse and Decode must return values or ErrCorrupt, and values decoded at once,
//     in part, cell by cell and through Select must agree;
//   - as values: payloads built from them must be read back, and built again with the same bytes.
func fuzz(f *testing.F, enc schema.Encoding, types []schema.Type) {
	for k, typ := range types {
		for _, n := range []int{0, 1, 9, 40, 700} {
			cells := make([][]byte, n)
			for i := range cells {
				if cells[i] = bytes.Repeat([]byte{byte(i % 3)}, typ.Width()); typ.Variable() {
					cells[i] = fuzzWords[i%5]
				} else if typ.Physical() != schema.Bool {
					cells[i][0] = byte(i * i)
				}
			}
			b := must.Get(NewBuilder(BuilderOptions{Type: typ, Encoding: enc, RestartInterval: 3}))(f)
			b.AppendAll(vectorOf(typ, cells), 0, n)
			f.Add(uint8(k), uint8(5*n), b.Finish(nil, 7))
		}
	}
	fuzztest.Run(f, func(t *testing.T, typ, options uint8, input []byte) {
		p := Params{Type: types[int(typ)%len(types)], Encoding: enc, Payload: input}
		if options&8 == 0 {
			p.Dict = &batch.Dictionary{Words: fuzzWords[:options&7]}
		}
		if options&16 != 0 {
			p.Chunks, p.Limit = &chunkMap{m: map[int][]byte{}}, 1
		}
		fuzzPayload(t, p)
		fuzzValues(t, BuilderOptions{Type: p.Type, Encoding: enc, BlockBytes: 512 << (options >> 6),
			RestartInterval: 1 + int(options&31), Exact: options&32 != 0}, input)
	})
}

func fuzzPayload(t *testing.T, p Params) {
	block, err := Parse(p)
	if err != nil {
		if !errors.Is(err, fault.ErrCorrupt) {
			t.Fatal(err)
		}
		return
	}
	n := min(block.Len(), 3000)
	v := batch.NewVector(p.Type, n)
	if err := block.Decode(0, n, v, 0); err != nil {
		if !errors.Is(err, fault.ErrCorrupt) {
			t.Fatal(err)
		}
		return
	}
	part := batch.NewVector(p.Type, n)
	if from := n / 3; block.Decode(from, n-from, part, from) != nil {
		t.Fatal("a part cannot be decoded, the whole can")
	} else {
		for i := from; i < n; i++ {
			if !bytes.Equal(part.Cell(i), v.Cell(i)) {
				t.Fatalf("value %d in part %x, as a whole %x", i, part.Cell(i), v.Cell(i))
			}
		}
	}
	for i := range n {
		cell, err := block.Cell(i)
		if err != nil || !bytes.Equal(cell, v.Cell(i)) {
			t.Fatalf("cell %d: %x, %v; decoded %x", i, cell, err, v.Cell(i))
		}
	}
	if n == 0 {
		return
	}
	fuzzSelect(t, block, v)
	if sparse, ok := block.(SparseBlock); ok {
		some, got := batch.MakeBitmap(n), batch.NewVector(p.Type, n)
		for i := n / 7; i < n; i += 1 + n/5 {
			some.Set(i)
		}
		sparse.DecodeSelected(0, n, some, 0, got, 0)
		for i := some.Next(0); i >= 0; i = some.Next(i + 1) {
			if !bytes.Equal(got.Cell(i), v.Cell(i)) {
				t.Fatalf("value %d alone %x, as a whole %x", i, got.Cell(i), v.Cell(i))
			}
		}
	}
	sel := batch.MakeBitmap(n)
	if texts, ok := block.(StringBlock); ok {
		e, want := &StringExtreme{Greatest: n%2 == 0}, []byte(nil)
		for i := n / 3; i < n; i += 2 {
			sel.Set(i)
			if cell := v.Cell(i); want == nil || bytes.Compare(cell, want) > 0 == e.Greatest {
				want = cell
			}
		}
		if err := texts.ExtremeString(n/3, n-n/3, sel, n/3, e); err != nil || !bytes.Equal(e.Cell(), want) {
			t.Fatalf("extreme %x, %v, want %x", e.Cell(), err, want)
		}
	}
	if numbers, ok := block.(NumberBlock); ok {
		cells := v.Data[:n*p.Type.Width()]
		from := n / 3
		sel.SetRange(0, n)
		checkSum(t, numbers, p.Type, cells, from, n-from, sel, from)
		checkExtreme(t, numbers, p.Type, cells, from, n-from, sel, from)
	}
	// For unsorted values Seek only promises to end.
	if p.Type.Keyable() {
		if _, _, err := block.Seek(v.Cell(n / 2)); err != nil && !errors.Is(err, fault.ErrCorrupt) {
			t.Fatal(err)
		}
	}
}

// fuzzSelect tests the values of a block, of which v has the first ones, by comparisons with some
// of them.
func fuzzSelect(t *testing.T, block Block, v *batch.Vector) {
	sel := batch.MakeBitmap(v.Len)
	for op := batch.Eq; op <= batch.In; op++ {
		for _, from := range []int{0, v.Len / 3} {
			test := &batch.Predicate{Type: v.Type, Op: op, Values: [][]byte{v.Cell(v.Len / (1 + int(op)))}}
			if op == batch.In {
				test.Values = append(test.Values, v.Cell(v.Len-1))
			}
			sel.SetRange(0, v.Len)
			handled := must.Get(block.Select(test, from, v.Len-from, sel, from))(t)
			for i := range v.Len {
				if want := !handled || i < from || test.EvalCell(v.Cell(i)); sel.Get(i) != want {
					t.Fatalf("%s %x: value %d, %x: selected %v", op, test.Values, i, v.Cell(i), sel.Get(i))
				}
			}
		}
	}
}

func fuzzValues(t *testing.T, o BuilderOptions, input []byte) {
	typ := o.Type
	var cells [][]byte
	for len(input) > 0 {
		width := typ.Width()
		if typ.Variable() {
			width, input = int(input[0]%16), input[1:]
		}
		if width > len(input) {
			break
		}
		cell := bytes.Clone(input[:width])
		if typ.Physical() == schema.Bool {
			cell[0] &= 1
		}
		cells, input = append(cells, cell), input[width:]
	}
	batchLen := 1 + o.RestartInterval*3
	payloads, counts, words := buildAll(mustBuilder(t, o), typ, cells, batchLen)
	p := Params{Type: typ, Encoding: o.Encoding}
	if words != nil {
		d := must.Get(ParseDictionary(words))(t)
		p.Dict = d
	}
	again := mustBuilder(t, o)
	for i, ord := 0, 0; i < len(payloads); i++ {
		p.Payload = payloads[i]
		block, err := Parse(p)
		if err != nil || block.Len() != counts[i] || block.Ordinal() != batch.Ordinal(ord) {
			t.Fatalf("payload %d: %v, %v", i, block, err)
		}
		v := batch.NewVector(typ, counts[i])
		must.Do(t, block.Decode(0, counts[i], v, 0))
		for j := range counts[i] {
			if !bytes.Equal(v.Cell(j), cells[ord+j]) {
				t.Fatalf("value %d: %x, want %x", ord+j, v.Cell(j), cells[ord+j])
			}
		}
		// A full payload of codes refuses the next cell of its batch, but the cell's word is added
		// to the dictionary when it is offered again.
		end := ord + counts[i]
		if end%batchLen != 0 && end < len(cells) {
			end++
		}
		if n := again.Append(vectorOf(typ, cells[ord:end]), 0, end-ord); n != counts[i] {
			t.Fatalf("payload %d takes %d values, the second time %d", i, counts[i], n)
		}
		if got := again.Finish(nil, batch.Ordinal(ord)); !bytes.Equal(got, payloads[i]) {
			t.Fatalf("payload %d is built otherwise the second time", i)
		}
		again.Reset()
		ord += counts[i]
	}
}

func FuzzPlain(f *testing.F)       { fuzz(f, schema.Plain, fuzzTypes.fixed) }
func FuzzPlainBool(f *testing.F)   { fuzz(f, schema.Plain, fuzzTypes.boolean) }
func FuzzPlainBinary(f *testing.F) { fuzz(f, schema.Plain, fuzzTypes.binary) }
func FuzzRLE(f *testing.F)         { fuzz(f, schema.RLE, fuzzTypes.integers) }
func FuzzRLEBool(f *testing.F)     { fuzz(f, schema.RLE, fuzzTypes.boolean) }
func FuzzBitshuffle(f *testing.F)  { fuzz(f, schema.Bitshuffle, fuzzTypes.fixed) }

// FuzzNarrowed tests payloads of UINT32, whose cells may be stored in 1 or 2 bytes.
func FuzzNarrowed(f *testing.F)   { fuzz(f, schema.Bitshuffle, []schema.Type{schema.Uint32}) }
func FuzzPrefix(f *testing.F)     { fuzz(f, schema.Prefix, fuzzTypes.binary) }
func FuzzDictionary(f *testing.F) { fuzz(f, schema.Dictionary, fuzzTypes.binary) }

// FuzzWords parses the input as the dictionary cblock.
func FuzzWords(f *testing.F) {
	b := mustBuilder(f, BuilderOptions{Type: schema.String, Encoding: schema.Dictionary}).(DictionaryBuilder)
	f.Add(b.FinishDictionary(nil))
	b.AppendAll(vectorOf(schema.String, fuzzWords), 0, len(fuzzWords))
	f.Add(b.FinishDictionary(nil))
	fuzztest.Run(f, func(t *testing.T, input []byte) {
		d, err := ParseDictionary(input)
		if err != nil {
			if !errors.Is(err, fault.ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		// The words fill the payload between header and offsets.
		size := 0
		for _, w := range d.Words {
			size += len(w)
		}
		if size > len(input) {
			t.Fatalf("%d bytes of words in %d", size, len(input))
		}
	})
}

// FuzzArrayPrologue builds prologues from the input and compares the fields with those computed
// from bitmaps, and the length of the counts with the maximum for their runs.
func FuzzArrayPrologue(f *testing.F) {
	f.Add([]byte{2, 0, 255, 2, 4, 1, 1})
	f.Add(bytes.Repeat([]byte{3}, 30))
	fuzztest.Run(f, func(t *testing.T, input []byte) {
		input = input[:min(len(input), 1000)]
		var p ArrayPrologue
		p.Reset()
		whole, elements := batch.MakeBitmap(len(input)), 0
		for i, c := range input {
			if c == 255 {
				p.AddNulls(1)
				continue
			}
			whole.Set(i)
			p.AddCell(int(c))
			elements += int(c)
		}
		present := batch.MakeBitmap(elements)
		for i := range elements {
			one := input[i%len(input)]&1 == 1
			if one {
				present.Set(i)
			}
			p.AddElements(1, one)
		}
		got := p.Finish(nil)
		number := func() int {
			v, n, ok := coding.Uvarint32(got)
			if !ok {
				t.Fatal("cut short")
			}
			got = got[n:]
			return int(v)
		}
		field := func() []byte {
			n := number()
			b := got[:n]
			got = got[n:]
			return b
		}
		if e, c := number(), number(); e != elements || c != len(input) {
			t.Fatalf("%d elements of %d, %d cells of %d", e, elements, c, len(input))
		}
		for k, want := range []batch.Bitmap{present, nil, whole} {
			stream, rows := field(), len(input)
			if k == 1 {
				if len(stream) > 2*rows+2*(rows/8+1) {
					t.Fatalf("%d bytes for %d counts", len(stream), rows)
				}
				continue
			}
			if k == 0 {
				rows = elements
			}
			bits := must.Get(parsePresence(stream, rows))(t)
			for i := range rows {
				if (bits == nil || bits.Get(i)) != want.Get(i) {
					t.Fatalf("field %d: bit %d of %d", k, i, rows)
				}
			}
		}
		if len(got) != 0 {
			t.Fatalf("%d bytes left over", len(got))
		}
	})
}

// FuzzNullPrologue parses the input; the result is written back the same except for how runs are
// split.
func FuzzNullPrologue(f *testing.F) {
	f.Add([]byte{6, 2, 3, 0x19})
	f.Add([]byte{0x80, 8, 4, 0x80, 8, 0x80, 8})
	fuzztest.Run(f, func(t *testing.T, input []byte) {
		rows, present, _, err := ParseNullPrologue(input)
		if err != nil {
			if !errors.Is(err, fault.ErrCorrupt) && !errors.Is(err, fault.ErrUnsupported) {
				t.Fatal(err)
			}
			return
		}
		n, again, rest, err := ParseNullPrologue(AppendNullPrologue(nil, rows, present))
		if err != nil || n != rows || len(rest) != 0 || len(again) != len(present) {
			t.Fatalf("%d rows: %d, %v", rows, n, err)
		}
		for i := range present {
			if again[i] != present[i] {
				t.Fatalf("%d rows: word %d is %x, was %x", rows, i, again[i], present[i])
			}
		}
	})
}
