package work

import (
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"math/rand/v2"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/bench/harness"
	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/schema"
)

// The workloads of this file read a table of which one column was updated, next to a table that was
// written with the same rows.

// updatedTable is a table and its updates.
type updatedTable struct {
	name    string
	columns []schema.Column // the first is the key, the second is updated; all are integers except in events
	rows    int
	rounds  int  // rounds of updates
	each    int  // a round updates one row in each so many, at random; 1 = every row
	flush   int  // rounds between two flushes
	manual  bool // without background work; otherwise it has its defaults, and the store is idle after the updates
}

func (u updatedTable) options() *oribi.Options { return &oribi.Options{Manual: u.manual} }

const updatedIdle = 10 * time.Second

func updatedEvents(env *harness.Env, _ string) updatedTable {
	return updatedTable{name: "events", columns: eventColumns(), rows: 2 * env.Scale.Inserts, rounds: 20, each: 100,
		flush: 2}
}

// updatedOnce is updated once in 5 % of the rows. The updates are in memory, or were flushed.
func updatedOnce(env *harness.Env, peer string) updatedTable {
	u := updatedEvents(env, peer)
	u.rounds, u.each, u.manual = 1, 20, true
	if u.flush = 1; peer == "memory" {
		u.flush = 2
	}
	return u
}

func updatedWide(env *harness.Env, _ string) updatedTable {
	columns := make([]schema.Column, 300)
	for i := range columns {
		columns[i] = schema.Column{Name: fmt.Sprint("c", i), Type: schema.Int64}
	}
	return updatedTable{name: "wide", columns: columns, rows: env.Scale.Inserts / 50, rounds: 16, each: 1, flush: 16}
}

// updatedTables returns the workloads.
func updatedTables() []harness.Workload {
	of := func(name, about, unit, group string, table func(env *harness.Env, peer string) updatedTable,
		measure func(env *harness.Env, u updatedTable, t *oribi.Table) (harness.Measurement, error),
		peers ...string) harness.Workload {
		peer := func(name string) harness.Peer {
			updates := name != "plain"
			return harness.Peer{Name: name, Ours: true,
				Prepare: func(env *harness.Env) error { return table(env, name).prepare(env, updates) },
				Measure: func(env *harness.Env) (m harness.Measurement, err error) {
					u := table(env, name)
					store, err := oribi.Open(env.Path(storeDir), u.options())
					if err != nil {
						return m, err
					}
					t, err := store.Table(u.name)
					if err == nil {
						m, err = measure(env, u, t)
					}
					if written, noted := notedTime(env); updates && err == nil {
						m.Metrics = map[string]float64{"compacted/updated": float64(written) / 100}
						err = noted
					}
					return m, closeAll(err, store)
				}}
		}
		w := harness.Workload{Name: name, About: about, Unit: unit, Group: group, MemoryLimit: peakLimit}
		for _, name := range peers {
			w.Peers = append(w.Peers, peer(name))
		}
		return w
	}
	const events = "of a table of nine columns (2,000,000 rows at full scale) whose second column was updated in 20 " +
		"rounds of 1 % of the rows, then ten seconds idle; the same rows without updates"
	out := []harness.Workload{
		of("updated-sum", "sum of the column "+events, "ns/row", "updated-events", updatedEvents, sumUpdated,
			"plain", "updated"),
		of("updated-get", "whole rows by key "+events, "CPU µs", "updated-events", updatedEvents, getUpdated,
			"plain", "updated"),
		of("updated-wide", "sum of one of 300 columns, which was updated 16 times in every row (20,000 at full "+
			"scale), then ten seconds idle; the same rows without updates",
			"ns/row", "updated-wide", updatedWide, sumUpdated, "plain", "updated"),
	}
	for i, ratio := range []float64{1.5, 1.3, 1.5} {
		out[i].Floors = []harness.Floor{{Peer: "updated", Against: "plain", Ratio: ratio},
			{Peer: "updated", Metric: "compacted/updated", Figure: 3}}
	}
	once := of("updated-once", "sum of a column of 2,000,000 rows (at full scale), from the third scan on, of which "+
		"5 % were updated in memory, or flushed; the same rows without updates",
		"ns/row", "updated-once", updatedOnce, sumUpdated, "plain", "memory", "flushed")
	once.Floors = []harness.Floor{{Peer: "memory", Against: "plain", Ratio: 4},
		{Peer: "flushed", Against: "plain", Ratio: 2.5}}
	return append(out, once)
}

// prepare makes a store with the table, which gets the final rows, or the first rows and the
// updates.
func (u updatedTable) prepare(env *harness.Env, updates bool) error {
	ctx := context.Background()
	store, err := oribi.Open(env.Path(storeDir), u.options())
	if err != nil {
		return err
	}
	s, err := schema.New(u.columns, 1)
	if err != nil {
		return closeAll(err, store)
	}
	t, err := store.CreateTable(u.name, s)
	if err != nil {
		return closeAll(err, store)
	}
	values := make([]int64, u.rows)
	for i := range values {
		values[i] = eventOf(2 * int64(i)).a
	}
	r := rand.New(rand.NewPCG(1, 1))
	var metrics oribi.Metrics
	if updates {
		if err = u.load(t, values); err == nil {
			metrics, err = store.Metrics()
		}
	}
	for round := 1; round <= u.rounds && err == nil; round++ {
		b := store.NewBatch()
		for k := range u.rows / u.each {
			i := k
			if u.each > 1 {
				i = r.IntN(u.rows)
			}
			values[i] = r.Int64N(1000003)
			if updates {
				b.Update(t, oribi.Row{u.columns[0].Name: 2 * int64(i), u.columns[1].Name: values[i]})
			}
			if b.Len() == batchRows || b.Len() > 0 && k == u.rows/u.each-1 {
				_, err = b.Commit(ctx, oribi.NoSync)
				b.Reset()
			}
			if err != nil {
				break
			}
		}
		if updates && err == nil && round%u.flush == 0 {
			err = t.Flush(ctx)
		}
	}
	if !updates && err == nil {
		err = u.load(t, values)
	}
	if updates && err == nil {
		if env.Scale.Figures() && !u.manual {
			time.Sleep(updatedIdle)
		}
		var after oribi.Metrics
		if after, err = store.Metrics(); err == nil {
			err = noteTime(env, compactedShare(metrics, after))
		}
	}
	return closeAll(err, store)
}

// compactedShare returns the bytes that compactions have written, in percent of the bytes that the
// log and flushes have written.
func compactedShare(before, after oribi.Metrics) uint64 {
	bytes := func(m oribi.Metrics) (updates, compactions int64) {
		updates = m.Log.BytesWritten
		for _, j := range m.Jobs {
			switch j.Kind {
			case compaction.Flush, compaction.DeltaFlush:
				updates += j.BytesWritten
			case compaction.MinorDelta, compaction.MajorDelta, compaction.Merge:
				compactions += j.BytesWritten
			}
		}
		return updates, compactions
	}
	u0, c0 := bytes(before)
	u1, c1 := bytes(after)
	return uint64((c1 - c0) * 100 / max(1, u1-u0))
}

// load ingests the rows. values are those of the second column.
func (u updatedTable) load(t *oribi.Table, values []int64) error {
	if u.name == "events" {
		return loadEvents(t, len(values), func(i int) event {
			e := eventOf(2 * int64(i))
			e.a = values[i]
			return e
		})
	}
	batches := func(yield func([]*batch.Vector, error) bool) {
		for from := 0; from < len(values); from += batch.WindowRows {
			b := batch.New(u.columns, min(batch.WindowRows, len(values)-from))
			for c, v := range b.Columns {
				cells := batch.Values[int64](v)
				for i := range cells {
					switch c {
					case 0:
						cells[i] = 2 * int64(from+i)
					case 1:
						cells[i] = values[from+i]
					default:
						cells[i] = int64(from+i) * int64(c) % 1009
					}
				}
			}
			if !yield(b.Columns, nil) {
				return
			}
		}
	}
	_, _, err := t.Ingest(context.Background(), iter.Seq2[[]*batch.Vector, error](batches))
	return err
}

func sumUpdated(env *harness.Env, u updatedTable, t *oribi.Table) (harness.Measurement, error) {
	sums := []oribi.Aggregate{oribi.SumOf(u.columns[1].Name)}
	pass := func() (sum, rows int64, err error) {
		result, err := t.Aggregate(context.Background(), sums)
		if err != nil {
			return 0, 0, err
		}
		sum, err = result.Groups[0].Values[0].Int64()
		return sum, int64(u.rows), err
	}
	if _, _, err := pass(); err != nil { // the second scan remembers the changes
		return harness.Measurement{}, err
	}
	m, err := sumPasses(env, pass)
	m.Value = 1e9 / m.Value
	return m, err
}

func getUpdated(env *harness.Env, u updatedTable, t *oribi.Table) (m harness.Measurement, err error) {
	r := rand.New(rand.NewPCG(2, 1))
	var key [8]byte
	var sum uint64
	get := func() error {
		for range env.Scale.Gets {
			binary.LittleEndian.PutUint64(key[:], 2*r.Uint64N(uint64(u.rows)))
			_, cells, err := t.GetCells(context.Background(), [][]byte{key[:]})
			if err != nil {
				return err
			}
			sum += sumOf(cells)
		}
		return nil
	}
	if err := get(); err != nil { // fills the caches
		return m, err
	}
	_, err = env.Clock(get)
	return harness.Measurement{Value: env.CPU() * 1e6 / float64(env.Scale.Gets), Checksum: fmt.Sprint(sum)}, err
}
