package encoding

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/schema"
)

func int32Cells(values ...int32) (cells [][]byte) {
	for _, v := range values {
		cells = append(cells, binary.LittleEndian.AppendUint32(nil, uint32(v)))
	}
	return cells
}

func stringCells(values ...string) (cells [][]byte) {
	for _, v := range values {
		cells = append(cells, []byte(v))
	}
	return cells
}

// bitCells returns bool cells for a string of 0 and 1.
func bitCells(bits string) (cells [][]byte) {
	for _, b := range bits {
		cells = append(cells, []byte{byte(b - '0')})
	}
	return cells
}

// The worked examples above the constants of each format, and those in the spec's section on empty
// blocks.
func TestPayloadsMatchTheWorkedExamples(t *testing.T) {
	for _, c := range []struct {
		name     string
		typ      schema.Type
		enc      schema.Encoding
		ord      batch.Ordinal
		interval int
		cells    [][]byte
		want     string
	}{
		{"plain", schema.Int32, schema.Plain, 100, 0, int32Cells(1, -2),
			"02 00 00 00 64 00 00 00 01 00 00 00 fe ff ff ff"},
		{"plain bool", schema.Bool, schema.Plain, 5, 0, bitCells("1011000110"), "0a 00 00 00 05 00 00 00 8d 01"},
		{"rle", schema.Int32, schema.RLE, 0, 0, int32Cells(5, 5, 5, 5, 5, 5, 5, 5, 5, 1, 2, 3),
			"0c 00 00 00 00 00 00 00 12 05 00 00 00 03 01 00 00 00 02 00 00 00 03 00 00 00"},
		{"bitshuffle", schema.Int32, schema.Bitshuffle, 0, 0, int32Cells(1, 2, 3),
			"00 00 00 00 03 00 00 00 25 00 00 00 08 00 00 00 04 00 00 00" +
				"00 00 00 0d 3f 05 06 00 01 00 05 50 00 00 00 00 00"},
		{"plain binary", schema.String, schema.Plain, 9, 0, stringCells("apple", "", "cherry"),
			"09 00 00 00 03 00 00 00 17 00 00 00 61 70 70 6c 65 63 68 65 72 72 79 00 0c 11 11 00"},
		{"prefix", schema.String, schema.Prefix, 0, 2, stringCells("a", "ab", "b"),
			"00 03 00 02 00 00 01 61 01 01 62 00 01 62 0b 00 00 00 01 00 00 00"},
		{"dict", schema.String, schema.Dictionary, 0, 0, stringCells("red", "blue", "red", "red"),
			"01 00 00 00 00 00 00 00 04 00 00 00 21 00 00 00 08 00 00 00 01 00 00 00 00 00 00 09 80 02 00 " +
				"00 00 00 00 00 00"},
		{"empty plain", schema.Int16, schema.Plain, 0, 0, nil, strings.Repeat("00", 8)},
		{"empty rle", schema.Bool, schema.RLE, 0, 0, nil, strings.Repeat("00", 8)},
		{"empty bitshuffle", schema.Int32, schema.Bitshuffle, 0, 0, nil,
			strings.Repeat("00", 8) + "14 00 00 00 00 00 00 00 04 00 00 00"},
		{"empty plain binary", schema.String, schema.Plain, 0, 0, nil, strings.Repeat("00", 8) + "0c 00 00 00"},
		{"empty prefix", schema.String, schema.Prefix, 0, 16, nil, "00 00 00 10 00 00 00 00 00"},
		{"empty dict", schema.String, schema.Dictionary, 0, 0, nil,
			"01 00 00 00" + strings.Repeat("00", 8) + "14 00 00 00 00 00 00 00 01 00 00 00"},
	} {
		for _, exact := range []bool{false, true} {
			b := mustBuilder(t, BuilderOptions{Type: c.typ, Encoding: c.enc, RestartInterval: c.interval, Exact: exact})
			must.Equal(t, b.Append(vectorOf(c.typ, c.cells), 0, len(c.cells)), len(c.cells), c.name)
			must.Equal(t, b.Finish(nil, c.ord), must.Hex(t, c.want), c.name, exact)
		}
	}
}

func TestNullPrologueMatchesTheWorkedExamples(t *testing.T) {
	for _, c := range []struct{ rows, want string }{
		{"100110", "06 02 03 19"},
		{"000", "03 02 06 00"},
		{"11", "02 02 04 01"},
		{"", "00 00"},
	} {
		present := batch.MakeBitmap(len(c.rows))
		for i, b := range c.rows {
			if b == '1' {
				present.Set(i)
			}
		}
		want := must.Hex(t, c.want)
		must.Equal(t, AppendNullPrologue(nil, len(c.rows), present), want, c.rows)
		rows, got, rest, err := ParseNullPrologue(append(want, 0xaa, 0xbb))
		if err != nil || rows != len(c.rows) || len(rest) != 2 {
			t.Fatalf("%s: %d rows, rest % x, %v", c.rows, rows, rest, err)
		}
		must.Equal(t, got == nil, !strings.Contains(c.rows, "0"), c.rows, got)
		for i := range got {
			must.Equal(t, got[i], present[i], c.rows, got)
		}
	}
}

func TestNullPrologueRoundTrip(t *testing.T) {
	r := seedtest.Rand(t)
	for range 300 {
		rows := r.IntN(3000)
		present := batch.MakeBitmap(rows)
		for i := 0; i < rows; {
			n, one := 1+r.IntN(1<<r.IntN(10)), r.IntN(2) == 0
			for ; n > 0 && i < rows; n, i = n-1, i+1 {
				if one || r.IntN(8) == 0 {
					present.Set(i)
				}
			}
		}
		n, got, rest, err := ParseNullPrologue(AppendNullPrologue(nil, rows, present))
		if err != nil || n != rows || len(rest) != 0 {
			t.Fatalf("%d rows: %d, %v", rows, n, err)
		}
		for i := range rows {
			must.Equal(t, got == nil || got.Get(i), present.Get(i), i, rows)
		}
		if present.Count() == rows {
			all := AppendNullPrologue(nil, rows, nil)
			must.Equal(t, all, AppendNullPrologue(nil, rows, present), rows)
		}
	}
}

// Streams of runs from cfile spec §4.4, and the examples in rle.go.
func TestRunsMatchKudu(t *testing.T) {
	rep := func(v uint64, n int) []uint64 {
		out := make([]uint64, n)
		for i := range out {
			out[i] = v
		}
		return out
	}
	join := func(parts ...[]uint64) (out []uint64) {
		for _, p := range parts {
			out = append(out, p...)
		}
		return out
	}
	alternating := func(n int) (out []uint64) {
		for i := range n {
			out = append(out, uint64(i&1))
		}
		return out
	}
	for _, c := range []struct {
		values []uint64
		width  int
		want   string
	}{
		{nil, 1, ""},
		{rep(1, 1), 1, "02 01"},
		{rep(1, 3), 1, "06 01"},
		{join(rep(1, 100), rep(0, 100)), 1, "c8 01 01 c8 01 00"},
		{alternating(200), 1, "33" + strings.Repeat("aa", 25)},
		{alternating(600), 1, "7f" + strings.Repeat("aa", 63) + "19" + strings.Repeat("aa", 12)},
		{alternating(100), 1, "1b" + strings.Repeat("aa", 12) + "0a"},
		{join(rep(1, 7), rep(0, 1)), 1, "03 7f"},
		{join(rep(1, 8), rep(0, 1)), 1, "10 01 02 00"},
		{join(rep(1, 10), rep(0, 7), rep(1, 20)), 1, "14 01 03 80 26 01"},
		{join(rep(0, 50), rep(1, 50)), 8, "64 00 64 01"},
		{join(rep(5, 9), []uint64{1, 2, 3}), 8, "12 05 03 01 02 03"},
		{join(rep(1, 1), rep(9, 8)), 8, "05 01 09 09 09 09 09 09 09 09"},
		{join(rep(1, 1), rep(9, 20)), 8, "03 01 09 09 09 09 09 09 09 1a 09"},
		{join([]uint64{1, 2, 3, 4, 5, 6, 7, 8}, rep(9, 8)), 8, "03 01 02 03 04 05 06 07 08 10 09"},
		{[]uint64{0x0102, 0x0102, 0x0102, 7}, 16, "03 02 01 02 01 02 01 07 00"},
		{rep(0, 100), 32, "c8 01 00 00 00 00"},
		{rep(1<<64-1, 10), 64, "14 ff ff ff ff ff ff ff ff"},
	} {
		var w runWriter
		w.reset(c.width)
		for _, v := range c.values {
			w.put(v, 1)
		}
		want := must.Hex(t, c.want)
		must.Equal(t, string(w.finish()), string(want), c.width)
		// The same values, with one put for each run of equal values.
		w.reset(c.width)
		for i := 0; i < len(c.values); {
			n := 1
			for i+n < len(c.values) && c.values[i+n] == c.values[i] {
				n++
			}
			w.put(c.values[i], n)
			i += n
		}
		must.Equal(t, string(w.finish()), string(want), c.width)
	}
}

func TestRepeatsBeyondTheLongestRunAreSplit(t *testing.T) {
	var w runWriter
	w.reset(1)
	w.put(1, 1<<30+5)
	must.Equal(t, w.finish(), must.Hex(t, "fe ff ff ff 07 01 0c 01"))
}

// The fallback of cfile spec §6.7: 100 distinct words of 9 bytes in blocks of 512 bytes.
func TestFullDictionaryFallsBackToPlain(t *testing.T) {
	var cells [][]byte
	for i := range 100 {
		cells = append(cells, fmt.Appendf(nil, "word%05d", i))
	}
	b := mustBuilder(t, BuilderOptions{Type: schema.String, Encoding: schema.Dictionary, BlockBytes: 512})
	payloads, counts, dict := buildAll(b, schema.String, cells, 1)
	must.Equal(t, fmt.Sprint(counts), "[47 47 6]", counts)
	for i, want := range []byte{modeCodes, modePlain, modePlain} {
		must.Equal(t, payloads[i][0], want, i)
	}
	if d, err := ParseDictionary(dict); err != nil || len(d.Words) != 47 || b.(DictionaryBuilder).Words() != 47 {
		t.Errorf("dictionary %v, %v", d, err)
	}
}

func TestBuilderEncodesDictionaryVectorsLikeByteStrings(t *testing.T) {
	r := seedtest.Rand(t)
	for _, enc := range []schema.Encoding{schema.Plain, schema.Prefix, schema.Dictionary} {
		d := &batch.Dictionary{Words: randomCells(r, schema.String, 300)}
		v := batch.NewVector(schema.String, 0)
		v.UseCodes(d, 4000)
		cells := make([][]byte, 4000)
		for i := range cells {
			v.Codes[i] = uint32(r.IntN(300))
			cells[i] = d.Words[v.Codes[i]]
		}
		o := BuilderOptions{Type: schema.String, Encoding: enc, BlockBytes: 1024}
		want, _, wantDict := buildAll(mustBuilder(t, o), schema.String, cells, 4000)
		b := mustBuilder(t, o)
		for i, from := 0, 0; from < 4000; i++ {
			n := b.Append(v, from, 4000)
			must.Equal(t, b.First(), cells[from], enc, i)
			must.Equal(t, b.Last(), cells[from+n-1], enc, i)
			must.Equal(t, b.Finish(nil, batch.Ordinal(from)), want[i], enc, i)
			from += n
			b.Reset()
		}
		if db, ok := b.(DictionaryBuilder); ok && !bytes.Equal(db.FinishDictionary(nil), wantDict) {
			t.Errorf("%s: the dictionary differs", enc)
		}
	}
}

func TestBuilderReturnsFirstAndLast(t *testing.T) {
	r := seedtest.Rand(t)
	for _, pair := range pairs() {
		b := mustBuilder(t, BuilderOptions{Type: pair.Type, Encoding: pair.Encoding})
		for range 3 {
			cells := randomCells(r, pair.Type, 40)
			cells[0] = cells[0][:len(cells[0]):len(cells[0])]
			v := vectorOf(pair.Type, cells)
			b.Append(v, 0, 13)
			b.Append(v, 13, 40)
			if b.Len() != 40 || b.First() == nil || !bytes.Equal(b.First(), cells[0]) ||
				!bytes.Equal(b.Last(), cells[39]) {
				t.Errorf("%s %s: %d values from %x to %x, want 40 from %x to %x", pair.Type, pair.Encoding,
					b.Len(), b.First(), b.Last(), cells[0], cells[39])
			}
			b.Reset()
		}
	}
}

func TestEncodingsThatTypesDoNotAllowAreUnsupported(t *testing.T) {
	for _, c := range []struct {
		typ schema.Type
		enc schema.Encoding
	}{{schema.String, schema.RLE}, {schema.Bool, schema.Bitshuffle}, {schema.Int128, schema.RLE},
		{schema.Int32, schema.Dictionary}, {schema.Uint32, 3}, {18, schema.Plain}} {
		must.Fail(t, must.Err(NewBuilder(BuilderOptions{Type: c.typ, Encoding: c.enc})),
			fault.ErrUnsupported, c.typ, c.enc)
		must.Fail(t, must.Err(Parse(Params{Type: c.typ, Encoding: c.enc, Payload: make([]byte, 64)})),
			fault.ErrUnsupported, c.typ, c.enc)
	}
}
