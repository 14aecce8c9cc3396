package corpustest

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
)

func TestDirFollowsTheEnvironment(t *testing.T) {
	want := t.TempDir()
	t.Setenv(Variable, want)
	if got := Dir(t); got != want {
		t.Fatalf("Dir() = %s, want %s", got, want)
	}
}

func TestDirSkipsWithoutCorpus(t *testing.T) {
	t.Setenv(Variable, filepath.Join(t.TempDir(), "absent"))
	skipped := false
	t.Run("inner", func(t *testing.T) {
		defer func() { skipped = t.Skipped() }()
		Dir(t)
	})
	if !skipped {
		t.Fatal("a test without corpus was not skipped")
	}
}

func TestLinesReadsPackedAndPlainTextAlike(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"empty", "", nil},
		{"one-empty-line", "\n", []string{""}},
		{"two", "a\nb\n", []string{"a", "b"}},
		{"inner-empty", "a\n\nb\n", []string{"a", "", "b"}},
	} {
		plain := filepath.Join(dir, c.name)
		must.Do(t, os.WriteFile(plain, []byte(c.text), 0o600))
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		z.Write([]byte(c.text))
		z.Close()
		must.Do(t, os.WriteFile(plain+"-packed.gz", packed.Bytes(), 0o600))
		for _, path := range []string{plain, plain + "-packed.gz", plain + "-packed"} {
			if got := Lines(t, path); !slices.Equal(got, c.want) {
				t.Errorf("%s: got %q, want %q", path, got, c.want)
			}
		}
	}
}
