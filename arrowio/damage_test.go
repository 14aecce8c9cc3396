package arrowio

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/oribi-db/oribi/internal/fuzztest"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/schema"
)

// smallFiles returns a small file of each format, with columns of most kinds.
func smallFiles(t testing.TB) map[string][]byte {
	t.Helper()
	store := openStore(t)
	var columns []schema.Column
	for _, c := range scalarColumns() {
		switch c.Name {
		case "bool", "int64", "string", "decimal(19,3)", "array(string)":
			columns = append(columns, c)
		}
	}
	s := must.Get(schema.New(append([]schema.Column{{Name: "k", Type: schema.Int32}}, columns...), 1))(t)
	table := must.Get(store.CreateTable("t", s))(t)
	fillRandom(t, store, table, 12, 1)
	files := map[string][]byte{}
	for format, f := range formats {
		r := must.Get(NewReader(table.Scan(context.Background()), ReaderOptions{}))(t)
		var out bytes.Buffer
		must.Get(f.write(&out, r, nil))(t)
		r.Release()
		files[format] = out.Bytes()
	}
	return files
}

// readDamaged reads a file that may be damaged, by batches and by record batches, and returns its
// rows or its error.
func readDamaged(t testing.TB, format string, data []byte) (rows []string, err error) {
	mem := memory.NewGoAllocator()
	f, err := formats[format].open(data, mem)
	if err == nil {
		defer f.Close()
		var r *Rows
		if r, err = f.Read(context.Background(), ReadOptions{}); err == nil {
			defer r.Release()
			for b, e := range r.Batches() {
				if err = e; err == nil {
					for _, v := range b.Columns {
						must.Do(t, v.Validate())
					}
					rows = selectedRows(rows, b)
				}
			}
		}
	}
	if err == nil {
		return rows, nil
	}
	for _, text := range []string{"runtime error", "panic", "goroutine", "interface conversion",
		"slice bounds", "unknown error"} {
		if strings.Contains(err.Error(), text) {
			t.Fatalf("the text of a panic: %v", err)
		}
	}
	for _, known := range []error{ErrCorrupt, ErrUnsupported, ErrSchema, ErrRow} {
		if errors.Is(err, known) {
			return nil, err
		}
	}
	t.Fatalf("not one of the package's errors: %v", err)
	return nil, err
}

// Each byte of a small file is changed. Reading it gives rows or an error, and never panics. A
// change in the compressed pages of a Parquet file, which have checksums, gives the same rows or an
// error.
func TestEachByteChanged(t *testing.T) {
	for format, data := range smallFiles(t) {
		t.Run(format, func(t *testing.T) {
			want := must.Get(readDamaged(t, format, data))(t)
			refused := 0
			for i := range data {
				for _, change := range []byte{0xff, 0x01, 0x80, data[i]}[:seedtest.Rounds(4, 1)] {
					damaged := bytes.Clone(data)
					damaged[i] ^= change
					if _, err := readDamaged(t, format, damaged); err != nil {
						refused++
					}
				}
			}
			if refused == 0 {
				t.Error("no change was noticed")
			}
			t.Logf("%d bytes, %d rows, %d of %d changes refused", len(data), len(want), refused,
				seedtest.Rounds(4, 1)*len(data))
		})
	}
}

// A file that ends early is never read as if it were whole.
func TestTruncatedFiles(t *testing.T) {
	for format, data := range smallFiles(t) {
		want := must.Get(readDamaged(t, format, data))(t)
		for n := range data {
			got, err := readDamaged(t, format, data[:n])
			if err == nil && len(got) != len(want) && !(format == "stream" && messageEnds(data, n)) {
				t.Errorf("%s: the first %d of %d bytes are read as %d rows", format, n, len(data), len(got))
			}
		}
	}
}

// messageEnds reports whether a message of an Arrow stream begins at byte n: a stream may end
// without a marker.
func messageEnds(stream []byte, n int) bool {
	return bytes.HasPrefix(stream[n:], []byte{255, 255, 255, 255})
}

// A length in a damaged file does not cause a large allocation.
func TestHostileLengths(t *testing.T) {
	for format, data := range smallFiles(t) {
		if format == "parquet" {
			continue // lengths are of variable width there
		}
		for i := 0; i+8 <= len(data); i += 8 {
			damaged := bytes.Clone(data)
			binary.LittleEndian.PutUint64(damaged[i:], 1<<62)
			readDamaged(t, format, damaged)
		}
	}
}

func fuzzFormat(f *testing.F, format string) {
	f.Add(smallFiles(f)[format])
	fuzztest.Run(f, func(t *testing.T, data []byte) { readDamaged(t, format, data) })
}

func FuzzParquet(f *testing.F)     { fuzzFormat(f, "parquet") }
func FuzzArrowFile(f *testing.F)   { fuzzFormat(f, "arrow") }
func FuzzArrowStream(f *testing.F) { fuzzFormat(f, "stream") }
