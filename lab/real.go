package lab

import (
	"cmp"
	"context"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
)

// realTable is a table of a store in a temporary directory. Its clock advances by a second with
// each operation, so a history of n operations is one of n seconds.
type realTable struct {
	ctx     context.Context
	dir     string
	options oribi.Options
	files   *countFS
	last    mvcc.Timestamp // of the last commit

	store *oribi.Store
	table *oribi.Table
	batch *oribi.Batch
	value []byte
	r     *random
	ops   atomic.Int64 // the clock reads it in any goroutine
	due   atomic.Value // string: kind of the operation that compact carries out; the store reads it in any goroutine
}

const (
	batchRows  = 500
	leastLimit = 256 << 20 // memory limit of the store
)

// clockStart is the time of the first operation.
var clockStart = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// openReal creates a store in an empty directory, which it removes when it is closed.
func openReal(
	ctx context.Context, s *Spec, w *Workload, dir string, listener func(compaction.Event),
) (*realTable, error) {
	t := &realTable{ctx: ctx, dir: dir, value: make([]byte, w.ValueBytes),
		r: newRandom(s.Seed, "values"), files: &countFS{FS: vfs.OS}}
	history := oribi.HistoryForever
	if w.History > 0 {
		history = time.Duration(w.History) * time.Second
	}
	clock := mvcc.NewHybridClock(func() time.Time { return clockStart.Add(time.Duration(t.ops.Load()) * time.Second) })
	t.options = oribi.Options{Manual: true, Policy: compaction.None{}, Schedule: t.schedule, History: history,
		Clock: clock, Listener: listener, FS: t.files,
		MemoryLimit: max(leastLimit, 16*int64(s.FlushBytes)), RowSetBytes: int64(s.RowSetBytes)}
	var err error
	if t.store, err = oribi.Open(dir, &t.options); err != nil {
		return nil, err
	}
	table, err := schema.New([]schema.Column{{Name: "key", Type: schema.Int64}, {Name: "value", Type: schema.Binary}},
		1)
	if err == nil {
		t.table, err = t.store.CreateTable(tableName, table)
	}
	if err != nil {
		t.store.Close()
		return nil, err
	}
	t.batch = t.store.NewBatch()
	return t, nil
}

const tableName = "lab"

// reopen closes the store and opens it again, with an empty cache.
func (t *realTable) reopen() error {
	if err := t.store.Close(); err != nil {
		return err
	}
	var err error
	if t.store, err = oribi.Open(t.dir, &t.options); err == nil {
		t.table, err = t.store.Table(tableName)
	}
	if err == nil {
		t.batch = t.store.NewBatch()
	}
	return err
}

func (t *realTable) apply(o op) error {
	t.ops.Add(1)
	if o.kind != opDelete {
		for i := range t.value {
			t.value[i] = byte(t.r.Uint32())
		}
	}
	row := oribi.Row{"key": o.key, "value": t.value}
	switch o.kind {
	case opInsert:
		t.batch.Insert(t.table, row)
	case opUpdate:
		t.batch.Update(t.table, row)
	case opDelete:
		t.batch.Delete(t.table, oribi.Row{"key": o.key})
	}
	if t.batch.Len() < batchRows {
		return nil
	}
	return t.commit()
}

func (t *realTable) commit() error {
	if t.batch.Len() == 0 {
		return nil
	}
	ts, err := t.batch.Commit(t.ctx, oribi.NoSync)
	t.last = ts
	t.batch.Reset()
	return err
}

func (t *realTable) flush() error {
	if err := t.commit(); err != nil {
		return err
	}
	return t.table.Flush(t.ctx)
}

func (t *realTable) layout() compaction.Layout { return t.table.Layout() }

func (t *realTable) merge(c compaction.Choice) error { return t.table.Merge(t.ctx, c) }

func (t *realTable) deltas(kind compaction.Kind, _ string) error {
	var err error
	switch kind {
	case compaction.UndoGC:
		_, err = t.table.CollectUndos(t.ctx)
	case compaction.MinorDelta:
		_, err = t.table.CompactMinor(t.ctx)
	case compaction.MajorDelta:
		_, err = t.table.CompactMajor(t.ctx)
	}
	return err
}

// dueDeltas leaves out what only the store knows: history that is not needed. The experiment
// removes that after each flush.
func (t *realTable) dueDeltas() (due []compaction.DeltaInfo) {
	for _, r := range t.layout().RowSets {
		info := compaction.DeltaInfo{RowSet: r.ID, Rows: r.Rows, BaseBytes: r.Bytes - r.RedoBytes - r.UndoBytes,
			RedoBytes: r.RedoBytes, Redos: r.Redos, OfColumns: columns}
		if r.Redos > 0 {
			info.Updated = updatedValue(info.BaseBytes, r.RedoBytes)
		}
		if isDue(info) {
			due = append(due, info)
		}
	}
	return due
}

// compact lets the store carry out the operation of that kind that it lists. The store's rules are
// the same, so it chooses the same rowset, unless all redos of the rowset are DELETEs.
func (t *realTable) compact(c compaction.DeltaChoice) error {
	t.due.Store(string(c.Kind))
	_, _, err := t.store.StepBackgroundWork(t.ctx)
	return err
}

// schedule chooses the operation for compact.
func (t *realTable) schedule(ops []oribi.BackgroundOp) int {
	due := t.due.Load()
	return slices.IndexFunc(ops, func(op oribi.BackgroundOp) bool { return op.Kind == due })
}

func (t *realTable) close() error {
	var err error
	if t.store != nil { // nil after a failed reopen
		err = t.store.Close()
	}
	return cmp.Or(err, os.RemoveAll(t.dir))
}
