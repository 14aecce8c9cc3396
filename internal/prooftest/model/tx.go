package model

import (
	"bytes"
	"slices"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/prooftest/script"
	"github.com/oribi-db/oribi/mvcc"
)

// Tx is the model of a transaction: the state of its beginning with its own writes applied, and its
// reads.
type Tx struct {
	Ops []script.Op // its writes so far

	m      *Model
	at     mvcc.Timestamp // of the state that it reads
	tables map[*Table]*txTable
}

// txTable has the reads and writes of a transaction in one table.
type txTable struct {
	wrote   bool
	own     map[string]*Row    // rows after the transaction's writes, as one version each
	deleted []*script.Read     // ranges that it has deleted: it sees no other rows there
	keys    map[string]bool    // keys that it has read
	ranges  []*txRange         // ranges that it has read
	lookups []txLookup         // rows that it has looked for by an index
	seen    map[string]version // rows that it has read, by key, for their time of expiry
	altered bool               // the schema or the rule of expiry has changed since
}

// txRange is a range of keys as of a read.
type txRange struct {
	read  *script.Read
	last  [][]byte // the range ends with this key; nil if it has no end
	none  bool     // nothing was read
	whole bool     // the store may take it for the whole range
	index bool     // the store may have read by an index
}

// txLookup is a look for the row of a key with some values.
type txLookup struct {
	key     [][]byte
	columns []int
	values  [][]byte
}

func (l *txLookup) finds(row [][]byte) bool {
	if row == nil {
		return false
	}
	for i, c := range l.columns {
		if !bytes.Equal(row[c], l.values[i]) || row[c] == nil {
			return false
		}
	}
	return true
}

// Begin begins a transaction that reads the state at a timestamp.
func (m *Model) Begin(at mvcc.Timestamp) *Tx {
	return &Tx{m: m, at: at, tables: map[*Table]*txTable{}}
}

func (x *Tx) table(t *Table) *txTable {
	in := x.tables[t]
	if in == nil {
		in = &txTable{own: map[string]*Row{}, keys: map[string]bool{}, seen: map[string]version{}}
		x.tables[t] = in
	}
	return in
}

// Writes reports whether the transaction has written to a table.
func (x *Tx) Writes(t *Table) bool { return x.tables[t] != nil && x.tables[t].wrote }

// Renamed gives a table its new name in the writes of the transaction.
func (x *Tx) Renamed(from, to string) {
	for i := range x.Ops {
		if x.Ops[i].Table == from {
			x.Ops[i].Table = to
		}
	}
}

// Altered records that a table's schema or rule of expiry changes.
func (x *Tx) Altered(t *Table) { x.table(t).altered = true }

// row returns the row of a key as the transaction sees it, nil if it does not exist.
func (x *Tx) row(t *Table, key string) [][]byte {
	in := x.tables[t]
	if in != nil && in.own[key] != nil {
		return in.own[key].At(x.at)
	}
	r := t.ByKey[key]
	if r == nil || in != nil && slices.ContainsFunc(in.deleted, func(rd *script.Read) bool { return t.filter(rd)(r.Key) }) {
		return nil
	}
	return r.At(x.at)
}

// Peek returns the row of a key without reading it.
func (x *Tx) Peek(t *Table, key [][]byte) [][]byte { return x.row(t, KeyText(key)) }

// Get reads the row of a key. It returns nil if the row does not exist.
func (x *Tx) Get(t *Table, key [][]byte) [][]byte {
	text := KeyText(key)
	x.table(t).keys[text] = true
	x.see(t, text)
	return x.row(t, text)
}

// see records that the transaction has read a row that exists: the stored one and, if it has
// written the row, the written one.
func (x *Tx) see(t *Table, key string) {
	in := x.table(t)
	if r := t.ByKey[key]; r != nil && r.At(x.at) != nil {
		in.seen[key] = r.stored(x.at)
	}
	if r := in.own[key]; r != nil && r.At(x.at) != nil {
		v := r.stored(x.at)
		in.seen[key+" written "+KeyText(v.cells)] = v // each, also if it is replaced later
	}
}

// Scan reads rows. stop is the number of rows after which the caller ends the loop, 0 for none. indexed says
// that the table has indexes.
func (x *Tx) Scan(t *Table, rd *script.Read, stop int, indexed bool) (out [][][]byte) {
	in, g := x.table(t), &txRange{read: rd, index: indexed && len(rd.Tests) > 0}
	in.ranges = append(in.ranges, g)
	rows, passes := x.rows(t, rd.Desc), t.filter(rd)
	limit := len(rows) + 1
	if rd.Limit >= 0 {
		limit = min(limit, int(rd.Limit))
	}
	if stop > 0 {
		limit = min(limit, stop)
	}
	g.none = limit == 0
	for _, row := range rows {
		if !passes(row) {
			continue
		}
		if len(out) == limit {
			return out // there are more
		}
		out = append(out, row)
		x.see(t, KeyText(row[:t.Schema.Keys]))
		if len(out) == limit {
			g.last = row[:t.Schema.Keys]
		}
	}
	g.whole = true
	return out
}

// rows returns all rows that the transaction sees, in the order of a scan.
func (x *Tx) rows(t *Table, descending bool) (rows [][][]byte) {
	all := t.Order
	if in := x.tables[t]; in != nil {
		all = withOwn(t, in.own)
	}
	for i := range all {
		if descending {
			i = len(all) - 1 - i
		}
		if row := x.row(t, KeyText(all[i].Key)); row != nil {
			rows = append(rows, row)
		}
	}
	return rows
}

// withOwn returns the rows of a table, and the transaction's new rows, in key order.
func withOwn(t *Table, own map[string]*Row) []*Row {
	all := &Table{Schema: t.Schema, ByKey: map[string]*Row{}}
	for _, r := range t.Order {
		all.Order = append(all.Order, r)
		all.ByKey[KeyText(r.Key)] = r
	}
	for key, r := range own {
		all.row(key, r.Key)
	}
	return all.Order
}

// Write applies an operation that the store does not refuse as malformed. refused reports whether
// the transaction refuses it, cause is the error besides ErrRow.
func (x *Tx) Write(t *Table, op *script.Op) (cause error, refused bool) {
	if t.Schema.AutoIncrement() >= 0 && op.Ask.Inserts() { // the commit assigns its key
		x.table(t).wrote, x.Ops = true, append(x.Ops, *op)
		return nil, false
	}
	key := KeyText(op.Cells[:t.Schema.Keys])
	in := x.table(t)
	after, cause, refused := t.Decide(op, x.row(t, key))
	switch {
	case !refused && op.Ask == oribi.OpUpdate && op.Computed():
		x.see(t, key) // the commit finds out whether the row exists, unless it expires
	case !t.blind(op):
		x.Get(t, op.Cells[:t.Schema.Keys])
	}
	if refused {
		return cause, true
	}
	in.write(t, op.Cells[:t.Schema.Keys], x.at, after)
	x.Ops = append(x.Ops, *op)
	return nil, false
}

// write sets a row; nil deletes it.
func (in *txTable) write(t *Table, key [][]byte, at mvcc.Timestamp, row [][]byte) {
	in.wrote = true
	in.own[KeyText(key)] = &Row{Key: key, Versions: []version{{at, row}}, table: t}
}

// Joined returns want without results that a transaction may lack, and that are not in got: those of
// sums that a sum with the same columns follows on the row.
func (m *Model) Joined(ops []script.Op, got []oribi.Result, want []Result) (out []Result) {
	for _, r := range want {
		there := slices.ContainsFunc(got, func(g oribi.Result) bool { return g.Row == r.Op && g.Column == r.Column.Name })
		if there || !m.followed(ops, r.Op) {
			out = append(out, r)
		}
	}
	return out
}

// followed reports whether an operation of the same kind with the same operands follows the i-th one, as
// the next one on its row.
func (m *Model) followed(ops []script.Op, i int) bool {
	op, keys := &ops[i], m.Tables[ops[i].Table].Schema.Keys
	key := KeyText(op.Cells[:keys])
	for k := range ops[i+1:] {
		if next := &ops[i+1+k]; next.Table == op.Table && KeyText(next.Cells[:keys]) == key {
			return next.Ask == op.Ask && slices.Equal(next.Operands, op.Operands) && slices.Equal(next.Set, op.Set)
		}
	}
	return false
}

// blind reports whether an operation reads nothing: an upsert that cannot be refused, or
// OpDeleteIgnore.
func (t *Table) blind(op *script.Op) bool {
	switch op.Ask {
	case oribi.OpDeleteIgnore:
		return true
	case oribi.OpUpsert:
		return !t.setsImmutable(op) && !t.lacks(op)
	case oribi.OpUpsertIgnore:
		return !t.lacks(op)
	}
	return false
}

// lacks reports whether an operation does not set a column that a new row needs.
func (t *Table) lacks(op *script.Op) bool {
	for i := range t.Schema.Columns {
		if c := &t.Schema.Columns[i]; !op.Set[i] && c.Default == nil && !c.Nullable {
			return true
		}
	}
	return false
}

// Unseen reports whether an operation has an operand whose result does not fit, and the store finds that
// out when the transaction is committed, or reads the row.
func (x *Tx) Unseen(t *Table, op *script.Op) bool {
	if !op.Computed() || !t.blind(op) {
		return false
	}
	_, _, refused := t.Decide(op, x.Peek(t, op.Cells[:t.Schema.Keys]))
	return refused
}

// slack bounds how far the clock advances during one call of the store.
const slack = time.Millisecond

// Conflict reports whether a commit must conflict, and whether it may. It must if a row that the
// transaction has read, or that one of its scans would return now or then, was changed, or if one
// that it has seen has expired. It may if any row was written in a range that it has scanned, also
// if the row was changed back, or if one has expired there without having been seen; or if it has
// read a table whose rule of expiry changed since it began, which deletes rows that had expired.
// That a table was dropped is no conflict, but what changed in it before may be one.
func (x *Tx) Conflict() (must, may bool) {
	if len(x.Ops) == 0 {
		return false, false
	}
	return x.Changed()
}

// Changed is Conflict for a transaction that has written.
func (x *Tx) Changed() (must, may bool) {
	changed := map[*Row]bool{}
	for _, c := range slices.Backward(x.m.Commits) {
		if c.TS <= x.at {
			break
		}
		for _, r := range c.rows {
			changed[r] = true
		}
	}
	for t, in := range x.tables {
		dropped := x.m.Tables[t.Name] != t
		now := t.time(mvcc.Max)
		later := mvcc.FromTime(now.Time().Add(slack))
		for _, v := range in.seen {
			if in.altered { // it has cells of the former schema
				may = true
				break
			}
			must = must || !dropped && t.aliveSince(v, now) == nil
			may = may || t.aliveSince(v, later) == nil
		}
		for _, r := range t.Order {
			if in.own[KeyText(r.Key)] != nil { // a scan may have looked at it ahead of the rows that it returned
				may = may || r.At(x.at) != nil && t.aliveSince(r.stored(x.at), later) == nil
			}
			before, after := r.At(x.at), t.aliveSince(r.stored(mvcc.Max), x.at)
			for i := range in.lookups {
				l := &in.lookups[i]
				if KeyText(l.key) == KeyText(r.Key) && changed[r] {
					may = true
					must = must || !dropped && !in.altered && l.finds(before) != l.finds(after)
				}
			}
			read, wide := in.reads(t, r.Key, before, after)
			if !wide {
				continue
			}
			must = must || !dropped && read && changed[r] &&
				!bytes.Equal(AppendCells(nil, before), AppendCells(nil, after))
			may = may || changed[r] || in.altered && !dropped ||
				before != nil && t.aliveSince(r.stored(x.at), later) == nil
		}
	}
	return must, must || may
}

// reads reports whether a transaction has read the row of a key, and whether it has read a range of
// keys that may include it. The row was before and is now after.
func (in *txTable) reads(t *Table, key, before, after [][]byte) (read, wide bool) {
	if in.keys[KeyText(key)] {
		return true, true
	}
	for _, g := range in.ranges {
		wide = wide || g.index
		if g.none || g.read.From != nil && CompareKeys(t.Schema, key, g.read.From) < 0 ||
			g.read.To != nil && CompareKeys(t.Schema, key, g.read.To) >= 0 {
			continue
		}
		if g.last != nil {
			if order := CompareKeys(t.Schema, key, g.last); order != 0 && order < 0 == g.read.Desc {
				wide = wide || g.whole
				continue
			}
		}
		wide = true
		if in.altered {
			continue // the tests are for the former schema
		}
		passes := t.filter(g.read)
		read = read || before != nil && passes(before) || after != nil && passes(after)
	}
	return read, wide
}
