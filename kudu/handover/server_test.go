package handover

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/corpustest"
	"github.com/oribi-db/oribi/internal/kudutest"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/prooftest/history"
	"github.com/oribi-db/oribi/internal/prooftest/model"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/kudu"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
)

// A real tablet server serves tables of random histories, installed into one tablet and into
// several by partition: its scans, diffs, and lookups return the store's rows. Then rows are
// written through the server, and its directory is imported: the imported table equals the server's
// answers, also for earlier times.
func TestServersServeInstalledTables(t *testing.T) {
	c := kudutest.NewCluster(t, 1)
	c.Start()
	seed := seedtest.Seed(t)
	server := c.Servers[0]
	r, table := servableTable(t, &seed)
	rnd := rand.New(rand.NewPCG(seed, 3))
	s := table.Schema()
	key := s.Columns[0].Name
	partitions := map[string]kudutest.Request{
		"whole":  {},
		"hashed": {"hash": hashed(key, 3, 5)},
	}
	if values := firstCells(t, table); len(values) > 3 {
		from, to := kudutest.Request{key: values[len(values)/3]}, kudutest.Request{key: values[len(values)*2/3]}
		partitions["ranges"] = kudutest.Request{"hash": hashed(key, 2, 1), "range_cols": []string{key},
			"ranges": []kudutest.Request{{"lo": from, "hi": to}},
			"custom": []kudutest.Request{{"hi": from, "hash": hashed(key, 3, 7)},
				{"lo": to, "hash": hashed(key, 4, 9)}}}
	}
	tablets := map[string][]string{}
	for name, by := range partitions {
		by["extra"] = keepAll
		tablets[name] = createWithOtherIDs(c, name, s, by)
		c.Await(name)
	}
	c.Stop(server)
	for name, ids := range tablets {
		var rows int64
		for _, id := range ids {
			result, err := Install(t.Context(), table, server.Dir, id, InstallOptions{PartitionOnly: len(ids) > 1})
			must.Do(t, err, seed)
			rows += result.Rows
		}
		must.Equal(t, rows, int64(len(tableRows(t, table))), name)
	}
	times := someTimes(rnd, r.Model.Commits, 4)
	var names []string
	for name := range tablets {
		names = append(names, name)
	}
	serves(t, c, server, table, times, names...)
	answers := &kudutest.Case{Dir: t.TempDir()}
	for name := range tablets {
		c.Ask(answers, name, append(slices.Clone(times), writeThrough(t, c, name, s)...)...)
	}
	c.Stop(server)
	m := &importer{t: t, d: openServer(t, server.Dir), store: openStore(t, vfs.NewMem()),
		from: map[string]*kudu.Table{}}
	m.compare(answers)
	t.Logf("%d answers", len(answers.Answers))
	if t.Failed() {
		t.Fatalf("-seed=%d", seed)
	}
}

// A real tablet server serves the directory of an export, after Kudu's tool has made a master from
// it.
func TestServersServeExports(t *testing.T) {
	c := kudutest.NewCluster(t, 1)
	seed := seedtest.Seed(t)
	server := c.Servers[0]
	r, table := servableTable(t, &seed)
	must.Do(t, must.Err(Export(t.Context(), table, server.Dir, ExportOptions{})), seed)
	c.StartServer(server)
	c.Wait("master", "unsafe_rebuild", server.Address, "--fs_wal_dir="+c.MasterDir(), "--default_num_replicas=1")
	c.Stop(server)
	c.StartMaster()
	serves(t, c, server, table, someTimes(rand.New(rand.NewPCG(seed, 4)), r.Model.Commits, 3), table.Name())
	writeThrough(t, c, table.Name(), table.Schema())
	if t.Failed() {
		t.Fatalf("-seed=%d", seed)
	}
}

// Tables of random servers answer, when they are imported, as the servers did.
func TestImportsFromRandomServers(t *testing.T) {
	corpustest.NeedKudu(t)
	seed := seedtest.Seed(t) + 100 // so that the histories differ from package kudu's
	for i := range seedtest.Rounds[uint64](3, 1) {
		t.Run(fmt.Sprint("seed=", seed+i), func(t *testing.T) {
			server := kudutest.NewRandomServer(t, seed+i)
			m := &importer{t: t, d: openServer(t, server.Dir), store: openStore(t, vfs.NewMem()),
				from: map[string]*kudu.Table{}}
			m.compare(server.Answers)
			m.verify()
		})
	}
}

// hashed divides rows by a hash of a column.
func hashed(column string, buckets, seed int) []kudutest.Request {
	return []kudutest.Request{{"cols": []string{column}, "buckets": buckets, "seed": seed}}
}

// firstCells returns the values of the first key column, ascending.
func firstCells(t *testing.T, table *oribi.Table) (values []json.RawMessage) {
	t.Helper()
	for _, line := range rowsAt(t, table) {
		var row []json.RawMessage
		must.Do(t, json.Unmarshal([]byte(line), &row))
		if len(values) == 0 || !bytes.Equal(values[len(values)-1], row[0]) {
			values = append(values, row[0])
		}
	}
	return values
}

// createWithOtherIDs makes a table with the columns of a schema. Those that are not in the key have
// IDs that no new table has, since another column was there before them.
func createWithOtherIDs(c *kudutest.Cluster, table string, s *schema.Schema, by kudutest.Request) (tablets []string) {
	const dropped = "dropped before"
	wider := *s
	wider.Columns = slices.Insert(slices.Clone(s.Columns), s.Keys,
		schema.Column{Name: dropped, Type: schema.Bool, Nullable: true})
	tablets = c.Create(table, &wider, by)
	c.Call(kudutest.Request{"cmd": "alter", "name": table,
		"steps": []kudutest.Request{{"op": "drop", "name": dropped}}})
	return tablets
}

// serves starts the servers and compares their answers for tables with reads of the store. One
// server, before, has all their rows.
func serves(
	t *testing.T, c *kudutest.Cluster, server *kudutest.Server, table *oribi.Table, times []uint64, names ...string,
) {
	t.Helper()
	stopped := &importer{t: t, d: openServer(t, server.Dir), from: map[string]*kudu.Table{}}
	for _, name := range names {
		stopped.from[name] = openKudu(t, stopped.d, name)
	}
	for _, server := range c.Servers {
		c.StartServer(server)
	}
	c.Wait("cluster", "ksck", c.Master) // replicas are copied
	got := &kudutest.Case{Dir: t.TempDir()}
	for _, name := range names {
		c.Await(name)
		c.Ask(got, name, times...)
	}
	got.Compare(t, func(name string, a *kudutest.Answer) []string {
		if a.Kind == "scan" {
			return rowsAt(t, table, oribi.AsOf(timestampBefore(a.TS)))
		}
		return stopped.diff(name, table, a)
	})
}

// keepAll are settings of a Kudu table that keeps its history: more seconds than since 1970.
var keepAll = map[string]string{"kudu.table.history_max_age_sec": "2000000000"}

// servableTable returns a table with more than 50 rows, with all its history, and with types that
// Kudu's client knows. It tries random histories, from seed on; seed becomes the seed of the
// history that has such a table.
func servableTable(t *testing.T, seed *uint64) (*history.Runner, *oribi.Table) {
	t.Helper()
	for ; ; *seed++ {
		r := randomHistory(t, *seed, 200)
		for _, table := range r.Store.Tables() {
			if transferable(table) && !ahead(r) && table.Properties().HistoryFloor == 0 &&
				!slices.ContainsFunc(table.Schema().Columns, unknownToClient) &&
				slices.ContainsFunc(table.Schema().Columns[table.Schema().Keys:], func(c schema.Column) bool {
					return !c.Immutable
				}) && len(tableRows(t, table)) > 50 {
				t.Cleanup(func() { r.Close() })
				return r, table
			}
		}
		r.Close()
	}
}

// unknownToClient reports whether Kudu's client cannot read or write a column.
func unknownToClient(c schema.Column) bool {
	switch c.Type {
	case schema.Uint8, schema.Uint16, schema.Uint32, schema.Uint64, schema.Int128, schema.Array:
		return true
	}
	return c.AutoIncrement // Kudu fills it
}

// someTimes returns times, ascending: just before or just after n random commits, and after the
// last one.
func someTimes(r *rand.Rand, commits []model.Commit, n int) []uint64 {
	last := uint64(commits[len(commits)-1].TS) + 1
	times := map[uint64]bool{last: true}
	for range n {
		times[uint64(commits[r.IntN(len(commits))].TS)+uint64(r.IntN(2))] = true
	}
	return slices.Sorted(maps.Keys(times))
}

// timestampBefore returns the newest timestamp that Kudu reads at a time, which is exclusive.
func timestampBefore(ts uint64) mvcc.Timestamp { return mvcc.Timestamp(ts - 1) }

// openServer opens the directory of a server.
func openServer(t *testing.T, dir string) *kudu.Directory {
	t.Helper()
	d := must.Get(kudu.Open(dir, kudu.Options{Warn: func(text string) { t.Errorf("warning: %s", text) }}))(t)
	t.Cleanup(func() { d.Close() })
	return d
}

// writeThrough writes rows of a table through a server: it inserts all rows again, which fails for
// each of them, deletes every third, gives others the cells of their neighbors, and inserts most of
// the deleted rows again. It returns the times after the writes.
func writeThrough(t *testing.T, c *kudutest.Cluster, table string, s *schema.Schema) (times []uint64) {
	t.Helper()
	var rows []map[string]json.RawMessage
	for _, line := range c.Rows(table) {
		row := map[string]json.RawMessage{}
		for i, cell := range line {
			row[s.Columns[i].Name] = cell
		}
		rows = append(rows, row)
	}
	// with returns the key of a row with other cells, if any.
	with := func(key, cells map[string]json.RawMessage) map[string]json.RawMessage {
		out := map[string]json.RawMessage{}
		for i := range s.Columns {
			if name := s.Columns[i].Name; i < s.Keys {
				out[name] = key[name]
			} else if cells != nil && !s.Columns[i].Immutable {
				out[name] = cells[name]
			}
		}
		return out
	}
	write := func(code string, ops [][2]any) {
		t.Helper()
		failed, ts := c.Write(table, ops)
		times = append(times, ts)
		for i := range ops {
			if failed[i] != code {
				t.Errorf("%s: %s: %q, want %q", table, ops[i], failed[i], code)
			}
		}
	}
	var again, deletes, updates, inserts [][2]any
	for i, row := range rows {
		next := rows[(i+1)%len(rows)]
		again = append(again, [2]any{"insert", row})
		switch i % 3 {
		case 0:
			deletes = append(deletes, [2]any{"delete", with(row, nil)})
			if i%4 != 0 {
				inserts = append(inserts, [2]any{"insert", row})
			}
		case 1:
			updates = append(updates, [2]any{"update", with(row, next)})
		}
	}
	write("ALREADY_PRESENT", again)
	write("", deletes)
	write("NOT_FOUND", deletes)
	write("", slices.Concat(updates, inserts))
	return times
}

// A table moves into a tablet with three replicas: it is installed into the one with the longest
// log, the others are tombstoned, and the servers copy it to them. All replicas have the rows and
// the history, and go on together.
func TestReplicasCopyInstalledTables(t *testing.T) {
	c := kudutest.NewCluster(t, 3)
	c.Start()
	table := filledTable(t)
	s := table.Schema()
	var times []uint64
	for v, err := range table.History(t.Context(), int64(0)) {
		must.Do(t, err)
		times = append(times, uint64(v.Timestamp)+1)
	}
	slices.Reverse(times)
	c.Tool("table", "create", c.Master, `{"table_name": "t", "schema": {"columns": [{"column_name": "k", "column_type": "INT64"},
		{"column_name": "s", "column_type": "STRING", "is_nullable": true}], "key_column_names": ["k"]},
		"partition": {"range_partition": {"columns": []}}, "num_replicas": 3, "extra_configs": {"configs": {"kudu.table.history_max_age_sec": "2000000000"}}}`)
	c.Wait("cluster", "ksck", c.Master)
	tablet := c.Tablets("t")[0]
	for _, server := range c.Servers {
		c.Stop(server)
	}
	longest := slices.MaxFunc(c.Servers, func(a, b *kudutest.Server) int { return compareLogs(t, a, b, tablet) })
	must.Get(Install(t.Context(), table, longest.Dir, tablet, InstallOptions{}))(t)
	for _, server := range c.Servers {
		if server != longest {
			c.Tool("local_replica", "delete", tablet, "--fs_wal_dir="+server.Dir)
		}
	}
	serves(t, c, longest, table, times, "t")
	answers := &kudutest.Case{Dir: t.TempDir()}
	c.Ask(answers, "t", append(times, writeThrough(t, c, "t", s)...)...)
	c.Wait("cluster", "ksck", c.Master, "--checksum_scan") // waits for all replicas, and compares them
	for _, server := range c.Servers {
		c.Stop(server)
	}
	for _, server := range c.Servers {
		m := &importer{t: t, d: openServer(t, server.Dir), store: openStore(t, vfs.NewMem()),
			from: map[string]*kudu.Table{}}
		m.compare(answers)
	}
}

// compareLogs compares the logs of a tablet's replicas on two servers, by their lengths.
func compareLogs(t *testing.T, a, b *kudutest.Server, tablet string) int {
	t.Helper()
	last := func(server *kudutest.Server) *kudu.OperationID {
		about := must.Get(openServer(t, server.Dir).Describe(tablet))(t)
		return about.Tablets[0].LastOperation
	}
	x, y := last(a), last(b)
	return cmp.Or(cmp.Compare(x.Term, y.Term), cmp.Compare(x.Index, y.Index))
}
