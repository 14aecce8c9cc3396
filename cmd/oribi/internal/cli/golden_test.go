package cli

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/cmd/oribi/internal/console"
	"github.com/oribi-db/oribi/internal/corpustest"
	"github.com/oribi-db/oribi/internal/must"
)

// command runs the command in this process.
func command(stdin io.Reader, args ...string) (output, message string, code int) {
	var out, errs bytes.Buffer
	a := &console.Console{Stdin: stdin, Stdout: &console.Stdout{Out: &out}, Stderr: &errs}
	code = run(context.Background(), a, args)
	return out.String(), errs.String(), code
}

// exits runs the command, checks its exit code, and returns its messages.
func exits(t *testing.T, code int, args ...string) (errs string) {
	t.Helper()
	_, errs, got := command(nil, args...)
	must.Equal(t, got, code, args, errs)
	return errs
}

// succeed runs the command, which must succeed and print nothing on stderr.
func succeed(t *testing.T, args ...string) string {
	t.Helper()
	out, errs, code := command(nil, args...)
	must.Equal(t, code, 0, args, errs)
	must.Equal(t, errs, "", args)
	return out
}

// goldenFile has the fields of a line in a manifest of column files that tests use.
type goldenFile struct {
	Name        string `json:"name"`
	Type        string `json:"type"`
	Compression string `json:"compression"`
	Array       bool   `json:"array"`
	Checksums   bool   `json:"checksums"`
	Values      string `json:"values"`
	Seeks       []struct {
		Seek    json.RawMessage `json:"seek"`
		Ordinal int64           `json:"ordinal"`
		Exact   bool            `json:"exact"`
	} `json:"seeks"`

	line string
}

// goldenFiles runs test on every column file in the testdata of package cfile and, if the whole
// corpus is available, on every third file of the corpus. The tests of package cfile read all of
// them.
func goldenFiles(t *testing.T, test func(t *testing.T, dir string, g *goldenFile)) {
	cut := filepath.Join("..", "..", "..", "..", "cfile", "testdata", "golden")
	t.Run("from=testdata", func(t *testing.T) { eachGolden(t, cut, 1, test) })
	t.Run("from=corpus", func(t *testing.T) {
		if testing.Short() {
			t.Skip("-short runs the small set only")
		}
		eachGolden(t, filepath.Join(corpustest.Dir(t), "golden", "cfile"), 3, test)
	})
}

// eachGolden runs test on one of every so many files in a directory.
func eachGolden(t *testing.T, dir string, every int, test func(t *testing.T, dir string, g *goldenFile)) {
	for i, line := range corpustest.Lines(t, filepath.Join(dir, "manifest.jsonl")) {
		if i%every != 0 {
			continue
		}
		g := &goldenFile{line: line}
		must.Do(t, json.Unmarshal([]byte(line), g))
		test(t, dir, g)
		if t.Failed() {
			t.Fatalf("file %s", g.Name)
		}
	}
}

func (g *goldenFile) path(dir string) string { return filepath.Join(dir, g.Name+".cfile") }

func (g *goldenFile) values(t *testing.T, dir string) string {
	return string(corpustest.Read(t, filepath.Join(dir, g.Values)))
}

func TestDumpPrintsValuesOfKuduFiles(t *testing.T) {
	goldenFiles(t, func(t *testing.T, dir string, g *goldenFile) {
		must.Equal(t, succeed(t, "cfile", "dump", g.path(dir)), g.values(t, dir))
		must.Equal(t, succeed(t, "cfile", "verify", g.path(dir)), "ok\n")
	})
}

func TestDumpReadsVersion1(t *testing.T) {
	dir := filepath.Join(corpustest.Dir(t), "golden", "cfile", "v1")
	eachGolden(t, dir, 1, func(t *testing.T, dir string, g *goldenFile) {
		must.Equal(t, succeed(t, "cfile", "dump", g.path(dir)), g.values(t, dir))
		succeed(t, "cfile", "info", g.path(dir))
		succeed(t, "cfile", "blocks", "--annotate", g.path(dir))
	})
}

// The other forms contain the same cells.
func TestDumpFormsAgree(t *testing.T) {
	dir := filepath.Join("..", "..", "..", "..", "cfile", "testdata", "golden")
	eachGolden(t, dir, 1, func(t *testing.T, dir string, g *goldenFile) {
		var want, got []json.RawMessage
		for line := range strings.Lines(g.values(t, dir)) {
			want = append(want, json.RawMessage(strings.TrimSuffix(line, "\n")))
		}
		must.Do(t, json.Unmarshal([]byte(succeed(t, "cfile", "dump", g.path(dir), "--format", "json")),
			&got))
		same := func(a, b json.RawMessage) bool { return string(a) == string(b) }
		if !slices.EqualFunc(got, want, same) {
			t.Errorf("%d values as JSON, want %d", len(got), len(want))
		}
		if out := succeed(t, "cfile", "dump", g.path(dir), "--format", "csv"); !strings.HasPrefix(out, "value\n") {
			t.Errorf("CSV begins with %.20q", out)
		}
		succeed(t, "cfile", "dump", g.path(dir), "--format", "table")
	})
}

func TestSeekMatchesKudu(t *testing.T) {
	seeks := 0
	goldenFiles(t, func(t *testing.T, dir string, g *goldenFile) {
		for _, s := range g.Seeks {
			value := string(s.Seek)
			if value[0] == '"' {
				must.Do(t, json.Unmarshal(s.Seek, &value))
			}
			want := `{"ordinal":` + strconv.FormatInt(s.Ordinal, 10) + `,"exact":` + strconv.FormatBool(s.Exact) + "}\n"
			must.Equal(t, succeed(t, "cfile", "seek", g.path(dir), "--", value), want, value)
			seeks++
		}
	})
	if seeks < 20 {
		t.Errorf("%d seeks", seeks)
	}
}

// A file written from the values and a line of the manifest has the same bytes as Kudu's file if
// its codec has only one output; in any case it has the same values and is valid.
func TestWriteMatchesKuduBytes(t *testing.T) {
	same := 0
	goldenFiles(t, func(t *testing.T, dir string, g *goldenFile) {
		tmp := t.TempDir()
		spec, out := filepath.Join(tmp, "spec"), filepath.Join(tmp, "out")
		put(t, spec, g.line+"\n")
		succeed(t, "cfile", "write", "--spec", spec, "--values", filepath.Join(dir, g.Values), out)
		if g.Compression == "NO_COMPRESSION" || g.Compression == "LZ4" {
			same++
			must.Equal(t, read(t, out), read(t, g.path(dir)))
		} else {
			checkWritten(t, g, dir, out)
		}
		if g.Checksums && !g.Array {
			out = filepath.Join(tmp, "zoned")
			succeed(t, "cfile", "write", "--spec", spec, "--values", filepath.Join(dir, g.Values), "--zone-map", out)
			checkWritten(t, g, dir, out)
			must.Contain(t, succeed(t, "cfile", "info", out), `"zone_map":true`, "no zone map")
		}
	})
	if same < 5 {
		t.Errorf("%d files compared", same)
	}
}

func checkWritten(t *testing.T, g *goldenFile, dir, out string) {
	t.Helper()
	succeed(t, "cfile", "verify", out)
	must.Equal(t, succeed(t, "cfile", "dump", out), g.values(t, dir), "dump of the output prints\n")
}

// Fields that both info and the manifest have are equal.
func TestInfoMatchesManifest(t *testing.T) {
	goldenFiles(t, func(t *testing.T, dir string, g *goldenFile) {
		var want, got map[string]json.RawMessage
		must.Do(t, json.Unmarshal([]byte(g.line), &want))
		must.Do(t, json.Unmarshal([]byte(succeed(t, "cfile", "info", g.path(dir), "--format", "json")),
			&got))
		compared := 0
		for name, value := range got {
			if printed, ok := want[name]; ok {
				compared++
				must.Equal(t, compact(t, printed), compact(t, value), name, value, printed)
			}
		}
		if compared < 14 {
			t.Errorf("%d fields compared", compared)
		}
		var bytes map[string]int64
		must.Do(t, json.Unmarshal(got["bytes"], &bytes))
		sum := int64(0)
		for _, n := range bytes {
			sum += n
		}
		must.Equal(t, string(got["size"]), strconv.FormatInt(sum, 10), "bytes of the parts")
	})
}

func compact(t *testing.T, value []byte) string {
	t.Helper()
	var b bytes.Buffer
	must.Do(t, json.Compact(&b, value))
	return b.String()
}

// The annotated print shows each byte of the file once and in order.
func TestAnnotatedPrintShowsEveryByte(t *testing.T) {
	shown := 0
	goldenFiles(t, func(t *testing.T, dir string, g *goldenFile) {
		text := succeed(t, "cfile", "blocks", "--annotate", g.path(dir))
		if g.Compression != "NO_COMPRESSION" {
			return // unpacked bytes are shown too
		}
		shown++
		var data []byte
		for line := range strings.Lines(text) {
			line = strings.TrimLeft(line, " ")
			offset, rest, _ := strings.Cut(line, " ")
			at, err := strconv.Atoi(offset)
			rest = strings.TrimLeft(rest, " ")
			if err != nil || len(rest) < 2 || !isHex(rest[:2]) || len(rest) > 2 && rest[2] != ' ' && rest[2] != '\n' {
				continue // a heading, or a note
			}
			must.Equal(t, at, len(data))
			for i := 0; i+2 <= min(len(rest), 24) && isHex(rest[i:i+2]); i += 3 {
				b, _ := strconv.ParseUint(rest[i:i+2], 16, 8)
				data = append(data, byte(b))
			}
		}
		must.Equal(t, string(data), read(t, g.path(dir)), text)
	})
	if shown < 3 {
		t.Errorf("%d files", shown)
	}
}

func isHex(s string) bool {
	_, err := strconv.ParseUint(s, 16, 8)
	return err == nil
}

// Every cblock is listed, from the header to the footer.
func TestBlocksCoverWholeFile(t *testing.T) {
	goldenFiles(t, func(t *testing.T, dir string, g *goldenFile) {
		var info struct {
			Bytes struct{ Header, Footer int64 }
			Size  int64
			Rows  int64 `json:"num_values"`
		}
		must.Do(t, json.Unmarshal([]byte(succeed(t, "cfile", "info", g.path(dir))), &info))
		end, rows := info.Bytes.Header, int64(0)
		for line := range strings.Lines(succeed(t, "cfile", "blocks", g.path(dir))) {
			var b struct {
				Kind         string
				Offset, Size int64
				Rows         *int64
				First        *int64 `json:"first_ordinal"`
			}
			must.Do(t, json.Unmarshal([]byte(line), &b))
			must.Equal(t, b.Offset, end, b.Kind)
			end += b.Size
			if b.Kind == "data" {
				must.Equal(t, *b.First, rows)
				rows += *b.Rows
			}
		}
		must.Equal(t, end+info.Bytes.Footer, info.Size, end, info)
		must.Equal(t, rows, info.Rows, end, info)
	})
}

// put writes a file.
func put(t *testing.T, name, text string) {
	t.Helper()
	must.Do(t, os.WriteFile(name, []byte(text), 0o600))
}

// read reads a file.
func read(t *testing.T, name string) string {
	t.Helper()
	data := must.Get(os.ReadFile(name))(t)
	return string(data)
}

// pack makes the content of a .gz file.
func pack(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	must.Get(io.WriteString(w, text))(t)
	must.Do(t, w.Close())
	return b.String()
}
