package prooftest

import (
	"encoding/binary"
	"maps"
	"slices"
	"sort"

	"github.com/zeebo/xxh3"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// Model is what a store should hold: of every key all its versions, and the commits that made them,
// in their order.
type Model struct {
	Tables  map[string]*Table
	Commits []Commit
	// Durable is how many of Commits a power cut may not take.
	Durable int
}

// Table is one table of a Model.
type Table struct {
	Name   string
	Schema *schema.Schema
	rows   map[string]*modelRow
	order  []*modelRow // by key

	highest int64 // of an auto-incrementing column: what was ever inserted

	newest  mvcc.Timestamp              // change
	digests map[mvcc.Timestamp][16]byte // those that were asked for, at newest or before
}

// modelRow is a key with its versions, oldest first.
type modelRow struct {
	key      [][]byte
	versions []version
}

// version is a row as of a timestamp; no cells: it was deleted then.
type version struct {
	ts    mvcc.Timestamp
	cells [][]byte
}

// Commit is one write batch that the store took.
type Commit struct {
	TS   mvcc.Timestamp
	rows []*modelRow
	in   map[*Table]bool // tables that it changed
}

// Op is one operation of a write batch, or a condition of it. Cells has one for each column of the
// table, in schema order; Set tells which were given.
type Op struct {
	Ask   oribi.Op
	Table string
	Cells [][]byte
	Set   []bool
	Tests []Test // of a condition
}

// NewModel is an empty store.
func NewModel() *Model { return &Model{Tables: map[string]*Table{}} }

// Create adds a table.
func (m *Model) Create(name string, s *schema.Schema) {
	m.Tables[name] = &Table{Name: name, Schema: s, rows: map[string]*modelRow{}}
}

// Drop removes a table.
func (m *Model) Drop(name string) { delete(m.Tables, name) }

// Names lists the tables.
func (m *Model) Names() []string {
	var names []string
	for n := range m.Tables {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}

// commit gives the changes of a batch their timestamp, which is above all earlier ones.
func (m *Model) commit(o *outcome, ts mvcc.Timestamp) {
	c := Commit{TS: ts, in: map[*Table]bool{}}
	for _, ch := range o.changes {
		r := ch.table.row(ch.key, ch.cells)
		ch.table.raise(r.key)
		r.versions = append(r.versions, version{ts, ch.row})
		ch.table.newest = ts
		c.rows, c.in[ch.table] = append(c.rows, r), true
	}
	m.Commits = append(m.Commits, c)
}

// truncate takes back all commits but the first n.
func (m *Model) truncate(n int) {
	for _, c := range m.Commits[n:] {
		for _, r := range c.rows {
			for len(r.versions) > 0 && r.versions[len(r.versions)-1].ts >= c.TS {
				r.versions = r.versions[:len(r.versions)-1]
			}
		}
	}
	for _, t := range m.Tables {
		t.recount()
	}
	for _, c := range m.Commits[n:] {
		for t := range c.in {
			t.newest = m.newestOf(t, n)
			maps.DeleteFunc(t.digests, func(ts mvcc.Timestamp, _ [16]byte) bool { return ts > t.newest })
		}
	}
	m.Commits = m.Commits[:n]
	m.Durable = min(m.Durable, n)
}

// flushed notes that all that the first n commits brought to a table is in its files: the log
// before the last of it is durable.
func (m *Model) flushed(t *Table, n int) {
	for i := n - 1; i >= m.Durable; i-- {
		if m.Commits[i].in[t] {
			m.Durable = i + 1
			return
		}
	}
}

// clone is a copy that shares cells alone.
func (m *Model) clone() *Model {
	c := &Model{Tables: map[string]*Table{}, Durable: m.Durable}
	tables, rows := map[*Table]*Table{}, map[*modelRow]*modelRow{}
	for name, t := range m.Tables {
		ct := &Table{Name: t.Name, Schema: t.Schema, highest: t.highest, rows: make(map[string]*modelRow, len(t.rows)), digests: maps.Clone(t.digests), newest: t.newest}
		c.Tables[name], tables[t] = ct, ct
		for _, r := range t.order {
			cr := &modelRow{key: r.key, versions: slices.Clone(r.versions)}
			ct.order, rows[r] = append(ct.order, cr), cr
		}
		for key, r := range t.rows {
			ct.rows[key] = rows[r]
		}
	}
	for _, commit := range m.Commits {
		cc := Commit{TS: commit.TS, in: map[*Table]bool{}}
		for t := range commit.in {
			if tables[t] != nil { // else it was dropped
				cc.in[tables[t]] = true
			}
		}
		for _, r := range commit.rows {
			if rows[r] != nil {
				cc.rows = append(cc.rows, rows[r])
			}
		}
		c.Commits = append(c.Commits, cc)
	}
	return c
}

// newest is the timestamp of the last commit.
func (m *Model) newest() mvcc.Timestamp {
	if len(m.Commits) == 0 {
		return mvcc.Min
	}
	return m.Commits[len(m.Commits)-1].TS
}

// newestOf is the timestamp of the last of the first n commits that changed a table.
func (m *Model) newestOf(t *Table, n int) mvcc.Timestamp {
	for _, c := range slices.Backward(m.Commits[:n]) {
		if c.in[t] {
			return c.TS
		}
	}
	return mvcc.Min
}

// row finds a key's row and makes one without versions where there is none.
func (t *Table) row(key string, cells [][]byte) *modelRow {
	r := t.rows[key]
	if r == nil {
		r = &modelRow{key: cells[:t.Schema.Keys]}
		t.rows[key] = r
		i := sort.Search(len(t.order), func(i int) bool { return compareKeys(t.Schema, t.order[i].key, r.key) > 0 })
		t.order = append(t.order, nil)
		copy(t.order[i+1:], t.order[i:])
		t.order[i] = r
	}
	return r
}

// at is the row's cells as of ts; nil when it was not there.
func (r *modelRow) at(ts mvcc.Timestamp) [][]byte {
	i := sort.Search(len(r.versions), func(i int) bool { return r.versions[i].ts > ts })
	if i == 0 {
		return nil
	}
	return r.versions[i-1].cells
}

// Rows gives the table's rows as of ts, in key order.
func (t *Table) Rows(ts mvcc.Timestamp) (rows [][][]byte) {
	for _, r := range t.order {
		if cells := r.at(ts); cells != nil {
			rows = append(rows, cells)
		}
	}
	return rows
}

// Row gives one row as of ts; nil when there is none.
func (t *Table) Row(key [][]byte, ts mvcc.Timestamp) [][]byte {
	if r := t.rows[keyText(key)]; r != nil {
		return r.at(ts)
	}
	return nil
}

// compareKeys orders keys column by column. The shorter one, a prefix, goes by its columns alone.
func compareKeys(s *schema.Schema, a, b [][]byte) int {
	for i := range min(len(a), len(b)) {
		if c := batch.Compare(s.Columns[i].Type, a[i], b[i]); c != 0 {
			return c
		}
	}
	return 0
}

// keyText tells keys apart.
func keyText(cells [][]byte) string { return string(appendCells(nil, cells)) }

// appendCells writes cells so that different ones give different bytes.
func appendCells(b []byte, cells [][]byte) []byte {
	for _, c := range cells {
		if c == nil {
			b = binary.AppendUvarint(b, 0)
			continue
		}
		b = binary.AppendUvarint(b, uint64(len(c))+1)
		b = append(b, c...)
	}
	return b
}

// digest is a hash of rows and their order.
type digest struct {
	h   *xxh3.Hasher128
	buf []byte
}

func newDigest() *digest { return &digest{h: xxh3.New128()} }

func (d *digest) row(cells [][]byte) {
	d.buf = appendCells(d.buf[:0], cells)
	d.h.Write(d.buf)
}

func (d *digest) sum() [16]byte { return d.h.Sum128().Bytes() }

// digest is the hash of the table's rows as of ts.
func (t *Table) digest(ts mvcc.Timestamp) [16]byte {
	ts = min(ts, t.newest)
	if sum, ok := t.digests[ts]; ok {
		return sum
	}
	d := newDigest()
	for _, r := range t.order {
		if cells := r.at(ts); cells != nil {
			d.row(cells)
		}
	}
	if t.digests == nil {
		t.digests = map[mvcc.Timestamp][16]byte{}
	}
	t.digests[ts] = d.sum()
	return t.digests[ts]
}
