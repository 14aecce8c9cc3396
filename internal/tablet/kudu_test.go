package tablet

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/cfile"
	"github.com/oribi-db/oribi/internal/celltext"
	"github.com/oribi-db/oribi/internal/corpustest"
	"github.com/oribi-db/oribi/internal/meta"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/rowset"
	"github.com/oribi-db/oribi/scan"
	"github.com/oribi-db/oribi/schema"
)

// Rowsets written by real Kudu servers, extracted from their directories by Kudu's own tools, are
// scanned as of every time up to which all writes are in files. The rows are those that the servers
// returned: after flushes, minor, major and merging compactions, with reinserted ghosts, with
// columns added, dropped and renamed, with dropped history.
func TestReadsOfKuduRowSetsMatchKudu(t *testing.T) {
	if testing.Short() {
		t.Skip("extracting a tablet with Kudu's tools takes seconds")
	}
	corpus := corpustest.Dir(t)
	extract := filepath.Join(corpus, "tools", "kudu", "extract-tablet")
	if out, err := exec.CommandContext(t.Context(),
		filepath.Join(corpus, "tools", "kudu", "install")).CombinedOutput(); err != nil {
		t.Skipf("Kudu cannot be installed here: %v: %s", err, out)
	}
	names := []string{"ghosts", "history-gc", "kudu-tree", "major-compacted", "merge-compacted", "minor-compacted",
		"redo-files", "schema-change", "special-columns"}
	switch os.Getenv(corpustest.KuduVariable) {
	case "":
		names = names[:1]
	case "all": // the rest have hundreds of blocks, and Kudu's tool runs once per block
		names = append(names, "all-types", "lineitem")
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := kuduCase{dir: filepath.Join(corpus, "golden", "kudu", name)}
			readJSON(t, filepath.Join(c.dir, "manifest.json"), &c.manifest)
			c.compare(t, extract)
		})
	}
}

// kuduCase is one directory of golden/kudu.
type kuduCase struct {
	dir      string
	manifest struct {
		WAL     string   `json:"fs_wal_dir"`
		Data    []string `json:"fs_data_dirs"`
		Manager string   `json:"block_manager"`
		Tablets []struct{ ID, Table string }
		Answers []struct {
			Kind, Table, Label, File string
			TS                       uint64
		}
		Steps []struct {
			Step, Label string
			Enabled     []string
		}
	}
}

func (c *kuduCase) compare(t *testing.T, extract string) {
	m := &c.manifest
	root := t.TempDir()
	if out, err := exec.Command("tar", "-xzf", filepath.Join(c.dir, "fs.tar.gz"), "-C",
		root).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var data []string
	for _, d := range m.Data {
		data = append(data, filepath.Join(root, d))
	}
	compared := 0
	for _, tablet := range m.Tablets {
		dir := filepath.Join(root, "loose-"+tablet.ID)
		cmd := exec.Command(extract, "--fs_wal_dir="+filepath.Join(root, m.WAL),
			"--fs_data_dirs="+strings.Join(data, ","),
			"--block_manager="+m.Manager, tablet.ID, dir)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		tab := openLoose(t, dir)
		for _, form := range []string{"as written by Kudu", "after our delta compactions"} {
			for _, a := range m.Answers {
				if a.Kind != "scan" || a.Table != tablet.Table || !c.flushed(a.Label) {
					continue
				}
				want := textLines(t, filepath.Join(c.dir, a.File))
				if got := looseRows(t, tab, mvcc.Snapshot(a.TS)); !slices.Equal(got, want) {
					t.Errorf("%s at %s, %s: %d rows, want %d: %s", a.Table, a.Label, form, len(got), len(want),
						firstDifference(got, want))
				}
				compared++
			}
			if form == "as written by Kudu" {
				compactLoose(t, tab)
			}
		}
		tab.Close()
	}
	if compared == 0 {
		t.Error("there was nothing to compare")
	}
	t.Logf("%d scans", compared)
}

// flushed reports whether all rows of a label's answer were in files when the server stopped.
func (c *kuduCase) flushed(label string) bool {
	at := slices.IndexFunc(c.manifest.Steps, func(s struct {
		Step, Label string
		Enabled     []string
	}) bool {
		return s.Label == label
	})
	if at < 0 {
		return false
	}
	for at > 0 && c.manifest.Steps[at].Step != "write" {
		at--
	}
	var rows, changes bool
	for _, s := range c.manifest.Steps[at:] {
		rows = rows || slices.Contains(s.Enabled, "flush_memrowset")
		changes = changes || slices.Contains(s.Enabled, "flush_deltamemstores")
	}
	return rows && changes
}

func firstDifference(got, want []string) string {
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			return fmt.Sprintf("row %d is %s, want %s", i, got[i], want[i])
		}
	}
	return ""
}

// looseBlocks opens files as blocks, numbered from 1.
type looseBlocks []string

func (l *looseBlocks) add(name string) block.ID {
	*l = append(*l, name)
	return block.ID(len(*l))
}

func (l *looseBlocks) OpenBlock(id block.ID) (rowset.Block, error) { return block.OpenFile((*l)[id-1]) }

// openLoose opens a directory of loose rowsets as a table.
func openLoose(t *testing.T, dir string) *Tablet {
	var about tabletFile
	readJSON(t, filepath.Join(dir, "tablet.json"), &about)
	row := &meta.Table{Number: 1, Name: "loose", HistorySec: meta.KeepForever, Schema: looseSchema(t, about.Columns)}
	blocks := &looseBlocks{}
	var sets []*rowset.Metadata
	for i := range len(about.RowSets) {
		n := strconv.Itoa(i)
		sets = append(sets, looseRowSet(t, filepath.Join(dir, "rowset-"+n), row.Schema, blocks, uint64(i),
			about.RowSets[n]))
	}
	tab := must.Get(Open(Options{RowSets: rowset.Options{Blocks: blocks}}, row, sets))(t)
	must.Do(t, tab.Check(t.Context(), func(m *rowset.Metadata, id block.ID, err error) {
		t.Errorf("rowset %d: %s: %v", m.ID, (*blocks)[id-1], err)
	}, nil))
	return tab
}

func looseSchema(t *testing.T, files []columnFile) *schema.Schema {
	var columns []schema.Column
	keys := 0
	for _, f := range files {
		c := schema.Column{ID: f.ID, Name: f.Name, Nullable: f.Nullable, Immutable: f.Immutable,
			AutoIncrement: f.Name == schema.AutoIncrementName, Precision: f.Precision, Length: f.Length}
		if f.Scale != nil {
			c.Scale = *f.Scale
		}
		c.Type, _ = schema.TypeByName(f.Type)
		c.Encoding, _ = schema.EncodingByName(f.Encoding)
		c.Compression, _ = schema.CompressionByName(f.Compression)
		if len(f.Default) > 0 {
			c.Default = looseDefault(t, &c, f.Default)
		}
		if f.Key {
			keys++
		}
		columns = append(columns, c)
	}
	return must.Get(schema.New(columns, keys))(t)
}

func looseDefault(t *testing.T, c *schema.Column, text json.RawMessage) []byte {
	switch {
	case string(text) == "null":
		return nil
	case c.Type == schema.Bool:
		if string(text) == "true" {
			return []byte{1}
		}
		return []byte{0}
	case c.Type.Variable():
		var s string
		must.Do(t, json.Unmarshal(text, &s))
		return []byte(s)
	case c.Type == schema.Double:
		f := must.Get(strconv.ParseFloat(string(text), 64))(t)
		return int64Cell(int(math.Float64bits(f)))
	}
	n, err := strconv.Atoi(string(text))
	must.Do(t, err, "default", text, "of a", c.Type)
	return int64Cell(n)[:c.Type.Width()]
}

func looseRowSet(t *testing.T, dir string, s *schema.Schema, blocks *looseBlocks, id uint64,
	numbers rowSetNumbers) *rowset.Metadata {
	m := &rowset.Metadata{ID: id, LiveRows: numbers.LiveRows, LastDurableDMS: numbers.LastDurableDMS,
		Bloom: blocks.add(filepath.Join(dir, "bloom.bloom"))}
	here := func(name string) (string, bool) {
		name = filepath.Join(dir, name)
		_, err := os.Stat(name)
		return name, err == nil
	}
	key := ""
	for i := range s.Columns {
		if name, ok := here(fmt.Sprintf("%d.cfile", s.Columns[i].ID)); ok {
			m.Columns = append(m.Columns, rowset.ColumnBlock{ID: s.Columns[i].ID, Block: blocks.add(name)})
			if i == 0 {
				key = name
			}
		}
	}
	if name, ok := here("adhoc.cfile"); ok {
		m.KeyIndex, key = blocks.add(name), name
	}
	for _, list := range []struct {
		name string
		ids  *[]block.ID
	}{{"redo", &m.Redo}, {"undo", &m.Undo}} {
		for i := 0; ; i++ {
			name, ok := here(fmt.Sprintf("%s-%d.delta", list.name, i))
			if !ok {
				break
			}
			*list.ids = append(*list.ids, blocks.add(name))
		}
	}
	src := must.Get(block.OpenFile(key))(t)
	defer src.Close()
	r := must.Get(cfile.Open(src, cfile.ReaderOptions{}))(t)
	m.Rows = r.Rows()
	m.MinKey, _ = r.Metadata("min_key")
	m.MaxKey, _ = r.Metadata("max_key")
	return m
}

// looseRows returns the rows as of just before ts, as golden/kudu prints them.
func looseRows(t *testing.T, tab *Tablet, snap mvcc.Snapshot) (out []string) {
	v := must.Get(tab.View(Snapshot{At: snap}))(t)
	s := v.Schema
	req := scan.Options{Schema: s}
	for i := range s.Columns {
		req.Columns = append(req.Columns, i)
	}
	it := must.Get(v.Scan(req, true))(t)
	for it.Next() {
		b := it.Batch()
		for i := b.Selection.Next(0); i >= 0; i = b.Selection.Next(i + 1) {
			line := []byte{'['}
			for j, v := range b.Columns {
				if j > 0 {
					line = append(line, ',')
				}
				c := s.Columns[j]
				if !c.Type.Variable() {
					c.Type, c.Scale = c.Type.Physical(), 0
				}
				line = celltext.AppendJSON(line, &c, v.Cell(i))
			}
			out = append(out, string(append(line, ']')))
		}
	}
	must.Do(t, it.Close())
	return out
}

func readJSON(t *testing.T, name string, v any) {
	text := must.Get(os.ReadFile(name))(t)
	must.Do(t, json.Unmarshal(text, v))
}

// textLines returns the lines of a file, decompressed.
func textLines(t *testing.T, name string) (out []string) {
	raw := must.Get(os.ReadFile(name))(t)
	var r io.Reader = bytes.NewReader(raw)
	if strings.HasSuffix(name, ".gz") {
		r = must.Get(gzip.NewReader(r))(t)
	}
	s := bufio.NewScanner(r)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		out = append(out, s.Text())
	}
	must.Do(t, s.Err())
	return out
}
