package storetest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/celltext"
	"github.com/oribi-db/oribi/internal/corpustest"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/prooftest/history"
	"github.com/oribi-db/oribi/internal/prooftest/model"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// A real Kudu tablet server opens tables that random histories wrote, with their updates, deletes,
// reinserts, flushes and compactions, and reads the same as we do: all rows at random timestamps,
// diffs between two timestamps, and each key through bloom file and key index.
func TestKuduServesExtractedTables(t *testing.T) {
	scan := kuduScan(t)
	seed := seedtest.Seed(t)
	tables := 2
	for ; tables > 0; seed++ {
		o := history.RandomSettings(seed)
		r := history.NewRunner(o)
		for g := history.NewGenerator(o); r.Err == nil && r.Counts.Steps < 600; {
			r.Do(g.Next(r))
		}
		must.Do(t, r.Err, "-seed", seed)
		for _, table := range r.Store.Tables() {
			if tables > 0 && servable(table) {
				kuduServes(t, scan, rand.New(rand.NewPCG(seed, 1)), table, r.Model.Commits)
				tables--
			}
		}
		r.Close()
		if t.Failed() {
			t.Fatalf("-seed=%d", seed)
		}
	}
}

// kuduScan is the program that makes a Kudu server serve extracted files.
func kuduScan(t *testing.T) string {
	corpustest.NeedKudu(t)
	dir := filepath.Join(corpustest.Dir(t), "tools", "kudu")
	for _, tool := range []string{"install", "install-client"} {
		if out, err := exec.CommandContext(t.Context(), filepath.Join(dir, tool)).CombinedOutput(); err != nil {
			t.Skipf("Kudu cannot be installed here: %v: %s", err, out)
		}
	}
	return filepath.Join(dir, "scan-rowset")
}

// servable reports whether a table has rows, which never expire, and Kudu's client supports all its
// types.
func servable(table *oribi.Table) bool {
	for _, c := range table.Schema().Columns {
		switch c.Type {
		case schema.Uint8, schema.Uint16, schema.Uint32, schema.Uint64, schema.Int128, schema.Array:
			return false
		}
		if c.AutoIncrement {
			return false // Kudu fills it
		}
	}
	p := table.Properties()
	return len(table.Layout().RowSets) > 0 && p.HistoryFloor == 0 && p.Expiry == (oribi.Expiry{})
}

// kuduServes extracts a table and compares what Kudu reads from it at the timestamps of some
// commits.
func kuduServes(t *testing.T, scan string, r *rand.Rand, table *oribi.Table, commits []model.Commit) {
	dir := filepath.Join(t.TempDir(), "out")
	must.Do(t, table.Extract(t.Context(), dir))
	// Kudu's "at T" is our AsOf(T−1).
	at := func() mvcc.Timestamp { return commits[r.IntN(len(commits))].TS + mvcc.Timestamp(r.IntN(2)) }
	times := []mvcc.Timestamp{at(), at(), at(), commits[len(commits)-1].TS + 1}
	from, to := at(), at()
	if from > to {
		from, to = to, from
	}
	args := []string{"--probe", "--diff", fmt.Sprintf("%d:%d", from, to)}
	for _, ts := range times {
		args = append(args, "--at", strconv.FormatUint(uint64(ts), 10))
	}
	out, err := exec.CommandContext(t.Context(), scan, append(args, dir)...).Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, exit.Stderr)
		}
		t.Errorf("scan-rowset: %v\n%s", err, out)
		return
	}
	parts := strings.Split("\n"+string(out), "\n# ")[1:]
	if len(parts) <= len(times) {
		t.Errorf("scan-rowset answers:\n%s", out)
		return
	}
	for i, ts := range times {
		if got, want := lines(parts[i]), rowsAsOf(t, table, ts-1); !slices.Equal(sameForm(t, got), sameForm(t, want)) {
			t.Errorf("at %d Kudu reads\n%s\nwant\n%s", ts, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	sameDiff(t, table, lines(parts[len(times)]), from-1, to-1)
	t.Logf("%d rowsets, %d columns, %d rows at the end", len(table.Layout().RowSets), len(table.Schema().Columns),
		len(lines(parts[len(times)-1])))
}

func lines(part string) []string { return strings.Split(strings.TrimSuffix(part, "\n"), "\n")[1:] }

// rowsAsOf returns the rows as Kudu's driver prints them: decimals, dates and timestamps as
// integers.
func rowsAsOf(t *testing.T, table *oribi.Table, ts mvcc.Timestamp) (out []string) {
	columns := table.Schema().Columns
	for b := range must.All(t, table.Scan(t.Context(), oribi.AsOf(ts)).Batches()) {
		for i := b.Selection.Next(0); i >= 0; i = b.Selection.Next(i + 1) {
			line := []byte{'['}
			for j, v := range b.Columns {
				if j > 0 {
					line = append(line, ',')
				}
				c := columns[j]
				if !c.Type.Variable() {
					c.Type, c.Scale = c.Type.Physical(), 0
				}
				line = celltext.AppendJSON(line, &c, v.Cell(i))
			}
			out = append(out, string(append(line, ']')))
		}
	}
	return out
}

// sameDiff compares a diff by Kudu, (from, to] in our terms, with two scans. Kudu omits a row that
// was inserted and deleted between the two, and reports a row that was changed and changed back.
func sameDiff(t *testing.T, table *oribi.Table, got []string, from, to mvcc.Timestamp) {
	keys := table.Schema().Keys
	before, after := byKey(t, rowsAsOf(t, table, from), keys), byKey(t, rowsAsOf(t, table, to), keys)
	seen := map[string]bool{}
	for _, line := range got {
		var d struct {
			Deleted  bool
			Row, Key []json.RawMessage
		}
		must.Do(t, json.Unmarshal([]byte(line), &d))
		if d.Deleted {
			d.Row = d.Key
		}
		key := keyText(t, d.Row, keys)
		seen[key] = true
		switch row, there := after[key]; {
		case d.Deleted && (there || before[key] == ""):
			t.Errorf("diff %d:%d: Kudu reports the delete of %s; before %q, after %q", from, to, key, before[key], row)
		case !d.Deleted && text(t, d.Row) != row:
			t.Errorf("diff %d:%d: Kudu reports %s, want %q", from, to, line, row)
		}
	}
	for key := range after {
		if before[key] != after[key] && !seen[key] {
			t.Errorf("diff %d:%d: Kudu does not report %s: %q, then %q", from, to, key, before[key], after[key])
		}
	}
	for key := range before {
		if after[key] == "" && !seen[key] {
			t.Errorf("diff %d:%d: Kudu does not report the delete of %s", from, to, key)
		}
	}
}

func byKey(t *testing.T, rows []string, keys int) map[string]string {
	m := map[string]string{}
	for _, line := range rows {
		var row []json.RawMessage
		must.Do(t, json.Unmarshal([]byte(line), &row))
		m[keyText(t, row, keys)] = text(t, row)
	}
	return m
}

func keyText(t *testing.T, row []json.RawMessage, keys int) string { return text(t, row[:keys]) }

// sameForm normalizes rows: two programs may format a number differently.
func sameForm(t *testing.T, rows []string) (out []string) {
	for _, line := range rows {
		var row []json.RawMessage
		must.Do(t, json.Unmarshal([]byte(line), &row), line)
		out = append(out, text(t, row))
	}
	return out
}

func text(t *testing.T, row []json.RawMessage) string {
	var b strings.Builder
	for _, cell := range row {
		var v any
		d := json.NewDecoder(bytes.NewReader(cell))
		d.UseNumber()
		must.Do(t, d.Decode(&v))
		if n, ok := v.(json.Number); ok && strings.ContainsAny(n.String(), ".eE") {
			f, _ := must.Get2(big.ParseFloat(n.String(), 10, 200, big.ToNearestEven))(t)
			v = f.Text('g', 40)
		}
		fmt.Fprintf(&b, "%#v,", v)
	}
	return b.String()
}
