package cfile

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/cache"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/schema"
)

var allTypes = []schema.Type{
	schema.Uint8, schema.Int8, schema.Uint16, schema.Int16, schema.Uint32, schema.Int32, schema.Uint64, schema.Int64,
	schema.String, schema.Bool, schema.Float, schema.Double, schema.Binary, schema.Timestamp, schema.Int128,
	schema.Decimal32, schema.Decimal64, schema.Decimal128, schema.Varchar, schema.Date,
}

var allEncodings = []schema.Encoding{schema.Plain, schema.Prefix, schema.RLE, schema.Dictionary, schema.Bitshuffle}

// randomCells returns n cells: some repeat, some are small, some are arbitrary; some strings are
// long.
func randomCells(rng *rand.Rand, typ schema.Type, n int, nullShare float64) [][]byte {
	cells := make([][]byte, n)
	nulls := nullShare > 0 && rng.IntN(2) == 0
	for i := range cells {
		if nullShare > 0 && rng.IntN(20) == 0 {
			nulls = rng.Float64() < nullShare // NULLs come in runs
		}
		switch {
		case nulls && rng.IntN(10) > 0:
			continue
		case i > 0 && cells[i-1] != nil && rng.IntN(4) > 0:
			cells[i] = cells[i-1]
		case typ.Variable():
			cells[i] = randomString(rng)
		default:
			cells[i] = randomFixed(rng, typ)
		}
	}
	return cells
}

func randomString(rng *rand.Rand) []byte {
	switch rng.IntN(30) {
	case 0:
		return []byte{}
	case 1:
		return bytes.Repeat([]byte{0xff}, rng.IntN(70))
	case 2:
		return bytes.Repeat([]byte{byte(rng.IntN(256))}, rng.IntN(2000))
	}
	return fmt.Appendf(nil, "%s-%d", []string{"apple", "apricot", "banana"}[rng.IntN(3)], rng.IntN(300))
}

func randomFixed(rng *rand.Rand, typ schema.Type) []byte {
	cell := make([]byte, typ.Width())
	if typ == schema.Bool {
		cell[0] = byte(rng.IntN(2))
		return cell
	}
	small := rng.IntN(3) > 0
	for i := range cell {
		if i == 0 || !small {
			cell[i] = byte(rng.IntN(256))
		}
	}
	return cell
}

// sortCells sorts cells of a keyable type and removes duplicates.
func sortCells(typ schema.Type, cells [][]byte) [][]byte {
	cells = slices.DeleteFunc(cells, func(c []byte) bool { return c == nil })
	slices.SortFunc(cells, func(a, b []byte) int { return batch.Compare(typ, a, b) })
	return slices.CompactFunc(cells, bytes.Equal)
}

// writeSteps appends cells in random batches and finishes the file.
func writeSteps(t testing.TB, rng *rand.Rand, o WriterOptions, cells [][]byte) *block.Memory {
	t.Helper()
	out := &block.Memory{Number: 17}
	w := must.Get(NewWriter(out, o))(t)
	v := vectorOf(o.Type, cells)
	for from := 0; from < v.Len; {
		to := min(v.Len, from+1+rng.IntN(3000))
		must.Do(t, w.appendRange(v, from, to))
		from = to
	}
	must.Equal(t, w.Rows(), int64(len(cells)))
	must.Do(t, w.Finish())
	must.Equal(t, w.Bytes(), int64(len(out.Bytes)))
	return out
}

// Files of every type, encoding and codec, with and without NULLs, have the cells that were
// written.
func TestRoundTrip(t *testing.T) {
	codecs := []schema.Compression{schema.NoCompression, schema.Snappy, schema.LZ4, schema.Zlib}
	seed := uint64(0)
	for _, typ := range allTypes {
		for _, enc := range allEncodings {
			if !enc.Allowed(typ) {
				continue
			}
			for k, codec := range codecs {
				for _, nullable := range []bool{false, true} {
					seed++
					if testing.Short() && seed%3 != 0 {
						continue
					}
					name := fmt.Sprintf("type=%v/enc=%v/codec=%v/nullable=%v/seed=%d", typ, enc, codec, nullable, seed)
					t.Run(name, func(t *testing.T) {
						roundTrip(t, seed, WriterOptions{Type: typ, Encoding: enc, Compression: codec,
							Nullable: nullable, Exact: k%2 == 0})
					})
				}
			}
		}
	}
}

func roundTrip(t *testing.T, seed uint64, o WriterOptions) {
	rng := rand.New(rand.NewPCG(11, seed))
	share := 0.0
	if o.Nullable {
		share = []float64{0, 0.1, 0.5, 1}[rng.IntN(4)]
	}
	cells := randomCells(rng, o.Type, rng.IntN(9000), share)
	o.BlockBytes = []int{0, 512, 4096}[rng.IntN(3)]
	o.IndexBlockBytes = []int{0, 60, 300}[rng.IntN(3)]
	o.PositionalIndex = true
	if !o.Nullable && o.Type.Keyable() {
		cells = sortCells(o.Type, cells)
		o.ValueIndex, o.PositionalIndex = true, rng.IntN(2) == 0
		o.FullIndexKeys = rng.IntN(2) == 0
	}
	src := writeSteps(t, rng, o, cells)
	for _, c := range []*cache.Cache{nil, cache.New(100 << 10)} {
		r := open(t, src, c)
		if r.Info().ZoneMap == o.Exact {
			t.Fatalf("zone map %v, exact %v", r.Info().ZoneMap, o.Exact)
		}
		checkCells(t, r, cells, 4096)
		checkCells(t, r, cells, 1+rng.IntN(700))
		checkRandomReads(t, rng, r, cells)
		must.Do(t, r.Verify())
		if o.ValueIndex {
			checkSeeks(t, rng, r, cells)
		}
	}
}

// checkRandomReads reads cells and windows at random rows.
func checkRandomReads(t *testing.T, rng *rand.Rand, r *Reader, cells [][]byte) {
	t.Helper()
	if len(cells) == 0 {
		return
	}
	c := r.NewColumnReader()
	c.Transient = rng.IntN(2) == 0
	v := &batch.Vector{Type: r.Info().Type}
	for range 20 {
		at, n := rng.IntN(len(cells)), 1+rng.IntN(600)
		got := must.Get(c.ReadVector(batch.Ordinal(at), n, v))(t)
		must.Equal(t, got, min(n, len(cells)-at), at)
		for i := range got {
			if cell := v.Cell(i); !bytes.Equal(cell, cells[at+i]) || (cell == nil) != (cells[at+i] == nil) {
				t.Fatalf("row %d: %x, want %x", at+i, cell, cells[at+i])
			}
		}
		cell, err := r.Cell(batch.Ordinal(at))
		if err != nil || !bytes.Equal(cell, cells[at]) || (cell == nil) != (cells[at] == nil) {
			t.Fatalf("cell %d: %x, %v, want %x", at, cell, err, cells[at])
		}
	}
}

// checkSeeks compares seeks with a search in the sorted cells.
func checkSeeks(t *testing.T, rng *rand.Rand, r *Reader, cells [][]byte) {
	t.Helper()
	typ := r.Info().Type
	for range 60 {
		key := randomString(rng)
		if !typ.Variable() {
			key = randomFixed(rng, typ)
		}
		if len(cells) > 0 && rng.IntN(2) == 0 {
			key = cells[rng.IntN(len(cells))]
		}
		want, exact := slices.BinarySearchFunc(cells, key, func(a, b []byte) int { return batch.Compare(typ, a, b) })
		ord, gotExact, err := r.Seek(key)
		if err != nil || int(ord) != want || gotExact != exact {
			t.Fatalf("seek %x: %d, %v, %v, want %d, %v", key, ord, gotExact, err, want, exact)
		}
	}
}

// A vector in dictionary form gives the same file as a vector of byte strings.
func TestWriterAcceptsDictionaryForm(t *testing.T) {
	rng := rand.New(rand.NewPCG(12, 1))
	cells := randomCells(rng, schema.String, 5000, 0.2)
	o := WriterOptions{Type: schema.String, Nullable: true, PositionalIndex: true}
	src := writeAll(t, o, vectorOf(schema.String, cells))
	v := &batch.Vector{Type: schema.String}
	must.Get(open(t, src, nil).NewColumnReader().ReadVector(0, len(cells), v))(t)
	if v.Dict == nil {
		t.Fatal("vector is not in dictionary form")
	}
	must.Equal(t, writeAll(t, o, v).Bytes, src.Bytes)
}

// Cblocks after the dictionary is full are plain; a window over both kinds is read as byte strings.
func TestWriterWritesPlainAfterFullDictionary(t *testing.T) {
	var cells [][]byte
	for i := range 3000 {
		cells = append(cells, fmt.Appendf(nil, "word%07d", i))
	}
	src := writeAll(t, WriterOptions{Type: schema.String, BlockBytes: 4096, PositionalIndex: true},
		vectorOf(schema.String, cells))
	r := open(t, src, nil)
	checkCells(t, r, cells, 4096)
	checkCells(t, r, cells, 100)
	v := &batch.Vector{Type: schema.String}
	if _, err := r.NewColumnReader().ReadVector(0, 10, v); err != nil || v.Dict == nil {
		t.Errorf("first cells not in dictionary form: %v", err)
	}
	if _, err := r.NewColumnReader().ReadVector(0, 3000, v); err != nil || v.Dict != nil {
		t.Errorf("mixed cells in dictionary form: %v", err)
	}
}

func TestCblocksBeginAtWindows(t *testing.T) {
	for _, typ := range []schema.Type{schema.Int64, schema.Int32, schema.Int128, schema.Uint8, schema.String} {
		v := batch.NewVector(typ, 300000)
		if typ.Variable() {
			for i := range v.Bytes {
				v.Bytes[i] = []byte{byte(i % 7)}
			}
		}
		clear(v.Data)
		src := writeAll(t, WriterOptions{Type: typ, PositionalIndex: true}, v)
		x, err := open(t, src, nil).ordinalIndex()
		if err != nil || len(x.first) < 2 {
			t.Fatal(typ, x, err)
		}
		for i, first := range x.first {
			must.Equal(t, first%batch.WindowRows, 0, typ, i, first)
		}
	}
}

func TestLongRunsAreSplit(t *testing.T) {
	v := &batch.Vector{Type: schema.Bool}
	v.Fill(3<<20, []byte{1})
	r := open(t, writeAll(t, WriterOptions{Type: schema.Bool, PositionalIndex: true}, v), nil)
	must.Equal(t, len(must.Get(r.BlockPointers())(t)), 3)
	v.Fill(3<<20, nil)
	r = open(t, writeAll(t, WriterOptions{Type: schema.Int64, Nullable: true, PositionalIndex: true},
		&batch.Vector{Type: schema.Int64, Len: v.Len, Data: make([]byte, 8*v.Len), Present: v.Present}), nil)
	must.Equal(t, len(must.Get(r.BlockPointers())(t)), 3)
	must.Do(t, r.Verify())
}

func TestWriterRefusesInvalidOptions(t *testing.T) {
	for _, c := range []struct {
		name string
		o    WriterOptions
	}{
		{"type", WriterOptions{Type: 21}},
		{"encoding", WriterOptions{Type: schema.String, Encoding: schema.RLE}},
		{"retired encoding", WriterOptions{Type: schema.Uint32, Encoding: 3}},
		{"codec", WriterOptions{Type: schema.Int8, Compression: 9}},
		{"value index of a nullable column", WriterOptions{Type: schema.Int8, Nullable: true, ValueIndex: true}},
		{"value index of doubles", WriterOptions{Type: schema.Double, ValueIndex: true}},
		{"negative size", WriterOptions{Type: schema.Int8, BlockBytes: -1}},
	} {
		out := &block.Memory{}
		if _, err := NewWriter(out, c.o); !errors.Is(err, fault.ErrUnsupported) || len(out.Bytes) > 0 {
			t.Errorf("%s: %v, %d bytes written", c.name, err, len(out.Bytes))
		}
	}
}

func TestWriterRefusesNullsIfNotNullable(t *testing.T) {
	w := must.Get(NewWriter(&block.Memory{}, WriterOptions{Type: schema.Int8, PositionalIndex: true}))(t)
	must.Fail(t, w.Append(vectorOf(schema.Int8, [][]byte{{1}, nil})), fault.ErrSchema)
	must.Refuse(t, w.Finish(), "Finish succeeded after an error")
}

func TestAppendAfterFinishFails(t *testing.T) {
	out := &block.Memory{}
	w, _ := NewWriter(out, WriterOptions{Type: schema.Int8, PositionalIndex: true})
	must.Do(t, w.Finish())
	n := len(out.Bytes)
	if w.Append(vectorOf(schema.Int8, [][]byte{{1}})) == nil || w.Finish() == nil || len(out.Bytes) != n {
		t.Error("Append succeeded after Finish")
	}
}

// failingSink fails after a number of bytes.
type failingSink struct {
	block.Memory
	left int
}

var errFull = errors.New("full")

func (s *failingSink) Write(p []byte) (int, error) {
	if s.left -= len(p); s.left < 0 {
		return 0, errFull
	}
	return s.Memory.Write(p)
}

func TestWriterReturnsSinkErrors(t *testing.T) {
	v := vectorOf(schema.Int32, randomCells(rand.New(rand.NewPCG(13, 1)), schema.Int32, 2000, 0))
	o := WriterOptions{Type: schema.Int32, Encoding: schema.Plain, BlockBytes: 512, IndexBlockBytes: 60,
		PositionalIndex: true}
	whole := len(writeAll(t, o, v).Bytes)
	for left := 0; left < whole; left += 1 + left/7 {
		w, err := NewWriter(&failingSink{left: left}, o)
		if err == nil {
			err = w.Append(v)
		}
		if err == nil {
			err = w.Finish()
		}
		must.Fail(t, err, errFull, left, whole)
	}
}
