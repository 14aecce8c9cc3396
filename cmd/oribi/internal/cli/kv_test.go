package cli

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/cmd/oribi/internal/exit"
	"github.com/oribi-db/oribi/internal/corpustest"
	"github.com/oribi-db/oribi/kv"
)

// What a bucket does not take of an HFile is a failure with its place, not damage, and nothing is
// loaded; an empty key is a key.
func TestLoadOfHFilesThatABucketDoesNotTake(t *testing.T) {
	dir := t.TempDir()
	files := 0
	write := func(like, entries string) string {
		t.Helper()
		files++
		in := filepath.Join(dir, fmt.Sprintf("%d.jsonl", files))
		out := filepath.Join(dir, fmt.Sprintf("%d.hfile", files))
		put(t, in, entries)
		succeed(t, "hfile", "write", "--like", like, "--entries", in, out)
		return out
	}
	cell := func(row, qualifier string) string {
		return `{"row":"` + row + `","family":"f","qualifier":"` + qualifier +
			`","ts":1,"type":"Put","value":"v"}` + "\n"
	}
	long := strings.Repeat("k", kv.MaxKeyBytes+1)
	lzo := filepath.Join(corpustest.Dir(t), "golden", "hfile", "hbase", "groups-lzo.hfile")
	for name, c := range map[string]struct{ file, want string }{
		"several columns": {write("hbase", cell("a", "q")+cell("b", "q")+cell("b", "r")),
			`row "b": columns "f:q" and "f:r", want one column`},
		"a long row": {write("hbase", cell("a", "q")+cell(long, "q")),
			`": a key of 16385 bytes, at most 16384 are allowed`},
		"a long key": {write("hudi", `{"key":"a","value":""}`+"\n"+`{"key":"`+long+`","value":""}`+"\n"),
			`": a key of 16385 bytes, at most 16384 are allowed`},
		"a codec": {lzo, "LZO"},
	} {
		store := filepath.Join(dir, strings.ReplaceAll(name, " ", "-"))
		_, errs, code := command(nil, "kv", "load", store, c.file)
		if code != exit.Failed || !strings.Contains(errs, filepath.Base(c.file)+": ") ||
			!strings.Contains(errs, c.want) || strings.Contains(errs, "corrupt") {
			t.Errorf("%s: exit code %d: %s", name, code, errs)
		}
		if rows, _, _ := command(nil, "kv", "scan", store); rows != "" {
			t.Errorf("%s: %s", name, rows)
		}
	}
	store := filepath.Join(dir, "empty")
	exits(t, 0, "kv", "load", store, write("hudi", `{"key":"","value":"v"}`+"\n"))
	same(t, "an empty key", succeed(t, "kv", "scan", store), `{"key":"","value":"v"}`+"\n")
}
