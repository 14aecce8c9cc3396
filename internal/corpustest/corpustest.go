// Package corpustest finds the corpus of files written by other programs. It is for tests only.
//
// The corpus is large and is stored next to the module, not in it. A test that needs it calls Dir
// and is skipped if there is no corpus.
package corpustest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strconv"
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

// HFileVariable is the environment variable that has tests give HFiles to the readers of HBase and
// Hudi: how many files of each kind. The program is tools/hfile/check of the corpus, which needs
// Java, and Maven for its first call.
const HFileVariable = "ORIBI_HFILE"

// NeedHFileReaders skips a test that runs the readers of HBase and Hudi unless $ORIBI_HFILE is set.
// It returns how many files of each kind to give to them, and the path of the program.
func NeedHFileReaders(t testing.TB) (files int, program string) {
	t.Helper()
	return need(t, HFileVariable, "the readers of HBase and Hudi, which need", "files of each kind", "hfile")
}

// CarbonVariable is the environment variable that has tests give folders to the reader of
// CarbonData's SDK: how many. The program is tools/carbondata/check of the corpus, which needs
// Java, and Maven for its first call.
const CarbonVariable = "ORIBI_CARBONDATA"

// NeedCarbonReader skips a test that runs the reader of CarbonData's SDK unless $ORIBI_CARBONDATA
// is set. It returns how many folders to give to it, and the path of the program.
func NeedCarbonReader(t testing.TB) (folders int, program string) {
	t.Helper()
	return need(t, CarbonVariable, "the reader of CarbonData's SDK, which needs", "folders", "carbondata")
}

// need returns the number in a variable, and the program check of a tool of the corpus; without the
// variable it skips the test.
func need(t testing.TB, variable, runs, what, tool string) (n int, program string) {
	t.Helper()
	value := os.Getenv(variable)
	if value == "" {
		t.Skipf("runs %s Java and Maven: set %s to a number of %s to run this test", runs, variable, what)
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 {
		t.Fatalf("%s=%q, want a number of %s", variable, value, what)
	}
	return n, filepath.Join(Dir(t), "tools", tool, "check")
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

// File is a file of an archive.
type File struct {
	Name    string
	Content []byte // nil for a directory
}

// Archive returns the files and directories of a compressed tar archive, in its order.
func Archive(t testing.TB, path string) (files []File) {
	t.Helper()
	for r := tar.NewReader(bytes.NewReader(Read(t, path))); ; {
		h, err := r.Next()
		if err == io.EOF {
			return files
		}
		f := File{Name: h.Name}
		if err == nil && h.Typeflag != tar.TypeDir {
			f.Content, err = io.ReadAll(r)
		}
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		files = append(files, f)
	}
}
