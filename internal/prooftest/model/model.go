// Package model is a reference model of a store: a map from each key to all its versions. Proofs
// compare a real store with it.
//
// The model follows the engine's documents, not its code: the result of each operation (tablet spec
// §12.4), what a read at a timestamp sees (§8), what survives a crash (design §5). Cells are
// compared byte by byte, so a NaN equals itself. A Survey records the contents of a real store;
// Survivors returns how many commits those contents include.
//
// Not safe for concurrent use.
package model

import (
	"encoding/binary"
	"maps"
	"slices"
	"sort"

	"github.com/zeebo/xxh3"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// Model is the expected state of a store: all versions of every key, and the commits that wrote
// them, in commit order.
type Model struct {
	Tables  map[string]*Table
	Commits []Commit
	// Durable is the number of commits that must survive a power cut: a prefix of Commits.
	Durable int
	// Now is the present time of the store's clock.
	Now mvcc.Timestamp
	// Since is when the newest rule by which rows expire began, for Change.
	Since mvcc.Timestamp
}

// Table is one table of a Model.
type Table struct {
	Name   string
	Schema *schema.Schema
	ByKey  map[string]*Row
	Order  []*Row // by key

	highest int64 // largest value ever inserted into the auto-incrementing column; 0 = none

	newest  mvcc.Timestamp              // of the last commit that changed the table
	digests map[mvcc.Timestamp][16]byte // cache of Digest; no key is above newest

	model *Model
	rules []rule // by which rows expire, ascending in time
}

// Row is a key with its versions, oldest first.
type Row struct {
	Key      [][]byte
	Versions []version
	table    *Table
}

// version is the state of a row from a timestamp on; nil cells mark a deletion.
type version struct {
	TS    mvcc.Timestamp
	cells [][]byte
}

// Commit is one write batch that the store committed.
type Commit struct {
	TS   mvcc.Timestamp
	rows []*Row
	in   map[*Table]bool // the tables it changed
}

// NewModel returns the model of an empty store.
func NewModel() *Model { return &Model{Tables: map[string]*Table{}} }

// Create adds a table.
func (m *Model) Create(name string, s *schema.Schema) {
	m.Tables[name] = &Table{Name: name, Schema: s, ByKey: map[string]*Row{}, model: m}
}

// Drop removes a table.
func (m *Model) Drop(name string) { delete(m.Tables, name) }

// Rename changes a table's name to a name that no table has.
func (m *Model) Rename(from, to string) {
	t := m.Tables[from]
	delete(m.Tables, from)
	m.Tables[to], t.Name = t, to
}

// Names returns the names of the tables, sorted.
func (m *Model) Names() []string {
	var names []string
	for n := range m.Tables {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}

// Commit applies the changes of a batch at ts, which must be above the timestamps of all earlier
// commits.
func (m *Model) Commit(o *Outcome, ts mvcc.Timestamp) {
	c := Commit{TS: ts, in: map[*Table]bool{}}
	for _, ch := range o.Changes {
		r := ch.table.row(ch.key, ch.cells)
		ch.table.raise(r.Key)
		r.Versions = append(r.Versions, version{ts, ch.row})
		ch.table.newest = ts
		c.rows, c.in[ch.table] = append(c.rows, r), true
	}
	m.Commits = append(m.Commits, c)
}

// Truncate removes all commits after the first n.
func (m *Model) Truncate(n int) {
	for _, c := range m.Commits[n:] {
		for _, r := range c.rows {
			for len(r.Versions) > 0 && r.Versions[len(r.Versions)-1].TS >= c.TS {
				r.Versions = r.Versions[:len(r.Versions)-1]
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

// Flushed records that the table's files contain all changes of the first n commits to it. A flush
// syncs the log up to the last change that it writes, so the last of these commits and all before
// it are durable.
func (m *Model) Flushed(t *Table, n int) {
	for i := n - 1; i >= m.Durable; i-- {
		if m.Commits[i].in[t] {
			m.Durable = i + 1
			return
		}
	}
}

// Clone returns a copy that shares only schemas and cells with m.
func (m *Model) Clone() *Model {
	c := &Model{Tables: map[string]*Table{}, Durable: m.Durable, Now: m.Now}
	tables, rows := map[*Table]*Table{}, map[*Row]*Row{}
	for name, t := range m.Tables {
		ct := &Table{Name: t.Name, Schema: t.Schema, highest: t.highest, ByKey: make(map[string]*Row, len(t.ByKey)),
			digests: maps.Clone(t.digests), newest: t.newest,
			model: c, rules: slices.Clone(t.rules)}
		c.Tables[name], tables[t] = ct, ct
		for _, r := range t.Order {
			cr := &Row{Key: r.Key, Versions: slices.Clone(r.Versions), table: ct}
			ct.Order, rows[r] = append(ct.Order, cr), cr
		}
		for key, r := range t.ByKey {
			ct.ByKey[key] = rows[r]
		}
	}
	for _, commit := range m.Commits {
		cc := Commit{TS: commit.TS, in: map[*Table]bool{}}
		for t := range commit.in {
			if tables[t] != nil { // nil: the table was dropped
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

// Newest returns the timestamp of the last commit, mvcc.Min when there is none.
func (m *Model) Newest() mvcc.Timestamp {
	if len(m.Commits) == 0 {
		return mvcc.Min
	}
	return m.Commits[len(m.Commits)-1].TS
}

// newestOf returns the timestamp of the last commit among the first n that changed the table,
// mvcc.Min when none did.
func (m *Model) newestOf(t *Table, n int) mvcc.Timestamp {
	for _, c := range slices.Backward(m.Commits[:n]) {
		if c.in[t] {
			return c.TS
		}
	}
	return mvcc.Min
}

// row returns the row of a key, and adds one without versions if the table has none.
func (t *Table) row(key string, cells [][]byte) *Row {
	r := t.ByKey[key]
	if r == nil {
		r = &Row{Key: cells[:t.Schema.Keys], table: t}
		t.ByKey[key] = r
		i := sort.Search(len(t.Order), func(i int) bool { return CompareKeys(t.Schema, t.Order[i].Key, r.Key) > 0 })
		t.Order = append(t.Order, nil)
		copy(t.Order[i+1:], t.Order[i:])
		t.Order[i] = r
	}
	return r
}

// At returns the row's cells as of ts; nil when the row did not exist then, or was expired.
// mvcc.Max is the present time.
func (r *Row) At(ts mvcc.Timestamp) [][]byte {
	v := r.stored(ts)
	return r.table.aliveSince(v, r.table.time(ts))
}

// stored returns the row's version as of ts, which may be expired.
func (r *Row) stored(ts mvcc.Timestamp) version {
	i := sort.Search(len(r.Versions), func(i int) bool { return r.Versions[i].TS > ts })
	if i == 0 {
		return version{}
	}
	return r.Versions[i-1]
}

// Rows returns the table's rows as of ts, in key order.
func (t *Table) Rows(ts mvcc.Timestamp) (rows [][][]byte) {
	for _, r := range t.Order {
		if cells := r.At(ts); cells != nil {
			rows = append(rows, cells)
		}
	}
	return rows
}

// Row returns the row of a key as of ts; nil when there is none.
func (t *Table) Row(key [][]byte, ts mvcc.Timestamp) [][]byte {
	if r := t.ByKey[KeyText(key)]; r != nil {
		return r.At(ts)
	}
	return nil
}

// CompareKeys compares two keys column by column. Either may be a prefix of a key; only the columns
// that both have are compared.
func CompareKeys(s *schema.Schema, a, b [][]byte) int {
	for i := range min(len(a), len(b)) {
		if c := batch.Compare(s.Columns[i].Type, a[i], b[i]); c != 0 {
			return c
		}
	}
	return 0
}

// KeyText encodes a key as a string that is unique to it, for use as a map key.
func KeyText(cells [][]byte) string { return string(AppendCells(nil, cells)) }

// AppendCells appends an unambiguous encoding of cells to b: a length plus one before each cell,
// and 0 for NULL.
func AppendCells(b []byte, cells [][]byte) []byte {
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

// Digest computes a hash of a sequence of rows.
type Digest struct {
	h   *xxh3.Hasher128
	buf []byte
}

// NewDigest returns the digest of no rows.
func NewDigest() *Digest { return &Digest{h: xxh3.New128()} }

// Row adds a row to the digest.
func (d *Digest) Row(cells [][]byte) {
	d.buf = AppendCells(d.buf[:0], cells)
	d.h.Write(d.buf)
}

// Number adds a number that is not part of a row.
func (d *Digest) Number(n uint64) {
	d.h.Write(binary.LittleEndian.AppendUint64(nil, n))
}

// Sum returns the hash of everything added so far.
func (d *Digest) Sum() [16]byte { return d.h.Sum128().Bytes() }

// Digest returns the hash of the table's rows as of ts, in key order.
func (t *Table) Digest(ts mvcc.Timestamp) [16]byte {
	if len(t.rules) > 0 {
		return t.digestAt(ts, t.time(ts))
	}
	ts = min(ts, t.newest)
	if sum, ok := t.digests[ts]; ok {
		return sum
	}
	d := NewDigest()
	for _, r := range t.Order {
		if cells := r.At(ts); cells != nil {
			d.Row(cells)
		}
	}
	if t.digests == nil {
		t.digests = map[mvcc.Timestamp][16]byte{}
	}
	t.digests[ts] = d.Sum()
	return t.digests[ts]
}
