package encoding

import (
	"bytes"
	"errors"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/schema"
)

// fuzz runs one pair of type and encoding. The input is used in two ways:
//
//   - as a payload: Parse and Decode must end in values or in ErrCorrupt, and what was decoded at once,
//     cell by cell and through Select must agree; a payload of sorted values must answer Seek as a walk does;
//   - as values: what is built of it must be read back, and built again the same.
func fuzz(f *testing.F, typ schema.Type, enc schema.Encoding) {
	dict := &batch.Dictionary{Words: stringCells("", "a", "ab", "b", "b\x00")}
	for _, n := range []int{0, 1, 9, 40} {
		cells := make([][]byte, n)
		for i := range cells {
			if cells[i] = bytes.Repeat([]byte{byte(i % 3)}, typ.Width()); typ.Variable() {
				cells[i] = dict.Words[i%5]
			}
		}
		b, err := NewBuilder(BuilderOptions{Type: typ, Encoding: enc, RestartInterval: 3})
		if err != nil {
			f.Fatal(err)
		}
		b.Append(vectorOf(typ, cells), 0, n)
		f.Add(b.Finish(nil, 7))
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		fuzzPayload(t, Params{Type: typ, Encoding: enc, Payload: input, Dict: dict})
		fuzzValues(t, typ, enc, input)
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
	test := &batch.Predicate{Type: p.Type, Op: batch.Ge}
	for i := range n {
		cell, err := block.Cell(i)
		if err != nil || !bytes.Equal(cell, v.Cell(i)) {
			t.Fatalf("cell %d: %x, %v; decoded %x", i, cell, err, v.Cell(i))
		}
		test.Values = [][]byte{cell}
	}
	if n == 0 {
		return
	}
	sel := batch.MakeBitmap(n)
	sel.SetRange(0, n)
	handled, err := block.Select(test, 0, n, sel, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if handled && sel.Get(i) != test.EvalCell(v.Cell(i)) {
			t.Fatalf("value %d: selected %v", i, sel.Get(i))
		}
	}
	// Seek promises nothing for values that are not sorted, but to end.
	if p.Type.Keyable() {
		if _, _, err := block.Seek(v.Cell(n / 2)); err != nil && !errors.Is(err, fault.ErrCorrupt) {
			t.Fatal(err)
		}
	}
}

func fuzzValues(t *testing.T, typ schema.Type, enc schema.Encoding, input []byte) {
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
	o := BuilderOptions{Type: typ, Encoding: enc, BlockBytes: 600, RestartInterval: 3}
	payloads, counts, words := buildAll(mustBuilder(t, o), typ, cells, 50)
	p := Params{Type: typ, Encoding: enc}
	if words != nil {
		d, err := ParseDictionary(words)
		if err != nil {
			t.Fatal(err)
		}
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
		if err := block.Decode(0, counts[i], v, 0); err != nil {
			t.Fatal(err)
		}
		for j := range counts[i] {
			if !bytes.Equal(v.Cell(j), cells[ord+j]) {
				t.Fatalf("value %d: %x, want %x", ord+j, v.Cell(j), cells[ord+j])
			}
		}
		again.Append(v, 0, counts[i])
		if got := again.Finish(nil, batch.Ordinal(ord)); !bytes.Equal(got, payloads[i]) {
			t.Fatalf("payload %d is built otherwise the second time", i)
		}
		again.Reset()
		ord += counts[i]
	}
}

func FuzzPlainInt32(f *testing.F)      { fuzz(f, schema.Int32, schema.Plain) }
func FuzzPlainBool(f *testing.F)       { fuzz(f, schema.Bool, schema.Plain) }
func FuzzPlainString(f *testing.F)     { fuzz(f, schema.String, schema.Plain) }
func FuzzRLEBool(f *testing.F)         { fuzz(f, schema.Bool, schema.RLE) }
func FuzzRLEInt16(f *testing.F)        { fuzz(f, schema.Int16, schema.RLE) }
func FuzzBitshuffleInt64(f *testing.F) { fuzz(f, schema.Int64, schema.Bitshuffle) }
func FuzzBitshuffleUint32(f *testing.F) {
	fuzz(f, schema.Uint32, schema.Bitshuffle)
}
func FuzzBitshuffleInt128(f *testing.F) { fuzz(f, schema.Int128, schema.Bitshuffle) }
func FuzzPrefixString(f *testing.F)     { fuzz(f, schema.String, schema.Prefix) }
func FuzzDictString(f *testing.F)       { fuzz(f, schema.String, schema.Dictionary) }

// FuzzNullPrologue reads anything; what is read is written the same but for the shape of the runs.
func FuzzNullPrologue(f *testing.F) {
	f.Add([]byte{6, 2, 3, 0x19})
	f.Add([]byte{0x80, 8, 4, 0x80, 8, 0x80, 8})
	f.Fuzz(func(t *testing.T, input []byte) {
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
