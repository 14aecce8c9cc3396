package carbondata

import (
	"encoding/hex"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/carbondata/internal/codec"
	"github.com/oribi-db/oribi/carbondata/internal/thrift"
	"github.com/oribi-db/oribi/internal/must"
)

// commentText returns the comments of a file of the package as one line.
func commentText(t *testing.T, file string) string {
	source := must.Get(os.ReadFile(file))(t)
	var text []string
	for _, line := range strings.Split(string(source), "\n") {
		if comment, ok := strings.CutPrefix(line, "//"); ok {
			text = append(text, strings.Fields(comment)...)
		}
	}
	return strings.Join(text, " ")
}

// hexExample returns the bytes that the comments of a file show after the given text.
func hexExample(t *testing.T, file, after string) []byte {
	t.Helper()
	_, text, ok := strings.Cut(commentText(t, file), after+" ")
	must.Equal(t, ok, true, file, after)
	b, err := hex.DecodeString(strings.ReplaceAll(regexp.MustCompile(`^[0-9a-f]{2}( [0-9a-f]{2})*\b`).FindString(text),
		" ", ""))
	if err != nil || len(b) == 0 {
		t.Fatalf("%s: no bytes after %q: %v", file, after, err)
	}
	return b
}

// jsonExample returns the JSON that the comments of a file show after the given text.
func jsonExample(t *testing.T, file, after string) []byte {
	t.Helper()
	_, text, ok := strings.Cut(commentText(t, file), after+" ")
	must.Equal(t, ok, true, file, after)
	depth := 0
	for i, c := range text {
		switch c {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		if depth == 0 {
			return []byte(text[:i+1])
		}
	}
	t.Fatalf("%s: JSON without an end: %s", file, text)
	return nil
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	must.Equal(t, got, want, what)
}

// parse runs f on a reader of b, and fails unless it reads all of b.
func parse(t *testing.T, b []byte, f func(r *thrift.Reader)) {
	t.Helper()
	r := &thrift.Reader{In: b}
	if f(r); r.Err != nil || r.At != len(b) {
		t.Errorf("%x: %d of %d bytes, %v", b, r.At, len(b), r.Err)
	}
}

// TestExamplesOfMessages reads the examples of Thrift messages in the comments.
func TestExamplesOfMessages(t *testing.T) {
	same(t, "begin of a file", hexExample(t, "internal/thrift/reader.go", "The header of a file, version 3 (field 1, an int):"),
		[]byte{thrift.I32 | headerVersion<<4, version3 << 1})

	column := hexExample(t, "schema.go", "without the fields that are not required:")
	parse(t, column, func(r *thrift.Reader) {
		c := readColumn(r)
		same(t, "column", []any{c.Name, c.ID, c.Type, c.dimension, c.Precision}, []any{"a", "a", String, true, -1})
	})
	header := hexExample(t, "footer.go", `The header of a file with the STRING "a":`)
	f := File{src: &block.Memory{Bytes: header}}
	if end, err := f.readHeader(int64(len(header))); err != nil || int(end) != len(header) ||
		len(f.columns) != 1 || f.columns[0].Name != "a" {
		t.Errorf("header: %d of %d bytes, %v, %v", end, len(header), f.columns, err)
	}
	columns, err := parseSchema(hexExample(t, "metafile.go",
		`The schema file of a table with the ID "i" and the STRING "a":`))
	if err != nil || len(columns) != 1 || columns[0].Name != "a" {
		t.Errorf("schema file: %v, %v", columns, err)
	}

	want := blocklet{rows: 100, offsets: []int64{216, 689}, lengths: []int{59, 107},
		dimensions: 689, measures: 899, pages: 1}
	parse(t, hexExample(t, "footer.go", "the first ends at 689, the second at 899:"), func(r *thrift.Reader) {
		same(t, "blocklet", readBlocklet(r), want)
	})
	footer := hexExample(t, "footer.go", "without minima and maxima:")
	f = File{src: &block.Memory{Bytes: append(make([]byte, 899), footer...)}, chunks: 2, dimensions: 1}
	if err := f.readFooter(216, 899, int64(899+len(footer))); err != nil || f.rows != 100 || !f.sorted ||
		f.segment.columns != 2 || len(f.blocklets) != 1 {
		t.Errorf("footer: %+v, %v", f, err)
	} else {
		want.pageRows, want.noPageRows = []int{100}, true
		same(t, "blocklet in a footer", f.blocklets[0], want)
	}
	end := hexExample(t, "footer.go", "The end of a file with its footer at byte 899:")
	same(t, "end of a file", end, []byte{7: 899 & 255, 6: 899 >> 8})

	robots := bounds{min: [][]byte{[]byte("robot0")}, max: [][]byte{[]byte("robot99")}}
	parse(t, hexExample(t, "bounds.go", "From robot0 to robot99:"), func(r *thrift.Reader) {
		same(t, "bounds", readBounds(r, thrift.Struct, 1), robots)
	})

	index := hexExample(t, "index.go", `The header of the index of a file with the STRING "a":`)
	entry := hexExample(t, "index.go", `100 rows of the file "a" with its footer at byte 899:`)
	i := must.Get(parseIndex(append(slices.Clone(index), entry...)))(t)
	same(t, "index", i.header, indexHeader{columns: 1, segment: segmentInfo{columns: 1}})
	same(t, "index entry", i.entries, []indexEntry{{rows: 100, name: "a", footer: 899}})
	merged := hexExample(t, "index.go", `The header of a merged index file with the index file "b":`)
	content := appendAny(nil, anyStruct{mergedList: anyList{thrift.Binary, []any{append(slices.Clone(index), entry...)}}})
	files, err := parseMerged(append(slices.Clone(merged), content...))
	if err != nil || len(files) != 1 || files[0].name != "b" || len(files[0].entries) != 1 {
		t.Errorf("merged index: %+v, %v", files, err)
	}
}

// TestExamplesOfPages reads the examples of pages and their headers in the comments.
func TestExamplesOfPages(t *testing.T) {
	head := hexExample(t, "chunk.go", "with snappy and without nulls:")
	c := must.Get(parseChunk(head, 275, 689, 1))(t)
	must.Equal(t, len(c.pages), 1)
	h := c.pages[0]
	same(t, "page", []any{h.compressor, h.data, h.rowIDs, h.runs, h.rows, h.offset, len(h.encoders),
		string(h.bounds.min[0])}, []any{"", 414, 0, 0, 100, int64(275), 0, "robot0"})
	parse(t, hexExample(t, "chunk.go", "A dictionary without values, in snappy:"), func(r *thrift.Reader) {
		d := readDictionaryHeader(r)
		same(t, "dictionary", []any{d.encoders, d.data, d.values},
			[]any{[]encoding{encDirectCompress}, []byte{0}, []byte{0}})
	})
	m, err := parseEncoderMeta(hexExample(t, "number.go", `INT column "age", stored in bytes, maximum 99, minimum 0:`))
	must.Do(t, err)
	same(t, "encoder meta", m, encoderMeta{schema: inInt, kind: 4, store: inByte, maxInt: 99, fits: true})

	for _, e := range []struct {
		file, after string
		column      Column
		enc         []encoding
		want        any
	}{
		{"pageform.go", "The DATE 2019-03-02:", Column{Type: Date}, []encoding{encDictionary}, Days(17957)},
		{"pageform.go", `The STRING "ab":`, Column{Type: String}, nil, "ab"},
		{"pageform.go", "A null STRING:", Column{Type: String}, nil, nil},
	} {
		p := page{column: &e.column, rows: 1}
		must.Do(t, p.choose(&pageHeader{encoders: e.enc}, false))
		must.Do(t, p.decode(codec.Snappy, snappyLiteral(hexExample(t, e.file, e.after)), nil,
			&memory{left: 1 << 20}))
		got := must.Get(p.value(0))(t)
		same(t, e.after, got, e.want)
	}
	runs := must.Get(expandRuns(nil, []byte("x"), 1, hexExample(t, "runs.go", "10 rows with one value:"), 10))(t)
	same(t, "runs", string(runs), "xxxxxxxxxx")
	rows := must.Get(inverse(nil, hexExample(t, "rowids.go", "and row 0 of entry 5, as a run and a row:"), 6))(t)
	same(t, "row IDs", rows, []uint16{5, 0, 1, 2, 3, 4})

	array := page{rows: 1, data: hexExample(t, "nested.go", "after five of the rows before it:")}
	if first, count := array.element(0); first != 5 || count != 3 {
		t.Errorf("array: %d elements from %d", count, first)
	}
	fields := page{column: &Column{Type: Struct, Children: make([]Column, 2)}, rows: 1,
		data: hexExample(t, "nested.go", "A STRUCT of two fields:")}
	must.Do(t, fields.checkFields())

	used, data := hexExample(t, "dictionary.go", "in a VARCHAR column: values"),
		hexExample(t, "dictionary.go", "values 04, data")
	meta := slices.Concat([]byte{0, 0, byte(inByteArray), kindLongValue}, make([]byte, metaFixedLen-2))
	d := must.Get(readDictionary(&chunk{pages: make([]pageHeader, 1),
		dictionary: &dictionaryHeader{encoders: []encoding{encDirectCompress}, meta: meta,
			values: snappyLiteral(used), data: snappyLiteral(data)}}, Varchar, &memory{left: 1 << 20}))(t)
	if code, ok := d.code(2); !ok || string(d.words.Words[code]) != "varchar" {
		t.Errorf("dictionary: %q", d.words.Words)
	}

	for after, want := range map[string]string{"No null bits in snappy:": "", `The bytes "aaaa":`: "aaaa"} {
		b, err := codec.Decompress(nil, codec.Snappy, hexExample(t, "internal/codec/decompress.go", after), 100)
		must.Do(t, err, after)
		must.Equal(t, string(b), want, after)
	}
}

// TestExamplesOfValues reads the examples of bounds and defaults in the comments.
func TestExamplesOfValues(t *testing.T) {
	for _, e := range []struct {
		after  string
		column Column
		want   any
	}{
		{"The INT 99 of a measure:", Column{Type: Int}, int32(99)},
		{"Of a sort column:", Column{Type: Int, dimension: true}, int32(99)},
		{"The DECIMAL 12.35:", Column{Type: Decimal, Precision: 8, Scale: 2}, batch.Int128Of(1235)},
	} {
		got, _ := e.column.boundValue(hexExample(t, "boundvalue.go", e.after))
		same(t, e.after, got, e.want)
	}
	c := Column{Type: Decimal, Precision: 8, Scale: 2,
		Default: hexExample(t, "table.go", "A DECIMAL(8,2) with the default 12.35:")}
	got := must.Get(defaultValue(&c))(t)
	same(t, "default", got, batch.Int128Of(1235))
}

// TestExamplesOfJSON reads the examples of JSON in the comments.
func TestExamplesOfJSON(t *testing.T) {
	segments, _, err := parseStatus(jsonExample(t, "metafile.go", "A tablestatus:"))
	if err != nil || len(segments) != 1 || !segments[0].shown || segments[0].File != "0_1700000100000.segment" {
		t.Errorf("tablestatus: %+v, %v", segments, err)
	}
	folders := must.Get(parseSegment(jsonExample(t, "metafile.go", "Its segment file:")))(t)
	same(t, "segment file", folders,
		[]segmentFolder{{folder: "/Fact/Part0/Segment_0", relative: true,
			files: []string{"0_batchno0-0-0-1700000100000.carbonindex"}}})
	list, err := parseUpdates(jsonExample(t, "update.go", "Rows deleted once from the first data file of segment 0:"))
	must.Do(t, err, list)
	must.Equal(t, len(newUpdates(list).blocks[updateKey("0", "part-0-0_batchno0-0-0")]), 1, list)
	deleted := deletedRows{}
	f := File{blocklets: []blocklet{{pageRows: []int{32, 32}}}}
	block, err := parseDeletes(jsonExample(t, "delete.go", "Row 27 of page 1 in blocklet 0:"), &f, deleted)
	if err != nil || block != "part-0-1_batchno0-0-null" ||
		!reflect.DeepEqual(deleted, deletedRows{pagePlace{0, 1}: {27}}) {
		t.Errorf("deleted rows: %q, %v, %v", block, deleted, err)
	}
}

// TestAllExamplesAreRead looks for lines of bytes in comments that the other tests do not name.
func TestAllExamplesAreRead(t *testing.T) {
	tests := must.Get(os.ReadFile("hexexamples_test.go"))(t)
	entries := must.Get(os.ReadDir("."))(t)
	for _, e := range entries {
		name := e.Name()
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			continue
		}
		for _, example := range regexp.MustCompile(
			`([^:.]+[:]) (?:[0-9a-f]{2} ){2}`).FindAllStringSubmatch(commentText(t, name), -1) {
			after := strings.TrimSpace(example[1])
			if words := strings.Fields(after); !strings.Contains(string(tests),
				strings.Join(words[max(0, len(words)-3):], " ")) {
				t.Errorf("%s: no test reads the bytes after %q", name, after)
			}
		}
	}
}
