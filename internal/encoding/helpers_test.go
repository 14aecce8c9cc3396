package encoding

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/schema"
)

// cellOf converts a value of the corpus's JSON, with numbers as json.Number, to a cell.
func cellOf(t testing.TB, typ schema.Type, value any) []byte {
	t.Helper()
	switch v := value.(type) {
	case nil:
		return nil
	case bool:
		if v {
			return []byte{1}
		}
		return []byte{0}
	case string:
		switch {
		case typ == schema.Float:
			return binary.LittleEndian.AppendUint32(nil,
				map[string]uint32{"NaN": 0x7fc00000, "+Inf": 0x7f800000, "-Inf": 0xff800000}[v])
		case typ == schema.Double:
			return binary.LittleEndian.AppendUint64(nil,
				map[string]uint64{"NaN": 0x7ff8 << 48, "+Inf": 0x7ff0 << 48, "-Inf": 0xfff0 << 48}[v])
		case typ == schema.Binary:
			return must.Hex(t, v[2:])
		}
		return []byte(v)
	case json.Number:
		switch typ {
		case schema.Float:
			f := must.Get(strconv.ParseFloat(string(v), 32))(t)
			return binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(f)))
		case schema.Double:
			f := must.Get(strconv.ParseFloat(string(v), 64))(t)
			return binary.LittleEndian.AppendUint64(nil, math.Float64bits(f))
		}
		n, ok := new(big.Int).SetString(string(v), 10)
		must.Equal(t, ok, true, v)
		if n.Sign() < 0 {
			n.Add(n, new(big.Int).Lsh(big.NewInt(1), uint(8*typ.Width())))
		}
		cell := n.FillBytes(make([]byte, typ.Width()))
		for i, j := 0, len(cell)-1; i < j; i, j = i+1, j-1 {
			cell[i], cell[j] = cell[j], cell[i]
		}
		return cell
	}
	t.Fatalf("value %v of %s", value, typ)
	return nil
}

// vectorOf returns a vector of present cells.
func vectorOf(typ schema.Type, cells [][]byte) *batch.Vector {
	v := batch.NewVector(typ, len(cells))
	for i, c := range cells {
		v.SetCell(i, c)
	}
	return v
}

// checkBlock compares all results of a block: decoded at once, in random pieces, and cell by cell.
func checkBlock(b Block, typ schema.Type, ord batch.Ordinal, want [][]byte, r *rand.Rand) error {
	if b.Ordinal() != ord || b.Len() != len(want) {
		return fmt.Errorf("%d values from ordinal %d, want %d from %d", b.Len(), b.Ordinal(), len(want), ord)
	}
	v := batch.NewVector(typ, len(want))
	if err := b.Decode(0, len(want), v, 0); err != nil {
		return err
	}
	for i, w := range want {
		if !bytes.Equal(v.Cell(i), w) {
			return fmt.Errorf("value %d of %d: %.40x, want %.40x", i, len(want), v.Cell(i), w)
		}
	}
	for range 8 {
		from := r.IntN(len(want) + 1)
		n := r.IntN(len(want) - from + 1)
		if r.IntN(2) == 0 {
			n = min(n, 20)
		}
		at := r.IntN(20)
		v.Reset(at + n + 1)
		fillCell := bytes.Repeat([]byte{0xee}, typ.Width())
		v.SetCell(at+n, fillCell)
		if err := b.Decode(from, n, v, at); err != nil {
			return err
		}
		for i, w := range want[from : from+n] {
			if !bytes.Equal(v.Cell(at+i), w) {
				return fmt.Errorf("values [%d, %d): value %d is %.40x, want %.40x", from, from+n, from+i,
					v.Cell(at+i), w)
			}
		}
		if !bytes.Equal(v.Cell(at+n), fillCell) {
			return fmt.Errorf("values [%d, %d): wrote beyond them", from, from+n)
		}
		if len(want) > 0 {
			i := r.IntN(len(want))
			c, err := b.Cell(i)
			if err != nil {
				return err
			}
			if c == nil || !bytes.Equal(c, want[i]) {
				return fmt.Errorf("cell %d of %d: %.40x, want %.40x", i, len(want), c, want[i])
			}
		}
	}
	return nil
}

// buildAll encodes cells like a writer: batch values per Append, and a new payload when one is
// full. It returns the payloads, the number of values in each, and for DICT the dictionary payload.
func buildAll(b Builder, typ schema.Type, cells [][]byte, batchLen int) (payloads [][]byte, counts []int, dict []byte) {
	ord := 0
	flush := func() {
		payloads = append(payloads, b.Finish(nil, batch.Ordinal(ord)))
		counts = append(counts, b.Len())
		ord += b.Len()
		b.Reset()
	}
	v := vectorOf(typ, cells)
	for from := 0; from < len(cells); {
		to := min(from+batchLen, len(cells))
		for from < to {
			from += b.Append(v, from, to)
			if b.Full() {
				flush()
			}
		}
	}
	if b.Len() > 0 {
		flush()
	}
	if d, ok := b.(DictionaryBuilder); ok {
		dict = d.FinishDictionary(nil)
	}
	return payloads, counts, dict
}

func mustBuilder(t testing.TB, o BuilderOptions) Builder {
	t.Helper()
	return must.Get(NewBuilder(o))(t)
}

// pairs are all allowed pairs of type and encoding.
func pairs() (out []Params) {
	for typ := schema.Type(0); typ < 21; typ++ {
		if !typ.Scalar() {
			continue
		}
		for e := schema.Plain; e <= schema.Bitshuffle; e++ {
			if e.Allowed(typ) {
				out = append(out, Params{Type: typ, Encoding: e})
			}
		}
	}
	return out
}
