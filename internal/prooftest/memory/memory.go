// Package memory measures the memory use of a store whose data is many times its memory limit.
package memory

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strconv"
	"sync/atomic"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/prooftest/values"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// Store loads a store with many times its memory limit, updates more data than the limit, scans it
// salvages it with damage in each rowset, and compacts it, in phases. Each phase runs in a separate
// process and measures that process. The scans compare every row with its expected value.
//
// There are two tables of about equal size: "long" with strings of up to 48 KiB, "wide" with 25
// columns of random numbers and short strings. Rows are written in random key order, so that every
// flush overlaps all others.
type Store struct {
	Dir   string // contains the store
	Limit int64  // of the store, bytes
	Times int64  // size of the loaded data as a multiple of Limit
}

// Phases lists the phases in the order in which they run.
var Phases = []string{"load", "update", "scan", "salvage", "scan salvaged", "compact", "scan"}

// Bound returns the largest permitted LivePeak of a process, in bytes: the store's limit plus
// memory that the store does not count. The latter does not depend on the limit. A merge keeps, for
// each column of each input, a cblock of 256 KiB or a dictionary, and for each column of its output
// one cblock being filled and one being encoded.
func (m Store) Bound() int64 { return m.Limit + memoryRest }

const memoryRest = 96 << 20

// Env returns the environment variable that the processes need. It makes garbage collections stop
// the program. A concurrent collection would count all memory allocated while it runs as in use.
func (m Store) Env() string { return "GODEBUG=gcstoptheworld=1" }

// LivePeak is the largest number of bytes that a garbage collection found in use. Resident memory
// would be a worse measure: it includes garbage, and the amount of garbage grows with the load of
// the machine, since the collector then gets less processor time.
type LivePeak struct {
	bytes atomic.Int64
	done  atomic.Bool
}

// WatchLivePeak starts to sample the live bytes at each garbage collection, until Stop. It also
// makes collections more frequent than by default, for the rest of the process.
func WatchLivePeak() *LivePeak {
	debug.SetGCPercent(25)
	p := &LivePeak{}
	p.next()
	return p
}

// next allocates an object that is garbage at once. The collection that finds it takes a sample.
func (p *LivePeak) next() {
	runtime.AddCleanup(new([64]byte), func(p *LivePeak) {
		p.sample()
		if !p.done.Load() {
			p.next()
		}
	}, p)
}

func (p *LivePeak) sample() {
	s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(s)
	for now := int64(s[0].Value.Uint64()); ; {
		if old := p.bytes.Load(); now <= old || p.bytes.CompareAndSwap(old, now) {
			return
		}
	}
}

// Stop ends the sampling and returns the peak, in bytes.
func (p *LivePeak) Stop() (bytes int64) {
	p.done.Store(true)
	p.sample()
	return p.bytes.Load()
}

const (
	wideNumbers = 16
	wideTexts   = 8
	wideText    = 200
	longMost    = 48 << 10
)

// memoryRows has the approximate size of a row of each table, in bytes. Each table gets half of the
// data.
var memoryRows = map[string]int64{"long": longMost / 2, "wide": 8 + 8*wideNumbers + wideText/2*wideTexts}

func (m Store) rows(table string) int64 { return m.Times * m.Limit / 2 / memoryRows[table] }

// Run runs one phase.
func (m Store) Run(phase string) (err error) {
	dir := filepath.Join(m.Dir, "store")
	switch phase {
	case "salvage":
		return m.salvage(dir, m.salvaged())
	case "scan salvaged":
		dir, phase = m.salvaged(), "scan"
	}
	s, err := oribi.Open(dir, &oribi.Options{MemoryLimit: m.Limit, History: oribi.HistoryForever,
		ErrorIfMissing: phase != "load",
		Manual:         phase == "compact", ReadOnly: phase == "scan"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	switch phase {
	case "load":
		return m.load(s)
	case "update":
		return m.update(s)
	case "scan":
		return m.scan(s)
	case "compact":
		return m.compact(s)
	}
	return fmt.Errorf("unknown phase %q", phase)
}

func memorySchema(table string) (*schema.Schema, error) {
	columns := []schema.Column{{Name: "k", Type: schema.Int64}}
	if table == "long" {
		columns = append(columns, schema.Column{Name: "text", Type: schema.String})
	} else {
		for i := range wideNumbers {
			columns = append(columns, schema.Column{Name: fmt.Sprint("n", i), Type: schema.Int64})
		}
		for i := range wideTexts {
			columns = append(columns, schema.Column{Name: fmt.Sprint("s", i), Type: schema.String})
		}
	}
	return schema.New(columns, 1)
}

// memoryRow generates the rows of a table, one at a time, in reused memory.
type memoryRow struct {
	table string
	cells [][]byte
	text  []byte
	rng   *rand.PCG
}

func newMemoryRow(table string) *memoryRow {
	r := &memoryRow{table: table, rng: rand.NewPCG(0, 0), text: make([]byte, longMost)}
	columns := 2
	if table == "wide" {
		columns = 1 + wideNumbers + wideTexts
	}
	for range columns {
		r.cells = append(r.cells, make([]byte, 8))
	}
	return r
}

// scattered maps row numbers to distinct keys in pseudo-random order.
func scattered(i int64) int64 { return int64(uint64(i) * 0x9e3779b97f4a7c15) }

// fill generates version 0 or 1 of row i: as inserted or as updated. The update changes the string
// of a long row, and every second number of a wide row. The cells are valid until the next call.
func (r *memoryRow) fill(i int64, version uint64) [][]byte {
	binary.LittleEndian.PutUint64(r.cells[0], uint64(scattered(i)))
	if r.table == "long" {
		r.rng.Seed(uint64(i), version)
		r.cells[1] = r.random(r.text[:1+r.rng.Uint64()%longMost])
		return r.cells
	}
	r.rng.Seed(uint64(i), 0)
	for c := range wideNumbers {
		binary.LittleEndian.PutUint64(r.cells[1+c], r.rng.Uint64())
	}
	for c := range wideTexts {
		r.cells[1+wideNumbers+c] = r.random(r.text[wideText*c:][:1+r.rng.Uint64()%wideText])
	}
	if version > 0 {
		for c := 0; c < wideNumbers; c += 2 {
			binary.LittleEndian.PutUint64(r.cells[1+c], r.rng.Uint64())
		}
	}
	return r.cells
}

// random fills b with letters.
func (r *memoryRow) random(b []byte) []byte {
	for i := 0; i < len(b); {
		for bits, left := r.rng.Uint64(), 10; left > 0 && i < len(b); left-- {
			b[i] = values.Letters[bits&63]
			bits >>= 6
			i++
		}
	}
	return b
}

// updated reports whether the update phase changes row i. It changes two of three rows.
func updated(i int64) bool { return i%3 != 0 }

func (m Store) load(s *oribi.Store) error {
	for _, table := range slices.Sorted(maps.Keys(memoryRows)) {
		columns, err := memorySchema(table)
		if err == nil {
			_, err = s.CreateTable(table, columns)
		}
		if err != nil {
			return err
		}
	}
	ts, err := m.write(s, oribi.OpInsert, 0)
	if err != nil {
		return err
	}
	return os.WriteFile(m.timestampFile(), fmt.Append(nil, uint64(ts)), 0o600)
}

// timestampFile returns the name of the file with the timestamp before the updates.
func (m Store) timestampFile() string { return filepath.Join(m.Dir, "timestamp") }

func (m Store) update(s *oribi.Store) error {
	_, err := m.write(s, oribi.OpUpdate, 1)
	return err
}

// write writes one version of the rows that have it, to both tables at about the same pace, and
// returns the timestamp of the last commit.
func (m Store) write(s *oribi.Store, op oribi.Op, version uint64) (last mvcc.Timestamp, err error) {
	b := s.NewBatch()
	names := []string{"long", "wide"}
	next := make([]int64, len(names))
	for done := false; !done; {
		done = true
		for j, name := range names {
			t, err := s.Table(name)
			if err != nil {
				return 0, err
			}
			row := newMemoryRow(name)
			for ; next[j] < m.rows(name) && b.Bytes() < m.Limit/16; next[j]++ {
				if version > 0 && !updated(next[j]) {
					continue
				}
				b.Cells(op, t, row.fill(next[j], version), changed(op, row))
			}
			done = done && next[j] == m.rows(name)
			if last, err = b.Commit(context.Background(), oribi.NoSync); err != nil {
				return 0, err
			}
			b.Reset()
		}
	}
	return last, nil
}

// changed returns the set of columns that an operation writes; nil means all.
func changed(op oribi.Op, r *memoryRow) []bool {
	if op != oribi.OpUpdate || r.table == "long" {
		return nil
	}
	set := make([]bool, len(r.cells))
	set[0] = true
	for c := 0; c < wideNumbers; c += 2 {
		set[1+c] = true
	}
	return set
}

// scan reads both tables in key order, as of now and as of before the updates, and compares them.
func (m Store) scan(s *oribi.Store) error {
	text, err := os.ReadFile(m.timestampFile())
	if err != nil {
		return err
	}
	before, err := strconv.ParseUint(string(text), 10, 64)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(memoryRows)) {
		t, err := s.Table(name)
		if err == nil {
			err = m.scanTable(t, 1, oribi.Latest())
		}
		if err == nil {
			err = m.scanTable(t, 0, oribi.AsOf(mvcc.Timestamp(before)))
		}
		if err != nil {
			return fmt.Errorf("table %s: %w", name, err)
		}
	}
	return nil
}

// unscattered is the inverse of scattered: its factor is the inverse modulo 2^64.
func unscattered(k int64) int64 { return int64(uint64(k) * 0xf1de83e19937733d) }

func (m Store) scanTable(t *oribi.Table, version uint64, at oribi.ReadOption) error {
	row := newMemoryRow(t.Name())
	rows, last := int64(0), int64(0)
	for b, err := range t.Scan(context.Background(), at).Batches() {
		if err != nil {
			return err
		}
		for at := b.Selection.Next(0); at >= 0; at = b.Selection.Next(at + 1) {
			key := int64(binary.LittleEndian.Uint64(b.Columns[0].Cell(at)))
			i, v := unscattered(key), version
			if i < 0 || i >= m.rows(t.Name()) || rows > 0 && key <= last {
				return fmt.Errorf("key %d after key %d: not in the table, or out of order", key, last)
			}
			if !updated(i) {
				v = 0
			}
			for c, want := range row.fill(i, v) {
				if !bytes.Equal(b.Columns[c].Cell(at), want) {
					return fmt.Errorf("row %d: column %d differs from version %d", i, c, v)
				}
			}
			rows, last = rows+1, key
		}
	}
	if want := m.rows(t.Name()); rows != want {
		return fmt.Errorf("%d rows, want %d", rows, want)
	}
	return nil
}

// compact runs a major delta compaction of the wide table, then merges the rowsets of both tables
// into rowsets that do not overlap.
func (m Store) compact(s *oribi.Store) error {
	for _, name := range slices.Sorted(maps.Keys(memoryRows)) {
		t, err := s.Table(name)
		if err == nil && name == "wide" {
			_, err = t.CompactMajor(context.Background())
		}
		if err == nil {
			err = t.Compact(context.Background())
		}
		if err != nil {
			return fmt.Errorf("table %s: %w", name, err)
		}
	}
	return nil
}
