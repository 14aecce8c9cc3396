package storetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path"
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
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
)

const closedDir = "/store"

// closedStore is a closed store, and the answers that reads of it must return.
type closedStore struct {
	fs     *vfs.Mem
	old    mvcc.Timestamp
	latest []string // all rows of all tables
	before []string // the same at old
	rows   map[string]map[string]oribi.Row
}

// TestFlippedBytesOfAClosedStoreNeverChangeAnAnswer flips one byte of a closed store at a time,
// opens it read-only, scans all of it, at the newest and at an old timestamp, and gets every row by
// its key. Each answer is correct, or an error reports that the store is damaged.
//
// Bytes are chosen at random, each at most once, as many as the time allows; -proof.for=10m covers
// all of them. For each kind of file the test prints the outcomes and, where the answer was
// correct, whether Verify found the damage. Verify does not detect changes in the footer of the
// newest log segment (a kill can leave the same bytes), in Pebble's OPTIONS, and in ranges of
// containers without a block.
func TestFlippedBytesOfAClosedStoreNeverChangeAnAnswer(t *testing.T) {
	seed := seedtest.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	c := makeClosedStore(t, rng)
	tally := c.flipAll(t, c.places(t, rng), proofTime(300*time.Millisecond))
	for _, kind := range slices.Sorted(maps.Keys(tally)) {
		t.Logf("%-16s %+v", kind, *tally[kind])
	}
}

// byteFlip is one byte to change.
type byteFlip struct {
	name string // relative to the store's directory
	off  int64
	mask byte
}

// kind returns the name without the parts that differ between stores.
func (f byteFlip) kind() string {
	dir, base := path.Split(filepath.ToSlash(f.name))
	if dir == "data/" {
		return dir
	}
	return dir + strings.Trim(strings.TrimLeft(base, "0123456789"), "-0123456789")
}

func (f byteFlip) String() string { return fmt.Sprintf("%s byte %d mask %#02x", f.name, f.off, f.mask) }

// flipOutcomes counts the outcomes of flips.
type flipOutcomes struct {
	refusedByOpen, refusedByRead int // by an error of Open; of a scan or a Get
	found, nothing               int // all answers were correct, and Verify found the damage or did not
}

func (o *flipOutcomes) add(p flipOutcomes) {
	o.refusedByOpen += p.refusedByOpen
	o.refusedByRead += p.refusedByRead
	o.found += p.found
	o.nothing += p.nothing
}

// makeClosedStore returns a store that has two tables with rows, updates and deletes on disk and in
// the log, in several segments, and dead blocks.
func makeClosedStore(t *testing.T, rng *rand.Rand) *closedStore {
	t.Helper()
	c := &closedStore{fs: vfs.NewMem()}
	m := &closedModel{t: t, rng: rng, rows: map[string]map[string]oribi.Row{"items": {}, "pairs": {}}}
	session := func(work func()) {
		m.open(c.fs)
		work()
		noFault(t, m.store.Close())
	}
	session(func() {
		m.create()
		m.write(70)
		m.flush("items", "pairs")
		m.write(30)
		noFault(t, m.table("pairs").Compact(context.Background()))
	})
	session(func() {
		m.write(20)
		m.flush("items")
		c.old = m.write(10)
		c.before = m.text()
	})
	session(func() { m.write(10) })
	session(func() { m.write(6) })
	c.latest, c.rows = m.text(), m.rows
	if a := c.read(c.fs.Clone()); a.wrong != "" || a.err != nil || a.findings > 0 {
		t.Fatalf("undamaged: %+v", a)
	}
	return c
}

// closedModel writes to a store and records its expected content.
type closedModel struct {
	t     *testing.T
	rng   *rand.Rand
	store *oribi.Store
	rows  map[string]map[string]oribi.Row // by table and key
}

func noFault(t testing.TB, err error) {
	t.Helper()
	must.Do(t, err)
}

func closedOptions(fs vfs.FS, readOnly bool) *oribi.Options {
	return &oribi.Options{FS: fs, ReadOnly: readOnly, Manual: true, History: oribi.HistoryForever,
		Clock: mvcc.NewLogicalClock(1), MemoryLimit: 16 << 20}
}

func (m *closedModel) open(fs vfs.FS) {
	m.t.Helper()
	var err error
	m.store, err = oribi.Open(closedDir, closedOptions(fs, false))
	noFault(m.t, err)
}

func (m *closedModel) table(name string) *oribi.Table {
	m.t.Helper()
	table, err := m.store.Table(name)
	noFault(m.t, err)
	return table
}

func (m *closedModel) create() {
	m.t.Helper()
	items, err := schema.New([]schema.Column{{Name: "k", Type: schema.Int64}, {Name: "v", Type: schema.Int64},
		{Name: "s", Type: schema.String, Nullable: true}, {Name: "d", Type: schema.Double, Nullable: true},
		{Name: "b", Type: schema.Bool}}, 1)
	noFault(m.t, err)
	pairs, err := schema.New([]schema.Column{{Name: "name", Type: schema.String}, {Name: "n", Type: schema.Int32},
		{Name: "x", Type: schema.Binary, Nullable: true}, {Name: "y", Type: schema.Int16}}, 2)
	noFault(m.t, err)
	_, err = m.store.CreateTable("items", items)
	noFault(m.t, err)
	_, err = m.store.CreateTable("pairs", pairs)
	noFault(m.t, err)
}

func (m *closedModel) flush(tables ...string) {
	m.t.Helper()
	for _, name := range tables {
		noFault(m.t, m.table(name).Flush(context.Background()))
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
		noFault(m.t, err)
	}
	return ts
}

func (m *closedModel) operation(b *oribi.Batch) {
	name, key, row := "items", oribi.Row{"k": int64(m.rng.IntN(100))},
		oribi.Row{"v": m.rng.Int64N(1000), "b": m.rng.IntN(2) == 0, "s": nil, "d": m.rng.Float64()}
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

// text returns all rows, sorted.
func (m *closedModel) text() (lines []string) {
	for name, rows := range m.rows {
		for _, row := range rows {
			lines = append(lines, fmt.Sprint(name, " ", row))
		}
	}
	slices.Sort(lines)
	return lines
}

// places returns all bytes of all files except LOCK in random order, alternating between wal/ and
// INSTANCE, meta/ and ANCHOR, and data/.
func (c *closedStore) places(t *testing.T, rng *rand.Rand) (out []byteFlip) {
	t.Helper()
	group := map[string]int{"wal": 0, "INSTANCE": 0, "meta": 1, "ANCHOR": 1, "data": 2}
	var groups [3][]byteFlip
	size := int64(0)
	var walk func(g int, name string)
	walk = func(g int, name string) {
		info, err := c.fs.Stat(filepath.Join(closedDir, name))
		noFault(t, err)
		if info.IsDir() {
			names, err := c.fs.List(filepath.Join(closedDir, name))
			noFault(t, err)
			for _, n := range names {
				walk(g, filepath.Join(name, n))
			}
			return
		}
		size += info.Size()
		for off := range info.Size() {
			groups[g] = append(groups[g], byteFlip{name, off, byte(1 + rng.IntN(255))})
		}
	}
	names, err := c.fs.List(closedDir)
	noFault(t, err)
	for _, name := range names {
		if name != "LOCK" {
			walk(group[name], name)
		}
	}
	t.Logf("files of %d bytes: wal/ and INSTANCE %d, meta/ and ANCHOR %d, data/ %d; %d rows now, %d before",
		size, len(groups[0]), len(groups[1]), len(groups[2]), len(c.latest), len(c.before))
	for _, g := range groups {
		rng.Shuffle(len(g), func(i, j int) { g[i], g[j] = g[j], g[i] })
	}
	for i := range size {
		for _, g := range groups {
			if i < int64(len(g)) {
				out = append(out, g[i])
			}
		}
	}
	return out
}

// flipAll tries flips, several concurrently, until the time is over.
func (c *closedStore) flipAll(t *testing.T, flips []byteFlip, d time.Duration) map[string]*flipOutcomes {
	end := time.Now().Add(d)
	tally := map[string]*flipOutcomes{}
	var mu sync.Mutex // guards tally
	var next atomic.Int64
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(flips)) && time.Now().Before(end); i = next.Add(1) - 1 {
				o := c.try(t, flips[i])
				mu.Lock()
				if kind := flips[i].kind(); tally[kind] == nil {
					tally[kind] = &o
				} else {
					tally[kind].add(o)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return tally
}

// try carries out one flip on a copy.
func (c *closedStore) try(t *testing.T, f byteFlip) (o flipOutcomes) {
	watchdog := time.AfterFunc(time.Minute, func() { panic(fmt.Sprint("timeout: ", f)) })
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
		o.refusedByRead++
	case a.findings > 0:
		o.found++
	default:
		o.nothing++
	}
	if a.err != nil && !errors.Is(a.err, oribi.ErrCorrupt) && !errors.Is(a.err, oribi.ErrUnsupported) &&
		!errors.Is(a.err, oribi.ErrNotStore) {
		t.Errorf("%v: the error does not report damage: %v", f, a.err)
	}
	return o
}

// apply changes the byte in fs and returns fs.
func (f byteFlip) apply(t *testing.T, fs *vfs.Mem) *vfs.Mem {
	file, err := fs.Open(filepath.Join(closedDir, f.name), true)
	if err != nil {
		t.Error(err)
		return fs
	}
	defer file.Close()
	var b [1]byte
	must.Do(t, must.Err(file.ReadAt(b[:], f.off)))
	must.Do(t, must.Err(file.WriteAt([]byte{b[0] ^ f.mask}, f.off)))
	return fs
}

// storeAnswers collects the answers of a store.
type storeAnswers struct {
	opened   bool
	err      error  // the last of Open, scans, Gets, Verify
	wrong    string // a wrong answer returned without an error
	findings int    // of Verify, if all else went well
}

// note records an answer.
func (a *storeAnswers) note(wrong string, err error) {
	if wrong != "" {
		a.wrong = wrong
	}
	if err != nil {
		a.err = err
	}
}

// read opens the store read-only and compares all answers.
func (c *closedStore) read(fs vfs.FS) (a storeAnswers) {
	s, err := oribi.Open(closedDir, closedOptions(fs, true))
	if err != nil {
		a.err = err
		return a
	}
	defer s.Close()
	a.opened = true
	a.note(compareRows(s, c.latest))
	a.note(compareRows(s, c.before, oribi.AsOf(c.old)))
	a.note(c.compareGets(s))
	if a.wrong == "" && a.err == nil {
		a.err = s.Verify(context.Background(), func(oribi.Finding) { a.findings++ })
	}
	return a
}

// compareGets gets all rows by their keys.
func (c *closedStore) compareGets(s *oribi.Store) (wrong string, failed error) {
	for name, rows := range c.rows {
		table, err := s.Table(name)
		if err != nil {
			return err.Error(), nil
		}
		for id, want := range rows {
			columns := table.Schema()
			key := oribi.Key{}
			for i := range columns.Keys {
				key = append(key, want[columns.Columns[i].Name])
			}
			switch got, err := table.Get(context.Background(), key); {
			case errors.Is(err, oribi.ErrNotFound):
				return fmt.Sprintf("%s: get %s: not found", name, id), nil
			case err != nil:
				failed = err
			case fmt.Sprint(got) != fmt.Sprint(want):
				return fmt.Sprintf("%s: get %s: %v, want %v", name, id, got, want), nil
			}
		}
	}
	return "", failed
}

// compareRows scans all tables.
func compareRows(s *oribi.Store, want []string, opts ...oribi.ScanOption) (wrong string, err error) {
	got, err := allRows(s, opts...)
	if err != nil || slices.Equal(got, want) {
		return "", err
	}
	return fmt.Sprintf("%d rows, want %d; %s", len(got), len(want), firstDifference(got, want)), nil
}

// allRows returns all rows of all tables, sorted.
func allRows(s *oribi.Store, opts ...oribi.ScanOption) (lines []string, err error) {
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

// firstDifference returns the first line that is in only one of the two.
func firstDifference(got, want []string) string {
	for _, l := range got {
		if !slices.Contains(want, l) {
			return "unexpected: " + l
		}
	}
	for _, l := range want {
		if !slices.Contains(got, l) {
			return "missing: " + l
		}
	}
	return "a row occurs twice"
}
