package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/cmd/oribi/internal/cli"
	"github.com/oribi-db/oribi/internal/corpustest"
	"github.com/oribi-db/oribi/internal/must"
)

// exampleFiles are the files in the directory in which the help's examples run.
var exampleFiles = map[string]string{
	"schema.json": `{"columns":[{"name":"id","type":"int64","key":true},{"name":"name","type":"string","nullable":true}]}`,
	"rows.jsonl":  `{"ops":[{"op":"upsert","table":"tree","row":{"path":"new/file","mode":"100644","blob":"0","size":1,"seq":5001}}]}`,
	"rows.csv":    "id,name\n1,one\n2,two\n",
	"pairs.csv":   "key,value\nuser/1,Ada\nuser/2,Bob\n",
	"cells.jsonl": `{"row":"row1","family":"f","qualifier":"q","ts":1,"type":"Put","value":"one"}` + "\n" +
		`{"row":"row2","family":"f","qualifier":"q","ts":1,"type":"Put","value":"two"}`,
	"columns.jsonl": `{"name":"city","type":"STRING"}` + "\n" + `{"name":"n","type":"INT"}`,
	"spec.json":     `{"type":"INT32","encoding":"BIT_SHUFFLE","compression":"NO_COMPRESSION"}`,
}

// TestHelpExamples runs the examples in the help of each verb.
func TestHelpExamples(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the examples are for sh")
	}
	if testing.Short() {
		t.Skip("each runs in a copy of a store")
	}
	ground := t.TempDir()
	succeed(t, nil, "demo", filepath.Join(ground, "S"))
	succeed(t, nil, "table", "extract", filepath.Join(ground, "S"), "tree", filepath.Join(ground, "F"))
	for name, text := range exampleFiles {
		must.Do(t, os.WriteFile(filepath.Join(ground, name), []byte(text+"\n"), 0o600))
	}
	succeed(t, nil, "hfile", "write", "--like", "hbase", "--entries", filepath.Join(ground, "cells.jsonl"),
		filepath.Join(ground, "cells.hfile"))
	succeed(t, strings.NewReader(`{"city":"Oslo","n":1}`), "carbondata", "write", "--schema",
		filepath.Join(ground, "columns.jsonl"), "--values", "-", filepath.Join(ground, "C"))
	corpus := corpustest.Dir(t)
	if out, err := exec.CommandContext(t.Context(), "tar", "-xzf",
		filepath.Join(corpus, "golden", "kudu", "merge-compacted",
			"fs.tar.gz"), "-C", ground).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	must.Do(t, os.Rename(filepath.Join(ground, "ts"), filepath.Join(ground, "K")))
	for verb, example := range cli.Examples() {
		t.Run(verb, func(t *testing.T) {
			if example == "" {
				t.Fatal("the help of this verb has no example")
			}
			var help, out bytes.Buffer
			shell(t, verb+" --help", &help, &help)
			must.Contain(t, help.String(), "Example:\n  "+example+"\n", "the help does not show the example")
			if strings.Contains(example, "--masters ") {
				return // TestPageCopiesATableIntoARunningCluster runs such commands
			}
			t.Chdir(copyOfWhat(t, ground, example))
			if code := shell(t, example, &out, &out); code != 0 || strings.Contains(out.String(), "oribi: ") {
				t.Errorf("%s: exit code %d: %s", example, code, out.String())
			}
		})
	}
}

// copyOfWhat returns a new directory with copies of the files and directories in ground that a
// command names.
func copyOfWhat(t *testing.T, ground, command string) string {
	dir := t.TempDir()
	entries, err := os.ReadDir(ground)
	for _, e := range entries {
		from, to := filepath.Join(ground, e.Name()), filepath.Join(dir, e.Name())
		named := regexp.MustCompile(`\b` + regexp.QuoteMeta(e.Name()) + `\b`).MatchString(command)
		switch {
		case !named || err != nil:
		case e.IsDir():
			err = os.CopyFS(to, os.DirFS(from))
		default:
			var text []byte
			if text, err = os.ReadFile(from); err == nil {
				err = os.WriteFile(to, text, 0o600)
			}
		}
	}
	must.Do(t, err)
	return dir
}
