package delta

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/cfile"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/corpustest"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// goldenFile is one line of the corpus's manifest of delta files.
type goldenFile struct {
	Name    string `json:"name"`
	Kind    string `json:"kind"`
	Columns []struct {
		ID       schema.ColumnID `json:"id"`
		Type     string          `json:"type"`
		Nullable bool            `json:"nullable"`
	} `json:"columns"`
	Deltas    int64 `json:"num_deltas"`
	BlockSize int   `json:"block_size"`
	Stats     struct {
		Deletes   int64                     `json:"delete_count"`
		Reinserts int64                     `json:"reinsert_count"`
		Min       mvcc.Timestamp            `json:"min_timestamp"`
		Max       mvcc.Timestamp            `json:"max_timestamp"`
		Updates   map[schema.ColumnID]int64 `json:"update_counts"`
	} `json:"stats"`
	Values string `json:"values"`
}

func (g *goldenFile) undo() bool { return g.Kind == "UNDO" }

// schema is a schema of a key and the columns of the manifest.
func (g *goldenFile) schema(t *testing.T) *schema.Schema {
	t.Helper()
	columns := []schema.Column{{ID: 1, Name: "key", Type: schema.Int64}}
	for _, c := range g.Columns {
		typ, ok := schema.TypeByName(c.Type)
		must.Equal(t, ok, true, "type", c.Type)
		column := schema.Column{ID: c.ID, Name: fmt.Sprint("c", c.ID), Type: typ, Nullable: c.Nullable}
		switch typ {
		case schema.Decimal32:
			column.Precision = 9
		case schema.Decimal64:
			column.Precision = 18
		case schema.Decimal128:
			column.Precision = 38
		case schema.Varchar:
			column.Length = 1000
		}
		columns = append(columns, column)
	}
	return must.Get(schema.New(columns, 1))(t)
}

// eachGolden runs test on every delta file of the corpus: on the truncated copy in testdata, and on
// the whole file if the corpus is present.
func eachGolden(t *testing.T, test func(t *testing.T, g *goldenFile, data []byte, want []change.Delta)) {
	t.Run("files=kept", func(t *testing.T) { eachFile(t, filepath.Join("testdata", "golden"), test) })
	t.Run("files=corpus", func(t *testing.T) {
		eachFile(t, filepath.Join(corpustest.Dir(t), "golden", "cfile", "delta"), test)
	})
}

func eachFile(t *testing.T, dir string, test func(t *testing.T, g *goldenFile, data []byte, want []change.Delta)) {
	for _, line := range corpustest.Lines(t, filepath.Join(dir, "manifest.jsonl")) {
		g := new(goldenFile)
		must.Do(t, json.Unmarshal([]byte(line), g))
		t.Run(g.Name, func(t *testing.T) {
			data := must.Get(os.ReadFile(filepath.Join(dir, g.Name+".delta")))(t)
			s := g.schema(t)
			var want []change.Delta
			for _, line := range corpustest.Lines(t, filepath.Join(dir, g.Values)) {
				want = append(want, goldenDelta(t, s, line))
			}
			test(t, g, data, want)
		})
	}
}

// goldenDelta returns the delta of a line of expected values.
func goldenDelta(t *testing.T, s *schema.Schema, line string) change.Delta {
	t.Helper()
	var d struct {
		Row  uint32
		TS   mvcc.Timestamp
		Op   string
		Cols json.RawMessage
	}
	must.Do(t, json.Unmarshal([]byte(line), &d))
	out := change.Delta{Row: d.Row, TS: d.TS, List: drop()}
	switch d.Op {
	case "DELETE":
		return out
	case "UPDATE":
		out.List = change.AppendUpdateHeader(nil, change.Update)
	case "REINSERT":
		out.List = change.AppendUpdateHeader(nil, change.Reinsert)
	default:
		t.Fatalf("operation %q", d.Op)
	}
	tokens := json.NewDecoder(bytes.NewReader(d.Cols)) // a map would lose the order
	tokens.UseNumber()
	next := func() json.Token {
		return must.Get(tokens.Token())(t)
	}
	next()
	for tokens.More() {
		id := must.Get(strconv.Atoi(next().(string)))(t)
		column := &s.Columns[s.IndexID(schema.ColumnID(id))]
		out.List = change.AppendColumn(out.List, column.ID, goldenCell(t, column.Type, next()))
	}
	return out
}

// goldenCell returns the cell of an expected value.
func goldenCell(t *testing.T, typ schema.Type, value json.Token) []byte {
	t.Helper()
	if value == nil {
		return nil
	}
	text := fmt.Sprint(value)
	switch typ {
	case schema.Bool:
		if value == true {
			return []byte{1}
		}
		return []byte{0}
	case schema.Binary:
		b := must.Get(hex.DecodeString(strings.TrimPrefix(text, "0x")))(t)
		return append([]byte{}, b...)
	case schema.Float, schema.Double:
		f := must.Get(strconv.ParseFloat(text, 8*typ.Width()))(t)
		switch {
		case typ == schema.Float && text == "NaN": // Go's NaN has a different bit pattern
			return []byte{0, 0, 0xc0, 0x7f}
		case text == "NaN":
			return []byte{0, 0, 0, 0, 0, 0, 0xf8, 0x7f}
		case typ == schema.Float:
			return binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(f)))
		}
		return binary.LittleEndian.AppendUint64(nil, math.Float64bits(f))
	}
	if typ.Variable() {
		return append([]byte{}, text...)
	}
	n, ok := new(big.Int).SetString(text, 10)
	must.Equal(t, ok, true, typ, "value", text)
	if n.Sign() < 0 {
		n.Add(n, new(big.Int).Lsh(big.NewInt(1), uint(8*typ.Width())))
	}
	cell := n.FillBytes(make([]byte, typ.Width()))
	for i, j := 0, len(cell)-1; i < j; i, j = i+1, j-1 {
		cell[i], cell[j] = cell[j], cell[i]
	}
	return cell
}

func trackerOf(g *goldenFile, s *schema.Schema, f *File) *Tracker {
	if g.undo() {
		return &Tracker{Schema: s, Undo: []*File{f}}
	}
	return &Tracker{Schema: s, Redo: []*File{f}}
}

func TestKuduFilesReadAsKuduReadsThem(t *testing.T) {
	eachGolden(t, func(t *testing.T, g *goldenFile, data []byte, want []change.Delta) {
		s := g.schema(t)
		f := openFile(t, &block.Memory{Number: 5, Bytes: data})
		must.Do(t, f.Verify(s, 1<<20, g.undo()))
		stats := f.Stats()
		if f.Len() != g.Deltas || stats.Deletes != g.Stats.Deletes || stats.Reinserts != g.Stats.Reinserts ||
			stats.Min != g.Stats.Min || stats.Max != g.Stats.Max || len(stats.Columns) != len(g.Stats.Updates) {
			t.Errorf("%d deltas, statistics %+v; want %d, %+v", f.Len(), stats, g.Deltas, g.Stats)
		}
		for id, n := range g.Stats.Updates {
			must.Equal(t, stats.Updates(id), n, "column", id, "updates")
		}
		// Once in one window, and once row by row: the first seeks once, the second for every row.
		tracker := trackerOf(g, s, f)
		both := func(undo, redo []change.Delta, err error) []change.Delta {
			must.Do(t, err)
			return append(undo, redo...)
		}
		sameDeltas(t, "delta", both(tracker.Collect(0, 1<<20, mvcc.Everything)), want)
		var single []change.Delta
		for row := range int(want[len(want)-1].Row) + 2 {
			snap, first := mvcc.Everything, len(single) // all redos apply to it
			if g.undo() {
				snap = mvcc.Nothing
			}
			must.Do(t, f.rowBack(uint32(row), snap, g.undo(), s, func(d change.Delta) bool {
				single = append(single, d)
				return true
			}))
			slices.Reverse(single[first:])
		}
		sameDeltas(t, "delta of a single row", single, want)
	})
}

// TestKuduFilesRewrittenAreTheSame compares the writer's output with Kudu's. Kudu writes the
// columns of the statistics in no particular order, so these, and the checksum over them, may
// differ.
func TestKuduFilesRewrittenAreTheSame(t *testing.T) {
	eachGolden(t, func(t *testing.T, g *goldenFile, data []byte, deltas []change.Delta) {
		sink := new(block.Memory)
		w := must.Get(newWriter(sink, g.undo(), g.BlockSize))(t)
		for _, d := range deltas {
			must.Do(t, w.Append(d))
		}
		must.Get(w.Finish())(t)
		mask := func(file []byte) []byte {
			stats, ok := openFile(t, &block.Memory{Bytes: file}).cells.Metadata(statsKey)
			at := bytes.Index(file, stats)
			if !ok || at < 0 {
				t.Fatal("no statistics in the footer")
			}
			out := bytes.Clone(file)
			clear(out[at : at+len(stats)])
			footer := len(out) - 12 - int(binary.LittleEndian.Uint32(out[len(out)-4:]))
			clear(out[footer-4 : footer])
			return out
		}
		ours, theirs := mask(sink.Bytes), mask(data)
		if !bytes.Equal(ours, theirs) {
			at := 0
			for at < min(len(ours), len(theirs)) && ours[at] == theirs[at] {
				at++
			}
			t.Errorf("%d bytes, want %d; they differ from byte %d on", len(ours), len(theirs), at)
		}
	})
}

func TestMalformedFilesAreRefused(t *testing.T) {
	dir := filepath.Join(corpustest.Dir(t), "golden", "cfile", "malformed")
	seen := 0
	for _, line := range corpustest.Lines(t, filepath.Join(dir, "manifest.jsonl")) {
		var m struct {
			Name, Trigger string
			Kind          []string
		}
		must.Do(t, json.Unmarshal([]byte(line), &m))
		if !strings.HasSuffix(m.Name, ".delta") {
			continue
		}
		seen++
		data := must.Get(os.ReadFile(filepath.Join(dir, m.Name)))(t)
		f, err := OpenFile(&block.Memory{Bytes: data}, cfile.ReaderOptions{})
		if err == nil && m.Trigger != "open" {
			err = f.Verify(nil, 1<<20, false)
		}
		fits := false
		for _, kind := range m.Kind {
			fits = fits || kind == "Corruption" && errors.Is(err, fault.ErrCorrupt) ||
				kind == "NotSupported" && errors.Is(err, fault.ErrUnsupported)
		}
		if !fits {
			t.Errorf("%s: %v, want %v", m.Name, err, m.Kind)
		}
	}
	if seen == 0 {
		t.Error("no malformed delta file in the corpus")
	}
}
