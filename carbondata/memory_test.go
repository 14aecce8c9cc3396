package carbondata

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/carbondata/internal/codec"
	"github.com/oribi-db/oribi/carbondata/internal/thrift"
	"github.com/oribi-db/oribi/internal/invariant"
	"github.com/oribi-db/oribi/internal/memtest"
	"github.com/oribi-db/oribi/internal/must"
)

// TestSmallInputsTakeLittleMemory decompresses bytes that claim or contain much more than their
// size, as a page of strings.
func TestSmallInputsTakeLittleMemory(t *testing.T) {
	if invariant.Race {
		t.Skip("takes long, and starts no goroutine")
	}
	zeros := make([]byte, 64<<20)
	encoder := must.Get(zstd.NewWriter(nil))(t)
	frame := encoder.EncodeAll(zeros, nil)
	codec.Decompress(nil, codec.Zstd, nil, 0)
	for name, in := range map[string]struct {
		codec string
		src   []byte
	}{
		"64 MiB in gzip":          {codec.Gzip, memtest.GzipZeros(len(zeros))},
		"64 MiB in zstd":          {codec.Zstd, frame},
		"a snappy block of 4 GiB": {codec.Snappy, []byte{0xff, 0xff, 0xff, 0xff, 0x0f, 0}},
		"a zstd frame of 2^40 bytes": {codec.Zstd,
			[]byte{0x28, 0xb5, 0x2f, 0xfd, 0xe0, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0}},
		"an unknown compressor, 6 byte": {"lz9", []byte("abcdef")},
	} {
		t.Run(name, func(t *testing.T) {
			f := &File{src: &block.Memory{Bytes: in.src}}
			var err error
			n := memtest.Allocated(func() { _, err = codec.Decompress(nil, in.codec, in.src, f.memoryLimit()) })
			if !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrUnsupported) {
				t.Errorf("%v", err)
			}
			if limit := int64(32*len(in.src) + 40<<20); n > limit { // with buffers that were replaced
				t.Errorf("%d bytes allocated for %d, at most %d: %v", n, len(in.src), limit, err)
			}
			t.Log(n, len(in.src), err)
		})
	}
}

// storedChunk is a column of a data file: its ColumnSchema, and its chunk in the only blocklet.
type storedChunk struct {
	column, header anyStruct
	page           []byte
}

func anyListOf(elements ...any) anyList { return anyList{typ: typeOf(elements[0]), elements: elements} }

// newChunk returns a chunk of one page.
func newChunk(column, page anyStruct, n int, data []byte) storedChunk {
	page[pageData], page[pageRows] = i32(len(data)), i32(n)
	return storedChunk{column, anyStruct{chunkPages: anyListOf(page), chunkPageOffsets: anyListOf(i32(0)),
		chunkPageLengths: anyListOf(i32(len(data)))}, data}
}

// dataFileOf returns a data file with n rows in one page. All columns are dimensions, or none.
func dataFileOf(n int, chunks []storedChunk) []byte { return repeatedFile(n, 1, chunks) }

// repeatedFile is dataFileOf with the same blocklet several times. If that is not once, the
// measures end where the blocklet begins.
func repeatedFile(n, times int, chunks []storedChunk) []byte {
	var schema, offsets, lengths []any
	for _, c := range chunks {
		schema = append(schema, c.column)
	}
	file := appendAny(nil, anyStruct{headerVersion: i32(version3),
		headerColumns: anyListOf(schema...), headerFooter: true})
	file = append([]byte{1<<4 | thrift.I32, version3 << 1}, file[3:]...) // the version's field in its short form
	for _, c := range chunks {
		header := appendAny(nil, c.header)
		offsets, lengths = append(offsets, i64(int64(len(file)))), append(lengths, i32(len(header)))
		file = slices.Concat(file, header, c.page)
	}
	end := int64(len(file))
	dimensions := end
	if chunks[0].column[columnDimension] == false {
		dimensions = offsets[0].(anyInt).v
	}
	measures := any(i64(end))
	if times != 1 {
		measures = offsets[0]
	}
	var indexes, blocklets []any
	for range times {
		indexes = append(indexes, anyStruct{})
		blocklets = append(blocklets, anyStruct{blockletRows: i32(n), blockletOffsets: anyListOf(offsets...),
			blockletLengths:    anyListOf(lengths...),
			blockletDimensions: i64(dimensions), blockletMeasures: measures, blockletPages: i32(1),
			blockletPageRows: anyListOf(i32(n))})
	}
	file = appendAny(file, anyStruct{
		footerRows: i64(int64(n * times)), footerSegment: anyStruct{1: i32(len(chunks))},
		footerIndexes: anyListOf(indexes...), footerBlocklets: anyListOf(blocklets...),
	})
	return binary.BigEndian.AppendUint64(file, uint64(end))
}

// wideFile returns a data file of one page of n rows, the same in each of its columns.
func wideFile(columns, n int, column, page anyStruct, data []byte) []byte {
	var chunks []storedChunk
	for i := range columns {
		c := anyStruct{columnName: fmt.Append(nil, "c", i), columnID: fmt.Append(nil, "c", i), columnOrdinal: i32(i)}
		maps.Copy(c, column)
		chunks = append(chunks, newChunk(c, page, n, data))
	}
	return dataFileOf(n, chunks)
}

// longMeta is encoder meta of LONGs of 8 bytes.
var longMeta = "\x00\x00\x07\x04\xff\xff\xff\xff\xff\xff\xff\xff\x07\x00\x00\x00\x00\x00" +
	string(make([]byte, 3*8)) + "\x00\x00"

// TestManyColumnsTakeLittleMemory reads files whose pages are small in the file and too large for
// memory, together.
func TestManyColumnsTakeLittleMemory(t *testing.T) {
	if invariant.Race {
		t.Skip("takes long, and starts no goroutine")
	}
	encoder := must.Get(zstd.NewWriter(nil))(t)
	codec.Decompress(nil, codec.Zstd, nil, 0)
	list := func(enc encoding) anyList { return anyList{typ: thrift.I32, elements: []any{i32(int(enc))}} }
	page := func(codec string, enc encoding, meta string) anyStruct {
		p := anyStruct{pageMeta: anyStruct{metaCodec: i32(0), metaCompressor: []byte(codec)}, pageEncoders: list(enc)}
		if meta != "" {
			p[pageMetas] = anyList{typ: thrift.Binary, elements: []any{[]byte(meta)}}
		}
		return p
	}
	varchar := anyStruct{columnType: i32(int(Varchar)), columnDimension: true}
	long := anyStruct{columnType: i32(int(Long)), columnDimension: false}
	const rows = 32000
	text := append([]byte{0, 0x40, 0, 0}, make([]byte, 4<<20)...) // one string of 4 MiB
	for name, c := range map[string]struct {
		data    []byte
		refused bool
	}{
		"strings of no bytes, few": {wideFile(20, rows, varchar, page(codec.Zstd, encVarchar, ""),
			encoder.EncodeAll(make([]byte, 4*rows), nil)), false},
		"strings of no bytes, many": {wideFile(1000, rows, varchar, page(codec.Zstd, encVarchar, ""),
			encoder.EncodeAll(make([]byte, 4*rows), nil)), true},
		"long strings in gzip": {wideFile(200, rows, varchar, page(codec.Gzip, encVarchar, ""),
			memtest.GzipZeros(4*rows)), true},
		"a long string": {wideFile(100, 1, varchar, page(codec.Zstd, encVarchar, ""), encoder.EncodeAll(text, nil)),
			true},
		"numbers, few": {wideFile(20, rows, long, page(codec.Zstd, encDirectCompress, longMeta),
			encoder.EncodeAll(make([]byte, 8*rows), nil)), false},
		"numbers, many": {wideFile(1000, rows, long, page(codec.Zstd, encDirectCompress, longMeta),
			encoder.EncodeAll(make([]byte, 8*rows), nil)), true},
	} {
		t.Run(name, func(t *testing.T) {
			f := must.Get(OpenFile(&block.Memory{Bytes: c.data}))(t)
			table := &Table{columns: f.Schema(), files: []tableFile{{File: f}}}
			must.Do(t, table.match())
			var tests []Filter // all columns are read for them
			for _, c := range f.Schema() {
				tests = append(tests, Or(IsNull(c.Name), NotNull(c.Name)))
			}
			for way, read := range map[string]func() error{
				"Rows": func() (err error) {
					rows := 0
					for _, err = range f.Rows(t.Context()) {
						if rows++; rows == 10 {
							break
						}
					}
					return err
				},
				"Scan": func() error {
					s, err := table.Scan(t.Context(), ScanOptions{})
					if err == nil {
						s.Next()
						err = s.Close()
					}
					return err
				},
				"filter": func() error {
					s, err := table.Scan(t.Context(), ScanOptions{Columns: []string{}, Filter: And(tests...)})
					if err == nil {
						s.Next()
						err = s.Close()
					}
					return err
				},
			} {
				var err error
				n := memtest.Allocated(func() { err = read() })
				if c.refused != (err != nil) ||
					err != nil && !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrUnsupported) {
					t.Errorf("%s: %v", way, err)
				}
				if limit := int64(32*len(c.data) + 40<<20); n > limit { // with buffers that were replaced
					t.Errorf("%s: %d bytes allocated for %d, at most %d: %v", way, n, len(c.data), limit, err)
				}
				t.Log(way, n, len(c.data), err)
			}
		})
	}
}

// TestWideFoldersAreRead reads a folder of many columns in which all cells are NULL: its pages are
// small in the file, but must not be refused.
func TestWideFoldersAreRead(t *testing.T) {
	var columns []Column
	for i := range 300 {
		columns = append(columns, column(fmt.Sprint("c", i),
			[]Type{String, Varchar, Int, Double, Timestamp, Decimal}[i%6]))
	}
	dir := t.TempDir() + "/wide"
	w := must.Get(Create(dir, columns, WriterOptions{}))(t)
	defer w.Abort()
	b := new(batch.RecordBatch)
	const rows = 32000
	b.Len = rows
	b.Selection = batch.MakeBitmap(rows)
	b.Selection.SetRange(0, rows)
	for _, c := range columns {
		s, _ := c.TableType()
		v := &batch.Vector{Type: s.Type}
		if v.Fill(rows, nil); c.Type == Varchar {
			v.Fill(rows, []byte{})
		}
		b.Schema, b.Columns = append(b.Schema, s), append(b.Columns, v)
	}
	must.Do(t, w.AppendBatch(b))
	must.Do(t, w.Close())
	table := must.Get(Open(dir))(t)
	defer table.Close()
	s := must.Get(table.Scan(t.Context(), ScanOptions{}))(t)
	n := 0
	for s.Next() {
		n += s.Batch().Len
	}
	if err := s.Close(); n != rows || err != nil {
		t.Errorf("%d rows: %v", n, err)
	}
}

// TestManyColumnsInASmallHeader opens files without rows whose headers have more columns than their
// size allows, and some less.
func TestManyColumnsInASmallHeader(t *testing.T) {
	for n, refused := range map[int]bool{5000: false, 60000: true} {
		file := []byte{1<<4 | thrift.I32, version3 << 1, 1<<4 | thrift.List, thrift.LongCount<<4 | thrift.Struct}
		file = binary.AppendUvarint(file, uint64(n))
		for i := range n {
			name := fmt.Sprintf("%x", i)
			file = append(file, 1<<4|thrift.I32, byte(String), 1<<4|thrift.Binary, byte(len(name)))
			file = append(append(file, name...), 1<<4|thrift.Binary, 0, 3<<4|thrift.False, 0) // no ID, a measure
		}
		file = append(file, 0)
		at := len(file)
		file = appendAny(file, anyStruct{footerRows: i64(0), footerSegment: anyStruct{1: i32(n)},
			footerIndexes: anyList{typ: thrift.Struct}, footerBlocklets: anyList{typ: thrift.Struct}})
		file = binary.BigEndian.AppendUint64(file, uint64(at))
		var err error
		allocated := memtest.Allocated(func() {
			var f *File
			if f, err = OpenFile(&block.Memory{Bytes: file}); err == nil {
				for _, err = range f.Rows(t.Context()) {
				}
			}
		})
		if refused != errors.Is(err, ErrUnsupported) || !refused && err != nil {
			t.Errorf("%d columns: %v", n, err)
		}
		if limit := int64(32*len(file) + 40<<20); allocated > limit { // with slices that were replaced
			t.Errorf("%d columns: %d bytes allocated for %d, at most %d", n, allocated, len(file), limit)
		}
		t.Log(n, len(file), allocated, err)
	}
}

// TestManyBlockletsInASmallFooter opens files of one column whose footers have more blocklets,
// without rows, than their size allows, and some less.
func TestManyBlockletsInASmallFooter(t *testing.T) {
	for n, refused := range map[int]bool{10000: false, 100000: true} {
		list := func(id byte, elements int) []byte {
			return binary.AppendUvarint([]byte{id<<4 | thrift.List, thrift.LongCount<<4 | thrift.Struct}, uint64(elements))
		}
		column := anyStruct{columnType: i32(int(String)), columnName: []byte("c"),
			columnID: []byte("c"), columnDimension: true}
		file := appendAny(nil, anyStruct{headerVersion: i32(version3),
			headerColumns: anyList{thrift.Struct, []any{column}}, headerFooter: true})
		file = append([]byte{1<<4 | thrift.I32, version3 << 1}, file[3:]...) // the version's field in its short form
		var blocklets []byte
		for range n {
			at := int64(len(file))
			file = append(file, 0)
			blocklets = append(blocklets, 1<<4|thrift.I32, 0, 1<<4|thrift.List, 1<<4|thrift.I64)
			blocklets = append(binary.AppendVarint(blocklets, at), 1<<4|thrift.List, 1<<4|thrift.I32, 1<<1, 1<<4|thrift.I64)
			blocklets = append(binary.AppendVarint(blocklets, at+1), 1<<4|thrift.I64)
			blocklets = append(binary.AppendVarint(blocklets, at+1), 1<<4|thrift.I32, 0, 0)
		}
		end := len(file)
		file = append(append(file, 1<<4|thrift.I64, 0, 1<<4|thrift.Struct, 0), list(1, n)...)
		file = append(append(file, make([]byte, n)...), list(1, n)...)
		file = binary.BigEndian.AppendUint64(append(append(file, blocklets...), 0), uint64(end))
		var err error
		allocated := memtest.Allocated(func() { _, err = OpenFile(&block.Memory{Bytes: file}) })
		if refused != errors.Is(err, ErrUnsupported) || !refused && err != nil {
			t.Errorf("%d blocklets: %v", n, err)
		}
		if limit := int64(32*len(file) + 32<<20); allocated > limit {
			t.Errorf("%d blocklets: %d bytes allocated for %d, at most %d", n, allocated, len(file), limit)
		}
		t.Log(n, len(file), allocated, err)
	}
}
