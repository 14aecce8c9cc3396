package carbondata

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/carbondata/internal/codec"
	"github.com/oribi-db/oribi/internal/fuzztest"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/schema"
)

// goldenFile returns the first data file of a golden folder.
func goldenFile(t testing.TB, folder string) []byte { return goldenBytes(t, folder+"/*"+dataSuffix) }

// goldenBytes returns the content of the first file of the corpus that matches.
func goldenBytes(t testing.TB, pattern string) []byte {
	paths, err := filepath.Glob(filepath.Join(goldenDir(t), pattern))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%s: %v", pattern, err)
	}
	return must.Get(os.ReadFile(paths[0]))(t)
}

// openBytes opens the data file in data.
func openBytes(t testing.TB, data []byte) *File {
	return must.Get(OpenFile(&block.Memory{Bytes: data}))(t)
}

// typed fails unless err is nil, ErrCorrupt, ErrUnsupported, or ErrRow: a changed number may be a
// time that is out of range.
func typed(t *testing.T, err error) bool {
	if err != nil && !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrUnsupported) && !errors.Is(err, ErrRow) {
		t.Fatalf("neither ErrCorrupt nor ErrUnsupported nor ErrRow: %v", err)
	}
	return err == nil
}

// readAll opens the file in data and reads its rows. A file that is read to its end has as many
// rows as its footer says.
func readAll(t *testing.T, data []byte) error {
	f, err := OpenFile(&block.Memory{Bytes: data})
	if !typed(t, err) {
		return err
	}
	n := int64(0)
	for _, err := range f.Rows(context.Background()) {
		if !typed(t, err) {
			return err
		}
		n++
	}
	must.Equal(t, n, f.Info().Rows, "rows in the footer")
	return nil
}

// scanAll reads the rows of the file in data as batches, with and without filters.
func scanAll(t *testing.T, data []byte) {
	f, err := OpenFile(&block.Memory{Bytes: data})
	if !typed(t, err) {
		return
	}
	table := &Table{columns: f.Schema(), files: []tableFile{{File: f}}}
	if !typed(t, table.match()) {
		return
	}
	filters := []Filter{{}}
	for _, c := range table.columns {
		if of, values := testedType(&c); !values {
			filters = append(filters, NotNull(c.Name))
		} else if of.Variable() {
			filters = append(filters, Or(IsNull(c.Name), Lt(c.Name, "m")), Not(HasPrefix(c.Name, "a")))
		} else if of != schema.Bool {
			filters = append(filters, In(c.Name, 1, 7), Not(Le(c.Name, 99)))
		}
	}
	for i, filter := range filters {
		s := must.Get(table.Scan(context.Background(), ScanOptions{Filter: filter}))(t)
		n := int64(0)
		for s.Next() {
			n += int64(s.Batch().Len)
		}
		if typed(t, s.Close()) && i == 0 && n != f.Info().Rows {
			t.Fatalf("%d rows in batches, the footer says %d", n, f.Info().Rows)
		}
	}
}

// fuzzFolders are small and contain all encodings together.
var fuzzFolders = []string{"one-row", "one-column-int", "one-column-string", "sdk-1.4.1-sorted", "sdk-1.4.1-complex",
	"sort-types-inverted", "string-rle",
	"varchar-dict", "decimal-narrow", "double-special", "array-null", "map", "nested-deep"}

// FuzzFile fuzzes a whole data file, verifies it, and reads it with filters.
func FuzzFile(f *testing.F) {
	for _, folder := range fuzzFolders {
		f.Add(goldenFile(f, folder))
	}
	fuzztest.Run(f, func(t *testing.T, data []byte) {
		if readAll(t, data) == nil {
			typed(t, verifyFile(data))
		}
		scanAll(t, data)
	})
}

// FuzzFooter fuzzes the footer after the other bytes of a file.
func FuzzFooter(f *testing.F) {
	data := goldenFile(f, "one-column-string")
	at := binary.BigEndian.Uint64(data[len(data)-pointerLen:])
	f.Add(data[at : len(data)-pointerLen])
	fuzztest.Run(f, func(t *testing.T, footer []byte) {
		file := append(bytes.Clone(data[:at]), footer...)
		readAll(t, binary.BigEndian.AppendUint64(file, at))
	})
}

// FuzzChunk fuzzes the header of a column chunk, alone.
func FuzzChunk(f *testing.F) {
	for _, folder := range fuzzFolders {
		file := must.Get(OpenFile(&block.Memory{Bytes: goldenFile(f, folder)}))(f)
		for i, n := range file.blocklets[0].lengths {
			head := must.Get(readAt(file.src, file.blocklets[0].offsets[i], n))(f)
			f.Add(head)
		}
	}
	fuzztest.Run(f, func(t *testing.T, head []byte) {
		c, err := parseChunk(head, 100, 5000, 100)
		if !typed(t, err) {
			return
		}
		for _, h := range c.pages {
			_, err := parseEncoderMeta(h.meta)
			typed(t, err)
			_, err = nullBits(nil, &h, 100, 100)
			typed(t, err)
		}
		if c.dictionary != nil {
			_, err := readDictionary(&c, String, &memory{left: 1 << 20})
			typed(t, err)
		}
	})
}

// FuzzPage fuzzes the stored parts of a page of each type.
func FuzzPage(f *testing.F) {
	f.Add(uint8(String), uint8(0), uint8(3), []byte("\x00\x02ab\x00\x00\x00\x01c"), []byte{}, []byte{})
	f.Add(uint8(Date), uint8(encDictionary), uint8(2), []byte("\x40\x00\x46\x24"), []byte("\x00\x00\x00\x02"), []byte{})
	f.Add(uint8(Short), uint8(encInvertedIndex), uint8(2), []byte("\x00\x02\x80\x01\x00\x00"), []byte{},
		[]byte("\x00\x00\x00\x04\x00\x01\x00\x00"))
	f.Add(uint8(Varchar), uint8(encVarchar), uint8(1), []byte("\x00\x00\x00\x01x"), []byte{}, []byte{})
	fuzztest.Run(f, func(t *testing.T, typ, enc, rows uint8, data, runs, rowIDs []byte) {
		if _, ok := typeNames[Type(typ)]; !ok {
			return
		}
		p := &page{column: &Column{Type: Type(typ), Precision: 20, dimension: true}, rows: int(rows)}
		if !typed(t, p.choose(&pageHeader{encoders: []encoding{encoding(enc)}}, false)) {
			return
		}
		var err error
		if len(rowIDs) > 0 {
			if p.inverse, err = inverse(nil, rowIDs, p.rows); !typed(t, err) {
				return
			}
		}
		if !typed(t, p.decode(codec.Snappy, snappyLiteral(data), runs, &memory{left: 1 << 20})) {
			return
		}
		for i := range p.rows {
			if _, err := p.value(i); !typed(t, err) {
				return
			}
		}
	})
}

// FuzzIndex fuzzes an index file, alone and as a merged one.
func FuzzIndex(f *testing.F) {
	f.Add(goldenBytes(f, "one-row/*.carbonindex"))
	f.Add(goldenBytes(f, "table/db/t/Fact/Part0/Segment_1/*.carbonindexmerge"))
	fuzztest.Run(f, func(t *testing.T, b []byte) {
		_, err := parseIndex(b)
		typed(t, err)
		_, err = parseMerged(b)
		typed(t, err)
	})
}

// FuzzSchema fuzzes the schema file of a table.
func FuzzSchema(f *testing.F) {
	f.Add(goldenBytes(f, "table/db/t/Metadata/schema"))
	fuzztest.Run(f, func(t *testing.T, b []byte) {
		_, err := parseSchema(b)
		typed(t, err)
	})
}

// FuzzJSON fuzzes tablestatus, a segment file, tableupdatestatus, and a file of deleted rows.
func FuzzJSON(f *testing.F) {
	f.Add(goldenBytes(f, "table/db/t/Metadata/tablestatus"))
	f.Add(goldenBytes(f, "table/db/t/Metadata/segments/1_1795265262559.segment"))
	f.Add(goldenBytes(f, "iud-update/*.deletedelta"))
	f.Add([]byte(`[{"segmentName":"0","blockName":"part-0-0_batchno0-0-0","segmentStatus":"Success","actualBlockName":"x-1.carbondata",
"deleteDeltaEndTimestamp":"17","deleteDeltaStartTimestamp":"5","deltaFileStamps":["5","17"],"deletedRowsInBlock":"1"}]`))
	file := must.Get(OpenFile(&block.Memory{Bytes: goldenFile(f, "iud-update")}))(f)
	fuzztest.Run(f, func(t *testing.T, b []byte) {
		_, _, err := parseStatus(b)
		typed(t, err)
		_, err = parseSegment(b)
		typed(t, err)
		list, err := parseUpdates(b)
		if typed(t, err) {
			newUpdates(list).drops("0", "part-0-0_batchno0-0-0-1.carbondata")
			for i := range list {
				_, err := list[i].deltas("x", func(string) ([]string, error) {
					return []string{"part-0-0_batchno0-0-0-6.deletedelta"}, nil
				})
				typed(t, err)
			}
		}
		_, err = parseDeletes(b, file, deletedRows{})
		typed(t, err)
	})
}

// snappyLiteral returns a Snappy block of one literal.
func snappyLiteral(b []byte) []byte {
	dst := binary.AppendUvarint(nil, uint64(len(b)))
	for len(b) > 0 {
		n := min(len(b), 60)
		dst = append(append(dst, byte(n-1)<<2), b[:n]...)
		b = b[n:]
	}
	return dst
}

// TestChangedBytesAreRefusedOrRead changes bytes of golden files: the reader returns rows or an
// error of the two kinds, and does not panic.
func TestChangedBytesAreRefusedOrRead(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, folder := range fuzzFolders {
		good := goldenFile(t, folder)
		must.Do(t, readAll(t, good), folder)
		refused := 0
		rounds := seedtest.Rounds(100, 25)
		for round := range rounds {
			data := bytes.Clone(good)
			for range 1 + r.IntN(3) {
				data[r.IntN(len(data))] ^= byte(1 + r.IntN(255))
			}
			if readAll(t, data) != nil {
				refused++
			}
			if round%5 == 0 {
				scanAll(t, data)
			}
		}
		if refused < rounds/10 {
			t.Errorf("%s: only %d of %d changed files were refused", folder, refused, rounds)
		}
	}
}

func TestTruncatedFilesAreRefused(t *testing.T) {
	good := goldenFile(t, "one-row")
	for n := range good {
		if readAll(t, good[:n]) == nil {
			t.Fatalf("the first %d of %d bytes are accepted", n, len(good))
		}
	}
}
