package work

import (
	"context"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/bench/harness"
	"github.com/oribi-db/oribi/bench/inputs"
	"github.com/oribi-db/oribi/compaction"
)

// rates measures background work when nothing else runs. Pebble works on the same rows; its
// compactions do not keep history, the engine's do.
func rates() []harness.Workload {
	make := func(name, about string, step int, floor float64) harness.Workload {
		w := harness.Workload{Name: name, About: about, Unit: "rows/s", More: true, Fresh: true,
			MemoryLimit: ratesMemory + peakLimit, Inputs: tableInputs, Peers: []harness.Peer{
				{Name: "oribi", Ours: true, Measure: func(env *harness.Env) (harness.Measurement, error) {
					return rateOribi(env, step, rate)
				}},
				{Name: "pebble", Measure: func(env *harness.Env) (harness.Measurement, error) {
					return ratePebble(env, step, rate)
				}}}}
		if floor > 0 {
			w.Floors = []harness.Floor{{Peer: "oribi", Against: "pebble", Ratio: floor, Least: true}}
		}
		return w
	}
	return []harness.Workload{
		make("flush", "lineitem (at most 200,000 rows), flushed from memory to disk at once", flushStep, 1.8),
		make("merge", "8 overlapping flushes of lineitem (at most 200,000 rows), merged", mergeStep, 1.6),
		make("merge-disjoint", "8 flushes of lineitem (at most 200,000 rows) that do not overlap, merged to one rowset",
			disjointStep, 4),
		make("delta-compact", "major delta compaction of one column, of which a tenth of the rows was changed and "+
			"flushed; rows of the table per second", deltaStep, 0),
	}
}

const (
	flushStep = iota
	mergeStep
	disjointStep
	deltaStep

	ratesRows   = 200_000
	ratesMemory = 512 << 20 // no background work
	mergeParts  = 8
)

// ratesItems contains the rows and the number of parts in which they are written: row i is in part
// i mod parts. For parts that do not overlap the rows are in an order in which these are runs of
// rows.
func ratesItems(env *harness.Env, step int) (all []inputs.Item, parts int, err error) {
	for it, err := range some(env.Input(rowsFile), ratesRows) {
		if err != nil {
			return nil, 0, err
		}
		all = append(all, *it)
	}
	switch step {
	case mergeStep:
		return all, mergeParts, nil
	case disjointStep:
		n := len(all) / mergeParts
		dealt := make([]inputs.Item, n*mergeParts)
		for i := range dealt {
			dealt[i] = all[i%mergeParts*n+i/mergeParts]
		}
		return dealt, mergeParts, nil
	}
	return all, 1, nil
}

// inParts passes each part to use, in chunks.
func inParts(all []inputs.Item, parts int, put func(items []inputs.Item) error, end func() error) error {
	for part := range parts {
		var items []inputs.Item
		for i := part; i < len(all); i += parts {
			if items = append(items, all[i]); len(items) == batchRows {
				if err := put(items); err != nil {
					return err
				}
				items = items[:0]
			}
		}
		if len(items) > 0 {
			if err := put(items); err != nil {
				return err
			}
		}
		if err := end(); err != nil {
			return err
		}
	}
	return nil
}

// measured measures work on a store of the rows; put writes some of them again.
type measured func(env *harness.Env, all []inputs.Item, put func(items []inputs.Item) error,
	work func() error) (harness.Measurement, error)

// rate returns the rows per second of work.
func rate(
	env *harness.Env, all []inputs.Item, _ func([]inputs.Item) error, work func() error,
) (harness.Measurement, error) {
	took, err := env.Clock(work)
	return harness.Measurement{Value: float64(len(all)) / took.Seconds()}, err
}

func rateOribi(env *harness.Env, step int, measure measured) (m harness.Measurement, err error) {
	ctx := context.Background()
	store, t, err := createLineitem(env.Path(storeDir),
		&oribi.Options{Manual: true, MemoryLimit: 4 * ratesMemory, FlushBytes: ratesMemory})
	if err != nil {
		return m, err
	}
	defer store.Close()
	all, parts, err := ratesItems(env, step)
	if err != nil {
		return m, err
	}
	columns, b := newVectors(t), store.NewBatch()
	put := func(items []inputs.Item) error {
		vectorsOf(columns, items)
		b.Vectors(oribi.OpUpsert, t, columns)
		_, err := b.Commit(ctx, oribi.NoSync)
		return err
	}
	work, end := func() error { return t.Compact(ctx) }, func() error { return t.Flush(ctx) }
	switch step {
	case flushStep:
		work, end = end, func() error { return nil }
	case disjointStep:
		work = func() error { return mergeAll(ctx, t) }
	}
	err = inParts(all, parts, put, end)
	if err == nil && step == deltaStep {
		work = func() error { _, err := t.CompactMajor(ctx, "l_tax"); return err }
		err = changeTax(store, t, all)
		if err == nil {
			err = t.Flush(ctx)
		}
	}
	if err != nil {
		return m, err
	}
	if m, err = measure(env, all, put, work); err != nil {
		return m, err
	}
	m.Checksum, err = checkStore(t)
	return m, err
}

// mergeAll merges all rowsets of a table, also those that do not overlap.
func mergeAll(ctx context.Context, t *oribi.Table) error {
	var c compaction.Choice
	for _, r := range t.Layout().RowSets {
		c.RowSets = append(c.RowSets, r.ID)
	}
	return t.Merge(ctx, c)
}

// changeTax sets l_tax in every tenth row.
func changeTax(store *oribi.Store, t *oribi.Table, all []inputs.Item) error {
	b, n := store.NewBatch(), len(t.Schema().Columns)
	cells, set := make([][]byte, n), make([]bool, n)
	set[0], set[1], set[7] = true, true, true
	for i := 0; i < len(all); i += 10 {
		buf := inputs.AppendLong(inputs.AppendCells(nil, all[i].Key()), 9)
		cells[0], cells[1], cells[7] = buf[:8], buf[8:12], buf[12:]
		b.Cells(oribi.OpUpdate, t, cells, set)
		if b.Len() == batchRows {
			if _, err := b.Commit(context.Background(), oribi.NoSync); err != nil {
				return err
			}
		}
	}
	_, err := b.Commit(context.Background(), oribi.NoSync)
	return err
}

func ratePebble(env *harness.Env, step int, measure measured) (m harness.Measurement, err error) {
	db, err := pebble.Open(env.Path(storeDir),
		&pebble.Options{CacheSize: storeMemory, MemTableSize: ratesMemory, Logger: quiet{},
			DisableAutomaticCompactions: true,
			L0StopWritesThreshold:       1000})
	if err != nil {
		return m, err
	}
	defer db.Close()
	all, parts, err := ratesItems(env, step)
	if err != nil {
		return m, err
	}
	work, end := func() error { return db.Compact(context.Background(), []byte{0}, []byte{0xff}, false) }, db.Flush
	if step == flushStep {
		work, end = db.Flush, func() error { return nil }
	}
	put := func(items []inputs.Item) error { return putItems(db, items) }
	err = inParts(all, parts, put, end)
	if err == nil && step == deltaStep {
		var changed []inputs.Item
		for i := 0; i < len(all); i += 10 {
			it := all[i]
			it.Tax = 9
			changed = append(changed, it)
		}
		err = inParts(changed, 1, put, end)
	}
	if err != nil {
		return m, err
	}
	if m, err = measure(env, all, put, work); err != nil {
		return m, fmt.Errorf("compact: %w", err)
	}
	m.Checksum, err = checkPebble(db)
	return m, err
}
