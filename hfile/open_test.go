package hfile

import (
	"bufio"
	"bytes"
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/corpustest"
	"github.com/oribi-db/oribi/internal/must"
)

// goldenFile is a line of the golden manifest.
type goldenFile struct {
	Name     string `json:"name"`
	Codec    string `json:"codec"`
	Cells    int64  `json:"cells"`
	Values   string `json:"values"`
	Seeks    string `json:"seeks"`
	Sequence string `json:"sequence"`
	Info     string `json:"info"`
	HudiInfo string `json:"hudi_info"`

	dir string // of the file and its texts
}

func (g goldenFile) open(t testing.TB) (*Reader, error) {
	t.Helper()
	return Open(&block.Memory{Bytes: g.bytes(t)}, ReaderOptions{})
}

func (g goldenFile) bytes(t testing.TB) []byte {
	t.Helper()
	return corpustest.Read(t, filepath.Join(g.dir, filepath.Base(g.Name)+".hfile"))
}

// goldenFiles calls f in a subtest for each golden file.
func goldenFiles(t *testing.T, f func(t *testing.T, g goldenFile)) {
	dir := filepath.Join(corpustest.Dir(t), "golden", "hfile")
	n := 0
	for s := bufio.NewScanner(bytes.NewReader(corpustest.Read(t,
		filepath.Join(dir, "manifest.jsonl")))); s.Scan(); n++ {
		var g goldenFile
		must.Do(t, json.Unmarshal(s.Bytes(), &g))
		g.dir = filepath.Join(dir, filepath.Dir(g.Name))
		t.Run(g.Name, func(t *testing.T) { f(t, g) })
	}
	if n < 185 {
		t.Errorf("%d golden files", n)
	}
}

func TestOpenGolden(t *testing.T) {
	goldenFiles(t, func(t *testing.T, g goldenFile) {
		r, err := g.open(t)
		if g.Codec == "LZO" {
			must.Refuse(t, err, "a codec that is not supported was opened")
			return
		}
		must.Do(t, err)
		must.Equal(t, r.Trailer().EntryCount, g.Cells)
		for _, err := range r.Blocks() {
			must.Do(t, err)
		}
		for _, err := range r.IndexEntries() {
			must.Do(t, err)
		}
	})
}
