package carbondata

import (
	"encoding/binary"
	"testing"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/carbondata/internal/codec"
	"github.com/oribi-db/oribi/internal/fuzztest"
	"github.com/oribi-db/oribi/internal/must"
)

// FuzzHeader fuzzes the header before the other bytes of a file. The footer's positions stay right
// if the header keeps its length.
func FuzzHeader(f *testing.F) {
	for _, folder := range []string{"one-column-string", "one-row", "nested-deep"} {
		data := goldenFile(f, folder)
		f.Add(data[:openBytes(f, data).headerEnd])
	}
	data := goldenFile(f, "one-column-string")
	rest := data[openBytes(f, data).headerEnd:]
	fuzztest.Run(f, func(t *testing.T, header []byte) {
		file := append(append([]byte(nil), header...), rest...)
		at := len(file) - pointerLen
		binary.BigEndian.PutUint64(file[at:],
			binary.BigEndian.Uint64(data[len(data)-pointerLen:])+uint64(len(file)-len(data)))
		readAll(t, file)
		header = append(header, 0xff)
		end, err := (&File{src: &block.Memory{Bytes: header}}).readHeader(int64(len(header)))
		if typed(t, err) && end > int64(len(header)) {
			t.Fatalf("the header ends at byte %d of %d", end, len(header))
		}
	})
}

// storedPage is a page of a golden folder.
type storedPage struct {
	column *Column
	header pageHeader
	dict   *dictionaryHeader
	rows   int
	data   []byte // after decompression
}

// storedPages returns the first page of each column of the fuzzed folders, children included.
func storedPages(f *testing.F) (list []storedPage) {
	for _, folder := range fuzzFolders {
		data := goldenFile(f, folder)
		file := openBytes(f, data)
		var columns []*Column
		for i := range file.columns {
			columns, _ = flatten(columns, nil, &file.columns[i], "")
		}
		for i, c := range columns {
			chunk := must.Get(file.readChunk(&file.blocklets[0], i, &memory{left: 1 << 24}))(f)
			h := chunk.pages[0]
			stored := must.Get(codec.Decompress(nil, h.compressor, data[h.offset:h.offset+int64(h.data)], 1<<24))(f)
			list = append(list, storedPage{c, h, chunk.dictionary, file.blocklets[0].pageRows[0], stored})
		}
	}
	return list
}

// values decodes a page and all its values.
func values(t *testing.T, p *page, data []byte) {
	if !typed(t, p.decode(codec.Snappy, snappyLiteral(data), nil, &memory{left: 1 << 20})) {
		return
	}
	for i := range p.rows {
		if p.form == formElements {
			if first, count := p.element(i); first < 0 || count < 0 || first+count > p.elements && count > 0 {
				t.Fatalf("row %d: %d elements from %d, of %d", i, count, first, p.elements)
			}
			continue
		}
		if p.form == formFields {
			continue
		}
		if _, err := p.value(i); !typed(t, err) {
			return
		}
	}
}

// FuzzNumbers fuzzes pages of numbers of each encoding, with their encoder meta.
func FuzzNumbers(f *testing.F) {
	n := 0
	for _, s := range storedPages(f) {
		if s.header.meta != nil && len(s.column.Children) == 0 && s.dict == nil {
			f.Add(uint8(s.column.Type), uint8(s.header.encoders[0]), uint8(s.column.Precision), uint8(s.column.Scale),
				uint16(s.rows), s.header.meta, s.data)
			n++
		}
	}
	if n < 20 {
		f.Fatalf("%d pages of numbers", n)
	}
	fuzztest.Run(f, func(t *testing.T, typ, enc, precision, scale uint8, rows uint16, meta, data []byte) {
		c := flatColumn{Column: Column{Type: Type(typ), Precision: int(precision), Scale: int(scale)}}
		if !typed(t, c.check()) {
			return
		}
		p := &page{column: &c.Column, rows: int(rows)}
		if typed(t, p.choose(&pageHeader{encoders: []encoding{encoding(enc)}, meta: meta}, false)) {
			values(t, p, data)
		}
	})
}

// FuzzNested fuzzes pages of ARRAY, STRUCT, MAP, and of their children.
func FuzzNested(f *testing.F) {
	n := 0
	for _, s := range storedPages(f) {
		if (s.column.nested || len(s.column.Children) > 0) && s.dict == nil {
			f.Add(uint8(s.column.Type), uint8(len(s.column.Children)), s.header.has(encIntLengthChild),
				uint16(s.rows), s.header.meta, s.data)
			n++
		}
	}
	if n < 20 {
		f.Fatalf("%d pages of nested columns", n)
	}
	fuzztest.Run(f, func(t *testing.T, typ, children uint8, long bool, rows uint16, meta, data []byte) {
		c := flatColumn{Column: Column{Type: Type(typ), nested: true, Precision: 20, Scale: 2,
			Children: make([]Column, children)}, children: int(children)}
		if !typed(t, c.check()) {
			return
		}
		encoders := []encoding{encDirectCompress}
		if long {
			encoders = append(encoders, encIntLengthChild)
		}
		p := &page{column: &c.Column, rows: int(rows)}
		if typed(t, p.choose(&pageHeader{encoders: encoders, meta: meta}, false)) {
			values(t, p, data)
		}
	})
}

// FuzzDictionary fuzzes a local dictionary and a page of surrogates.
func FuzzDictionary(f *testing.F) {
	n := 0
	for _, s := range storedPages(f) {
		if s.dict == nil || s.header.runs > 0 {
			continue
		}
		used := must.Get(codec.Decompress(nil, s.header.compressor, s.dict.values, 1<<20))(f)
		words := must.Get(codec.Decompress(nil, s.header.compressor, s.dict.data, 1<<20))(f)
		f.Add(uint8(s.column.Type), uint16(s.rows), s.dict.meta, used, words, s.data)
		n++
	}
	if n < 3 {
		f.Fatalf("%d dictionaries", n)
	}
	fuzztest.Run(f, func(t *testing.T, typ uint8, rows uint16, meta, used, words, data []byte) {
		c := flatColumn{Column: Column{Type: Type(typ), dimension: true}}
		if c.Type != String && c.Type != Varchar {
			return
		}
		h := &dictionaryHeader{encoders: []encoding{encDirectCompress}, meta: meta,
			values: snappyLiteral(used), data: snappyLiteral(words)}
		d, err := readDictionary(&chunk{pages: make([]pageHeader, 1), dictionary: h}, c.Type, &memory{left: 1 << 20})
		if !typed(t, err) {
			return
		}
		p := &page{column: &c.Column, rows: int(rows), dict: d}
		if typed(t, p.choose(&pageHeader{encoders: nil}, true)) {
			values(t, p, data)
		}
	})
}
