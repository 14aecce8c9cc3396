package keyenc

import (
	"bytes"
	"errors"
	"fmt"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/schema"
)

var keyTypes = []schema.Type{schema.Uint8, schema.Int8, schema.Uint16, schema.Int16, schema.Uint32, schema.Int32,
	schema.Uint64, schema.Int64, schema.Int128, schema.Decimal32, schema.Decimal64, schema.Decimal128,
	schema.Date, schema.Timestamp, schema.String, schema.Binary, schema.Varchar}

// drawCell draws a cell. Most bytes are near the ends of their range, which affects escapes and
// signs.
func drawCell(rt *rapid.T, typ schema.Type) []byte {
	b := rapid.SampledFrom([]byte{0, 0, 1, 2, 0x7f, 0x80, 0xfe, 0xff})
	if typ.Variable() {
		return append([]byte{}, rapid.SliceOfN(b, 0, 6).Draw(rt, "string")...)
	}
	return rapid.SliceOfN(b, typ.Width(), typ.Width()).Draw(rt, "cell")
}

// compareCells compares two cells numerically, as an oracle for the order of their encodings.
func compareCells(typ schema.Type, a, b []byte) int {
	if typ.Variable() {
		return bytes.Compare(a, b)
	}
	return number(typ, a).Cmp(number(typ, b))
}

func number(typ schema.Type, cell []byte) *big.Int {
	be := make([]byte, len(cell))
	for i, c := range cell {
		be[len(be)-1-i] = c
	}
	n := new(big.Int).SetBytes(be)
	unsigned := map[schema.Type]bool{schema.Uint8: true, schema.Uint16: true, schema.Uint32: true, schema.Uint64: true}
	if !unsigned[typ] && be[0] >= 0x80 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(cell))))
	}
	return n
}

func drawSchema(rt *rapid.T, t *testing.T) *schema.Schema {
	return keySchema(t, rapid.SliceOfN(rapid.SampledFrom(keyTypes), 1, 4).Draw(rt, "types")...)
}

func drawRow(rt *rapid.T, s *schema.Schema) [][]byte {
	cells := make([][]byte, s.Keys)
	for i := range cells {
		cells[i] = drawCell(rt, s.Columns[i].Type)
	}
	return cells
}

func TestKeysSortAsTheirRows(t *testing.T) {
	seedtest.Check(t, func(rt *rapid.T) {
		s := drawSchema(rt, t)
		e := NewEncoder(s)
		a, b := drawRow(rt, s), drawRow(rt, s)
		if rapid.Bool().Draw(rt, "shared first column") {
			b[0] = a[0]
		}
		want := 0
		for i := 0; i < s.Keys && want == 0; i++ {
			want = compareCells(s.Columns[i].Type, a[i], b[i])
		}
		ka, kb := e.AppendKey(nil, a), e.AppendKey(nil, b)
		if got := bytes.Compare(ka, kb); got != want {
			rt.Fatalf("rows %x, %x: keys %x, %x compare %d, rows %d", a, b, ka, kb, got, want)
		}
		n := rapid.IntRange(0, s.Keys).Draw(rt, "prefix columns")
		if p := e.AppendPrefix(nil, a[:n]); !bytes.HasPrefix(ka, p) {
			rt.Fatalf("%x does not start with its prefix %x", ka, p)
		}
	})
}

func TestKeysRoundTrip(t *testing.T) {
	seedtest.Check(t, func(rt *rapid.T) {
		s := drawSchema(rt, t)
		e := NewEncoder(s)
		cells := drawRow(rt, s)
		got := must.Get(e.Decode(e.AppendKey(nil, cells)))(rt)
		for i := range cells {
			if got[i] == nil || !bytes.Equal(got[i], cells[i]) {
				rt.Fatalf("column %d: got %x, want %x", i, got[i], cells[i])
			}
		}
	})
}

func TestDecodeAcceptsOnlyKeys(t *testing.T) {
	seedtest.Check(t, func(rt *rapid.T) {
		e := NewEncoder(drawSchema(rt, t))
		key := rapid.SliceOfN(rapid.SampledFrom([]byte{0, 0, 1, 2, 0xff}), 0, 20).Draw(rt, "key")
		cells, err := e.Decode(key)
		if err != nil {
			if !errors.Is(err, fault.ErrCorrupt) {
				rt.Fatalf("%v is not ErrCorrupt", err)
			}
			return
		}
		if again := e.AppendKey(nil, cells); !bytes.Equal(again, key) {
			rt.Fatalf("%x decodes to %x, which encodes to %x", key, cells, again)
		}
	})
}

func TestDecodeErrorHasColumnAndOffset(t *testing.T) {
	e := NewEncoder(keySchema(t, schema.Int32, schema.String, schema.Int8))
	for _, key := range []string{"", "800000", "80000001 61", "80000001 6100", "80000001 610002 00",
		"80000001 610000", "80000001 610000 80 00"} {
		must.Fail(t, must.Err(e.Decode(must.Hex(t, key))), fault.ErrCorrupt, key)
	}
}

func TestAppendKeysAgreesWithAppendKey(t *testing.T) {
	seedtest.Check(t, func(rt *rapid.T) {
		s := drawSchema(rt, t)
		e := NewEncoder(s)
		n := rapid.IntRange(0, 20).Draw(rt, "rows")
		columns := make([]Column, s.Keys)
		var want [][]byte
		for range n {
			cells := drawRow(rt, s)
			for i, cell := range cells {
				if s.Columns[i].Type.Variable() {
					columns[i].Bytes = append(columns[i].Bytes, cell)
				} else {
					columns[i].Data = append(columns[i].Data, cell...)
				}
			}
			want = append(want, e.AppendKey(nil, cells))
		}
		from := rapid.IntRange(0, n).Draw(rt, "from")
		to := rapid.IntRange(from, n).Draw(rt, "to")
		first := []byte("kept")
		got := e.AppendKeys([][]byte{first}, columns, from, to)
		if len(got) != 1+to-from || &got[0][0] != &first[0] {
			rt.Fatalf("%d keys, want %d after the existing one", len(got), to-from)
		}
		for i, key := range got[1:] {
			if !bytes.Equal(key, want[from+i]) {
				rt.Fatalf("row %d: %x, want %x", from+i, key, want[from+i])
			}
		}
	})
}

func BenchmarkAppendKeys(b *testing.B) {
	const n = 4096
	long := make([][]byte, n)
	data := make([]byte, 8*n)
	for i := range long {
		long[i] = fmt.Appendf(nil, "src/kudu/tablet/file-%d.cc", i)
		data[8*i] = byte(i)
	}
	cases := []struct {
		name    string
		types   []schema.Type
		columns []Column
	}{
		{"key=int64", []schema.Type{schema.Int64}, []Column{{Data: data}}},
		{"key=int64,int64", []schema.Type{schema.Int64, schema.Int64}, []Column{{Data: data}, {Data: data}}},
		{"key=string,int64", []schema.Type{schema.String, schema.Int64}, []Column{{Bytes: long}, {Data: data}}},
	}
	for _, c := range cases {
		b.Run(c.name, func(b *testing.B) {
			e := NewEncoder(keySchema(b, c.types...))
			var keys [][]byte
			for b.Loop() {
				keys = e.AppendKeys(keys[:0], c.columns, 0, n)
			}
			b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}
