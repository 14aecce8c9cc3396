package storetest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/corpustest"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/vfs"
)

// treeCommit is one commit in the history of a source tree: files added, changed, deleted.
type treeCommit struct {
	Seq int32
	Ops [][]any // ["A" or "M", path, mode, blob, size] or ["D", path]
}

// treeFile is one file of the tree as of a commit; seq is the number of the commit that changed it
// last.
type treeFile struct {
	mode, blob string
	size       int64
	seq        int32
}

// treeHistory is a real history: the commits to write, and the expected table as of some commits.
type treeHistory struct {
	commits []treeCommit
	at      map[int]map[string]treeFile // by number of commits
}

// loadTree reads the first n commits of the history of Apache Kudu's source tree. The expected
// states at commits 1000, 5000 and 10699 are Git's own, from separate files; some more are replayed
// here.
func loadTree(t *testing.T, n int) *treeHistory {
	dir := filepath.Join(corpustest.Dir(t), "data")
	h := &treeHistory{at: map[int]map[string]treeFile{}}
	tree := map[string]treeFile{}
	for _, line := range corpustest.Lines(t, filepath.Join(dir, "kudu-tree-history.jsonl")) {
		var c treeCommit
		must.Do(t, json.Unmarshal([]byte(line), &c))
		for _, op := range c.Ops {
			if path := op[1].(string); op[0] == "D" {
				delete(tree, path)
			} else {
				tree[path] = treeFile{op[2].(string), op[3].(string), int64(op[4].(float64)), c.Seq}
			}
		}
		h.commits = append(h.commits, c)
		if k := len(h.commits); k%(n/7) == 0 || k == 1 || k == 1000 || k == 5000 || k == n {
			h.at[k] = maps.Clone(tree)
		}
		if len(h.commits) == n {
			break
		}
	}
	for _, k := range []int{1000, 5000, 10699} {
		if k <= n {
			compareToGit(t, h.at[k], filepath.Join(dir, fmt.Sprintf("kudu-tree-at-%d.jsonl", k)))
		}
	}
	return h
}

// compareToGit compares the replay with the tree that Git lists.
func compareToGit(t *testing.T, tree map[string]treeFile, file string) {
	lines := corpustest.Lines(t, file)
	for _, line := range lines {
		var f []any
		must.Do(t, json.Unmarshal([]byte(line), &f))
		got := tree[f[0].(string)]
		if got.mode != f[1] || got.blob != f[2] || float64(got.size) != f[3] {
			t.Fatalf("%s: %v, want %v", file, got, f)
		}
	}
	must.Equal(t, len(tree), len(lines), file, "has", len(lines), "files")
}

// treeStore is a store to which the history is written.
type treeStore struct {
	t     *testing.T
	h     *treeHistory
	mem   *vfs.Mem
	store *oribi.Store
	table *oribi.Table
	ts    []mvcc.Timestamp // of each commit
}

func newTreeStore(t *testing.T, h *treeHistory) *treeStore {
	s := &treeStore{t: t, h: h, mem: vfs.NewMem()}
	s.open()
	s.table = tableOf(t, s.store, "tree", "path*:string mode:string blob:string size:int64 seq:int32")
	return s
}

func (s *treeStore) open() {
	s.t.Helper()
	var err error
	s.store, err = oribi.Open("/tree",
		&oribi.Options{FS: s.mem, History: oribi.HistoryForever, Manual: true, RowSetBytes: 1 << 16})
	if err == nil && s.ts != nil {
		s.table, err = s.store.Table("tree")
	}
	must.Do(s.t, err)
}

// write commits one batch per commit of the history, and flushes periodically.
func (s *treeStore) write(flushEvery int, opts ...oribi.CommitOption) {
	s.t.Helper()
	ctx := context.Background()
	b := s.store.NewBatch()
	for i, c := range s.h.commits {
		for _, op := range c.Ops {
			row := oribi.Row{"path": op[1]}
			if op[0] == "D" {
				b.Delete(s.table, row)
				continue
			}
			row["mode"], row["blob"], row["size"], row["seq"] = op[2], op[3], int64(op[4].(float64)), c.Seq
			if op[0] == "A" {
				b.Insert(s.table, row)
			} else {
				b.Update(s.table, row)
			}
		}
		ts, err := b.Commit(ctx, opts...)
		if err != nil {
			s.t.Fatalf("commit %d: %v", c.Seq, err)
		}
		s.ts = append(s.ts, ts)
		if flushEvery > 0 && (i+1)%flushEvery == 0 {
			must.Do(s.t, s.table.Flush(ctx))
		}
	}
}

// check compares the table as of some commits, and its newest state, with the trees.
func (s *treeStore) check(state string) {
	s.t.Helper()
	for k, tree := range s.h.at {
		if err := s.compare(tree, oribi.AsOf(s.ts[k-1])); err != nil {
			s.t.Fatalf("%s: as of commit %d: %v", state, k, err)
		}
	}
	if err := s.compare(s.h.at[len(s.h.commits)]); err != nil {
		s.t.Fatalf("%s: now: %v", state, err)
	}
}

func (s *treeStore) compare(tree map[string]treeFile, opts ...oribi.ReadOption) error {
	at := oribi.Latest()
	for _, o := range opts {
		at = o
	}
	n, last := 0, ""
	for row, err := range s.table.Scan(context.Background(), at).Rows() {
		if err != nil {
			return err
		}
		path := row["path"].(string)
		got := treeFile{row["mode"].(string), row["blob"].(string), row["size"].(int64), row["seq"].(int32)}
		if want, ok := tree[path]; !ok || got != want || path <= last {
			return fmt.Errorf("file %s after %s is %v, want %v", path, last, got, want)
		}
		if n%100 == 0 {
			if again, err := s.table.Get(context.Background(), path, at); err != nil || again["blob"] != row["blob"] {
				return fmt.Errorf("file %s: Get says %v, %v", path, again, err)
			}
		}
		n, last = n+1, path
	}
	if n != len(tree) {
		return fmt.Errorf("%d files, want %d", n, len(tree))
	}
	return nil
}

func (s *treeStore) compact() {
	s.t.Helper()
	must.Do(s.t, s.table.Compact(context.Background()))
}

func (s *treeStore) reopen() {
	s.t.Helper()
	must.Do(s.t, s.store.Close())
	s.open()
}

// crash replaces the disk by the disk that a crash left.
func (s *treeStore) crash(image *vfs.Mem) {
	s.t.Helper()
	s.store.Close()
	s.mem = image
	s.open()
}

func (s *treeStore) close() {
	s.t.Helper()
	if err := s.store.Verify(context.Background(), func(f oribi.Finding) { s.t.Errorf("%+v", f) }); err != nil {
		s.t.Error(err)
	}
	if err := s.store.Close(); err != nil {
		s.t.Error(err)
	}
}

func treeCommits() int {
	if *forFlag > 0 {
		return 10699
	}
	return seedtest.Needed(10699, 1000)
}

// The history of a real source tree, one batch per commit: every state can be read, whether its
// rows are in memory, flushed or compacted, after a clean reopening and after a kill.
func TestTreeHistoryInMemory(t *testing.T) {
	s := newTreeStore(t, loadTree(t, treeCommits()))
	s.write(0, oribi.NoSync)
	s.check("in memory")
	s.crash(s.mem.Clone())
	s.check("in memory, after a kill")
	s.reopen()
	s.check("in memory, reopened")
	s.compact()
	s.check("compacted at once")
	s.crash(s.mem.Clone())
	s.check("compacted at once, after a kill")
	s.close()
}

// The same with batches that are durable when acknowledged, and with flushes between them: a power
// cut loses none.
func TestTreeHistoryFlushed(t *testing.T) {
	s := newTreeStore(t, loadTree(t, treeCommits()))
	s.write(500)
	s.check("flushed every 500 batches")
	s.crash(s.mem.Crash())
	s.check("flushed, after a power cut")
	s.reopen()
	s.check("flushed, reopened")
	must.Do(t, s.table.Flush(context.Background()))
	s.check("all flushed")
	s.compact()
	s.check("compacted")
	s.reopen()
	s.check("compacted, reopened")
	s.compact()
	s.check("compacted twice")
	s.close()
}

// With a retention of one hour, a read of an older state is refused, before and after compactions;
// a read of a state within the hour is correct after all flushes and compactions.
func TestReadsBelowTheHistoryFloorAreRefused(t *testing.T) {
	ctx := context.Background()
	w := newFakeWall()
	store, table := floorStore(t, w)
	defer func() { store.Close() }()
	b := store.NewBatch()
	var at []mvcc.Timestamp // of the batch that set v to its index
	for i := range 150 {
		for k := range 20 {
			b.Upsert(table, oribi.Row{"k": k, "v": i})
		}
		if i%3 == 1 {
			b.Delete(table, oribi.Row{"k": i % 20})
		}
		ts, err := b.Commit(ctx, oribi.NoSync)
		must.Do(t, err)
		at = append(at, ts)
		w.move(minute)
		switch {
		case i%20 == 19:
			err = table.Compact(ctx)
		case i%7 == 6:
			err = table.Flush(ctx)
		}
		must.Do(t, err)
		if i%31 == 30 {
			must.Do(t, store.Close())
			store, table = floorStore(t, w)
			b = store.NewBatch()
		}
		if i%6 == 5 {
			checkFloor(t, table, at)
		}
	}
	if p := table.Properties(); p.HistoryFloor < at[50] {
		t.Errorf("the floor is at %v after 150 minutes, compactions should have raised it above %v", p.HistoryFloor,
			at[50])
	}
}

// checkFloor reads the table as of each minute: the last 60 are readable, older ones are not. Batch
// i was committed i+1 minutes after the clock started, and the last one a minute ago.
func checkFloor(t *testing.T, table *oribi.Table, at []mvcc.Timestamp) {
	t.Helper()
	for i, ts := range at {
		n := 0
		var err error
		for row, e := range table.Scan(context.Background(), oribi.AsOf(ts)).Rows() {
			if err = e; err == nil && row["v"] != int64(i) {
				t.Fatalf("as of batch %d of %d: row %v", i, len(at), row)
			}
			n++
		}
		age := len(at) - i // minutes
		switch {
		case age > 60:
			must.Fail(t, err, oribi.ErrTooOld, "a read", age, "minutes back")
		case age < 60:
			must.Do(t, err)
			must.Equal(t, n, 20-btoi(i%3 == 1), "a read", age, "minutes back: rows")
		}
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
