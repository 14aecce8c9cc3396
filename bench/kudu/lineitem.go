package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/bench/inputs"
	"github.com/oribi-db/oribi/bench/peer"
	"github.com/oribi-db/oribi/kudu/client"
)

// driver returns the Kudu peer for the programs that home names.
func driver(home func() (string, error)) peer.Driver {
	return peer.Driver{Name: "kudu", Lineitem: func(dir string) (peer.Lineitem, error) {
		h, err := home()
		if err != nil {
			return nil, err
		}
		return open(h, dir)
	}}
}

// lineitem is the table in a server: one tablet, one replica, default encodings.
type lineitem struct {
	*cluster
	table   *client.Table
	changes *client.Session
	rows    *batch.RecordBatch // to write
	read    inputs.Decoder

	calls []func() (int64, error) // that Run makes
}

// open starts the servers on dir, and opens or creates the table.
func open(home, dir string) (*lineitem, error) {
	c, err := startCluster(home, dir)
	if err != nil {
		return nil, err
	}
	l := &lineitem{cluster: c}
	if err := l.begin(context.Background()); err != nil {
		l.end()
		return nil, err
	}
	return l, nil
}

func (l *lineitem) begin(ctx context.Context) (err error) {
	if l.table, err = l.cluster.table(ctx, "lineitem", client.Partitioning{Range: []string{"l_orderkey"}}); err != nil {
		return err
	}
	l.rows = newRows(l.table.Schema)
	l.changes, err = l.table.NewSession(ctx, nil)
	return err
}

// Sync makes all writes durable.
func (l *lineitem) Sync() error { return l.sync() }

// Close does the same and ends all processes.
func (l *lineitem) Close() error {
	err := l.sync()
	l.end()
	return err
}

// Processes returns the processes that do the work. The master is not included: it only provides an
// address, once.
func (l *lineitem) Processes() []int { return []int{l.tablet.Process.Pid, os.Getpid()} }

func (l *lineitem) FinishWork() error { return l.finishWork() }

// Load uses a session that flushes in the background.
func (l *lineitem) Load(rows iter.Seq2[*inputs.Item, error], _ bool) error {
	err := peer.EachChunk(rows, peer.Chunk, func(items []inputs.Item) error {
		return l.apply(client.Insert, items)
	})
	return errors.Join(err, flush(l.changes))
}

// apply adds operations to the session.
func (l *lineitem) apply(op client.Op, items []inputs.Item) error {
	l.rows.Reset(len(items))
	inputs.FillVectors(l.rows.Columns, items)
	return l.changes.ApplyBatch(context.Background(), op, l.rows)
}

// Upsert flushes once.
func (l *lineitem) Upsert(items []inputs.Item) error {
	if err := l.apply(client.Upsert, items); err != nil {
		return err
	}
	return flush(l.changes)
}

// taxColumn is the index of l_tax in the schema.
const taxColumn = 7

// UpdateTax flushes once.
func (l *lineitem) UpdateTax(keys []inputs.Key, tax int64) error {
	b := &batch.RecordBatch{}
	for _, i := range []int{0, 1, taxColumn} {
		b.Schema, b.Columns = append(b.Schema, l.rows.Schema[i]), append(b.Columns, l.rows.Columns[i])
	}
	b.Reset(len(keys))
	order, line, taxes := batch.Values[int64](b.Columns[0]), batch.Values[int32](b.Columns[1]),
		batch.Values[int64](b.Columns[2])
	for i, k := range keys {
		order[i], line[i], taxes[i] = k.OrderKey, k.LineNumber, tax
	}
	if err := l.changes.ApplyBatch(context.Background(), client.Update, b); err != nil {
		return err
	}
	return flush(l.changes)
}

// scan calls use with each batch of a scan.
func (l *lineitem) scan(o client.ScanOptions, use func(b *batch.RecordBatch)) error {
	s, err := l.table.Scan(context.Background(), o)
	if err != nil {
		return err
	}
	for s.Next() {
		use(s.Batch())
	}
	return s.Close()
}

// keyCells returns the cells of a key.
func keyCells(k inputs.Key) [][]byte {
	cells := inputs.AppendCells(nil, k)
	return [][]byte{cells[:8], cells[8:]}
}

// one returns a scan for one key.
func one(k inputs.Key) client.ScanOptions {
	cells := keyCells(k)
	return client.ScanOptions{Where: []batch.Predicate{{Column: "l_orderkey", Op: batch.Eq, Values: cells[:1]},
		{Column: "l_linenumber", Op: batch.Eq, Values: cells[1:]}}}
}

func (l *lineitem) Get(key inputs.Key, it *inputs.Item) (found bool, err error) {
	err = l.GetMany([]inputs.Key{key}, func(got *inputs.Item) { *it, found = *got, true })
	return found, err
}

// GetMany reads rows with one concurrent scan per key, since no call takes several keys.
func (l *lineitem) GetMany(keys []inputs.Key, use func(it *inputs.Item)) error {
	if len(keys) == 1 {
		return l.scan(one(keys[0]), func(b *batch.RecordBatch) { l.read.Batch(b, use) })
	}
	found := make([][]inputs.Item, len(keys))
	errs := make([]error, len(keys))
	var all sync.WaitGroup
	for i, k := range keys {
		all.Go(func() {
			var read inputs.Decoder
			errs[i] = l.scan(one(k), func(b *batch.RecordBatch) {
				read.Batch(b, func(it *inputs.Item) { found[i] = append(found[i], *it) })
			})
		})
	}
	all.Wait()
	for i := range found {
		for j := range found[i] {
			use(&found[i][j])
		}
	}
	return errors.Join(errs...)
}

func (l *lineitem) Range(from inputs.Key, n int, use func(it *inputs.Item)) error {
	return l.scan(client.ScanOptions{Start: keyCells(from), Ordered: true, Limit: int64(n)},
		func(b *batch.RecordBatch) { l.read.Batch(b, use) })
}

// Run makes and times the calls of Warm.
func (l *lineitem) Run(least int, enough time.Duration) (calls int, took time.Duration, err error) {
	random := rand.New(rand.NewPCG(1, 1))
	begin := time.Now()
	for ; calls < least || time.Since(begin) < enough; calls++ {
		if _, err := l.calls[random.IntN(len(l.calls))](); err != nil {
			return calls, 0, err
		}
	}
	return calls, time.Since(begin), nil
}

// rangeRows is the number of rows of a CallRange.
const rangeRows = 100

// Warm makes the calls that Run makes later.
func (l *lineitem) Warm(call peer.Call, keys []inputs.Key, per int, enough time.Duration) (sum int64, err error) {
	l.calls = nil
	for i := 0; i+per <= len(keys); i += per {
		l.calls = append(l.calls, func() (int64, error) { return l.call(call, keys[i:i+per]) })
	}
	begin := time.Now()
	for pass := 0; pass < 2 || time.Since(begin) < enough; pass++ {
		sum = 0
		for _, call := range l.calls {
			n, err := call()
			if err != nil {
				return 0, err
			}
			sum += n
		}
	}
	return sum, nil
}

// call makes a call and returns its checksum.
func (l *lineitem) call(call peer.Call, keys []inputs.Key) (sum int64, err error) {
	rows, want := 0, len(keys)
	switch call {
	case peer.CallRange:
		return sum, l.Range(keys[0], rangeRows, func(it *inputs.Item) { sum += it.SuppKey + int64(len(it.Comment)) })
	case peer.CallMiss:
		want, sum = 0, 1
	}
	err = l.GetMany(keys, func(it *inputs.Item) { sum, rows = sum+it.SuppKey, rows+1 })
	if err == nil && rows != want {
		err = fmt.Errorf("%d rows, not %d", rows, want)
	}
	return sum, err
}

// Query aggregates columns in the client, as Kudu has no other way. The server evaluates the predicates.
func (l *lineitem) Query(q peer.Question) (*peer.Answer, error) {
	a := &peer.Answer{}
	needs := q.Needs()
	err := l.scan(client.ScanOptions{Columns: needs, Where: predicates(q)}, func(b *batch.RecordBatch) {
		b.Compact()
		a.AddColumns(q, columnsOf(needs, b), b.Len)
	})
	return a, err
}

// columnsOf returns the columns of a batch with the given names.
func columnsOf(names []string, b *batch.RecordBatch) *peer.Columns {
	c := &peer.Columns{}
	for i, name := range names {
		switch v := b.Columns[i]; name {
		case "l_partkey":
			c.PartKey = batch.Values[int64](v)
		case "l_quantity":
			c.Quantity = batch.Values[int64](v)
		case "l_extendedprice":
			c.Price = batch.Values[int64](v)
		case "l_discount":
			c.Discount = batch.Values[int64](v)
		case "l_tax":
			c.Tax = batch.Values[int64](v)
		case "l_shipdate":
			c.ShipDate = batch.Values[int32](v)
		case "l_returnflag":
			c.Flag = v.Bytes
		case "l_linestatus":
			c.Status = v.Bytes
		case "l_shipmode":
			c.Mode = v.Bytes
		}
	}
	return c
}

// predicates returns the predicates of a query.
func predicates(q peer.Question) []batch.Predicate {
	long := func(column string, op batch.Operator, v int64) batch.Predicate {
		return batch.Predicate{Column: column, Op: op, Values: [][]byte{inputs.AppendLong(nil, v)}}
	}
	day := func(op batch.Operator, v int32) batch.Predicate {
		return batch.Predicate{Column: "l_shipdate", Op: op, Values: [][]byte{inputs.AppendLong(nil, int64(v))[:4]}}
	}
	switch q {
	case peer.FewRows:
		return []batch.Predicate{long("l_partkey", batch.Lt, peer.FewBelow)}
	case peer.SomeRows:
		return []batch.Predicate{long("l_partkey", batch.Lt, peer.SomeBelow)}
	case peer.NoRows:
		return []batch.Predicate{long("l_quantity", batch.Eq, peer.NoQuantity)}
	case peer.Q1:
		return []batch.Predicate{day(batch.Le, peer.Q1Until)}
	case peer.Q6:
		return []batch.Predicate{day(batch.Ge, peer.Q6From), day(batch.Lt, peer.Q6Until),
			long("l_discount", batch.Ge, peer.Q6Least), long("l_discount", batch.Le, peer.Q6Most),
			long("l_quantity", batch.Lt, peer.Q6Below)}
	}
	return nil
}

var _ peer.Remote = (*lineitem)(nil)
