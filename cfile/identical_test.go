package cfile

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/schema"
)

// identical counts Kudu's files that Writer reproduced, by content. The last tables of docs/formats.md are
// generated from it.
type identical map[identicalKey]int

type identicalKey struct {
	typ   schema.Type
	enc   schema.Encoding
	codec schema.Compression
	array bool
}

// add counts a file that was reproduced.
func (x identical) add(g *goldenFile) {
	typ, _ := schema.TypeByName(g.Type)
	enc, _ := schema.EncodingByName(g.Encoding)
	codec, _ := schema.CompressionByName(g.Compression)
	x[identicalKey{typ, enc, codec, g.Array}]++
}

// check compares the page with the counts. ORIBI_REWRITE=1 rewrites its tables; the text above them
// is kept.
func (x identical) check(t *testing.T) {
	t.Helper()
	path := filepath.Join("..", "docs", "formats.md")
	page := must.Get(os.ReadFile(path))(t)
	const begin = "<!-- tables -->\n"
	text, _, ok := bytes.Cut(page, []byte(begin))
	must.Equal(t, ok, true, path, begin)
	want := string(text) + begin + x.tables()
	if string(page) == want {
		return
	}
	if os.Getenv("ORIBI_REWRITE") != "" {
		must.Do(t, os.WriteFile(path, []byte(want), 0o644))
		return
	}
	t.Errorf("%s is outdated; ORIBI_REWRITE=1 rewrites it", path)
}

var identicalCodecs = []schema.Compression{schema.NoCompression, schema.LZ4, schema.Snappy, schema.Zlib}

// tables returns the two tables of the page, for single cells and for arrays.
func (x identical) tables() string {
	var b strings.Builder
	for _, array := range []bool{false, true} {
		if array {
			b.WriteString("\nColumns of arrays, by the type of their elements:\n")
		}
		b.WriteString("\n| type | encoding | none | LZ4 | Snappy | zlib |\n|---|---|---|---|---|---|\n")
		for typ := schema.Type(0); typ < 32; typ++ {
			for _, enc := range allEncodings {
				if typ.Scalar() && enc.Allowed(typ) {
					b.WriteString(x.row(typ, enc, array))
				}
			}
		}
	}
	return b.String()
}

// row returns a line of a table, or nothing for arrays without a file.
func (x identical) row(typ schema.Type, enc schema.Encoding, array bool) string {
	line, files := fmt.Sprintf("| %v | %v |", typ, enc), 0
	for _, codec := range identicalCodecs {
		n := x[identicalKey{typ, enc, codec, array}]
		files += n
		switch {
		case n == 0:
			line += " – |"
		case codec == schema.NoCompression || codec == schema.LZ4:
			line += fmt.Sprintf(" bytes (%d) |", n)
		default:
			line += fmt.Sprintf(" payloads (%d) |", n)
		}
	}
	if files == 0 && array {
		return ""
	}
	return line + "\n"
}
