package cfile

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/cache"
	"github.com/oribi-db/oribi/internal/corpustest"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/schema"
)

// goldenFile is a line of a manifest of files written by Kudu.
type goldenFile struct {
	Name              string `json:"name"`
	Type              string `json:"type"`
	Encoding          string `json:"encoding"`
	Compression       string `json:"compression"`
	Nullable          bool   `json:"nullable"`
	Array             bool   `json:"array"`
	Checksums         bool   `json:"checksums"`
	NumValues         int64  `json:"num_values"`
	PosIdx            bool   `json:"posidx"`
	ValIdx            bool   `json:"validx"`
	BlockSize         int    `json:"block_size"`
	IndexBlockSize    int    `json:"index_block_size"`
	RestartInterval   int    `json:"restart_interval"`
	AppendBatch       int    `json:"append_batch"`
	OptimizeIndexKeys bool   `json:"optimize_index_keys"`
	DataBlocks        int    `json:"data_blocks"`
	Values            string `json:"values"`
	Metadata          []struct {
		Where, Key, Value string
	} `json:"metadata"`
	Seeks []struct {
		Seek    json.RawMessage `json:"seek"`
		Ordinal int64           `json:"ordinal"`
		Exact   bool            `json:"exact"`
	} `json:"seeks"`

	// Only of malformed files.
	Kind    []string        `json:"kind"`
	Trigger string          `json:"trigger"`
	Seek    json.RawMessage `json:"seek"`
	What    string          `json:"what"`
}

// goldenDirs calls f with the directory of the small subset in this package and, if present, with
// the directory of the full corpus.
func goldenDirs(t *testing.T, f func(t *testing.T, dir string)) {
	t.Run("from=testdata", func(t *testing.T) { f(t, filepath.Join("testdata", "golden")) })
	t.Run("from=corpus", func(t *testing.T) { f(t, filepath.Join(corpustest.Dir(t), "golden", "cfile")) })
}

func manifest(t *testing.T, dir string) []goldenFile {
	t.Helper()
	var out []goldenFile
	for _, line := range corpustest.Lines(t, filepath.Join(dir, "manifest.jsonl")) {
		var g goldenFile
		must.Do(t, json.Unmarshal([]byte(line), &g))
		out = append(out, g)
	}
	return out
}

// cellOf converts a JSON value of the corpus to a cell.
func cellOf(t *testing.T, typ schema.Type, text string) []byte {
	t.Helper()
	if text == "null" {
		return nil
	}
	switch typ.Physical() {
	case schema.Bool:
		return []byte{map[string]byte{"true": 1, "false": 0}[text]}
	case schema.Float, schema.Double:
		return floatCell(t, typ, text)
	case schema.Binary:
		var s string
		must.Do(t, json.Unmarshal([]byte(text), &s))
		if typ != schema.Binary {
			return append([]byte{}, s...)
		}
		b := must.Get(hex.DecodeString(strings.TrimPrefix(s, "0x")))(t)
		return append([]byte{}, b...)
	}
	n, ok := new(big.Int).SetString(text, 10)
	must.Equal(t, ok, true, text)
	n.And(n, new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 128), big.NewInt(1)))
	var be [16]byte
	n.FillBytes(be[:])
	slices.Reverse(be[:])
	return append([]byte{}, be[:typ.Width()]...)
}

func floatCell(t *testing.T, typ schema.Type, text string) []byte {
	t.Helper()
	bits := 64
	if typ == schema.Float {
		bits = 32
	}
	var v float64
	if named, ok := map[string]float64{`"+Inf"`: math.Inf(1), `"-Inf"`: math.Inf(-1)}[text]; ok {
		v = named
	} else if text != `"NaN"` {
		v = must.Get(strconv.ParseFloat(text, bits))(t)
	}
	if bits == 32 {
		if text == `"NaN"` {
			return binary.LittleEndian.AppendUint32(nil, 0x7fc00000)
		}
		return binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(v)))
	}
	if text == `"NaN"` {
		return binary.LittleEndian.AppendUint64(nil, 0x7ff8000000000000)
	}
	return binary.LittleEndian.AppendUint64(nil, math.Float64bits(v))
}

// cellsOf returns the expected values of a file.
func (g *goldenFile) cellsOf(t *testing.T, dir string, typ schema.Type) [][]byte {
	t.Helper()
	var cells [][]byte
	for _, line := range corpustest.Lines(t, filepath.Join(dir, g.Values)) {
		cells = append(cells, cellOf(t, typ, line))
	}
	return cells
}

func (g *goldenFile) typ(t *testing.T) schema.Type {
	t.Helper()
	typ, ok := schema.TypeByName(g.Type)
	must.Equal(t, ok, true, g.Type)
	return typ
}

// options returns the options with which Writer must write the bytes of the file.
func (g *goldenFile) options(t *testing.T) WriterOptions {
	t.Helper()
	e, _ := schema.EncodingByName(g.Encoding)
	c, _ := schema.CompressionByName(g.Compression)
	o := WriterOptions{
		Type: g.typ(t), Encoding: e, Compression: c, Nullable: g.Nullable, Array: g.Array, BlockBytes: g.BlockSize,
		IndexBlockBytes: g.IndexBlockSize, RestartInterval: g.RestartInterval, PositionalIndex: g.PosIdx,
		ValueIndex:    g.ValIdx,
		FullIndexKeys: !g.OptimizeIndexKeys, NoChecksums: !g.Checksums, Exact: true,
	}
	for _, m := range g.Metadata {
		if m.Where == "header" {
			o.HeaderMetadata = append(o.HeaderMetadata, Pair{m.Key, must.Hex(t, m.Value)})
		}
	}
	return o
}

// vectorOf returns a vector of cells.
func vectorOf(typ schema.Type, cells [][]byte) *batch.Vector {
	v := batch.NewVector(typ, len(cells))
	for i, c := range cells {
		v.SetCell(i, c)
	}
	return v
}

// load returns a source of a file. Number 0 makes a source that is never cached.
func load(t testing.TB, path string, id block.ID) *block.Memory {
	t.Helper()
	data := must.Get(os.ReadFile(path))(t)
	return &block.Memory{Number: id, Bytes: data}
}

// checkCells compares a whole file with the expected cells, in windows of n rows.
func checkCells(t testing.TB, r *Reader, want [][]byte, n int) {
	t.Helper()
	must.Equal(t, r.Rows(), int64(len(want)))
	c := r.NewColumnReader()
	v := &batch.Vector{Type: r.Info().Type}
	for at := 0; ; at += n {
		got, err := c.ReadVector(batch.Ordinal(at), n, v)
		must.Do(t, err, at)
		must.Equal(t, got, max(0, min(n, len(want)-at)), at)
		must.Equal(t, got, v.Len, at)
		if got == 0 {
			return
		}
		nulls := 0
		for i := range got {
			cell := v.Cell(i)
			must.Equal(t, cell, want[at+i], at+i)
			must.Equal(t, cell == nil, want[at+i] == nil, at+i)
			if cell == nil {
				nulls++
			}
		}
		if nulls == 0 && v.Present != nil {
			t.Fatalf("rows from %d: presence bitmap without a NULL", at)
		}
		if v.Present != nil && v.Present.Count() != got-nulls {
			t.Fatalf("rows from %d: %d bits for %d present cells", at, v.Present.Count(), got-nulls)
		}
	}
}

func TestReaderReadsKuduFiles(t *testing.T) {
	goldenDirs(t, func(t *testing.T, dir string) {
		files, arrays := 0, 0
		for i, g := range manifest(t, dir) {
			if g.Array {
				t.Run(g.Name, func(t *testing.T) { readGoldenArrays(t, dir, &g, block.ID(i+1)) })
				arrays++
				continue
			}
			t.Run(g.Name, func(t *testing.T) { readGolden(t, dir, &g, block.ID(i+1)) })
			files++
		}
		t.Logf("%d files read, %d of arrays", files, arrays)
	})
}

func TestReaderReadsVersion1(t *testing.T) {
	goldenDirs(t, func(t *testing.T, dir string) {
		dir = filepath.Join(dir, "v1")
		for i, g := range manifest(t, dir) {
			t.Run(g.Name, func(t *testing.T) { readGolden(t, dir, &g, block.ID(i+1)) })
		}
	})
}

func readGolden(t *testing.T, dir string, g *goldenFile, id block.ID) {
	typ := g.typ(t)
	cells := g.cellsOf(t, dir, typ)
	src := load(t, filepath.Join(dir, g.Name+".cfile"), id)
	r := must.Get(Open(src, ReaderOptions{Cache: cache.New(1 << 20)}))(t)
	info := r.Info()
	if info.Type != typ || info.Encoding.String() != g.Encoding || info.Compression.String() != g.Compression ||
		info.Nullable != g.Nullable || info.Checksums != g.Checksums || info.PositionalIndex != g.PosIdx ||
		info.ValueIndex != g.ValIdx {
		t.Fatalf("info %+v", info)
	}
	checkCells(t, r, cells, 4096)
	checkCells(t, r, cells, 97)
	uncached := must.Get(Open(&block.Memory{Bytes: src.Bytes}, ReaderOptions{}))(t)
	checkCells(t, uncached, cells, 1000)
	for _, r := range []*Reader{r, uncached} {
		for i := 0; i < len(cells); i += 1 + len(cells)/61 {
			cell, err := r.Cell(batch.Ordinal(i))
			if err != nil || !bytes.Equal(cell, cells[i]) || (cell == nil) != (cells[i] == nil) {
				t.Fatalf("cell %d: %x, %v, want %x", i, cell, err, cells[i])
			}
		}
		must.Fail(t, must.Err(r.Cell(batch.Ordinal(len(cells)))), fault.ErrNotFound, "cell after the last")
		must.Do(t, r.Verify())
	}
	must.Equal(t, len(must.Get(r.BlockPointers())(t)), g.DataBlocks)
	for _, s := range g.Seeks {
		want := s.Ordinal
		if want < 0 {
			want = r.Rows()
		}
		ord, exact, err := r.Seek(cellOf(t, typ, string(s.Seek)))
		if err != nil || int64(ord) != want || exact != s.Exact {
			t.Fatalf("seek %s: %d, %v, %v, want %d, %v", s.Seek, ord, exact, err, want, s.Exact)
		}
	}
	for _, m := range g.Metadata {
		if got, ok := r.Metadata(m.Key); !ok || m.Value != "" && !bytes.Equal(got, must.Hex(t, m.Value)) {
			t.Fatalf("metadata %s: %x, %v, want %s", m.Key, got, ok, m.Value)
		}
	}
}

// For the same values and options Writer writes the same bytes as Kudu. Streams of Snappy and zlib
// depend on the library's version, so for them the uncompressed payloads of all cblocks must be
// equal. docs/formats.md has the results for the full corpus.
func TestWriterMatchesKuduBytes(t *testing.T) {
	goldenDirs(t, func(t *testing.T, dir string) {
		table := identical{}
		for _, g := range manifest(t, dir) {
			t.Run(g.Name, func(t *testing.T) {
				want := load(t, filepath.Join(dir, g.Name+".cfile"), 0)
				g.takeMetadata(t, want)
				got := rewrite(t, dir, &g)
				if g.Compression == "SNAPPY" || g.Compression == "ZLIB" {
					comparePayloads(t, got, want)
				} else if !bytes.Equal(got.Bytes, want.Bytes) {
					t.Fatalf("%d bytes differ from byte %d on; want %d bytes", len(got.Bytes),
						firstDifference(got.Bytes, want.Bytes), len(want.Bytes))
				}
				table.add(&g)
			})
		}
		if !strings.HasPrefix(dir, "testdata") && !t.Failed() {
			table.check(t)
		}
	})
}

// takeMetadata fills in values from the file for pairs of which the manifest has only the hash.
func (g *goldenFile) takeMetadata(t *testing.T, src block.Source) {
	t.Helper()
	for i, m := range g.Metadata {
		if m.Value == "" {
			value, ok := open(t, src, nil).Metadata(m.Key)
			must.Equal(t, ok, true, m.Key)
			g.Metadata[i].Value = hex.EncodeToString(value)
		}
	}
}

func firstDifference(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// rewrite writes the values of a golden file with the same options and append batches.
func rewrite(t *testing.T, dir string, g *goldenFile) *block.Memory {
	t.Helper()
	out := &block.Memory{}
	w := must.Get(NewWriter(out, g.options(t)))(t)
	var v *batch.Vector
	if g.Array {
		v = arraysOf(g.typ(t), g.arraysOf(t, dir, g.typ(t)))
	} else {
		v = vectorOf(g.typ(t), g.cellsOf(t, dir, g.typ(t)))
	}
	step := g.AppendBatch
	if step == 0 {
		step = max(v.Len, 1)
	}
	for from := 0; from < v.Len; from += step {
		must.Do(t, w.appendRange(v, from, min(from+step, v.Len)))
	}
	for _, m := range g.Metadata {
		if m.Where == "footer" {
			w.AddMetadata(m.Key, must.Hex(t, m.Value))
		}
	}
	must.Do(t, w.Finish())
	return out
}

func comparePayloads(t *testing.T, got, want *block.Memory) {
	t.Helper()
	var payloads [2][][]byte
	for i, src := range []*block.Memory{got, want} {
		r := must.Get(Open(src, ReaderOptions{Arrays: true}))(t)
		blocks := must.Get(r.BlockPointers())(t)
		for _, p := range blocks {
			b := must.Get(r.ReadBlock(p, asPayload))(t)
			payloads[i] = append(payloads[i], b.([]byte))
		}
	}
	if !slices.EqualFunc(payloads[0], payloads[1], bytes.Equal) {
		t.Fatal("decoded cblocks differ")
	}
}

func TestReaderRefusesMalformedFiles(t *testing.T) {
	goldenDirs(t, func(t *testing.T, dir string) {
		dir = filepath.Join(dir, "malformed")
		for _, g := range manifest(t, dir) {
			if !strings.HasSuffix(g.Name, ".cfile") {
				continue // the fault concerns another package
			}
			t.Run(g.Name, func(t *testing.T) {
				stage, err := useAll(load(t, filepath.Join(dir, g.Name), 0), g.Trigger)
				must.Refuse(t, err, g.What, g.Trigger)
				kind := map[bool]string{errors.Is(err, fault.ErrCorrupt): "Corruption",
					errors.Is(err, fault.ErrUnsupported): "NotSupported"}[true]
				if !slices.Contains(g.Kind, kind) {
					t.Fatalf("%s: %v at %s, want %v", g.What, err, stage, g.Kind)
				}
				if !strings.HasPrefix(err.Error(), "cfile: ") {
					t.Errorf("error without its location: %v", err)
				}
			})
		}
	})
}

// useAll opens a file and, unless trigger is "open", reads all of it.
func useAll(src block.Source, trigger string) (stage string, err error) {
	r, err := Open(src, ReaderOptions{Arrays: true})
	if err != nil || trigger == "open" {
		return "open", err
	}
	c := r.NewColumnReader()
	v := &batch.Vector{Type: r.Info().Type}
	for at := int64(0); at < r.Rows(); at += int64(v.Len) {
		if _, err := c.ReadVector(batch.Ordinal(at), 4096, v); err != nil {
			return "scan", err
		}
	}
	return "scan", nil
}
