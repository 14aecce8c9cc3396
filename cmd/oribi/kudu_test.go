package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/internal/corpustest"
	"github.com/oribi-db/oribi/internal/must"
)

// "kudu verify" finds that the newest segment of a log is gone, which Kudu does not notice.
func TestKuduVerifyFindsLostSegment(t *testing.T) {
	dir := unpackKudu(t, "wal-only")
	must.Equal(t, succeed(t, nil, "kudu", "verify", dir), "ok\n")
	const tablet = "b1b8dc55f53443a3aa0f579cbef2a8d9"
	segment := filepath.Join(dir, "ts", "wals", tablet, "wal-00000000")
	must.Do(t, os.Remove(segment+"2"))
	out, _, code := run(t, nil, "kudu", "verify", dir)
	want := `{"tablet":"` + tablet + `","file":"` + segment +
		`1","offset":null,"block":null,"problem":"the last segment is closed: a later one is missing"}` + "\n"
	must.Equal(t, out, want)
	must.Equal(t, code, 3)
	must.Do(t, os.WriteFile(filepath.Join(dir, "ts", "instance"), nil, 0o600))
	out, _, code = run(t, nil, "kudu", "verify", dir)
	if !strings.HasPrefix(out, `{"tablet":null,"file":"`) || code != 3 {
		t.Errorf("no instance file: code %d, printed %q", code, out)
	}
}

// "kudu export" makes a directory of a tablet server with the rows of a table and their history.
func TestKuduExport(t *testing.T) {
	dir := kuduStore(t)
	out := filepath.Join(dir, "out")
	printed := succeed(t, nil, "kudu", "export", filepath.Join(dir, "S"), "t", out)
	if !strings.HasPrefix(printed, `{"tablet":"`) || !strings.Contains(printed, `","rowsets":1,"rows":2,"bytes":`) {
		t.Errorf("printed %q", printed)
	}
	must.Equal(t, succeed(t, nil, "kudu", "verify", out), "ok\n")
	for _, read := range [][]string{{"scan"}, {"history", `{"k":1}`}} {
		args := append([]string{read[0], filepath.Join(dir, "S"), "t"}, read[1:]...)
		want := succeed(t, nil, append([]string{"table"}, args...)...)
		args[1] = out
		must.Equal(t, succeed(t, nil, append([]string{"kudu"}, args...)...), want)
	}
	if _, errs, code := run(t, nil, "kudu", "export", filepath.Join(dir, "S"), "t", out); code != 1 ||
		!strings.Contains(errs, "exists") {
		t.Errorf("into an existing directory: code %d, printed %q", code, errs)
	}
	if _, _, code := run(t, nil, "kudu", "export", filepath.Join(dir, "S"), "other",
		filepath.Join(dir, "out2")); code != 4 {
		t.Errorf("an unknown table: code %d", code)
	}
}

// kuduStore makes a store S in a new directory, with a table t of two rows, one of them changed.
func kuduStore(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	s := filepath.Join(dir, "S")
	succeed(t, nil, "store", "init", s)
	succeed(t,
		strings.NewReader(`{"columns":[{"name":"k","type":"int64","key":true},{"name":"s","type":"string","nullable":true}]}`), "table", "create", s, "t", "--schema", "-")
	succeed(t, nil, "table", "put", s, "t", `{"k":1,"s":"a"}`)
	succeed(t, nil, "table", "put", s, "t", `{"k":2,"s":null}`)
	succeed(t, nil, "table", "flush", s, "t")
	succeed(t, nil, "table", "update", s, "t", `{"k":1,"s":"b"}`)
	return dir
}

// unpackKudu returns a new directory with the directories of a server.
func unpackKudu(t *testing.T, name string) string {
	t.Helper()
	dir := t.TempDir()
	for _, f := range corpustest.Archive(t, filepath.Join(corpustest.Dir(t), "golden", "kudu", name, "fs.tar.gz")) {
		name := filepath.Join(dir, f.Name)
		var err error
		if f.Content == nil {
			err = os.MkdirAll(name, 0o700)
		} else {
			err = os.WriteFile(name, f.Content, 0o600)
		}
		must.Do(t, err)
	}
	return dir
}

// "kudu import" copies tables and tablets, with their history or only the rows of a time, and says
// what it refuses.
func TestKuduImport(t *testing.T) {
	fs, store := unpackKudu(t, "tombstone"), filepath.Join(t.TempDir(), "S")
	succeed(t, nil, "store", "init", store)
	list := strings.Fields(succeed(t, nil, "kudu", "list", fs, "--format", "csv"))[1:]
	for _, line := range list {
		f := strings.Split(line, ",")
		out, text, code := run(t, nil, "kudu", "import", fs, f[0], store, "copy-"+f[0])
		if f[2] != "READY" {
			if code != 4 || out != "" || strings.Count(text, "\n") != 1 {
				t.Errorf("%s: code %d, %q, %q", line, code, out, text)
			}
			continue
		}
		if want := `{"table":"copy-` + f[0] + `","rowsets":`; code != 0 || !strings.HasPrefix(out, want) ||
			!strings.Contains(out, `,"rows":`+f[4]+`,"bytes":`) {
			t.Errorf("%s: code %d, %q, %q", line, code, out, text)
		}
		if got, want := succeed(t, nil, "table", "scan", store, "copy-"+f[0]),
			succeed(t, nil, "kudu", "scan", fs, f[0]); got != want || got == "" {
			t.Errorf("%s: %d bytes of rows, want %d", line, len(got), len(want))
		}
		succeed(t, nil, "kudu", "import", fs, f[1], store)
		for _, refused := range []struct {
			args []string
			code int
			text string
		}{
			{[]string{fs, f[1], store}, 1, "exists"},
			{[]string{fs, "absent", store}, 4, "absent"},
			{[]string{fs, f[1], store + "-absent", "x"}, 4, "absent"},
			{[]string{store, f[1], store, "x"}, 4, "not a store"},
			{[]string{fs, f[1], store, "x", "--as-of", "nonsense"}, 2, "nonsense"},
			{[]string{fs, f[1], store, "x", "--as-of", "2100-01-01T00:00:00Z"}, 2, "ahead"},
			{[]string{fs, f[1], store, ""}, 2, "name"},
		} {
			if out, text, code := run(t, nil,
				append([]string{"kudu", "import"}, refused.args...)...); code != refused.code || out != "" ||
				!strings.Contains(text, refused.text) {
				t.Errorf("%q: code %d, %q, %q", refused.args, code, out, text)
			}
		}
		succeed(t, nil, "kudu", "import", fs, f[1], store, "rows", "--as-of", "now")
		must.Equal(t, succeed(t, nil, "table", "scan", store, "rows"),
			succeed(t, nil, "kudu", "scan", fs, f[1]), line)
	}
	must.Equal(t, succeed(t, nil, "store", "verify", store), "ok\n")
}

// "kudu install" puts a table into an empty tablet, once.
func TestKuduInstall(t *testing.T) {
	dir := kuduStore(t)
	s, fs := filepath.Join(dir, "S"), filepath.Join(dir, "fs")
	succeed(t,
		strings.NewReader(`{"columns":[{"name":"k","type":"int64","key":true},{"name":"s","type":"string","nullable":true}],"history":"15m"}`), "table", "create", s, "empty", "--schema", "-")
	succeed(t, nil, "kudu", "export", s, "empty", fs)
	names := must.Get(os.ReadDir(filepath.Join(fs, "tablet-meta")))(t)
	must.Equal(t, len(names), 1)
	tablet := names[0].Name()
	out, errs, code := run(t, nil, "kudu", "install", s, "t", fs, tablet)
	if code != 0 || !strings.HasPrefix(out, `{"tablet":"`+tablet+`","rowsets":1,"rows":2,"bytes":`) ||
		!strings.HasPrefix(errs, "oribi: warning: ") {
		t.Errorf("code %d, printed %q, %q", code, out, errs)
	}
	must.Equal(t, succeed(t, nil, "kudu", "verify", fs), "ok\n")
	must.Equal(t, succeed(t, nil, "kudu", "scan", fs, tablet), succeed(t, nil, "table", "scan", s, "t"))
	for want, args := range map[int][]string{1: {s, "t", fs, tablet}, 3: {s, "t", unpackKudu(t, "encrypted"), tablet},
		4: {s, "t", fs, strings.Repeat("0", 32)}} {
		out, errs, code := run(t, nil, append([]string{"kudu", "install"}, args...)...)
		if code != want || out != "" || !strings.HasPrefix(errs, `oribi: kudu: install table "t": `) {
			t.Errorf("%q: code %d, printed %q, %q", args, code, out, errs)
		}
	}
}
