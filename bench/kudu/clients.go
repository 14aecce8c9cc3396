package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/bench/harness"
	"github.com/oribi-db/oribi/bench/inputs"
	"github.com/oribi-db/oribi/bench/work"
	"github.com/oribi-db/oribi/kudu/client"
)

// clients returns the peers of the workloads of clients, for the programs that home names.
func clients(home func() (string, error)) (more []work.More) {
	write := func(name string, w func(t *writing) (time.Duration, error)) {
		more = append(more, work.More{Workload: work.KuduWrite, Peer: harness.Peer{Name: name,
			Measure: func(env *harness.Env) (harness.Measurement, error) { return measureWrite(env, home, w) }}})
	}
	write(work.OribiClient, (*writing).batches)
	write(work.OribiByRow, (*writing).byRow)
	write(work.JavaClient, (*writing).java)
	for _, c := range work.KuduReads {
		read := func(name string, measure func(c *cluster, env *harness.Env, columns []string) (harness.Measurement, error)) {
			more = append(more, work.More{Workload: c.Workload, Peer: harness.Peer{Name: name,
				Prepare: func(env *harness.Env) error { return prepareRead(env, home) },
				Measure: func(env *harness.Env) (harness.Measurement, error) {
					l, err := startAt(env, home, quietFlags...)
					if err != nil {
						return harness.Measurement{}, err
					}
					defer l.end()
					return measure(l, env, c.Columns)
				}}})
		}
		read(work.OribiClient, readOurs)
		read(work.JavaClient, readJava)
	}
	return more
}

func startAt(env *harness.Env, home func() (string, error), more ...string) (*cluster, error) {
	h, err := home()
	if err != nil {
		return nil, err
	}
	return startCluster(h, env.Dir, more...)
}

// Tables of the clients.
const (
	mainTable = "lineitem"
	warmTable = "warm"
	warmPart  = 5 // of the rows are written to warmTable before
)

// writing is rows of lineitem that are written to a table: those that are prepared, repeated.
type writing struct {
	*cluster
	env      *harness.Env
	file     string // begins with the prepared rows
	prepared int
	step     int64 // of the order keys, for each repetition
	rows     []*batch.RecordBatch
}

// newWriting prepares rows.
func newWriting(env *harness.Env, c *cluster) (*writing, error) {
	items, file, err := work.KuduItems(env)
	if err != nil {
		return nil, err
	}
	s, err := work.PlainLineitem()
	if err != nil {
		return nil, err
	}
	w := &writing{cluster: c, env: env, file: file, prepared: len(items), step: items[len(items)-1].OrderKey}
	for len(items) > 0 {
		n := min(batchRows, len(items))
		b := newRows(s)
		b.Reset(n)
		inputs.FillVectors(b.Columns, items[:n])
		w.rows, items = append(w.rows, b), items[n:]
	}
	return w, nil
}

// batchRows is the number of rows of a batch.
const batchRows = 1000

// each calls use with the batches of n rows.
func (w *writing) each(n int, use func(b *batch.RecordBatch) error) error {
	for done := 0; done < n; done += w.prepared {
		for _, b := range w.rows {
			if err := use(b); err != nil {
				return err
			}
		}
		w.shift(w.step)
	}
	w.shift(-w.step * int64((n+w.prepared-1)/w.prepared))
	return nil
}

// shift adds to the order keys of the rows.
func (w *writing) shift(by int64) {
	for _, b := range w.rows {
		for i, keys := 0, batch.Values[int64](b.Columns[0]); i < len(keys); i++ {
			keys[i] += by
		}
	}
}

// write writes n rows.
func (w *writing) write(
	t *client.Table, n int, apply func(s *client.Session, b *batch.RecordBatch) error,
) error {
	s, err := t.NewSession(context.Background(), nil)
	if err != nil {
		return err
	}
	defer s.Close()
	if err := w.each(n, func(b *batch.RecordBatch) error { return apply(s, b) }); err != nil {
		return err
	}
	return flush(s)
}

func applyBatch(s *client.Session, b *batch.RecordBatch) error {
	return s.ApplyBatch(context.Background(), client.Insert, b)
}

func applyRows(s *client.Session, b *batch.RecordBatch) error {
	cells := make([][]byte, len(b.Columns))
	for row := range b.Len {
		for i, v := range b.Columns {
			cells[i] = v.Cell(row)
		}
		if err := s.Apply(context.Background(), client.Insert, cells); err != nil {
			return err
		}
	}
	return nil
}

func (w *writing) batches() (time.Duration, error) { return w.ours(applyBatch) }
func (w *writing) byRow() (time.Duration, error)   { return w.ours(applyRows) }

func (w *writing) ours(apply func(s *client.Session, b *batch.RecordBatch) error) (time.Duration, error) {
	all, _ := work.KuduRows(w.env)
	var tables [2]*client.Table
	for i, name := range []string{warmTable, mainTable} {
		t, err := w.client.OpenTable(context.Background(), name)
		if err != nil {
			return 0, err
		}
		tables[i] = t
	}
	if err := w.write(tables[0], all/warmPart, apply); err != nil {
		return 0, err
	}
	return w.env.Clock(func() error { return w.write(tables[1], all, apply) })
}

func (w *writing) java() (took time.Duration, err error) {
	all, _ := work.KuduRows(w.env)
	p, err := w.cluster.java()
	if err != nil {
		return 0, err
	}
	defer p.End()
	w.env.Watch([]int{p.Cmd.Process.Pid})
	if _, err := p.Ask(nil, "rows", w.file, strconv.Itoa(w.prepared)); err != nil {
		return 0, err
	}
	write := func(table string, n int) (int64, error) {
		got, err := p.Numbers(1, "write", table, strconv.Itoa(n), strconv.FormatInt(w.step, 10))
		if err != nil {
			return 0, err
		}
		return got[0], nil
	}
	if _, err := write(warmTable, all/warmPart); err != nil {
		return 0, err
	}
	var ns int64
	_, err = w.env.Clock(func() (err error) { ns, err = write(mainTable, all); return err })
	return time.Duration(ns), err
}

// byOrderKey is how the tables are divided.
var byOrderKey = client.Partitioning{Hash: []client.Hash{{Columns: []string{"l_orderkey"}, Buckets: work.KuduBuckets}}}

// measureWrite measures a client that writes all rows.
func measureWrite(
	env *harness.Env, home func() (string, error), write func(w *writing) (time.Duration, error),
) (m harness.Measurement, err error) {
	c, err := startAt(env, home)
	if err != nil {
		return m, err
	}
	defer c.end()
	ctx := context.Background()
	for _, name := range []string{warmTable, mainTable} {
		if _, err := c.table(ctx, name, byOrderKey); err != nil {
			return m, err
		}
	}
	w, err := newWriting(env, c)
	if err != nil {
		return m, err
	}
	took, err := write(w)
	if err != nil {
		return m, err
	}
	all, _ := work.KuduRows(env)
	work.KuduClientResult(env, &m, int64(all), took.Seconds())
	m.Checksum, err = c.checksum(ctx, int64(all))
	return m, err
}

// checksum returns the checksum that the server computes over the table, which has n rows.
func (c *cluster) checksum(ctx context.Context, n int64) (string, error) {
	t, err := c.client.OpenTable(ctx, mainTable)
	if err != nil {
		return "", err
	}
	sums, _, err := t.Checksum(ctx, client.ScanOptions{})
	var sum uint64
	var rows int64
	for _, s := range sums {
		sum, rows = sum+s.Sum, rows+s.Rows
	}
	if err == nil && rows != n {
		err = fmt.Errorf("%d rows were written, the server has %d", n, rows)
	}
	return work.KuduSum(rows, sum), err
}

// prepareRead makes the directories of servers with the table.
func prepareRead(env *harness.Env, home func() (string, error)) error {
	c, err := startAt(env, home)
	if err != nil {
		return err
	}
	defer c.end()
	t, err := c.table(context.Background(), mainTable, byOrderKey)
	if err != nil {
		return err
	}
	w, err := newWriting(env, c)
	if err != nil {
		return err
	}
	all, _ := work.KuduRows(env)
	if err := w.write(t, all, applyBatch); err != nil {
		return err
	}
	if err := c.finishWork(); err != nil {
		return err
	}
	return c.sync()
}

// warmTimes is the ratio of the time of the scans before to that of the measured ones.
const warmTimes = 2

// reader scans a table with package kudu/client.
type reader struct {
	t       *client.Table
	columns []string // nil: all
	rows    int64    // of all passes of use
	sum     int64    // of the values of a pass
}

func (c *cluster) reader(table string, columns []string) (*reader, error) {
	t, err := c.client.OpenTable(context.Background(), table)
	return &reader{t: t, columns: columns}, err
}

func (r *reader) scan(use func(b *batch.RecordBatch) error) error {
	s, err := r.t.Scan(context.Background(), client.ScanOptions{Columns: r.columns})
	if err != nil {
		return err
	}
	defer s.Close()
	for s.Next() {
		if err := use(s.Batch()); err != nil {
			return err
		}
	}
	return s.Close()
}

// check returns the checksum of all rows.
func (r *reader) check() (string, error) {
	var sum work.RowSum
	err := r.scan(sum.Add)
	return sum.String(), err
}

// use scans at least so often and for so long, and uses all values.
func (r *reader) use(least int, enough time.Duration) error {
	r.rows = 0
	begin := time.Now()
	for pass := 0; pass < least || time.Since(begin) < enough; pass++ {
		r.sum = 0
		if err := r.scan(func(b *batch.RecordBatch) error {
			r.rows, r.sum = r.rows+int64(b.Len), r.sum+work.UseValues(b)
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// readOurs measures scans with package kudu/client.
func readOurs(c *cluster, env *harness.Env, columns []string) (m harness.Measurement, err error) {
	r, err := c.reader(mainTable, columns)
	if err != nil {
		return m, err
	}
	sum, err := r.check()
	if err != nil {
		return m, err
	}
	if err := r.use(1, warmTimes*work.KuduEnough(env)); err != nil {
		return m, err
	}
	took, err := env.Clock(func() error { return r.use(2, work.KuduEnough(env)) })
	work.KuduClientResult(env, &m, r.rows, took.Seconds())
	m.Checksum = fmt.Sprintf("%s, values %d", sum, r.sum)
	return m, err
}

// readJava measures scans with Kudu's own client.
func readJava(c *cluster, env *harness.Env, columns []string) (m harness.Measurement, err error) {
	p, err := c.java()
	if err != nil {
		return m, err
	}
	defer p.End()
	list := "-"
	if columns != nil {
		list = strings.Join(columns, ",")
	}
	if _, err := p.Ask(nil, "scans", mainTable, work.KuduColumns, list); err != nil {
		return m, err
	}
	env.Watch([]int{p.Cmd.Process.Pid})
	sums, err := p.Numbers(2, "check")
	if err != nil {
		return m, err
	}
	use := func(least int, enough time.Duration) ([]int64, error) {
		return p.Numbers(3, "use", strconv.Itoa(least), strconv.FormatInt(enough.Milliseconds(), 10))
	}
	if _, err := use(1, warmTimes*work.KuduEnough(env)); err != nil {
		return m, err
	}
	var got []int64
	if _, err := env.Clock(func() (err error) { got, err = use(2, work.KuduEnough(env)); return err }); err != nil {
		return m, err
	}
	work.KuduClientResult(env, &m, got[0], time.Duration(got[1]).Seconds())
	m.Checksum = fmt.Sprintf("%s, values %d", work.KuduSum(sums[0], uint64(sums[1])), got[2])
	return m, nil
}
