// Package corpustest finds the corpus of files written by other programs. It is for tests only.
//
// The corpus is large and is stored next to the module, not in it. A test that needs it calls Dir
// and is skipped if there is no corpus.
package corpustest

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Variable is the environment variable that names the corpus.
const Variable = "ORIBI_CORPUS"

// KuduVariable is the environment variable that has tests run Kudu's programs for longer: a number
// of files, or "all". Without it few files are given to them.
const KuduVariable = "ORIBI_KUDU"

// NeedKudu skips a test that runs Kudu's programs for many seconds, unless $ORIBI_KUDU is set.
func NeedKudu(t testing.TB) {
	t.Helper()
	if testing.Short() || os.Getenv(KuduVariable) == "" {
		t.Skipf("runs Kudu for many seconds: set %s to run this test", KuduVariable)
	}
}

// Dir returns the directory of the corpus: $ORIBI_CORPUS, else the directory "shared" next to the
// module's root. Without a corpus the test is skipped.
func Dir(t testing.TB) string {
	t.Helper()
	dir := os.Getenv(Variable)
	if dir == "" {
		dir = filepath.Join(filepath.Dir(moduleRoot(t)), "shared")
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		t.Skipf("no corpus at %s: set %s to its directory to run this test", dir, Variable)
	}
	return dir
}

// Read returns the content of a file of the corpus. It uncompresses a path that ends in ".gz", and
// path+".gz" if there is no path: large texts are compressed.
func Read(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if os.IsNotExist(err) && !strings.HasSuffix(path, ".gz") {
		path += ".gz"
		data, err = os.ReadFile(path)
	}
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(path, ".gz") {
		return data
	}
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	data, err = io.ReadAll(z)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return data
}

// Lines returns the lines of a text file, without their ends; compressed texts as with Read. An
// empty text has no lines, and an empty line is an empty string.
func Lines(t testing.TB, path string) []string {
	t.Helper()
	text := string(Read(t, path))
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// moduleRoot walks up from the working directory, which for a test is its package's, to go.mod.
func moduleRoot(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Fatal("no go.mod above the working directory")
		}
		dir = up
	}
}
