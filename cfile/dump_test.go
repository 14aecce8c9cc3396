package cfile

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/dump"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/schema"
)

// testdata/dump has the golden dumps of files that Writer writes. ORIBI_REWRITE=1 rewrites them;
// read the diff before you commit it.
func TestDumpMatchesGolden(t *testing.T) {
	words := [][]byte{[]byte("ape"), []byte("bee"), []byte("cat")}
	var numbers, sorted [][]byte
	for i := range 300 {
		numbers = append(numbers, []byte{byte(i * i), 0, 0, 0})
		if i%5 == 3 {
			numbers[i] = nil
		}
		sorted = append(sorted, fmt.Appendf(nil, "key%05d", i))
	}
	for name, c := range map[string]struct {
		o     WriterOptions
		cells [][]byte
	}{
		"dictionary": {WriterOptions{Type: schema.String, PositionalIndex: true, ValueIndex: true,
			HeaderMetadata: []Pair{{"hkey", []byte("hv")}}}, words},
		"nullable": {WriterOptions{Type: schema.Int32, Encoding: schema.Plain, Nullable: true, BlockBytes: 512,
			IndexBlockBytes: 30, PositionalIndex: true}, numbers},
		"keyindex": {WriterOptions{Type: schema.Binary, Encoding: schema.Prefix, Compression: schema.LZ4,
			ValueIndex: true, Exact: true}, sorted},
		"empty": {WriterOptions{Type: schema.Bool, PositionalIndex: true, NoChecksums: true}, nil},
	} {
		t.Run(name, func(t *testing.T) { checkDump(t, name, writeAll(t, c.o, vectorOf(c.o.Type, c.cells))) })
	}
	t.Run("arrays", func(t *testing.T) {
		checkDump(t, "arrays", writeAll(t, exampleArrayOptions, arraysOf(schema.Int32, exampleArrays())))
	})
}

func checkDump(t *testing.T, name string, src *block.Memory) {
	checkParts(t, src)
	var got bytes.Buffer
	must.Do(t, Dump(&got, src.Bytes))
	path := filepath.Join("testdata", "dump", name+".txt")
	if os.Getenv("ORIBI_REWRITE") != "" {
		must.Do(t, os.WriteFile(path, got.Bytes(), 0o644))
	}
	want := must.Get(os.ReadFile(path))(t)
	must.Equal(t, got.Bytes(), want, name)
}

// Dump prints as much as possible of damaged files and does not panic.
func TestDumpOfDamagedFiles(t *testing.T) {
	for name, src := range smallFiles(t) {
		for i := range src.Bytes {
			damaged := &block.Memory{Bytes: slices.Clone(src.Bytes)}
			damaged.Bytes[i] ^= 0x10
			var out bytes.Buffer
			if err := Dump(&out, damaged.Bytes); err != nil || out.Len() == 0 {
				t.Fatal(name, i, err)
			}
		}
	}
}

// checkParts compares the lines of all parts of a file with the lines of the dump of the whole
// file.
func checkParts(t *testing.T, src *block.Memory) {
	t.Helper()
	var want, got []string
	add := func(to *[]string, depth int, off int64, b []byte, text string) error {
		*to = append(*to, fmt.Sprintf("%d %d %x %s", depth, off, b, text))
		return nil
	}
	must.Do(t, dumpTo(dump.NewFunc(func(l dump.Line) error {
		return add(&want, l.Depth, l.Offset, l.Bytes,
			l.Text)
	}), src.Bytes))
	r := must.Get(Open(src, ReaderOptions{Arrays: true}))(t)
	all := must.Get(r.ListCblocks())(t)
	parts := []Part{{Header: true}}
	for _, c := range all {
		parts = append(parts, Part{Cblock: c.Pointer})
	}
	for _, p := range append(parts, Part{Footer: true}) {
		must.Do(t, r.Annotate(p,
			func(depth int, off int64, b []byte, meaning string) error {
				return add(&got, depth, off, b, meaning)
			}))
	}
	if !slices.Equal(got, want) {
		t.Errorf("the parts are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	must.Fail(t, r.Annotate(Part{Cblock: BlockPointer{Offset: 1, Size: 1}}, nil),
		fault.ErrNotFound, "a cblock that there is not")
}
