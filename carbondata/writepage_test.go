package carbondata

import (
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
)

// encodersOf returns the encoders of all pages of a chunk in the one data file of a folder, with
// "dictionary" where there is one.
func encodersOf(t *testing.T, dir string, chunk int) (list []string) {
	files := dataFiles(t, dir)
	must.Equal(t, len(files), 1)
	for _, p := range readFacts(t, files[0]).chunks[chunk].pages {
		if p.Coded {
			p.Encoders += " dictionary"
		}
		list = append(list, p.Encoders)
	}
	return list
}

// TestDictionaryIsGivenUp writes a column whose values are too many for a dictionary from the third
// page on: the pages of the same blocklet before it have none either.
func TestDictionaryIsGivenUp(t *testing.T) {
	var rows [][]any
	for i := range 4000 {
		n := i
		if i < 2000 {
			n = i / 300
		}
		rows = append(rows, []any{fmt.Sprintf("value %05d", n), []any{fmt.Sprint(n), "a"}, int32(i)})
	}
	const (
		one   = "[DIRECT_COMPRESS INT_LENGTH_COMPLEX_CHILD_BYTE_ARRAY] "
		dict  = "dictionary "
		child = one + one + one + "[DIRECT_COMPRESS INT_LENGTH_COMPLEX_CHILD_BYTE_ARRAY]"
		plain = "[] [] [] []"
	)
	columns := []Column{column("s", String), column("a", Array, column("", String)), column("n", Int)}
	for _, c := range []struct {
		o         WriterOptions
		want      string
		wantChild string
	}{
		{WriterOptions{}, plain, child},
		{WriterOptions{SortColumns: []string{"s"}, InvertedIndex: []string{"s"}},
			"[INVERTED_INDEX] [INVERTED_INDEX] [INVERTED_INDEX] [INVERTED_INDEX]", child},
		{WriterOptions{BlockletBytes: 1}, "[RLE] dictionary [RLE] dictionary [] []",
			one + dict + one + dict + one + one[:len(one)-1]},
		{WriterOptions{NoLocalDictionary: true}, plain, child},
		{WriterOptions{DictionaryThreshold: 10000}, "[RLE] dictionary [RLE] dictionary [] dictionary [] dictionary",
			strings.Repeat(one+dict, 4)[:4*len(one+dict)-1]},
	} {
		c.o.PageRows = 1000
		if c.o.DictionaryThreshold == 0 {
			c.o.DictionaryThreshold = 1000
		}
		dir := writeFolder(t, columns, c.o, rows)
		wantRows(t, readFolder(t, dir), rows)
		must.Equal(t, strings.Join(encodersOf(t, dir, 0), " "), c.want, c.o)
		must.Equal(t, strings.Join(encodersOf(t, dir, 2), " "), c.wantChild, c.o)
	}
}

// TestFloatsAreReadBack writes FLOATs and DOUBLEs that the SDK's codecs lose. All other pages have
// the SDK's encodings.
func TestFloatsAreReadBack(t *testing.T) {
	const direct, adaptive, delta = "[DIRECT_COMPRESS]", "[ADAPTIVE_FLOATING]", "[ADAPTIVE_DELTA_FLOATING]"
	for _, c := range []struct {
		values []any
		want   string
	}{
		{[]any{0.5, 1.25, nil}, adaptive},
		{[]any{1000000.5, 1000000.25}, delta},
		{[]any{1.0, 2.0, 300.0}, "[ADAPTIVE_INTEGRAL]"},
		{[]any{1.0, 1e12}, direct},
		{[]any{0.5, negativeZero}, direct},
		{[]any{1.0, negativeZero}, direct},
		{[]any{0.123456}, direct},
		{[]any{1e-5, 2e-4}, direct}, // 1.0E-5 in Java
		{[]any{1e17, 0.5}, direct},
		{[]any{127.99, -127.995}, adaptive},
		{[]any{float32(0.5), float32(1.25)}, adaptive},
		{[]any{float32(3), nil}, adaptive},
		{[]any{float32(negativeZero), float32(1)}, direct},
		{[]any{vectorReaderFails()}, direct},
		{[]any{float32(-1.5), float32(-2.5)}, adaptive},
	} {
		typ := Double
		if _, ok := c.values[0].(float32); ok {
			typ = Float
		}
		var rows, nested [][]any
		for _, v := range c.values {
			rows = append(rows, []any{v})
			nested = append(nested, []any{[]any{v, float64Of(typ)}})
		}
		dir := writeFolder(t, []Column{column("x", typ)}, WriterOptions{}, rows)
		wantRows(t, readFolder(t, dir), rows)
		must.Equal(t, strings.Join(encodersOf(t, dir, 0), " "), c.want, c.values)
		dir = writeFolder(t, []Column{column("x", Array, column("", typ))}, WriterOptions{}, nested)
		wantRows(t, readFolder(t, dir), nested)
	}
}

// float64Of returns a number of type FLOAT or DOUBLE.
func float64Of(t Type) any {
	if t == Float {
		return float32(2.5)
	}
	return 2.5
}

var negativeZero = math.Copysign(0, -1)

// vectorReaderFails returns a FLOAT with three digits after the point that is another one if it is
// divided in its own precision.
func vectorReaderFails() float32 {
	for n := 1<<24 + 1; ; n += 2 {
		v := float32(float64(n) / 1000)
		if float32(n)/1000 != v && decimalPlaces(float64(v), 32) == 3 &&
			int64(math.Round(float64(v)*1000)) == int64(n) {
			return v
		}
	}
}

// TestPagesEndAtTheirMemory writes rows whose values compress to nearly nothing: pages end before
// they are too large to be read from so small a file.
func TestPagesEndAtTheirMemory(t *testing.T) {
	text := strings.Repeat("a", 1<<20)
	var long, nested [][]any
	for range 17 {
		long = append(long, []any{text})
		nested = append(nested, []any{make([]any, 100_000)})
	}
	wide := make([]any, 1200)
	var columns []Column
	for i := range wide {
		columns = append(columns, column(fmt.Sprint("c", i), String))
		wide[i] = "x"
	}
	var rows [][]any
	for range 1600 {
		rows = append(rows, wide)
	}
	for name, c := range map[string]struct {
		columns []Column
		rows    [][]any
		pages   int
	}{
		"long":    {[]Column{column("v", Varchar)}, long, 2},
		"nested":  {[]Column{column("a", Array, column("", Long))}, nested, 2},
		"columns": {columns, rows, 2},
	} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && name == "columns" {
				t.Skip("two million values")
			}
			dir := writeFolder(t, c.columns, WriterOptions{Compressor: "zstd"}, c.rows)
			wantRows(t, readFolder(t, dir), c.rows)
			if got := len(encodersOf(t, dir, 0)); got < c.pages {
				t.Errorf("%d pages", got)
			}
		})
	}
}

// TestWriterNeedsMemoryForOneBlocklet writes 24 MB of random bytes in blocklets of 1 MiB.
func TestWriterNeedsMemoryForOneBlocklet(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	w := must.Get(Create(dir, []Column{column("b", Binary)},
		WriterOptions{PageRows: 100, BlockletBytes: 1 << 20, FileBytes: 5 << 20}))(t)
	defer w.Abort()
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	base, most := heap(), int64(0)
	r := rand.NewChaCha8([32]byte{})
	b := make([]byte, 1000)
	for i := range 24_000 {
		r.Read(b)
		must.Do(t, w.Append([]any{b}))
		if i%1000 == 0 {
			most = max(most, heap()-base)
		}
	}
	must.Do(t, w.Close())
	if limit := int64(4 << 20); most > limit {
		t.Errorf("%d bytes of memory", most)
	}
	if n := len(dataFiles(t, dir)); n < 5 {
		t.Errorf("%d data files", n)
	}
}
