package kudutest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
)

// RandomServer is the directory of a tablet server with random settings, which got random tables
// and writes, was killed while it flushed, compacted, and wrote, and is stopped.
type RandomServer struct {
	Dir     string
	Answers *Case               // of the server, to scans and diffs of its tables
	Times   map[string][]uint64 // of the scans, by table, ascending
}

// NewRandomServer makes one in some seconds. The test is skipped if it is short, or without Kudu's
// programs.
func NewRandomServer(t *testing.T, seed uint64) *RandomServer {
	t.Helper()
	c := NewCluster(t, 1)
	server := c.Servers[0]
	w := &serverWriter{t: t, r: rand.New(rand.NewPCG(seed, 1)), c: c, server: server}
	roots := w.r.IntN(3)
	server.Flags = randomFlags(w.r)
	w.repeats = !slices.Contains(server.Flags, maintenance)
	if roots > 0 {
		must.Do(t, server.UseRoots(roots))
	}
	t.Logf("%d roots for data, flags %q", roots, server.Flags)
	c.Start()
	for i := range 1 + w.r.IntN(3) {
		w.create(fmt.Sprint("t", i))
	}
	for range 25 {
		w.step()
	}
	w.mark()
	out := &RandomServer{Dir: server.Dir, Answers: &Case{Dir: t.TempDir()}, Times: map[string][]uint64{}}
	for _, table := range w.tables {
		w.ask(out.Answers, table)
		out.Times[table.name] = table.times
	}
	w.killDuringWrites()
	return out
}

// one returns one of some values.
func one[T any](r *rand.Rand, values ...T) T { return values[r.IntN(len(values))] }

// maintenance has a server flush and compact.
const maintenance = "--enable_maintenance_manager=true"

// randomFlags returns settings of a tablet server: most of them have it flush and compact
// all the time.
func randomFlags(r *rand.Rand) (flags []string) {
	set := func(name string, values ...string) {
		if value := one(r, values...); value != "" {
			flags = append(flags, "--"+name+"="+value)
		}
	}
	set("block_manager", "log", "log", "file")
	set("log_container_max_size", "", "65536", "1048576")
	set("log_container_preallocate_bytes", "0", "33554432")
	set("log_segment_size_mb", "", "1")
	set("log_compression_codec", "", "no_compression", "snappy", "zlib")
	set("log_preallocate_segments", "true", "false")
	set("log_min_segments_to_retain", "", "1")
	set("cfile_default_block_size", "", "4096")
	set("deltafile_default_block_size", "", "4096")
	set("cfile_write_checksums", "true", "true", "false")
	set("cfile_default_compression_codec", "", "lz4", "snappy", "zlib")
	set("deltafile_default_compression_codec", "", "none", "zlib")
	set("rowset_metadata_store_keys", "true", "false")
	if r.IntN(4) > 0 {
		flags = append(flags, maintenance, "--maintenance_manager_polling_interval_ms=20",
			"--maintenance_manager_num_threads=2",
			"--flush_threshold_secs=1", "--flush_threshold_mb=1", "--tablet_delta_store_minor_compact_max=2",
			"--tablet_delta_store_major_compact_min_ratio=0.01", "--budgeted_compaction_target_rowset_size=16384",
			"--log_target_replay_size_mb=1")
	}
	return flags
}

// serverTable is a table of a server, as it is now.
type serverTable struct {
	name    string
	keys    []serverColumn
	columns []serverColumn // after the key
	added   int            // columns up to now
	times   []uint64       // to read it at
	dropped bool           // columns were dropped
	ranges  int            // how many ranges were added; 0 if it has no ranges
}

// serverColumn is a column, with the properties that its random values depend on.
type serverColumn struct {
	name, kind string
	nullable   bool
	filled     bool // it has a default
	scale      int
}

// serverWriter makes random tables and changes.
type serverWriter struct {
	t      *testing.T
	r      *rand.Rand
	c      *Cluster
	server *Server
	tables []*serverTable
	// repeats: a batch may have several operations on one key. Kudu 1.18.1 fails a check, and ends,
	// when it compacts a row that was deleted twice at the same time.
	repeats bool
}

var serverKinds = []string{"INT8", "INT16", "INT32", "INT64", "UNIXTIME_MICROS", "DATE", "BOOL", "FLOAT", "DOUBLE",
	"STRING", "BINARY", "VARCHAR", "DECIMAL"}

// column returns a random column, and its description for the client.
func (w *serverWriter) column(name string, key bool) (serverColumn, Request) {
	r := w.r
	c := serverColumn{name: name, kind: one(r, serverKinds...)}
	for key && (c.kind == "BOOL" || c.kind == "FLOAT" || c.kind == "DOUBLE") {
		c.kind = one(r, serverKinds...)
	}
	about := Request{"name": name, "type": c.kind, "key": key}
	switch c.kind {
	case "DECIMAL":
		precision := one(r, 5, 9, 12, 18, 25)
		c.scale = r.IntN(4)
		about["precision"], about["scale"] = precision, c.scale
	case "VARCHAR":
		about["length"] = 30
	}
	encodings := []string{"AUTO_ENCODING", "PLAIN_ENCODING", "BIT_SHUFFLE", "RLE"}
	switch c.kind {
	case "BOOL":
		encodings = []string{"AUTO_ENCODING", "PLAIN_ENCODING", "RLE"}
	case "FLOAT", "DOUBLE", "DECIMAL":
		encodings = encodings[:3]
	case "STRING", "BINARY", "VARCHAR":
		encodings = []string{"AUTO_ENCODING", "PLAIN_ENCODING", "PREFIX_ENCODING", "DICT_ENCODING"}
	}
	about["encoding"] = one(r, encodings...)
	about["compression"] = one(r, "DEFAULT_COMPRESSION", "NO_COMPRESSION", "SNAPPY", "LZ4", "ZLIB")
	if r.IntN(3) == 0 {
		about["block_size"] = 4096
	}
	if !key {
		c.nullable, c.filled = r.IntN(2) == 0, r.IntN(3) == 0
		about["nullable"] = c.nullable
		if c.filled {
			about["default"] = w.value(&c)
		}
	}
	return c, about
}

// value returns a random value of a column, out of few.
func (w *serverWriter) value(c *serverColumn) any {
	n := w.r.IntN(40) - 20
	switch c.kind {
	case "BOOL":
		return n < 0
	case "FLOAT", "DOUBLE":
		return float64(n) / 4
	case "STRING", "VARCHAR":
		return strings.Repeat(one(w.r, "", "a", "é", "z\x00", "long "), 1+w.r.IntN(4)) + fmt.Sprint(n)
	case "BINARY":
		return "0x" + strings.Repeat(one(w.r, "00", "ff", "0001"), w.r.IntN(6)) + fmt.Sprintf("%02x", n+20)
	case "INT64", "UNIXTIME_MICROS":
		return int64(n) << one(w.r, 0, 20, 50)
	}
	return n
}

func (w *serverWriter) create(name string) {
	r := w.r
	table := &serverTable{name: name}
	var all []Request
	var names []string
	for i := range 1 + r.IntN(3) {
		c, about := w.column(fmt.Sprint("k", i), true)
		table.keys, all, names = append(table.keys, c), append(all, about), append(names, c.name)
	}
	for range r.IntN(6) {
		c, about := w.column(fmt.Sprint("v", table.added), false)
		table.added++
		table.columns, all = append(table.columns, c), append(all, about)
	}
	request := Request{"cmd": "create", "name": name, "columns": all, "range_cols": []string{},
		"extra": map[string]string{}}
	hash := func(buckets int) []Request {
		return []Request{{"cols": names[:1], "buckets": buckets, "seed": r.IntN(100)}}
	}
	first := table.keys[0]
	switch byRange := first.kind == "INT32" || first.kind == "INT64"; {
	case byRange && r.IntN(2) == 0:
		table.ranges = 1
		request["range_cols"] = names[:1]
		request["ranges"] = []Request{{"hi": Request{first.name: -10}},
			{"lo": Request{first.name: -10}, "hi": Request{first.name: 0}}}
		request["custom"] = []Request{{"lo": Request{first.name: 0}, "hi": Request{first.name: 1000}, "hash": hash(3)}}
		request["hash"] = hash(2) // as many levels as in the other range
	case r.IntN(2) == 0:
		request["hash"] = hash(2 + r.IntN(4))
	}
	w.c.Call(request)
	w.c.Await(name)
	w.tables = append(w.tables, table)
}

// step does something to a random table, or to the server.
func (w *serverWriter) step() {
	table := one(w.r, w.tables...)
	switch n := w.r.IntN(12); {
	case n == 0:
		w.alter(table)
	case n == 1:
		w.c.Stop(w.server)
		w.c.StartServer(w.server)
		for _, table := range w.tables {
			w.c.Await(table.name)
		}
	case n <= 3:
		w.mark()
	default:
		must.Get(w.write(table))(w.t)
	}
}

// mark notes the time after all writes.
func (w *serverWriter) mark() {
	for _, table := range w.tables {
		r := must.Get(w.write(table))(w.t)
		table.times = append(table.times, r.Last+1)
	}
}

// write writes rows to a table: some of the operations fail.
func (w *serverWriter) write(table *serverTable) (Reply, error) {
	ops := [][2]any{}
	seen := map[string]bool{}
	for range 1 + w.r.IntN(120) {
		kind := one(w.r, "insert", "insert", "upsert", "upsert", "update", "update", "delete", "insert_ignore",
			"upsert_ignore", "update_ignore", "delete_ignore")
		row := map[string]any{}
		for i := range table.keys {
			row[table.keys[i].name] = w.value(&table.keys[i])
		}
		if key := fmt.Sprint(row); !w.repeats && seen[key] {
			continue
		} else {
			seen[key] = true
		}
		for i := range table.columns {
			c := &table.columns[i]
			needed := (strings.HasPrefix(kind, "insert") || strings.HasPrefix(kind, "upsert")) &&
				!c.nullable && !c.filled
			switch {
			case strings.HasPrefix(kind, "delete") || !needed && w.r.IntN(2) == 0:
			case c.nullable && w.r.IntN(4) == 0:
				row[c.name] = nil
			default:
				row[c.name] = w.value(c)
			}
		}
		if strings.HasPrefix(kind, "update") && len(row) == len(table.keys) {
			continue // the client refuses it
		}
		ops = append(ops, [2]any{kind, row})
	}
	return w.c.Try(Request{"cmd": "write", "table": table.name, "ops": ops})
}

// alter changes the columns of a table, or its partitions.
func (w *serverWriter) alter(table *serverTable) {
	var step Request
	n := w.r.IntN(6)
	if len(table.columns) == 0 {
		n = 0
	}
	at := w.r.IntN(max(1, len(table.columns)))
	switch n {
	case 0, 1:
		c, about := w.column(fmt.Sprint("v", table.added), false)
		if !c.nullable && !c.filled {
			about["default"], c.filled = w.value(&c), true
		}
		table.added++
		table.columns = append(table.columns, c)
		step = Request{"op": "add", "col": about}
	case 2:
		step = Request{"op": "drop", "name": table.columns[at].name}
		table.columns, table.dropped = slices.Delete(table.columns, at, at+1), true
	case 3:
		to := fmt.Sprint("v", table.added)
		table.added++
		step = Request{"op": "rename", "name": table.columns[at].name, "to": to}
		table.columns[at].name = to
	case 4:
		step = Request{"op": "compression", "name": table.columns[at].name,
			"value": one(w.r, "LZ4", "ZLIB", "NO_COMPRESSION")}
	default:
		if table.ranges == 0 {
			step = Request{"op": "block_size", "name": table.columns[at].name, "value": 8192}
			break
		}
		low := 1000 * table.ranges
		table.ranges++
		step = Request{"op": "add_range", "lo": map[string]any{"k0": low}, "hi": map[string]any{"k0": low + 1000}}
	}
	w.c.Call(Request{"cmd": "alter", "name": table.name, "steps": []Request{step}})
}

// ask adds to answers what the server answers for a table.
func (w *serverWriter) ask(answers *Case, table *serverTable) {
	w.c.Await(table.name)
	for i, ts := range table.times {
		w.c.AskScan(answers, table.name, ts)
		if i > 0 && !table.dropped { // Kudu's diff scans may end the server if columns were dropped
			w.c.AskDiff(answers, table.name, one(w.r, table.times[i-1], table.times[0]), ts)
		}
	}
}

// killDuringWrites kills the server while the client writes.
func (w *serverWriter) killDuringWrites() {
	table := one(w.r, w.tables...)
	for range 1 + w.r.IntN(3) {
		must.Get(w.write(table))(w.t)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for { // until the server is gone
			if r, err := w.write(table); err != nil || len(r.Errors) > 0 && r.Errors[0][1] == "TIMED_OUT" {
				return
			}
		}
	}()
	w.c.Stop(w.server)
	w.c.EndClient() // it would go on trying
	<-ended
}
