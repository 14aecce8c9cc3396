package oribi_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
)

const closedDir = "/store"

// closedStore is a store that was closed, and what reads of it must say.
type closedStore struct {
	fs     *vfs.Mem
	old    mvcc.Timestamp
	latest []string // all rows of all tables
	before []string // the same at old
}

// TestFlippedBytesOfAClosedStoreNeverChangeAnAnswer flips one byte of a closed store at a time, opens it read-only and scans all of
// it, now and at an old timestamp. The answer is right, or an error says that the store is damaged. Bytes come at random, as many as the time
// allows, half of them from wal/, ANCHOR and INSTANCE; each once at most. It prints what the damage did, and where it did nothing what
// Verify says.
func TestFlippedBytesOfAClosedStoreNeverChangeAnAnswer(t *testing.T) {
	seed := proofSeed(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	c := makeClosedStore(t, rng)
	tally := c.flipAll(t, c.places(t, rng), proofTime(time.Second, 5*time.Second))
	for _, kind := range slices.Sorted(maps.Keys(tally)) {
		t.Logf("%-8s %+v", kind, *tally[kind])
	}
}

// flip is one byte to be changed.
type flip struct {
	kind string // first name in the store's directory
	name string // within it
	off  int64
	mask byte
	old  byte
}

func (f flip) String() string { return fmt.Sprintf("%s byte %d mask %#02x", f.name, f.off, f.mask) }

// outcomes counts what became of flips.
type outcomes struct {
	refusedByOpen, refusedByScan int
	found, nothing               int // the answer was right, and Verify found the damage or did not
}

func (o *outcomes) add(p outcomes) {
	o.refusedByOpen += p.refusedByOpen
	o.refusedByScan += p.refusedByScan
	o.found += p.found
	o.nothing += p.nothing
}

// makeClosedStore has two tables with rows, updates and deletes on disk and in the log, in several segments, and dead blocks.
func makeClosedStore(t *testing.T, rng *rand.Rand) *closedStore {
	t.Helper()
	c := &closedStore{fs: vfs.NewMem()}
	m := &closedModel{t: t, rng: rng, rows: map[string]map[string]oribi.Row{"items": {}, "pairs": {}}}
	session := func(work func()) {
		m.open(c.fs)
		work()
		must(t, m.store.Close())
	}
	session(func() {
		m.create()
		m.write(60)
		m.flush("items", "pairs")
		m.write(40)
		m.flush("items", "pairs")
		m.write(20)
		must(t, m.table("pairs").Compact(context.Background()))
	})
	session(func() {
		m.write(20)
		m.flush("items")
		c.old = m.write(10)
		c.before = m.text()
	})
	session(func() { m.write(10) })
	session(func() { m.write(6) })
	c.latest = m.text()
	if a := c.read(c.fs.Clone()); a.wrong != "" || a.err != nil || a.findings > 0 {
		t.Fatalf("undamaged: %+v", a)
	}
	return c
}

// closedModel writes to a store and knows what is in it.
type closedModel struct {
	t     *testing.T
	rng   *rand.Rand
	store *oribi.Store
	rows  map[string]map[string]oribi.Row // by table and key
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func closedOptions(fs vfs.FS, readOnly bool) *oribi.Options {
	return &oribi.Options{FS: fs, ReadOnly: readOnly, Manual: true, History: oribi.HistoryForever, Clock: mvcc.NewLogicalClock(1), MemoryLimit: 16 << 20}
}

func (m *closedModel) open(fs vfs.FS) {
	m.t.Helper()
	var err error
	m.store, err = oribi.Open(closedDir, closedOptions(fs, false))
	must(m.t, err)
}

func (m *closedModel) table(name string) *oribi.Table {
	m.t.Helper()
	table, err := m.store.Table(name)
	must(m.t, err)
	return table
}

func (m *closedModel) create() {
	m.t.Helper()
	items, err := schema.New([]schema.Column{{Name: "k", Type: schema.Int64}, {Name: "v", Type: schema.Int64},
		{Name: "s", Type: schema.String, Nullable: true}, {Name: "d", Type: schema.Double, Nullable: true}, {Name: "b", Type: schema.Bool}}, 1)
	must(m.t, err)
	pairs, err := schema.New([]schema.Column{{Name: "name", Type: schema.String}, {Name: "n", Type: schema.Int32},
		{Name: "x", Type: schema.Binary, Nullable: true}, {Name: "y", Type: schema.Int16}}, 2)
	must(m.t, err)
	_, err = m.store.CreateTable("items", items)
	must(m.t, err)
	_, err = m.store.CreateTable("pairs", pairs)
	must(m.t, err)
}

func (m *closedModel) flush(tables ...string) {
	m.t.Helper()
	for _, name := range tables {
		must(m.t, m.table(name).Flush(context.Background()))
	}
}

// write commits batches with n operations in all: each inserts a row, or updates or deletes one.
func (m *closedModel) write(n int) (ts mvcc.Timestamp) {
	m.t.Helper()
	for n > 0 {
		b := m.store.NewBatch()
		for range min(n, 1+m.rng.IntN(6)) {
			m.operation(b)
			n--
		}
		var err error
		ts, err = b.Commit(context.Background())
		must(m.t, err)
	}
	return ts
}

func (m *closedModel) operation(b *oribi.Batch) {
	name, key, row := "items", oribi.Row{"k": int64(m.rng.IntN(100))}, oribi.Row{"v": m.rng.Int64N(1000), "b": m.rng.IntN(2) == 0, "s": nil, "d": m.rng.Float64()}
	if m.rng.IntN(2) == 0 {
		row["s"] = strings.Repeat("ab", m.rng.IntN(9))
	}
	if m.rng.IntN(3) == 0 {
		name, key = "pairs", oribi.Row{"name": fmt.Sprint("n", m.rng.IntN(9)), "n": int32(m.rng.IntN(9))}
		row = oribi.Row{"x": []byte(fmt.Sprint(m.rng.IntN(1 << 20))), "y": int16(m.rng.IntN(100))}
	}
	table, id := m.rows[name], fmt.Sprint(key)
	maps.Copy(row, key)
	switch old := table[id]; {
	case old == nil:
		b.Insert(m.table(name), row)
		table[id] = row
	case m.rng.IntN(3) == 0:
		b.Delete(m.table(name), key)
		delete(table, id)
	default:
		column := []string{"v", "y"}[len(key)-1]
		key[column] = row[column]
		b.Update(m.table(name), key)
		table[id] = maps.Clone(old)
		table[id][column] = row[column]
	}
}

// text is all rows, sorted.
func (m *closedModel) text() (lines []string) {
	for name, rows := range m.rows {
		for _, row := range rows {
			lines = append(lines, fmt.Sprint(name, " ", row))
		}
	}
	slices.Sort(lines)
	return lines
}

// places gives all bytes of all files but LOCK, shuffled, those of wal/, ANCHOR and INSTANCE and those of meta/ and data/ in turn.
func (c *closedStore) places(t *testing.T, rng *rand.Rand) (out []flip) {
	t.Helper()
	var small, large []flip
	size := int64(0)
	var walk func(kind, name string)
	walk = func(kind, name string) {
		info, err := c.fs.Stat(filepath.Join(closedDir, name))
		must(t, err)
		if info.IsDir() {
			names, err := c.fs.List(filepath.Join(closedDir, name))
			must(t, err)
			for _, n := range names {
				k := kind
				if k == "" {
					k = n
				}
				walk(k, filepath.Join(name, n))
			}
			return
		}
		size += info.Size()
		for off := range info.Size() {
			f := flip{kind, name, off, byte(1 + rng.IntN(255))}
			switch kind {
			case "wal", "ANCHOR", "INSTANCE":
				small = append(small, f)
			case "meta", "data":
				large = append(large, f)
			}
		}
	}
	walk("", "")
	t.Logf("%d bytes of files, %d of them in wal/, ANCHOR and INSTANCE; %d rows now, %d before", size, len(small), len(c.latest), len(c.before))
	for _, list := range [][]flip{small, large} {
		rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	}
	for i := range max(len(small), len(large)) {
		out = append(out, small[min(i, len(small)):min(i+1, len(small))]...)
		out = append(out, large[min(i, len(large)):min(i+1, len(large))]...)
	}
	return out
}

// flipAll tries flips, several at a time, until the time is over.
func (c *closedStore) flipAll(t *testing.T, flips []flip, d time.Duration) map[string]*outcomes {
	end := time.Now().Add(d)
	tally := map[string]*outcomes{}
	var mu sync.Mutex // guards tally
	var next atomic.Int64
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(flips)) && time.Now().Before(end); i = next.Add(1) - 1 {
				o := c.try(t, flips[i])
				mu.Lock()
				if tally[flips[i].kind] == nil {
					tally[flips[i].kind] = &outcomes{}
				}
				tally[flips[i].kind].add(o)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return tally
}

// try carries out one flip on a copy.
func (c *closedStore) try(t *testing.T, f flip) (o outcomes) {
	watchdog := time.AfterFunc(time.Minute, func() { panic(fmt.Sprint("it hangs: ", f)) })
	defer watchdog.Stop()
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("%v: panic: %v\n%s", f, p, debug.Stack())
		}
	}()
	a := c.read(f.apply(t, c.fs.Clone()))
	switch {
	case a.wrong != "":
		t.Errorf("%v: wrong answer: %s", f, a.wrong)
	case a.err != nil && !a.opened:
		o.refusedByOpen++
	case a.err != nil:
		o.refusedByScan++
	case a.findings > 0:
		o.found++
	default:
		o.nothing++
		if os.Getenv("SHOW") != "" {
			t.Logf("NOTHING %v old %v", f, f.old)
		}
	}
	if a.err != nil && !errors.Is(a.err, oribi.ErrCorrupt) && !errors.Is(a.err, oribi.ErrUnsupported) && !errors.Is(a.err, oribi.ErrNotStore) {
		t.Errorf("%v: the error tells nothing of damage: %v", f, a.err)
	}
	return o
}

// apply changes the byte in fs, and returns that.
func (f *flip) apply(t *testing.T, fs *vfs.Mem) *vfs.Mem {
	file, err := fs.Open(filepath.Join(closedDir, f.name), true)
	if err != nil {
		t.Error(err)
		return fs
	}
	defer file.Close()
	var b [1]byte
	if _, err := file.ReadAt(b[:], f.off); err != nil {
		t.Error(err)
	}
	f.old = b[0]
	if _, err := file.WriteAt([]byte{b[0] ^ f.mask}, f.off); err != nil {
		t.Error(err)
	}
	return fs
}

// answers is what a store says.
type answers struct {
	opened   bool
	err      error  // of Open, of a scan, of Verify
	wrong    string // an answer that came without an error and is not right
	findings int    // of Verify, if all else went well
}

// read opens the store read-only and compares all answers.
func (c *closedStore) read(fs vfs.FS) (a answers) {
	s, err := oribi.Open(closedDir, closedOptions(fs, true))
	if err != nil {
		a.err = err
		return a
	}
	defer s.Close()
	a.opened = true
	if a.wrong, a.err = compare(s, c.latest); a.wrong == "" && a.err == nil {
		a.wrong, a.err = compare(s, c.before, oribi.AsOf(c.old))
	}
	if a.wrong == "" && a.err == nil {
		a.err = s.Verify(context.Background(), func(oribi.Finding) { a.findings++ })
	}
	return a
}

// compare scans all tables.
func compare(s *oribi.Store, want []string, opts ...oribi.ReadOption) (wrong string, err error) {
	got, err := scanAll(s, opts...)
	if err != nil || slices.Equal(got, want) {
		return "", err
	}
	return fmt.Sprintf("%d rows, want %d; %s", len(got), len(want), difference(got, want)), nil
}

// scanAll gives all rows of all tables, sorted.
func scanAll(s *oribi.Store, opts ...oribi.ReadOption) (lines []string, err error) {
	for _, table := range s.Tables() {
		for row, err := range table.Scan(context.Background(), opts...).Rows() {
			if err != nil {
				return nil, err
			}
			lines = append(lines, fmt.Sprint(table.Name(), " ", row))
		}
	}
	slices.Sort(lines)
	return lines, nil
}

// difference is the first line that only one of two has.
func difference(got, want []string) string {
	for _, l := range got {
		if !slices.Contains(want, l) {
			return "not wanted: " + l
		}
	}
	for _, l := range want {
		if !slices.Contains(got, l) {
			return "missing: " + l
		}
	}
	return "a row stands twice"
}
