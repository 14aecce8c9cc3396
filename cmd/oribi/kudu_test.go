package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/internal/corpustest"
)

// "kudu verify" finds that the newest segment of a log is gone, which Kudu does not notice.
func TestKuduVerifyFindsLostSegment(t *testing.T) {
	dir := t.TempDir()
	for _, f := range corpustest.Archive(t, filepath.Join(corpustest.Dir(t), "golden", "kudu", "wal-only", "fs.tar.gz")) {
		name := filepath.Join(dir, f.Name)
		var err error
		if f.Content == nil {
			err = os.MkdirAll(name, 0o700)
		} else {
			err = os.WriteFile(name, f.Content, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if out := must(t, nil, "kudu", "verify", dir); out != "ok\n" {
		t.Errorf("printed %q", out)
	}
	const tablet = "b1b8dc55f53443a3aa0f579cbef2a8d9"
	segment := filepath.Join(dir, "ts", "wals", tablet, "wal-00000000")
	if err := os.Remove(segment + "2"); err != nil {
		t.Fatal(err)
	}
	out, _, code := run(t, nil, "kudu", "verify", dir)
	want := `{"tablet":"` + tablet + `","file":"` + segment + `1","offset":null,"block":null,"problem":"the last segment is closed: a later one is missing"}` + "\n"
	if out != want || code != 3 {
		t.Errorf("code %d, printed %q, want %q", code, out, want)
	}
	if err := os.WriteFile(filepath.Join(dir, "ts", "instance"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	out, _, code = run(t, nil, "kudu", "verify", dir)
	if !strings.HasPrefix(out, `{"tablet":null,"file":"`) || code != 3 {
		t.Errorf("no instance file: code %d, printed %q", code, out)
	}
}
