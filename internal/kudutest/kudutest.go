// Package kudutest reads the directories of Apache Kudu servers in the corpus and compares reads of
// them with the servers' recorded answers. It is for tests only.
package kudutest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/internal/celltext"
	"github.com/oribi-db/oribi/internal/corpustest"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
)

// Case is one directory of golden/kudu.
type Case struct {
	Dir     string `json:"-"`
	Note    string
	Stopped string
	Tablets []struct {
		ID, Table, State string
		RowSets          int `json:"rowsets"`
	}
	Answers []Answer
}

// Answer is the server's answer to one scan or diff.
type Answer struct {
	Kind, Table, Label, File string
	From                     string `json:"from_label"`
	TS, Start, End           uint64 // exclusive
	SHA256                   string
	Rows                     int
	PerTablet                map[string]json.RawMessage `json:"per_tablet"`
}

// Read reads the manifest of a case. The test is skipped without a corpus.
func Read(t testing.TB, name string) *Case {
	t.Helper()
	c := &Case{Dir: filepath.Join(corpustest.Dir(t), "golden", "kudu", name)}
	text, err := os.ReadFile(filepath.Join(c.Dir, "manifest.json"))
	if err == nil {
		err = json.Unmarshal(text, c)
	}
	must.Do(t, err)
	return c
}

// Names returns the names of all cases that can be read with $ORIBI_FULL, otherwise few.
func Names(t testing.TB, few ...string) (names []string) {
	t.Helper()
	dir := filepath.Join(corpustest.Dir(t), "golden", "kudu")
	if os.Getenv("ORIBI_FULL") == "" {
		return few
	}
	entries := must.Get(os.ReadDir(dir))(t)
	for _, e := range entries {
		if e.IsDir() && e.Name() != "encrypted" && e.Name() != "rocksdb-blocks" {
			names = append(names, e.Name())
		}
	}
	return names
}

// Unpack returns the case's directories in memory, below "/fs".
func (c *Case) Unpack(t testing.TB) *vfs.Mem {
	t.Helper()
	fsys := vfs.NewMem()
	must.Do(t, fsys.Mkdir("/fs"))
	for _, file := range corpustest.Archive(t, filepath.Join(c.Dir, "fs.tar.gz")) {
		name := filepath.Join("/fs", file.Name)
		if file.Content == nil {
			must.Do(t, fsys.Mkdir(name))
			continue
		}
		f, err := fsys.Create(name)
		if err == nil {
			_, err = f.WriteAt(file.Content, 0)
			f.Close()
		}
		must.Do(t, err)
	}
	return fsys
}

// AppendCells appends cells as golden/kudu prints them.
func AppendCells(line []byte, columns []schema.Column, cell func(i int) []byte) []byte {
	line = append(line, '[')
	for i, c := range columns {
		if i > 0 {
			line = append(line, ',')
		}
		if !c.Type.Variable() {
			c.Type, c.Scale = c.Type.Physical(), 0
		}
		line = celltext.AppendJSON(line, &c, cell(i))
	}
	return append(line, ']')
}

// DiffLine returns the line of a diff for a row: after is nil if it was deleted.
func DiffLine(s *schema.Schema, before, after [][]byte) string {
	line := []byte(`{"deleted":true,"key":`)
	columns, cells := s.Columns[:s.Keys], before
	if after != nil {
		line = []byte(`{"deleted":false,"row":`)
		columns, cells = s.Columns, after
	}
	return string(append(AppendCells(line, columns, func(c int) []byte { return cells[c] }), '}'))
}

// FirstDifference describes how two texts differ; "" if they do not.
func FirstDifference(got, want []string) string {
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			return fmt.Sprintf("%d rows, want %d; row %d is %s, want %s", len(got), len(want), i, got[i], want[i])
		}
	}
	if len(got) != len(want) {
		return fmt.Sprintf("%d rows, want %d", len(got), len(want))
	}
	return ""
}

// Compare compares all answers of the case with the answers of read, which gets the table's name or
// the tablet's ID.
func (c *Case) Compare(t *testing.T, read func(what string, a *Answer) []string) {
	t.Helper()
	for i := range c.Answers {
		a := &c.Answers[i]
		files := map[string]string{a.Table: a.File}
		for tablet, raw := range a.PerTablet {
			var file string
			if json.Unmarshal(raw, &file) == nil {
				files[tablet] = file
			}
		}
		for what, file := range files {
			if !strings.Contains(file, ".jsonl") && a.SHA256 == "" {
				continue
			}
			got := read(what, a)
			if a.SHA256 != "" {
				if sum := sha256.Sum256([]byte(strings.Join(got, "\n") +
					"\n")); hex.EncodeToString(sum[:]) != a.SHA256 {
					t.Errorf("%s %s of %s: %d rows, want %d others", a.Kind, a.Label, what, len(got), a.Rows)
				}
				continue
			}
			if diff := FirstDifference(got, corpustest.Lines(t, filepath.Join(c.Dir, file))); diff != "" {
				t.Errorf("%s %s of %s: %s", a.Kind, a.Label, what, diff)
			}
		}
	}
}
