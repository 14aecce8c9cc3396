// Package memory measures how much memory a store has in use that is many times its limit.
package memory

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"sync/atomic"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/prooftest/values"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// Store fills a store with many times its memory limit, changes it by more than the limit, reads
// it and merges it, in phases. Each phase runs in a process of its own and measures that process.
// What is read is compared, row by row.
//
// There are two tables of about equal size: "long" with texts of up to 48 KiB, "wide" with 25
// columns of random numbers and short texts. Rows are in random order, so that every flush overlaps
// all others.
type Store struct {
	Dir   string // contains the store
	Limit int64  // of the store, bytes
	Times int64  // how many times the limit is loaded
}

// Phases are the phases in their order.
var Phases = []string{"load", "update", "scan", "compact", "scan"}

// Bound is how many bytes a process may reach at its peak that are in use: see LivePeak. The store
// counts the limit. The rest does not depend on it: of each column of each rowset that is merged a
// cblock of 256 KiB, or a dictionary, and of each that is written one as it is filled and one as it
// is packed.
func (m Store) Bound() int64 { return m.Limit + memoryRest }

const memoryRest = 96 << 20

// Env is what the environment of the processes needs: collections that stop the program. Otherwise
// what is allocated while one runs counts as in use.
func (m Store) Env() string { return "GODEBUG=gcstoptheworld=1" }

// LivePeak is the largest number of bytes that a garbage collection found in use. Resident memory
// has garbage in it too, and how much depends on how much of a processor the collector gets: it
// measures the machine's load as well.
type LivePeak struct {
	bytes atomic.Int64
	done  atomic.Bool
}

// WatchLivePeak samples every garbage collection from now on, which are more frequent than usual.
// Stop ends it.
func WatchLivePeak() *LivePeak {
	debug.SetGCPercent(25)
	p := &LivePeak{}
	p.next()
	return p
}

// next has the collection that finds a new object unused take a sample.
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

// Stop returns the peak.
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

// memoryRows are about the sizes of the rows, bytes: half of the data is in each table.
var memoryRows = map[string]int64{"long": longMost / 2, "wide": 8 + 8*wideNumbers + wideText/2*wideTexts}

func (m Store) rows(table string) int64 { return m.Times * m.Limit / 2 / memoryRows[table] }

// Run does one phase.
func (m Store) Run(phase string) (err error) {
	s, err := oribi.Open(filepath.Join(m.Dir, "store"), &oribi.Options{MemoryLimit: m.Limit, History: oribi.HistoryForever, ErrorIfMissing: phase != "load",
		Manual: phase == "compact", ReadOnly: phase == "scan"})
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
	return fmt.Errorf("no phase %q", phase)
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

// memoryRow makes the rows of a table in turn.
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

// scattered is a number for i that no other i has, in no order.
func scattered(i int64) int64 { return int64(uint64(i) * 0x9e3779b97f4a7c15) }

// fill makes row i as it is after so many updates, 0 or 1: an update changes the text, or a half of
// the numbers.
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

// updated tells which rows are: two of three.
func updated(i int64) bool { return i%3 != 0 }

func (m Store) load(s *oribi.Store) error {
	for table := range memoryRows {
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
	return os.WriteFile(m.moment(), fmt.Append(nil, uint64(ts)), 0o600)
}

// moment is the file with the timestamp before the updates.
func (m Store) moment() string { return filepath.Join(m.Dir, "moment") }

func (m Store) update(s *oribi.Store) error {
	_, err := m.write(s, oribi.OpUpdate, 1)
	return err
}

// write writes a version of all rows of both tables that have it, both at about the same pace, and
// gives the last timestamp.
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

// changed are the columns that an update gives; nil are all.
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

// scan reads both tables in key order, now and before the updates.
func (m Store) scan(s *oribi.Store) error {
	text, err := os.ReadFile(m.moment())
	if err != nil {
		return err
	}
	before, err := strconv.ParseUint(string(text), 10, 64)
	if err != nil {
		return err
	}
	for name := range memoryRows {
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

// unscattered is the i of scattered(i): the factor's inverse modulo 2^64.
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
				return fmt.Errorf("key %d after %d", key, last)
			}
			if !updated(i) {
				v = 0
			}
			for c, want := range row.fill(i, v) {
				if !bytes.Equal(b.Columns[c].Cell(at), want) {
					return fmt.Errorf("row %d: column %d is not as of version %d", i, c, v)
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

// compact brings one table's changes into its base files, and merges both tables to rowsets that do
// not overlap.
func (m Store) compact(s *oribi.Store) error {
	for name := range memoryRows {
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
