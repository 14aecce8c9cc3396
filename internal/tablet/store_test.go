package tablet

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/blockmanager"
	"github.com/oribi-db/oribi/cache"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/meta"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/record"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/rowset"
	"github.com/oribi-db/oribi/scan"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
)

// testSchema has a key whose encoding differs from its cells, a required column, a nullable column
// and one with a default.
var testSchema = func() *schema.Schema {
	s, err := schema.New([]schema.Column{
		{ID: 1, Name: "k", Type: schema.Int64},
		{ID: 2, Name: "a", Type: schema.Int32},
		{ID: 3, Name: "s", Type: schema.String, Nullable: true},
		{ID: 4, Name: "d", Type: schema.Int32, Default: []byte{7, 0, 0, 0}, ReadDefault: []byte{7, 0, 0, 0}},
	}, 1)
	if err != nil {
		panic(err)
	}
	return s
}()

var allColumns = []int{0, 1, 2, 3}

// testStore is a table in its own in-memory store, with the log that the store would have.
type testStore struct {
	t     testing.TB
	fs    *vfs.Mem
	m     *blockmanager.Manager
	tab   *Tablet
	lsn   lsn.LSN // of the last batch
	log   [][]byte
	floor mvcc.Timestamp // returned by HistoryFloor

	present mvcc.Timestamp // returned by Now

	events      []compaction.Event          // at the ends of jobs
	running     map[uint64]compaction.Event // at the beginnings of jobs that have not ended, by number
	jobs        uint64                      // that have begun
	waitErr     error
	commitErr   error
	appendErr   error
	onWait      func() // called by the next Wait; not while a flush or merge runs, whose Wait is concurrent
	onBegin     func() // called when a flush, compaction or ingest next begins, after its cutover point
	onRead      func() // called when a flush or merge next reports progress
	onGrow      func() // called when delta mem stores, or a change log, next take memory
	onCommit    func() // called before the next metadata commit
	onInstall   func() // called after the next metadata commit, before the state is replaced
	confirmed   bool   // whether the last metadata commit was confirmed
	unpublished int    // empty batches that were not published
	noBlocks    bool   // no block can be written
	memory      int64  // bytes of MemRowSets, as reported
}

const worldDir = "/store"

func blockOptions(fs vfs.FS) blockmanager.Options {
	return blockmanager.Options{FS: fs, Dir: worldDir, Instance: [16]byte{1, 2, 3}}
}

func newTestStore(t testing.TB, s *schema.Schema, changes ...func(*meta.Table)) *testStore {
	t.Helper()
	w := &testStore{t: t, fs: vfs.NewMem()}
	row := &meta.Table{Number: 3, Name: "t", Schema: s, HistorySec: meta.KeepForever, NextRowSetID: 1,
		NextColumnID: 100}
	for _, change := range changes {
		change(row)
	}
	must.Do(t, errors.Join(w.fs.Mkdir(worldDir), w.fs.SyncDir("/"),
		blockmanager.Format(blockOptions(w.fs), []blockmanager.Row{{Key: meta.TableKey(3), Value: row.Encode()}}, 1)))
	w.open()
	return w
}

// open opens the store. It replays nothing.
func (w *testStore) open() {
	w.t.Helper()
	var row *meta.Table
	var sets []*rowset.Metadata
	var err error
	if w.m, err = blockmanager.Open(blockOptions(w.fs)); err == nil {
		err = w.m.Writable()
	}
	if err == nil {
		err = w.m.Rows(meta.TablePrefix(), func(_, value []byte) (err error) {
			row, err = meta.DecodeTable(value)
			return err
		})
	}
	if err == nil {
		err = w.m.Rows(meta.RowSetPrefix(3), func(_, value []byte) error {
			set, err := rowset.DecodeMetadata(value)
			sets = append(sets, set)
			return err
		})
	}
	if err == nil {
		w.tab, err = Open(Options{Store: w, Logger: slog.New(slog.DiscardHandler), TargetBytes: 4 << 10,
			GrowMem: func(n int64) {
				w.memory += n
			}, Progress: func(string, int64, int64) { once(&w.onRead) },
			RowSets: rowset.Options{Blocks: blocks{w.m}, Cache: cache.New(1 << 20), Grow: func(int64) {
				once(&w.onGrow)
			}}}, row, sets)
	}
	must.Do(w.t, err)
	w.t.Cleanup(func() { w.m.Close() })
}

// reopened returns the store after a kill and a restart, with the log replayed from LSN replayed
// on; 0 is log_start.
func (w *testStore) reopened(replayed lsn.LSN) *testStore {
	w.t.Helper()
	n := &testStore{t: w.t, fs: w.fs.Clone(), lsn: w.lsn, log: w.log, floor: w.floor}
	n.open()
	if replayed == 0 {
		replayed = n.m.LogStart()
	}
	r := n.tab.Replayer()
	for lsn := replayed; lsn <= n.lsn; lsn++ {
		_, err := record.Decode(n.log[lsn-1], func(op record.Op) error { return r.Apply(op, timestampOf(lsn), lsn) })
		r.Flush()
		if err != nil {
			w.t.Fatalf("replay of lsn %d: %v", lsn, err)
		}
	}
	return n
}

type blocks struct{ m *blockmanager.Manager }

func (b blocks) OpenBlock(id block.ID) (rowset.Block, error) { return b.m.OpenBlock(id) }

// timestampOf returns the timestamp of a batch. Timestamps are spaced so that tests can take
// snapshots between two batches.
func timestampOf(lsn lsn.LSN) mvcc.Timestamp { return mvcc.Timestamp(10 * lsn) }

func (w *testStore) LastLSN() lsn.LSN { return w.lsn }
func (w *testStore) Wait(context.Context, lsn.LSN) error {
	once(&w.onWait)
	return w.waitErr
}

// once calls a hook, unless it is nil, and clears it.
func once(hook *func()) {
	if do := *hook; do != nil {
		*hook = nil
		do()
	}
}

func (w *testStore) Retained(*Tablet, int64) mvcc.Retained { return mvcc.Retained{Floor: w.floor} }
func (w *testStore) Retains(*Tablet, mvcc.Timestamp) bool  { return false }

func (w *testStore) Now() mvcc.Timestamp { return w.present }

func (w *testStore) Timestamp() (mvcc.Timestamp, error) { return timestampOf(w.lsn), nil }

func (w *testStore) Visible() mvcc.Timestamp { return timestampOf(w.lsn) }

// Append logs a batch.
func (w *testStore) Append(rec *record.Writer, _ uint32) (ts mvcc.Timestamp, lsn lsn.LSN, publish func(), err error) {
	if w.appendErr != nil {
		return 0, 0, nil, w.appendErr
	}
	w.lsn++
	rec.SetTimestamp(timestampOf(w.lsn))
	w.log = append(w.log, bytes.Clone(rec.Bytes()))
	w.unpublished++
	return timestampOf(w.lsn), w.lsn, func() { w.unpublished-- }, nil
}

func (w *testStore) BlockBytes(dst []int64, ids ...block.ID) []int64 { return w.m.Lengths(dst, ids...) }

// NewCreation returns a creation that has ended, so no block can be written, if noBlocks is set.
func (w *testStore) NewCreation() *blockmanager.Creation {
	c := w.m.NewCreation()
	if w.noBlocks {
		c.Abort()
	}
	return c
}

func (w *testStore) NextJob() uint64 {
	w.jobs++
	return w.jobs
}

// Event keeps the events at the ends of jobs. Each must have had its beginning, once.
func (w *testStore) Event(e compaction.Event) {
	if e.Begin {
		if _, running := w.running[e.Job]; running || e.Job == 0 || e.Outputs != nil ||
			e.After.RowSets != nil || e.Err != nil {
			w.t.Errorf("begin %+v", e)
		}
		if w.running == nil {
			w.running = map[uint64]compaction.Event{}
		}
		w.running[e.Job] = e
		once(&w.onBegin)
		return
	}
	if b, ok := w.running[e.Job]; !ok || b.Kind != e.Kind || b.Table != e.Table || b.Why != e.Why ||
		!reflect.DeepEqual(b.Inputs, e.Inputs) || e.Time.Before(b.Time) {
		w.t.Errorf("end %+v\nof %+v", e, b)
	}
	delete(w.running, e.Job)
	w.events = append(w.events, e)
}

func (w *testStore) CommitMeta(tables ...MetaCommit) error {
	c := tables[0]
	once(&w.onCommit)
	if w.commitErr != nil {
		return w.commitErr
	}
	last := w.lsn
	first := c.First()
	edit := c.Edit()
	w.confirmed = edit.Confirm
	edit.LogStart = min(last+1, first)
	if err := w.m.Commit(edit); err != nil {
		return err
	}
	c.Committed()
	once(&w.onInstall)
	return c.Install()
}

func int32Cell(v int) []byte { return binary.LittleEndian.AppendUint32(nil, uint32(v)) }

func int64Cell(v int) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(v)) }

func (w *testStore) key(k int) []byte {
	return w.tab.Schema().Encoder.AppendKey(nil, [][]byte{int64Cell(k)})
}

// image returns a row image with cells a and s; an empty s is NULL.
func (w *testStore) image(k, a int, s string) []byte {
	cells := [][]byte{int64Cell(k), int32Cell(a), []byte(s), int32Cell(7)}
	if s == "" {
		cells[2] = nil
	}
	return w.tab.Schema().RowFormat.AppendRow(nil, cells)
}

// op returns an operation on key k: inserts and upserts set all columns, updates set a and s.
func (w *testStore) op(kind OpKind, k, a int, s string) Op {
	op := Op{Kind: kind, Key: w.key(k)}
	switch kind {
	case Insert, InsertIgnore, Upsert, UpsertIgnore:
		op.Body = w.image(k, a, s)
	case Update, UpdateIgnore:
		l := change.AppendColumn(change.AppendUpdateHeader(nil, change.Update), 2, int32Cell(a))
		cell := []byte(s)
		if s == "" {
			cell = nil
		}
		op.Body = change.AppendColumn(l, 3, cell)
	}
	return op
}

// commit commits a batch as the store does: resolve, log, apply. reopened replays what it logged.
func (w *testStore) commit(ops ...Op) (changes int, err error) {
	for i := range ops {
		ops[i].Index = i
	}
	write, err := w.tab.Prepare(ops, w.tab.Schema(), false, 0)
	if err != nil {
		return 0, err
	}
	defer write.Release()
	if changes = write.Changes(); changes == 0 {
		return 0, nil
	}
	w.lsn++
	var rec record.Writer
	rec.Begin(timestampOf(w.lsn))
	write.Record(&rec)
	logged := changes
	for i := range write.targets {
		if write.targets[i].overExpired() {
			logged++ // the DELETE of the expired row
		}
	}
	if rec.Len() != logged {
		w.t.Fatalf("%d operations in the record, want %d", rec.Len(), logged)
	}
	w.log = append(w.log, bytes.Clone(rec.Bytes()))
	write.Apply(timestampOf(w.lsn), w.lsn)
	return changes, nil
}

func (w *testStore) mustCommit(ops ...Op) {
	w.t.Helper()
	if _, err := w.commit(ops...); err != nil {
		w.t.Fatal(err)
	}
}

func (w *testStore) flush() {
	w.t.Helper()
	must.Get(w.tab.Flush(context.Background()))(w.t)
}

var latest = Snapshot{At: mvcc.Everything, Latest: true}

// get returns the row of key k as text, or "" if no row has the key.
func (w *testStore) get(k int, at Snapshot) string {
	w.t.Helper()
	cells := make([][]byte, len(allColumns))
	found := must.Get(get(w.tab, w.key(k), at, allColumns, cells))(w.t)
	if !found {
		return ""
	}
	return rowText(cells)
}

// rowText is "k: a s d".
func rowText(cells [][]byte) string {
	s := "NULL"
	if cells[2] != nil {
		s = fmt.Sprintf("%q", cells[2])
	}
	return fmt.Sprintf("%d: %d %s %d", int64(binary.LittleEndian.Uint64(cells[0])),
		int32(binary.LittleEndian.Uint32(cells[1])), s,
		int32(binary.LittleEndian.Uint32(cells[3])))
}

// scan returns all rows as text, in the order of the scan.
func (w *testStore) scan(at Snapshot, ordered bool) []string {
	w.t.Helper()
	it := must.Get(search(w.tab, scan.Options{Columns: allColumns}, at, ordered))(w.t)
	return must.Get(readAll(it))(w.t)
}

// readAll reads all rows of an iterator and closes it. It reads byte strings only at the end, since
// they must still be valid.
func readAll(it scan.Iterator) ([]string, error) {
	var kept [][][]byte
	for it.Next() {
		b := it.Batch()
		for i := b.Selection.Next(0); i >= 0; i = b.Selection.Next(i + 1) {
			kept = append(kept, rowCells(b, i))
		}
	}
	var rows []string
	for _, cells := range kept {
		rows = append(rows, rowText(cells))
	}
	return rows, it.Close()
}

func rowCells(b *batch.RecordBatch, i int) [][]byte {
	cells := make([][]byte, len(b.Columns))
	for c, v := range b.Columns {
		if cells[c] = v.Cell(i); !v.Type.Variable() {
			cells[c] = bytes.Clone(cells[c])
		}
	}
	return cells
}

// checkFree fails if a lock of the table is held, if a job owns a part of it or keeps a rowset, or
// if an event was not sent.
func (w *testStore) checkFree() {
	w.t.Helper()
	if !w.tab.gate.TryLock() {
		w.t.Fatal("the gate is held")
	}
	w.tab.gate.Unlock()
	if c := &w.tab.claims; c.flushing || c.exclusive != noExclusion || len(c.flushed)+len(c.compacted) > 0 ||
		c.changed != nil {
		w.t.Fatalf("flush %t, exclusion %d, flushed %v, compacted %v", c.flushing, c.exclusive, c.flushed, c.compacted)
	}
	if st := w.tab.state.Load(); st != nil {
		if n := st.refs.Load(); n != 1 {
			w.t.Fatalf("the state has %d references", n)
		}
		for _, d := range st.tree.Sets {
			if d.Shared() {
				w.t.Fatalf("rowset %d has other references than the state's", d.Metadata().ID)
			}
		}
	}
	if n := len(w.tab.reports.list); n > 0 {
		w.t.Fatalf("%d events were not sent", n)
	}
	if held := w.tab.rows.held; held != nil && *held != (stripes{}) || len(w.tab.rows.waiting) > 0 {
		w.t.Fatalf("rows are locked, or waited for by %d batches", len(w.tab.rows.waiting))
	}
}

// version is a row from one timestamp until its next version; an empty text is a deleted row.
type version struct {
	ts   mvcc.Timestamp
	text string
}

// versions is the model of a table: the versions of each key.
type versions map[int][]version

func (p versions) at(k int, snap mvcc.Snapshot) string {
	text := ""
	for _, v := range p[k] {
		if snap.Sees(v.ts) {
			text = v.text
		}
	}
	return text
}

func (p versions) scan(snap mvcc.Snapshot) []string {
	var rows []string
	for _, k := range slices.Sorted(maps.Keys(p)) {
		if text := p.at(k, snap); text != "" {
			rows = append(rows, text)
		}
	}
	return rows
}

// outcome is the result table of tablet spec §12.4: the error of an operation and the row after it.
// given is the row that the operation would set.
func outcome(kind OpKind, before, given string) (after string, cause error) {
	switch live := before != ""; kind {
	case Insert:
		if live {
			return before, fault.ErrKeyExists
		}
	case InsertIgnore:
		if live {
			return before, nil
		}
	case Update:
		if !live {
			return before, fault.ErrNotFound
		}
	case UpdateIgnore:
		if !live {
			return before, nil
		}
	case Delete:
		if !live {
			return before, fault.ErrNotFound
		}
		return "", nil
	case DeleteIgnore:
		return "", nil
	}
	return given, nil
}

// noChange is a commit that changes only the epoch.
var noChange = blockmanager.Edit{}

func (w *testStore) drop(remove func(sets []*rowset.Metadata) error) error {
	return Drop([]*Tablet{w.tab}, func() error { return remove(w.tab.RowSetMetadata()) })
}

// dropRows removes a table's rows from the metadata, as the store does for a drop.
func (w *testStore) dropRows(sets []*rowset.Metadata) error {
	edit := blockmanager.Edit{Delete: [][]byte{meta.TableKey(3)}, Confirm: true}
	for _, m := range sets {
		edit.Dead = m.Blocks(edit.Dead)
		edit.Delete = append(edit.Delete, meta.RowSetKey(3, m.ID))
	}
	return w.m.Commit(edit)
}

// get, search and explain read the newest state in one step.

func get(t *Tablet, key []byte, at Snapshot, cols []int, cells [][]byte) (bool, error) {
	v, err := t.View(at)
	if err != nil {
		return false, err
	}
	defer v.Release()
	got, found, err := v.Get(key, cols, nil)
	copy(cells, got)
	return found, err
}

func search(t *Tablet, req scan.Options, at Snapshot, ordered bool) (scan.Iterator, error) {
	v, err := t.View(at)
	if err != nil {
		return nil, err
	}
	return v.Scan(req, ordered)
}

func explain(t *Tablet, key []byte, at Snapshot) (rowset.Trace, error) {
	v, err := t.View(at)
	if err != nil {
		return rowset.Trace{}, err
	}
	defer v.Release()
	return v.Explain(context.Background(), key, v.All)
}
