package arrowio

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/file"
	pq "github.com/apache/arrow-go/v18/parquet/schema"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/fuzztest"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/schema"
)

// thriftStructOf returns a struct of Thrift's compact protocol. Its fields 1, 2, … are int (i32),
// bool, or []byte (a struct); nil omits one.
func thriftStructOf(fields ...any) (b []byte) {
	last := 0
	for i, f := range fields {
		kind := byte(thriftI32)
		switch f := f.(type) {
		case nil:
			continue
		case bool:
			if kind = thriftFalse; f {
				kind = thriftTrue
			}
		case []byte:
			kind = thriftStruct
		}
		b = append(b, byte(i+1-last)<<4|kind)
		last = i + 1
		switch f := f.(type) {
		case int:
			b = binary.AppendVarint(b, int64(f))
		case []byte:
			b = append(b, f...)
		}
	}
	return append(b, 0)
}

// testPage is a page as a writer would store it.
type testPage struct {
	kind     int
	size     int // uncompressed
	stored   []byte
	crc      any // int: of the header
	data     []byte
	dict, v2 []byte
}

func (p *testPage) bytes() []byte {
	field := func(b []byte) any {
		if b == nil {
			return nil
		}
		return b
	}
	h := thriftStructOf(p.kind, p.size, len(p.stored), p.crc, field(p.data), nil, field(p.dict), field(p.v2))
	return append(h, p.stored...)
}

// plainPage is a page of version 1 with values in an encoding, not compressed.
func plainPage(values int, encoding parquet.Encoding, body []byte) *testPage {
	return &testPage{kind: dataPage, size: len(body), stored: body,
		data: thriftStructOf(values, int(encoding), int(parquet.Encodings.RLE), int(parquet.Encodings.RLE))}
}

// dictPage is a dictionary page that is not compressed.
func dictPage(values int, body []byte) *testPage {
	return &testPage{kind: dictionaryPage, size: len(body), stored: body,
		dict: thriftStructOf(values, int(parquet.Encodings.Plain))}
}

// pageV2 is a page of version 2 with values in an encoding. Levels and values are as stored.
func pageV2(values, nulls int, encoding parquet.Encoding, defs, body []byte, size int, compressed bool) *testPage {
	return &testPage{kind: dataPageV2, size: size + len(defs), stored: slices.Concat(defs, body),
		v2: thriftStructOf(values, nulls, values, int(encoding), len(defs), 0, compressed)}
}

// testColumn returns a column of a Parquet schema.
func testColumn(t testing.TB, kind parquet.Type, length int, repetition parquet.Repetition) *pq.Column {
	t.Helper()
	node := must.Get(pq.NewPrimitiveNode("c", repetition, kind, -1, int32(length)))(t)
	root := must.Get(pq.NewGroupNode("schema", parquet.Repetitions.Required, pq.FieldList{node}, -1))(t)
	return pq.NewSchema(root).Column(0)
}

// openPages returns a reader of a column chunk of pages.
func openPages(
	t testing.TB, column *pq.Column, codec compress.Compression, values int, pages ...*testPage,
) (file.ColumnChunkReader, *pageReader) {
	t.Helper()
	var data []byte
	for _, p := range pages {
		data = append(data, p.bytes()...)
	}
	p := newPageReader(&source{ReaderAt: bytes.NewReader(data)}, newBounded(allocator(nil)))
	must.Do(t, p.open(column, codec, int64(values), 0, int64(len(data))))
	return file.NewColumnReader(column, p, newBounded(allocator(nil)), nil), p
}

// int32s returns the values of a required column of 32 bits.
func int32s(t testing.TB, chunk file.ColumnChunkReader, n int) ([]int32, error) {
	t.Helper()
	c := schema.Column{Name: "c", Type: schema.Int32}
	v := batch.NewVector(schema.Int32, 0)
	_, read, err := decodeInt32(&c).read(chunk, n, make([]int16, n), nil, v)
	return slices.Clone(batch.Values[int32](v)[:read]), err
}

func words(values ...int32) (b []byte) {
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, uint32(v))
	}
	return b
}

// Pages that a reader must skip are skipped: those without values, indexes, types that are not
// known. The values of a column chunk end with its number of values.
func TestPagesThatAreSkipped(t *testing.T) {
	column := testColumn(t, parquet.Types.Int32, -1, parquet.Repetitions.Required)
	plain := parquet.Encodings.Plain
	pages := []*testPage{
		plainPage(0, plain, nil),
		plainPage(2, plain, words(1, 2)),
		{kind: indexPage, size: 5, stored: []byte("index")},
		{kind: 9, size: 3, stored: []byte("new")},
		plainPage(0, plain, nil),
		pageV2(0, 0, plain, nil, nil, 0, true),
		pageV2(1, 0, plain, nil, words(3), 4, false),
		plainPage(0, plain, nil),
		plainPage(1, plain, words(4)),
	}
	chunk, p := openPages(t, column, compress.Codecs.Uncompressed, 4, append(pages, plainPage(1, plain, words(5)))...)
	defer p.free()
	must.Equal(t, must.Get(int32s(t, chunk, 10))(t), []int32{1, 2, 3, 4})
}

// The checksum of a page is computed over its bytes in the file, in version 2 with its levels. Any
// other checksum is damage.
func TestPageChecksums(t *testing.T) {
	column := testColumn(t, parquet.Types.Int32, -1, parquet.Repetitions.Optional)
	rle := parquet.Encodings.RLEDict
	defs := []byte{2 << 1, 1}
	for name, damaged := range map[string]int{"none": -1, "dictionary": 0, "version 1": 1, "version 2": 2} {
		t.Run(name, func(t *testing.T) {
			pages := []*testPage{
				dictPage(2, words(7, 8)),
				plainPage(2, rle, slices.Concat(words(2), defs, []byte{1, 3, 0b10})),
				pageV2(2, 0, rle, defs, []byte{1, 3, 0b01}, 3, false),
			}
			for i, p := range pages {
				p.crc = int(int32(crc32.ChecksumIEEE(p.stored)))
				if i == damaged {
					p.crc = int(int32(crc32.ChecksumIEEE(p.stored) + 1))
				}
			}
			chunk, p := openPages(t, column, compress.Codecs.Uncompressed, 4, pages...)
			defer p.free()
			got, err := int32s(t, chunk, 4)
			if damaged < 0 {
				must.Do(t, err)
				must.Equal(t, got, []int32{7, 8, 8, 7})
			} else if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "crc") {
				t.Errorf("read %v: %v", got, err)
			}
		})
	}
}

// A change to a page of a file with checksums of pages is refused as damage. One to the header of a
// page may mean the same.
func TestChangedPagesOfFilesWithChecksums(t *testing.T) {
	for _, name := range []string{"checksums-v1", "checksums-v2"} {
		data := foreignFile(t, name+".parquet")
		f, rows := opened(t, "parquet", data, nil, ReadOptions{})
		want := foreignRows(t, rows)
		rows.Release()
		end := len(data) - 8 - int(binary.LittleEndian.Uint32(data[len(data)-8:]))
		f.Close()
		refused, tried, step := 0, 0, 1
		if testing.Short() {
			step = 7
		}
		for i := 4; i < end; i += step {
			tried++
			damaged := bytes.Clone(data)
			damaged[i] ^= 1 << (i % 8)
			f, err := OpenParquet(bytes.NewReader(damaged), int64(len(damaged)), OpenOptions{})
			must.Do(t, err)
			rows := must.Get(f.Read(context.Background(), ReadOptions{}))(t)
			var got []string
			for b, e := range rows.Batches() {
				if err = e; err == nil {
					got = selectedRows(got, b)
				}
			}
			rows.Release()
			f.Close()
			switch {
			case errors.Is(err, ErrCorrupt) || errors.Is(err, ErrUnsupported):
				refused++
			case err != nil:
				t.Errorf("%s, byte %d: %v", name, i, err)
			case len(got) != len(want):
				t.Errorf("%s, byte %d: %d rows, want %d", name, i, len(got), len(want))
			}
		}
		if refused < tried/2 {
			t.Errorf("%s: %d of %d changes were refused", name, refused, tried)
		}
	}
}

// Writers disagree about what "compressed" means in the header of a page of version 2: pyarrow
// before version 3 says no where it is yes. The content shows which.
func TestPagesWithTheWrongCompressedFlag(t *testing.T) {
	column := testColumn(t, parquet.Types.Int32, -1, parquet.Repetitions.Required)
	c := must.Get(compress.GetCodec(compress.Codecs.Snappy))(t)
	want := make([]int32, 100)
	body := words(want...)
	packed := c.Encode(nil, body)
	same := words(1, 2) // no smaller if compressed
	plain := parquet.Encodings.Plain
	for name, page := range map[string]*testPage{
		"compressed":                       pageV2(100, 0, plain, nil, packed, len(body), true),
		"not compressed":                   pageV2(100, 0, plain, nil, body, len(body), false),
		"says it is not":                   pageV2(100, 0, plain, nil, packed, len(body), false),
		"says it is":                       pageV2(100, 0, plain, nil, body, len(body), true),
		"version 1, stored as it is":       plainPage(100, plain, body),
		"says it is, and as large as that": pageV2(2, 0, plain, nil, same, len(same), true),
	} {
		chunk, p := openPages(t, column, compress.Codecs.Snappy, 100, page)
		got, err := int32s(t, chunk, 100)
		if want := want[:len(got)]; err != nil || len(got) < 2 || len(got) == 100 && !slices.Equal(got, want) ||
			len(got) == 2 && !slices.Equal(got, []int32{1, 2}) {
			t.Errorf("%s: %v: %v", name, got, err)
		}
		p.free()
	}
	// Without values there may be no bytes at all, which are no form of Snappy.
	optional := testColumn(t, parquet.Types.Int32, -1, parquet.Repetitions.Optional)
	chunk, p := openPages(t, optional, compress.Codecs.Snappy, 3, pageV2(3, 3, plain, []byte{3 << 1, 0}, nil, 0, true))
	defer p.free()
	must.Equal(t, len(must.Get(int32s(t, chunk, 3))(t)), 0)
}

// Damage to headers and levels is ErrCorrupt. Valid but unsupported features are ErrUnsupported,
// with their names.
func TestPagesThatAreRefused(t *testing.T) {
	plain, e := parquet.Encodings.Plain, parquet.Encodings
	kinds := func(k parquet.Type) *pq.Column { return testColumn(t, k, 4, parquet.Repetitions.Required) }
	required := kinds(parquet.Types.Int32)
	optional := testColumn(t, parquet.Types.Int32, -1, parquet.Repetitions.Optional)
	packedLevels := plainPage(1, plain, words(1))
	packedLevels.data = thriftStructOf(1, int(plain), int(e.BitPacked), int(e.RLE))
	long := plainPage(1, plain, words(1))
	long.size = 8
	codes := dictPage(1, words(1))
	codes.dict = thriftStructOf(1, int(e.RLEDict))
	negative := pageV2(1, 0, plain, nil, words(1), 4, false)
	negative.v2 = thriftStructOf(1, 0, 1, int(plain), -1, 0, false)
	for _, c := range []struct {
		name   string
		column *pq.Column
		want   error
		text   string
		pages  []*testPage
	}{
		{"encoding", required, ErrUnsupported, "number 77", []*testPage{plainPage(1, 77, words(1))}},
		{"bit-packed values", required, ErrUnsupported, "INT32 in the encoding BIT_PACKED",
			[]*testPage{plainPage(1, e.BitPacked, words(1))}},
		{"runs of integers", required, ErrUnsupported, "INT32 in the encoding RLE",
			[]*testPage{plainPage(1, e.RLE, words(1))}},
		{"split byte strings", kinds(parquet.Types.ByteArray), ErrUnsupported, "BYTE_STREAM_SPLIT",
			[]*testPage{plainPage(1, e.ByteStreamSplit, words(1))}},
		{"differences of floats", kinds(parquet.Types.Float), ErrUnsupported, "DELTA_BINARY_PACKED",
			[]*testPage{plainPage(1, e.DeltaBinaryPacked, words(1))}},
		{"prefixes of integers", required, ErrUnsupported, "DELTA_BYTE_ARRAY",
			[]*testPage{plainPage(1, e.DeltaByteArray, words(1))}},
		{"bit-packed levels", optional, ErrUnsupported, "levels in the encoding BIT_PACKED", []*testPage{packedLevels}},
		{"dictionary of booleans", kinds(parquet.Types.Boolean), ErrUnsupported, "booleans",
			[]*testPage{dictPage(1, words(1))}},
		{"dictionary of codes", required, ErrUnsupported, "RLE_DICTIONARY", []*testPage{codes}},
		{"no dictionary", required, ErrCorrupt, "codes without", []*testPage{plainPage(1, e.RLEDict, words(1))}},
		{"two dictionaries", required, ErrCorrupt, "dictionary",
			[]*testPage{dictPage(1, words(1)), dictPage(1, words(1))}},
		{"late dictionary", required, ErrCorrupt, "dictionary",
			[]*testPage{plainPage(1, plain, words(1)), dictPage(1, words(1))}},
		{"short dictionary", required, ErrCorrupt, "2 values in 4 bytes", []*testPage{dictPage(2, words(1))}},
		{"size", required, ErrCorrupt, "4 bytes, want 8", []*testPage{long}},
		{"huge", required, ErrCorrupt, "limit",
			[]*testPage{{kind: dataPage, size: maxBuffer + 1, stored: words(1), data: thriftStructOf(1, 0, 3, 3)}}},
		{"negative values", required, ErrCorrupt, "-1 values", []*testPage{plainPage(-1, plain, words(1))}},
		{"negative size", required, ErrCorrupt, "uncompressed",
			[]*testPage{{kind: dataPage, size: -4, stored: words(1), data: thriftStructOf(1, 0, 3, 3)}}},
		{"negative levels", required, ErrCorrupt, "levels", []*testPage{negative}},
		{"levels of version 2", optional, ErrCorrupt, "levels",
			[]*testPage{pageV2(1, 0, plain, words(1, 2), nil, -4, false)}},
		{"levels of version 1", optional, ErrCorrupt, "levels", []*testPage{plainPage(1, plain, words(8, 1))}},
		{"no header of its type", required, ErrCorrupt, "header",
			[]*testPage{{kind: dataPage, size: 4, stored: words(1), v2: thriftStructOf(1, 0, 1, 0, 0, 0)}}},
		{"fewer values", required, ErrCorrupt, "", []*testPage{plainPage(3, plain, words(1, 2))}},
		{"fewer differences", required, ErrCorrupt, "",
			[]*testPage{plainPage(3, e.DeltaBinaryPacked, packDeltas([]int64{1, 2}, 128, 4))}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var data []byte
			for _, p := range c.pages {
				data = append(data, p.bytes()...)
			}
			p := newPageReader(&source{ReaderAt: bytes.NewReader(data)}, newBounded(allocator(nil)))
			defer p.free()
			must.Do(t, p.open(c.column, compress.Codecs.Uncompressed, 10, 0, int64(len(data))))
			chunk := file.NewColumnReader(c.column, p, newBounded(allocator(nil)), nil)
			var err error
			if c.column.PhysicalType() == parquet.Types.Int32 {
				_, err = int32s(t, chunk, 10)
			} else {
				chunk.HasNext()
				err = chunk.Err()
			}
			if err = damage(err, nil); !errors.Is(err, c.want) || !strings.Contains(fmt.Sprint(err), c.text) {
				t.Errorf("error %v", err)
			}
		})
	}
}

// A file that ends within a page is damaged.
func TestPagesThatEndEarly(t *testing.T) {
	column := testColumn(t, parquet.Types.Int32, -1, parquet.Repetitions.Required)
	data := plainPage(3, parquet.Encodings.Plain, words(1, 2, 3)).bytes()
	for n := 1; n < len(data); n++ {
		p := newPageReader(&source{ReaderAt: bytes.NewReader(data[:n])}, newBounded(allocator(nil)))
		must.Do(t, p.open(column, compress.Codecs.Uncompressed, 3, 0, int64(n)))
		if p.Next() || !errors.Is(p.Err(), ErrCorrupt) {
			t.Errorf("%d bytes: %v", n, p.Err())
		}
		p.free()
	}
}

// Codecs that this package does not have are refused by name before a page is read.
func TestCodecsThatAreRefused(t *testing.T) {
	column := testColumn(t, parquet.Types.Int32, -1, parquet.Repetitions.Required)
	p := newPageReader(&source{ReaderAt: bytes.NewReader(nil)}, newBounded(allocator(nil)))
	defer p.free()
	for codec, name := range map[compress.Compression]string{compress.Codecs.Lzo: "with LZO",
		77: "codec 77", -1: "codec -1"} {
		if err := p.open(column, codec, 1, 0, 0); !errors.Is(err, ErrUnsupported) ||
			!strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// stuck is a column chunk that has values, says so, and never returns one.
type stuck struct {
	file.ColumnChunkReader
	reads int
}

func (s *stuck) HasNext() bool { return true }
func (s *stuck) Err() error    { return nil }
func (s *stuck) ReadBatchInPage(int64, []int32, []int16, []int16) (int64, int, error) {
	s.reads++
	return 0, 0, nil
}

// A decoder that returns no value and no error is not asked again: the page is damaged.
func TestReadingMakesProgress(t *testing.T) {
	s := &stuck{}
	if _, err := int32s(t, s, 10); !errors.Is(err, ErrCorrupt) || s.reads != 1 {
		t.Errorf("after %d reads: %v", s.reads, err)
	}
}

// packDeltas encodes values as DELTA_BINARY_PACKED.
func packDeltas(values []int64, block, miniblocks int) []byte {
	b := binary.AppendUvarint(nil, uint64(block))
	b = binary.AppendUvarint(b, uint64(miniblocks))
	b = binary.AppendUvarint(b, uint64(len(values)))
	first := int64(0)
	if len(values) > 0 {
		first = values[0]
	}
	b = binary.AppendVarint(b, first)
	per := block / miniblocks
	for at := 1; at < len(values); at += block {
		deltas := []int64{}
		for i := at; i < min(at+block, len(values)); i++ {
			deltas = append(deltas, values[i]-values[i-1])
		}
		lowest := slices.Min(deltas)
		b = binary.AppendVarint(b, lowest)
		widths, packed := make([]byte, miniblocks), []byte{}
		for m := 0; m*per < len(deltas); m++ {
			part := deltas[m*per : min(len(deltas), (m+1)*per)]
			for _, d := range part {
				for widths[m] < 64 && uint64(d-lowest)>>widths[m] != 0 {
					widths[m]++
				}
			}
			bits := make([]byte, per*int(widths[m])/8)
			for i, d := range part {
				for k := range int(widths[m]) {
					at := i*int(widths[m]) + k
					bits[at/8] |= byte(uint64(d-lowest)>>k&1) << (at % 8)
				}
			}
			packed = append(packed, bits...)
		}
		b = append(append(b, widths...), packed...)
	}
	return b
}

// Differences of all widths are decoded, also differences of 32-bit integers that need more than 32
// bits, as duckdb writes them.
func TestDifferencesOfAllWidths(t *testing.T) {
	p := newPageReader(&source{}, newBounded(allocator(nil)))
	defer p.free()
	r := rand.New(rand.NewPCG(1, 2))
	for bits := range 65 {
		for _, shape := range [][2]int{{128, 4}, {8, 1}, {256, 1}, {64, 8}} {
			for _, n := range []int{0, 1, 2, 8, 9, 33, 129, 300} {
				values := make([]int64, n)
				for i := range values {
					if bits > 0 {
						values[i] = int64(r.Uint64() >> (64 - bits))
					}
				}
				data := packDeltas(values, shape[0], shape[1])
				page, err := p.plain.integers(append([]byte("levels"), data...), 6, 8, n)
				if err != nil || string(page[:6]) != "levels" || len(page) != 6+8*n {
					t.Fatalf("%d bits, %v, %d values: %d bytes, %v", bits, shape, n, len(page), err)
				}
				for i, want := range values {
					must.Equal(t, int64(binary.LittleEndian.Uint64(page[6+8*i:])), want, bits, shape, i, n)
				}
				page = must.Get(p.plain.integers(data, 0, 4, n))(t)
				for i, want := range values {
					must.Equal(t, int32(binary.LittleEndian.Uint32(page[4*i:])), int32(want), bits, shape, i, n)
				}
			}
		}
	}
	page, err := p.plain.integers([]byte("\x80\x01\x04\x05\x0e\x03\x02\x00\x00\x00\xc0\x00\x00\x00\x00\x00\x00\x00"), 0,
		4, 5)
	if want := words(7, 5, 3, 1, 2); err != nil || !bytes.Equal(page, want) {
		t.Errorf("the example: % x, want % x: %v", page, want, err)
	}
}

// Headers of differences that cannot be are refused before memory is allocated for them.
func TestMalformedDifferences(t *testing.T) {
	p := newPageReader(&source{}, newBounded(allocator(nil)))
	defer p.free()
	whole := packDeltas([]int64{1, 5, 1 << 40, -7}, 128, 4)
	for n := range whole {
		must.Fail(t, must.Err(p.plain.integers(whole[:n], 0, 8, 4)), ErrCorrupt, n, len(whole))
	}
	header := func(v ...uint64) (b []byte) {
		for _, x := range v {
			b = binary.AppendUvarint(b, x)
		}
		return b
	}
	for name, b := range map[string][]byte{
		"no miniblocks":    header(128, 0, 2, 0, 0),
		"no block":         header(0, 4, 2, 0, 0),
		"uneven":           header(128, 3, 2, 0, 0),
		"not whole bytes":  header(4, 1, 2, 0, 0),
		"too many values":  header(128, 4, 5, 0, 0),
		"huge block":       header(1<<40, 1, 2, 0, 0),
		"many miniblocks":  header(1<<32, 1<<20, 2, 0, 0),
		"too wide":         append(header(128, 4, 2, 0, 0), 65, 0, 0, 0),
		"nothing of width": append(header(128, 4, 2, 0, 0), 64, 0, 0, 0),
	} {
		must.Fail(t, must.Err(p.plain.integers(b, 0, 8, 4)), ErrCorrupt, name)
	}
	for name, b := range map[string][]byte{
		"negative length":    packDeltas([]int64{-1}, 128, 4),
		"more than the page": append(packDeltas([]int64{1, 3}, 128, 4), "abc"...),
		"another number": append(append(packDeltas([]int64{0}, 128, 4), packDeltas([]int64{1, 1}, 128, 4)...),
			"ab"...),
		"first has a prefix": append(append(packDeltas([]int64{1}, 128, 4), packDeltas([]int64{1}, 128, 4)...),
			"a"...),
		"prefix of more bytes": append(append(packDeltas([]int64{0, 2}, 128, 4), packDeltas([]int64{1, 1}, 128, 4)...),
			"ab"...),
		"value of another size": append(append(packDeltas([]int64{0, 1}, 128, 4), packDeltas([]int64{2, 2}, 128, 4)...),
			"abcd"...),
	} {
		prefixes := !strings.Contains(name, "length") && !strings.Contains(name, "page")
		must.Fail(t, must.Err(p.plain.strings(b, 0, 2, 10, prefixes)), ErrCorrupt, name)
	}
}

// Prefix-compressed values, of variable and of fixed length, are decoded as the format defines
// them.
func TestPrefixes(t *testing.T) {
	p := newPageReader(&source{}, newBounded(allocator(nil)))
	defer p.free()
	prefixes, rests := packDeltas([]int64{0, 2, 4, 0, 0}, 128, 4), packDeltas([]int64{4, 2, 0, 4, 4}, 128, 4)
	data := slices.Concat([]byte("L"), prefixes, rests, []byte("axisleglikelime"[:4]), []byte("leglikelime")[:0],
		[]byte("es"), []byte("lime"), []byte("bird"))
	got, err := p.plain.strings(data, 1, 4, 5, true)
	must.Do(t, err)
	must.Equal(t, string(got), "Laxisaxesaxeslimebird")
	got, err = p.plain.strings(data, 1, -1, 5, true)
	if want := "L\x04\x00\x00\x00axis\x04\x00\x00\x00axes\x04\x00\x00\x00axes\x04\x00\x00\x00lime\x04\x00\x00\x00bird"; err != nil || string(got) != want {
		t.Errorf("%q: %v", got, err)
	}
	got, err = p.plain.strings(append(packDeltas([]int64{1, 0, 2}, 128, 4), "abc"...), 0, -1, 3, false)
	if want := "\x01\x00\x00\x00a\x00\x00\x00\x00\x02\x00\x00\x00bc"; err != nil || string(got) != want {
		t.Errorf("%q: %v", got, err)
	}
}

// Values of fixed length with prefixes, as parquet-java writes them.
func TestPrefixesOfParquetJava(t *testing.T) {
	folder := filepath.Join(os.Getenv("ORIBI_CORPUS"), "cases", "fixed-delta-byte-array")
	data, err := os.ReadFile(filepath.Join(folder, "input.parquet"))
	if err != nil {
		t.Skip("no cases: set ORIBI_CORPUS to the folder that has them")
	}
	expected := must.Get(os.ReadFile(filepath.Join(folder, "expected.jsonl")))(t)
	var want []string
	for line := range strings.Lines(string(expected)) {
		var row struct {
			K int
			C *string
		}
		must.Do(t, json.Unmarshal([]byte(line), &row))
		cell := "null"
		if row.C != nil {
			cell = strconv.Quote(strings.TrimPrefix(*row.C, "0x"))
		}
		want = append(want, fmt.Sprintf("[%d,%s]", row.K, cell))
	}
	f, rows := opened(t, "parquet", data, checked(t), ReadOptions{})
	defer f.Close()
	defer rows.Release()
	same(t, "fixed-delta-byte-array", foreignRows(t, rows), want)
}

// duckdb writes differences of integers of 32 bits that have 33.
func TestDifferencesOfDuckDB(t *testing.T) {
	name := filepath.Join(t.TempDir(), "d.parquet")
	script := `
import sys, duckdb
duckdb.connect().execute("copy (select i::int as k, (case when i % 2 = 0 then 2147483647 - i else -2147483648 + i end)::int as v from range(300) t(i)) to '" + sys.argv[1] + "' (format parquet, parquet_version 'V2', dictionary_size_limit 1)")`
	runPython(t, "duckdb", script, name)
	data := must.Get(os.ReadFile(name))(t)
	f, rows := opened(t, "parquet", data, checked(t), ReadOptions{})
	defer f.Close()
	defer rows.Release()
	var want []string
	for i := range 300 {
		v := 2147483647 - i
		if i%2 == 1 {
			v = -2147483648 + i
		}
		want = append(want, fmt.Sprintf("[%d,%d]", i, v))
	}
	same(t, "duckdb", foreignRows(t, rows), want)
}

// FuzzParquetPages reads changed files of pyarrow: all encodings, versions of pages, and codecs.
// Each ends within the time limit of the fuzzing engine or of the test, in rows or in an error.
func FuzzParquetPages(f *testing.F) {
	names, err := filepath.Glob(filepath.Join("testdata", "foreign", "*.parquet"))
	if err != nil || len(names) < 10 {
		f.Fatalf("%d files: %v", len(names), err)
	}
	for _, name := range names {
		data := must.Get(os.ReadFile(name))(f)
		f.Add(data)
	}
	fuzztest.Run(f, func(t *testing.T, data []byte) { readDamaged(t, "parquet", data) })
}
