package kudu

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/oribi-db/oribi/internal/corpustest"
	"github.com/oribi-db/oribi/internal/kudutest"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/keyenc"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/scan"
)

// Rows and differences at all times are those that servers of random settings and tables answered
// before they were killed, histories agree with them, and nothing is found wrong.
func TestDirectoriesOfRandomServers(t *testing.T) {
	corpustest.NeedKudu(t)
	seed := seedtest.Seed(t)
	for i := range seedtest.Rounds[uint64](6, 1) {
		t.Run(fmt.Sprint("seed=", seed+i), func(t *testing.T) { testRandomServer(t, seed+i) })
	}
}

func testRandomServer(t *testing.T, seed uint64) {
	server := kudutest.NewRandomServer(t, seed)
	d := must.Get(Open(server.Dir, Options{Warn: func(text string) { t.Errorf("warning: %s", text) }}))(t)
	defer d.Close()
	for _, finding := range verify(t, d) {
		t.Error(finding)
	}
	(&goldenCase{server.Answers}).compareWith(t, d)
	rowsets := 0
	for name, times := range server.Times {
		table := openTable(t, d, name)
		for _, tablet := range table.tablets {
			rowsets += len(tablet.sets)
		}
		historiesMatchScans(t, rand.New(rand.NewPCG(seed, 2)), table, times)
	}
	t.Logf("%d answers, %d rowsets", len(server.Answers.Answers), rowsets)
}

// historiesMatchScans compares the versions of rows with scans at some times.
func historiesMatchScans(t *testing.T, r *rand.Rand, table *Table, times []uint64) {
	t.Helper()
	encoder := keyenc.NewEncoder(table.Schema)
	want := map[string][]string{} // by key: the row at each time
	for i, ts := range times {
		it := must.Get(
			table.Scan(scan.Options{Columns: allColumns(table), Snapshot: mvcc.Snapshot(ts), Keys: true}, true))(t)
		for it.Next() {
			b := it.Batch()
			for row := range b.Rows() {
				key := string(it.Keys()[row])
				if want[key] == nil {
					want[key] = make([]string, len(times))
				}
				want[key][i] = string(kudutest.AppendCells(nil, table.Schema.Columns, func(c int) []byte {
					return b.Columns[c].Cell(row)
				}))
			}
		}
		must.Do(t, it.Close())
	}
	for key, states := range want {
		if r.IntN(4) > 0 {
			continue
		}
		var versions []Version
		must.Do(t, table.History([]byte(key), func(v Version) bool {
			versions = append(versions, v)
			return true
		}))
		for i, ts := range times {
			got := ""
			if at := slices.IndexFunc(versions, func(v Version) bool {
				return uint64(v.TS) < ts
			}); at >= 0 && versions[at].Cells != nil {
				got = string(kudutest.AppendCells(nil, table.Schema.Columns, func(c int) []byte {
					return versions[at].Cells[c]
				}))
			}
			if got != states[i] {
				cells, _ := encoder.Decode([]byte(key))
				t.Errorf("%s: key %q at %d: %s by its history, %s by a scan", table.Name, cells, ts, got, states[i])
			}
		}
	}
}
