package carbondata

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/carbondata/internal/codec"
	"github.com/oribi-db/oribi/carbondata/internal/thrift"
	"github.com/oribi-db/oribi/internal/memtest"
	"github.com/oribi-db/oribi/internal/must"
)

// TestLongRowsTakeLittleMemory reads a row that takes much more memory than its page: elements that
// are Go values, copies of text, and words of a dictionary that are repeated in an array.
func TestLongRowsTakeLittleMemory(t *testing.T) {
	encoder := must.Get(zstd.NewWriter(nil))(t)
	codec.Decompress(nil, codec.Zstd, nil, 0)
	page := func(data []byte, encodings ...encoding) (anyStruct, []byte) {
		list := anyList{typ: thrift.I32}
		for _, e := range encodings {
			list.elements = append(list.elements, i32(int(e)))
		}
		return anyStruct{pageMeta: anyStruct{metaCodec: i32(0), metaCompressor: []byte(codec.Zstd)}, pageEncoders: list},
			encoder.EncodeAll(data, nil)
	}
	column := func(name string, typ Type, children int) anyStruct {
		return anyStruct{columnName: []byte(name), columnID: []byte(name), columnType: i32(int(typ)),
			columnDimension: true, columnChildren: i32(children)}
	}
	chunk := func(c anyStruct, n int, data []byte, encodings ...encoding) storedChunk {
		header, data := page(data, encodings...)
		return newChunk(c, header, n, data)
	}
	be := binary.BigEndian
	elements := func(n int) []byte { return be.AppendUint32(be.AppendUint32(nil, uint32(n)), 0) }
	const lists, words = 700_000, 60_000
	meta := anyListOf([]byte("\x00\x00\x0f\x02\xff\xff\xff\xff\xff\xff\xff\xff\x0f\x00\x00\x00\x00\x00\x00\x00"))
	word := append(be.AppendUint16(nil, 30_000), make([]byte, 30_000)...)
	coded := chunk(column("a.a", String, 0), words, bytes.Repeat([]byte{0, 0, 2}, words), encDirectCompress)
	coded.header[chunkDictionary] = anyStruct{dictionaryMeta: anyStruct{dictionaryEncoders: anyListOf(
		i32(int(encDirectCompress))), dictionaryMetas: meta},
		dictionaryData: encoder.EncodeAll(word, nil), dictionaryValues: encoder.EncodeAll([]byte{1 << 2}, nil)}
	text := append(be.AppendUint32(nil, 17<<20), make([]byte, 17<<20)...)
	for name, c := range map[string]struct {
		data      []byte
		row, scan bool // they are read
	}{
		"empty arrays": {dataFileOf(1, []storedChunk{
			chunk(column("a", Array, 1), 1, elements(lists), encDirectCompress),
			chunk(column("a.a", Array, 1), lists, make([]byte, 8*lists), encDirectCompress),
			chunk(column("a.a.a", Varchar, 0), 0, nil, encDirectCompress, encIntLengthChild)}), false, false},
		"a word of a dictionary": {dataFileOf(1,
			[]storedChunk{chunk(column("a", Array, 1), 1, elements(words), encDirectCompress), coded}), true, false},
		"a text": {dataFileOf(1, []storedChunk{chunk(column("a", Varchar, 0), 1, text, encVarchar)}), false, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := must.Get(OpenFile(&block.Memory{Bytes: c.data}))(t)
			table := &Table{columns: f.Schema(), files: []tableFile{{File: f}}}
			must.Do(t, table.match())
			check := func(way string, read bool, f func() error) {
				var err error
				n := memtest.Allocated(func() { err = f() })
				if read != (err == nil) || err != nil && !errors.Is(err, ErrUnsupported) {
					t.Errorf("%s: %v", way, err)
				}
				if limit := int64(32*len(c.data) + 32<<20); n > limit {
					t.Errorf("%s: %d bytes allocated for %d, at most %d", way, n, len(c.data), limit)
				}
			}
			check("Rows", c.row, func() (err error) {
				for _, err = range table.Rows(t.Context(), ScanOptions{}) {
				}
				return err
			})
			check("Scan", c.scan, func() error {
				s, err := table.Scan(t.Context(), ScanOptions{})
				if err == nil {
					s.Next()
					err = s.Close()
				}
				return err
			})
		})
	}
}

// TestInfoOfLongNullBits describes a file with null bits that are small in the file, and in all
// much longer than one page of it may be.
func TestInfoOfLongNullBits(t *testing.T) {
	encoder, err := zstd.NewWriter(nil)
	must.Do(t, err)
	codec.Decompress(nil, codec.Zstd, nil, 0)
	page := anyStruct{pageMeta: anyStruct{metaCodec: i32(0), metaCompressor: []byte(codec.Zstd)},
		pageEncoders: anyListOf(i32(int(encVarchar))),
		pagePresence: anyStruct{presenceSet: false, presenceBits: encoder.EncodeAll(make([]byte, 16<<20), nil)}}
	column := anyStruct{columnType: i32(int(Varchar)), columnDimension: true}
	f := must.Get(
		OpenFile(&block.Memory{Bytes: wideFile(20, 1, column, page, encoder.EncodeAll(make([]byte, 4), nil))}))(t)
	n := memtest.Allocated(func() { _, err = (&Table{files: []tableFile{{File: f}}}).Info() })
	if !errors.Is(err, ErrUnsupported) && !errors.Is(err, ErrCorrupt) {
		t.Errorf("%v", err)
	}
	if limit := 32*f.src.Size() + 48<<20; n > limit { // with buffers that were replaced
		t.Errorf("%d bytes allocated for %d, at most %d", n, f.src.Size(), limit)
	}
}

// TestLargestRowsAreRead reads rows that are as large as a Writer accepts, and small in the file.
func TestLargestRowsAreRead(t *testing.T) {
	var list []any
	for i := range maxRowValues {
		list = append(list, fmt.Sprintf("%032d", i%20000))
	}
	rows := [][]any{{[]any{"a"}}, {list}, {list}, {list[:maxRowValues/2]}, {list}}
	dir := writeFolder(t, []Column{column("a", Array, column("", String))}, WriterOptions{Compressor: "zstd"}, rows)
	wantRows(t, readFolder(t, dir), rows)
}

// TestDeletedRowsTakeLittleMemory deletes one row from each of many pages.
func TestDeletedRowsTakeLittleMemory(t *testing.T) {
	const pages = 20000
	f := &File{blocklets: []blocklet{{pageRows: slices.Repeat([]int{maxPageRows}, pages)}}}
	text := []byte(`{"blockName":"b","blockletDetailsMap":{"0_0":{"deletedRows":[5,3,5]},"+0_0":{"deletedRows":[3,7]}`)
	for i := 1; i < pages; i++ {
		text = fmt.Appendf(text, `,"0_%d":{"deletedRows":[1]}`, i)
	}
	text = append(text, "}}"...)
	d := deletedRows{}
	n := memtest.Allocated(func() {
		must.Get(parseDeletes(text, f, d))(t)
	})
	if limit := int64(32*len(text) + 4<<20); n > limit {
		t.Errorf("%d bytes allocated for %d, at most %d", n, len(text), limit)
	}
	must.Equal(t, d[pagePlace{0, 0}], []uint16{3, 5, 7})
	must.Equal(t, len(d), pages)
}

// TestEmptyEntriesTakeLittleMemory parses lists of entries that are short in the file.
func TestEmptyEntriesTakeLittleMemory(t *testing.T) {
	text := append(append([]byte("["), bytes.Repeat([]byte("{},"), 500_000)...), "{}]"...)
	for name, parse := range map[string]func() error{
		"tablestatus":       func() error { _, _, err := parseStatus(text); return err },
		"tableupdatestatus": func() error { _, err := parseUpdates(text); return err },
	} {
		var err error
		n := memtest.Allocated(func() { err = parse() })
		if limit := int64(32 * len(text)); n > limit || !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %d bytes allocated for %d, at most %d: %v", name, n, len(text), limit, err)
		}
	}
}
