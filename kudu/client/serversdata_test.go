package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/kudurow"
	"github.com/oribi-db/oribi/internal/kudutest"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/keyenc"
	"github.com/oribi-db/oribi/schema"
)

// liveTable is a table of real servers, with the rows that it must have.
type liveTable struct {
	*Table
	cluster *kudutest.Cluster
	want    map[string][][]byte // by key
	encoder *keyenc.Encoder
	r       *rand.Rand
}

// newLiveTable makes a table of columns of all types at three servers, each of whose tablets has
// three replicas. One of its ranges has a hash of its own.
func newLiveTable(t *testing.T) *liveTable {
	cluster := kudutest.NewCluster(t, 3)
	cluster.Start()
	c := must.Get(Connect(t.Context(), []string{cluster.Master}, nil))(t)
	t.Cleanup(func() { c.Close() })
	columns := []schema.Column{{Name: "i", Type: schema.Int32}, {Name: "s", Type: schema.String},
		{Name: "d", Type: schema.Date}, {Name: "i8", Type: schema.Int8, Nullable: true},
		{Name: "i16", Type: schema.Int16}, {Name: "i64", Type: schema.Int64, Nullable: true},
		{Name: "b", Type: schema.Bool, Nullable: true}, {Name: "f", Type: schema.Float, Nullable: true},
		{Name: "x", Type: schema.Double}, {Name: "t", Type: schema.Timestamp, Nullable: true},
		{Name: "n", Type: schema.Decimal32, Precision: 7, Scale: 2}, {Name: "m", Type: schema.Decimal64, Precision: 17},
		{Name: "l", Type: schema.Decimal128, Precision: 38, Scale: 3, Nullable: true},
		{Name: "v", Type: schema.Varchar, Length: 9, Nullable: true}, {Name: "y", Type: schema.Binary, Nullable: true}}
	s := must.Get(schema.New(columns, 3))(t)
	hash := func(buckets int) []Hash { return []Hash{{Columns: []string{"i", "s"}, Buckets: buckets, Seed: 9}} }
	spec := &TableSpec{Name: "live", Schema: s, Replicas: 3, Partitioning: Partitioning{Hash: hash(3),
		Range: []string{"i"}, Ranges: []Range{{To: []any{100}}, {From: []any{100}, To: []any{500}, Hash: hash(2)},
			{From: []any{500}}}}}
	table := must.Get(c.CreateTable(t.Context(), spec))(t)
	return &liveTable{Table: table, cluster: cluster, want: map[string][][]byte{},
		encoder: keyenc.NewEncoder(table.Schema), r: seedtest.Rand(t)}
}

// row returns a random row.
func (l *liveTable) row() (cells [][]byte) {
	for i := range l.Schema.Columns {
		c := &l.Schema.Columns[i]
		var cell []byte
		switch {
		case c.Nullable && l.r.IntN(5) == 0:
			cells = append(cells, nil)
			continue
		case i == 0:
			cell = int32Cell(l.r.IntN(1000))
		case c.Type == schema.Date:
			cell = int32Cell(l.r.IntN(30_000))
		case c.Type == schema.Bool:
			cell = []byte{byte(l.r.IntN(2))}
		case c.Type.Variable():
			cell = fmt.Append([]byte{}, l.r.IntN(1000), "\x00é")[:l.r.IntN(5)]
			if len(cell) == 4 || len(cell) > 0 && cell[len(cell)-1] >= 0x80 {
				cell = []byte("é")
			}
		case c.Type == schema.Timestamp:
			cell = int64Cell(l.r.IntN(1 << 50))
		default: // numbers that all types have, floats without a fraction
			cell = make([]byte, c.Type.Width())
			cell[0] = byte(l.r.Uint32())
		}
		cells = append(cells, cell)
	}
	return cells
}

// write writes n rows and deletes some, in random ways.
func (l *liveTable) write(t *testing.T, s *Session, n int) {
	t.Helper()
	for n > 0 {
		var rows [][][]byte
		op := Upsert
		if l.r.IntN(5) == 0 {
			op = DeleteIgnore
		}
		for range 1 + l.r.IntN(300) {
			row := l.row()
			rows = append(rows, row)
			key := string(l.encoder.AppendKey(nil, row))
			if l.want[key] = row; op == DeleteIgnore {
				delete(l.want, key)
			}
		}
		n -= len(rows)
		if l.r.IntN(2) == 0 {
			must.Do(t, s.ApplyBatch(t.Context(), op, batchOf(l.Schema.Columns, rows...)))
			continue
		}
		for _, row := range rows {
			must.Do(t, s.Apply(t.Context(), op, row))
		}
	}
}

// check compares the rows of a scan with those that were written.
func (l *liveTable) check(t *testing.T, o ScanOptions) *Scan {
	t.Helper()
	s := must.Get(l.Scan(t.Context(), o))(t)
	rows := must.Get(rowsOf(s))(t)
	got := map[string][][]byte{}
	for _, row := range rows {
		got[string(l.encoder.AppendKey(nil, row))] = row
	}
	must.Equal(t, len(rows), len(l.want))
	must.Equal(t, got, l.want)
	return s
}

// checkJava compares the rows that Kudu's Java client reads.
func (l *liveTable) checkJava(t *testing.T) {
	t.Helper()
	var want, got []string
	for _, row := range l.want {
		want = append(want, string(kudutest.AppendCells(nil, l.Schema.Columns, func(i int) []byte { return row[i] })))
	}
	for _, row := range l.cluster.Rows(l.Name) {
		got = append(got, string(must.Get(json.Marshal(row))(t)))
	}
	slices.Sort(want)
	slices.Sort(got)
	must.Equal(t, len(got), len(want))
	must.Equal(t, got, want)
}

// What sessions write is what scans, sums, and Kudu's Java client read, also when servers end and start
// again meanwhile.
func TestServersKeepWhatSessionsWrite(t *testing.T) {
	l := newLiveTable(t)
	s := must.Get(l.NewSession(t.Context(), &SessionOptions{BatchRows: 200}))(t)
	defer s.Close()
	l.write(t, s, 5000)
	done := must.Get(s.Flush(t.Context()))(t)
	must.Equal(t, done.RowErrors, nil)
	first := l.check(t, ScanOptions{At: done.Timestamp + 1, Followers: true})
	before := maps.Clone(l.want)
	l.checkJava(t)
	for _, server := range l.cluster.Servers {
		l.cluster.Stop(server)
		l.write(t, s, 2000)
		l.cluster.StartServer(server)
		l.write(t, s, 1000)
		must.Do(t, must.Err(s.Flush(t.Context())))
		l.cluster.Await(l.Name)
	}
	last := l.check(t, ScanOptions{Ordered: true})
	l.check(t, ScanOptions{BatchBytes: 1, Tablets: 3})
	l.checkJava(t)
	l.checkSums(t, last)
	l.checkChanges(t, first, last, before)
	l.checkTests(t)
}

// checkSums compares the servers' sums with the sums of the rows.
func (l *liveTable) checkSums(t *testing.T, of *Scan) {
	t.Helper()
	sums, _ := must.Get2(l.Checksum(t.Context(), ScanOptions{At: of.At()}))(t)
	for _, got := range sums {
		var want kudurow.Summer
		s := must.Get(l.Scan(t.Context(), ScanOptions{At: of.At(), Tablet: got.Tablet}))(t)
		for s.Next() {
			want.Add(s.Batch())
		}
		must.Do(t, s.Close())
		must.Equal(t, got.Sum, want.Sum)
		must.Equal(t, got.Rows, want.Rows)
	}
	if len(sums) != 8 {
		t.Errorf("%d tablets", len(sums))
	}
}

// checkChanges applies the changes between two scans to the rows of the first.
func (l *liveTable) checkChanges(t *testing.T, first, last *Scan, rows map[string][][]byte) {
	t.Helper()
	s := must.Get(l.Scan(t.Context(), ScanOptions{From: first.At(), At: last.At()}))(t)
	changes := must.Get(rowsOf(s))(t)
	for _, row := range changes {
		n := len(l.Schema.Columns)
		key := string(l.encoder.AppendKey(nil, row))
		if rows[key] = row[:n]; row[n][0] == 1 {
			delete(rows, key)
		}
	}
	must.Equal(t, rows, l.want)
	if len(changes) < 1000 {
		t.Errorf("%d changes", len(changes))
	}
}

// checkTests compares the rows that pass random predicates, of all types, and of the columns of the
// partitioning, by which tablets are left out.
func (l *liveTable) checkTests(t *testing.T) {
	t.Helper()
	asked := 0
	keys := slices.Sorted(maps.Keys(l.want))
	for range 40 {
		row := l.want[keys[l.r.IntN(len(keys))]]
		o := ScanOptions{Where: []batch.Predicate{{Column: "i", Op: batch.In, Values: [][]byte{row[0], l.row()[0]}},
			{Column: "s", Op: batch.Eq, Values: [][]byte{row[1]}}}}
		want := int64(0)
		for _, other := range l.want {
			if slices.ContainsFunc(o.Where[0].Values, func(v []byte) bool { return bytes.Equal(v, other[0]) }) &&
				bytes.Equal(other[1], row[1]) {
				want++
			}
		}
		got, _ := must.Get2(l.Count(t.Context(), o))(t)
		must.Equal(t, got, want)
		asked += len(must.Get(l.chosen(t.Context(), "", must.Get(l.plan(o))(t).pruner(l.Table)))(t))
	}
	if asked > 3*40 {
		t.Errorf("%d tablets of 8 were asked in 40 scans for two values", asked)
	}
	for i := range l.Schema.Columns {
		c := &l.Schema.Columns[i]
		for op := batch.Eq; op <= batch.NotNull; op++ {
			p := batch.Predicate{Column: c.Name, Op: op, Type: c.Type}
			values := map[bool]int{true: 1, false: 0}[op <= batch.Ge]
			if op == batch.In {
				values = 3
			}
			for len(p.Values) < values {
				if cell := l.row()[i]; cell != nil {
					p.Values = append(p.Values, cell)
				}
			}
			want := int64(0)
			for _, row := range l.want {
				if p.EvalCell(row[i]) {
					want++
				}
			}
			got, _ := must.Get2(l.Count(t.Context(), ScanOptions{Where: []batch.Predicate{p}}))(t)
			must.Equal(t, got, want, c.Name, op, fmt.Sprintf("%x", p.Values))
		}
	}
}

// An ordered scan goes on when the servers that it reads from end, one after the other.
func TestOrderedScansSurviveServers(t *testing.T) {
	l := newLiveTable(t)
	s := must.Get(l.NewSession(t.Context(), nil))(t)
	defer s.Close()
	l.write(t, s, 20_000)
	done := must.Get(s.Flush(t.Context()))(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	scan := must.Get(l.Scan(ctx, ScanOptions{At: done.Timestamp + 1, Ordered: true, BatchBytes: 1000}))(t)
	got := map[string]bool{}
	for n := 0; scan.Next(); n++ {
		b := scan.Batch()
		for row := range b.Rows() {
			var key [][]byte
			for _, v := range b.Columns[:3] {
				key = append(key, v.Cell(row))
			}
			encoded := string(l.encoder.AppendKey(nil, key))
			if got[encoded] {
				t.Fatalf("row %x twice", encoded)
			}
			got[encoded] = true
		}
		if n%10 == 5 && n < 40 {
			server := l.cluster.Servers[n/10%3]
			l.cluster.Stop(server)
			if n > 10 {
				l.cluster.StartServer(l.cluster.Servers[(n/10+2)%3])
			}
		}
	}
	must.Do(t, scan.Close())
	must.Equal(t, len(got), len(l.want))
}

// Each row is inserted once, though servers end in the middle of requests and others become leaders: a
// row that is inserted twice is a row error.
func TestServersInsertRowsOnce(t *testing.T) {
	l := newLiveTable(t)
	s := must.Get(l.NewSession(t.Context(), &SessionOptions{BatchRows: 20}))(t)
	defer s.Close()
	n := int64(0)
	for i := range 60 {
		for range 100 {
			row := l.row()
			key := string(l.encoder.AppendKey(nil, row))
			if l.want[key] == nil {
				must.Do(t, s.Apply(t.Context(), Insert, row))
				l.want[key] = row
				n++
			}
		}
		server := l.cluster.Servers[i/20]
		switch i % 20 {
		case 5: // requests are on their way
			l.cluster.Stop(server)
		case 10:
			l.cluster.StartServer(server)
			l.cluster.Await(l.Name)
		}
	}
	done := must.Get(s.Flush(t.Context()))(t)
	must.Equal(t, done.RowErrors, nil)
	must.Equal(t, done.Rows, n)
	l.check(t, ScanOptions{At: done.Timestamp + 1})
}
