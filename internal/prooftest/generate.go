package prooftest

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// Generator makes the steps of a history.
type Generator struct {
	o      Settings
	r      *rand.Rand
	made   int                   // tables so far
	pools  map[string][][][]byte // per table name: keys to choose from
	weight []weighted
	tables int // how many there are before anything else happens; 0 = 1
	widest int // columns of a new table; 0 = no limit
}

type weighted struct {
	kind  Kind
	share int
}

// NewGenerator makes the generator of the history that o.Seed stands for.
func NewGenerator(o Settings) *Generator {
	g := &Generator{o: o, r: newRand(o.Seed), pools: map[string][][][]byte{}}
	if g.o.Keys == 0 {
		g.o.Keys = 300
	}
	g.weight = []weighted{{Write, 500}, {Ingest, 25}, {Get, 200}, {Find, 150}, {Count, 40}, {Many, 30}, {Versions, 60}, {Diff, 60}, {Flush, 40}, {Merge, 20}, {Compact, 4},
		{Deltas, 15}, {Minor, 10}, {Major, 20}, {UndoGC, 6},
		{Check, 6}, {Hold, 2}, {Reopen, 4}, {ReadOnly, 2}, {Verify, 1}, {Create, 1}, {Drop, 1}, {Alter, 15}}
	if !o.NoCrashes {
		g.weight = append(g.weight, weighted{Kill, 5}, weighted{Cut, 5}, weighted{Tear, 6})
	}
	if o.History > 0 {
		g.weight = append(g.weight, weighted{Hold, 15})
	}
	if o.Hybrid {
		g.weight = append(g.weight, weighted{Tick, 60})
	}
	return g
}

// RandomSettings makes the settings of the history that a seed stands for: sizes so small that
// there are many rowsets.
func RandomSettings(seed uint64) Settings {
	r := newRand(seed ^ 0x5e77)
	o := Settings{Seed: seed, Hybrid: r.IntN(2) == 0, FlushBytes: 1 << (14 + r.IntN(6)), RowSetBytes: 1 << (10 + r.IntN(7)), Keys: 1 << (3 + r.IntN(8))}
	if o.Hybrid && r.IntN(2) == 0 {
		o.History = time.Hour
	}
	if r.IntN(4) == 0 {
		o.Batch = 1 << (2 + r.IntN(4))
	}
	if r.IntN(3) > 0 {
		o.Segment = 1 << (12 + r.IntN(6))
	}
	return o
}

const maxTables = 4

// Next makes a step that fits the state of r.
func (g *Generator) Next(r *Runner) Step {
	names := r.Model.Names()
	if len(names) < max(g.tables, 1) {
		return g.create(r)
	}
	name := names[g.r.IntN(len(names))]
	st := Step{Kind: g.kind(), Table: name}
	switch st.Kind {
	case Create:
		if len(names) < maxTables {
			return g.create(r)
		}
		st.Kind = Flush
	case Drop:
		if len(names) < 2 {
			st.Kind = Compact
		}
	case Alter:
		st.Alter = g.alterations(r.Model.Tables[name])
	case Write:
		if g.r.IntN(16) > 0 {
			return g.write(r, names)
		}
		st = g.write(r, []string{name})
		st.Table, st.Mask = name, g.r.Uint64()&g.r.Uint64()
		st.During = []Kind{Flush, Flush, Flush, Flush, Merge, Merge, Compact, Deltas, Minor, Major}[g.r.IntN(10)]
		return st
	case Ingest:
		g.ingest(r.Model.Tables[name], &st)
	case Get:
		st.Read = g.read(r)
		st.Read.Columns = g.columns(r.Model.Tables[name])
		st.Read.Key = g.key(r.Model.Tables[name])
	case Versions:
		st.Read = g.read(r)
		st.Read.Columns = g.columns(r.Model.Tables[name])
		st.Read.Key = g.key(r.Model.Tables[name])
	case Diff:
		st.Read = g.scan(r, r.Model.Tables[name])
		st.Read.At, st.Read.Until = g.past(r), g.past(r)
	case Many:
		st.Read = g.read(r)
		st.Read.Columns = g.columns(r.Model.Tables[name])
		for range g.r.IntN(8) * g.r.IntN(8) {
			st.Keys = append(st.Keys, g.key(r.Model.Tables[name]))
		}
	case Find, Count:
		st.Read = g.scan(r, r.Model.Tables[name])
	case Merge, Major, Tear:
		st.Mask = g.r.Uint64() & g.r.Uint64()
	case Tick:
		st.Time = g.tick()
	case Hold:
		st.Read = Read{AsOf: true, At: g.past(r), Limit: -1}
	case Check:
		st.Read = g.read(r)
	}
	switch st.Kind {
	case Check, Verify, Tick, Reopen, ReadOnly, Kill, Cut, Tear:
		st.Table = ""
	}
	return st
}

func (g *Generator) kind() Kind {
	sum := 0
	for _, w := range g.weight {
		sum += w.share
	}
	n := g.r.IntN(sum)
	for _, w := range g.weight {
		if n -= w.share; n < 0 {
			return w.kind
		}
	}
	return Check
}

func (g *Generator) tick() time.Duration {
	switch g.r.IntN(40) {
	case 0:
		return -3 * time.Hour
	case 1:
		return 4 * time.Hour
	case 2, 3, 4, 5, 6, 7:
		return -[]time.Duration{time.Microsecond, time.Second, 10 * time.Minute}[g.r.IntN(3)]
	}
	return []time.Duration{0, time.Microsecond, time.Millisecond, time.Second, time.Minute, 20 * time.Minute}[g.r.IntN(6)]
}

// create makes a table, under an old name now and then.
func (g *Generator) create(r *Runner) Step {
	g.made++
	name := fmt.Sprintf("t%d", g.r.IntN(g.made))
	for r.Model.Tables[name] != nil {
		name = fmt.Sprintf("t%d", g.made)
		g.made++
	}
	s := randomSchema(g.r)
	for g.widest > 0 && len(s.Columns) > g.widest {
		s = randomSchema(g.r)
	}
	pool := make([][][]byte, 1+g.r.IntN(2*g.o.Keys))
	for i := range pool {
		pool[i] = make([][]byte, s.Keys)
		for c := range pool[i] {
			if pool[i][c] = randomCell(g.r, &s.Columns[c]); s.Columns[c].AutoIncrement {
				pool[i][c] = binary.LittleEndian.AppendUint64(nil, uint64(g.r.IntN(2*g.o.Keys)))
			}
		}
	}
	g.pools[name] = pool
	return Step{Kind: Create, Table: name, Schema: s}
}

// key is one of the table's keys; the first ones come more often.
func (g *Generator) key(t *Table) [][]byte {
	pool := g.pools[t.Name]
	n := len(pool)
	if t.Schema.AutoIncrement() >= 0 && len(t.order) > 0 && g.r.IntN(2) == 0 {
		return t.order[g.r.IntN(len(t.order))].key // the store has given it
	}
	if g.r.IntN(3) == 0 {
		n = 1 + n/10
	}
	return pool[g.r.IntN(n)]
}

// write makes a batch, of one table or over several. A third of them name a key twice or more.
func (g *Generator) write(r *Runner, names []string) Step {
	st := Step{Kind: Write, Sync: g.r.IntN(4) == 0, As: []string{asCells, asCells, asRows, asVectors}[g.r.IntN(4)]}
	n := 1 + g.r.IntN(4)
	switch g.r.IntN(12) {
	case 0:
		n = g.r.IntN(60)
	case 1:
		n = g.r.IntN(400)
	}
	n *= max(g.o.Batch, 1)
	several := g.r.IntN(4) == 0
	twice, repeated := g.r.IntN(3) == 0, false
	if twice {
		n = max(n, 2)
	}
	table := names[g.r.IntN(len(names))]
	like := Op{}
	if st.As == asVectors {
		several = false
		like.Ask = []oribi.Op{oribi.OpInsertIgnore, oribi.OpUpsert, oribi.OpUpsertIgnore, oribi.OpInsert}[g.r.IntN(4)]
	}
	conditions := g.r.IntN(8) == 0
	st.Partial = g.r.IntN(6) == 0
	view := &view{rows: map[string][][]byte{}}
	for i := range n {
		if several {
			table = names[g.r.IntN(len(names))]
		}
		t := r.Model.Tables[table]
		key := g.key(t)
		if i > 0 && twice && (g.r.IntN(3) == 0 || i == n-1 && !repeated) {
			repeated = true
			earlier := st.Ops[g.r.IntN(len(st.Ops))]
			table = earlier.Table
			t = r.Model.Tables[table]
			key = earlier.Cells[:t.Schema.Keys]
			if slices.ContainsFunc(key, func(c []byte) bool { return c == nil }) {
				key = g.key(t) // it gets its key by the commit
			}
		}
		if st.As != asVectors && conditions && g.r.IntN(3) == 0 {
			st.Ops = append(st.Ops, g.condition(t, key, view.row(t, key)))
		}
		op := g.op(t, key, view.live(t, key), &like)
		view.see(t, &op)
		st.Ops = append(st.Ops, op)
	}
	return st
}

// view is which rows are there after the operations so far, if none is refused.
type view struct{ rows map[string][][]byte }

func (v *view) row(t *Table, key [][]byte) [][]byte {
	if row, ok := v.rows[t.Name+"\x00"+keyText(key)]; ok {
		return row
	}
	return t.Row(key, mvcc.Max)
}

func (v *view) live(t *Table, key [][]byte) bool { return v.row(t, key) != nil }

func (v *view) see(t *Table, op *Op) {
	if t.Schema.AutoIncrement() >= 0 && op.Ask.Inserts() {
		return
	}
	key := op.Cells[:t.Schema.Keys]
	if next, _, refused := t.decide(op, v.row(t, key)); !refused {
		v.rows[t.Name+"\x00"+keyText(key)] = next
	}
}

// op makes an operation that mostly fits a row that is there, or is not.
func (g *Generator) op(t *Table, key [][]byte, live bool, like *Op) Op {
	s := t.Schema
	fit := []oribi.Op{oribi.OpInsert, oribi.OpInsert, oribi.OpUpsert, oribi.OpInsertIgnore, oribi.OpUpsertIgnore, oribi.OpUpdateIgnore, oribi.OpDeleteIgnore}
	if live {
		fit = []oribi.Op{oribi.OpUpdate, oribi.OpUpdate, oribi.OpUpsert, oribi.OpDelete, oribi.OpInsertIgnore, oribi.OpUpsertIgnore, oribi.OpUpdateIgnore, oribi.OpDeleteIgnore}
	}
	if g.seldom(300) {
		fit = []oribi.Op{oribi.OpInsert, oribi.OpUpdate, oribi.OpDelete}
	}
	op := Op{Ask: fit[g.r.IntN(len(fit))], Table: t.Name, Cells: make([][]byte, len(s.Columns)), Set: make([]bool, len(s.Columns))}
	if like.Ask != 0 {
		op.Ask = like.Ask
		if op.Ask == oribi.OpInsert && live && !g.seldom(300) {
			op.Ask = oribi.OpUpsert
		}
	}
	if len(s.Columns) == s.Keys && (op.Ask == oribi.OpUpdate || op.Ask == oribi.OpUpdateIgnore) {
		op.Ask = oribi.OpUpsert // nothing can be updated
	}
	g.fill(t, &op, key, live, like)
	return op
}

// seldom is true once in n operations, and so much more seldom in larger write batches: one refused
// operation ends the batch.
func (g *Generator) seldom(n int) bool { return g.r.IntN(n*max(g.o.Batch, 1)) == 0 }

// fill chooses which columns an operation gives, and their values.
func (g *Generator) fill(t *Table, op *Op, key [][]byte, live bool, like *Op) {
	s := t.Schema
	copy(op.Cells, key)
	all := g.r.IntN(2) == 0
	some := s.Keys
	if len(s.Columns) > s.Keys {
		some += g.r.IntN(len(s.Columns) - s.Keys)
	}
	inserts := op.Ask != oribi.OpUpdate && op.Ask != oribi.OpUpdateIgnore && op.Ask != oribi.OpDelete && op.Ask != oribi.OpDeleteIgnore
	for i := range s.Columns {
		c := &s.Columns[i]
		switch {
		case c.AutoIncrement && op.Ask.Inserts() && !g.seldom(300):
			op.Cells[i] = nil
			continue
		case i < s.Keys:
			op.Set[i] = true
			continue
		case op.Ask == oribi.OpDelete || op.Ask == oribi.OpDeleteIgnore:
			continue
		}
		must := inserts && c.Default == nil && !c.Nullable && !g.seldom(500) && !(live && op.Ask == oribi.OpUpsert)
		op.Set[i] = all || must || i == some || g.r.IntN(3) == 0
		if !inserts && i == some {
			op.Set[i] = true
		}
	}
	if like.Set != nil {
		copy(op.Set[s.Keys:], like.Set[s.Keys:])
	} else if like.Ask != 0 {
		like.Set = op.Set
	}
	for i := s.Keys; i < len(s.Columns); i++ {
		if c := &s.Columns[i]; op.Set[i] && !(c.Nullable && g.r.IntN(4) == 0) {
			op.Cells[i] = randomCell(g.r, c)
		} else if op.Set[i] && !c.Nullable && !g.seldom(500) {
			op.Cells[i] = randomCell(g.r, c)
		}
	}
}

// read chooses a timestamp: now, one of the commits', one between, one a little ahead.
func (g *Generator) read(r *Runner) Read {
	rd := Read{Limit: -1, Values: g.r.IntN(5) == 0}
	if g.r.IntN(2) == 0 || len(r.Model.Commits) == 0 {
		return rd
	}
	rd.AsOf, rd.At = true, g.past(r)
	return rd
}

// past chooses a timestamp.
func (g *Generator) past(r *Runner) mvcc.Timestamp {
	commits := r.Model.Commits
	if len(commits) == 0 {
		return mvcc.First
	}
	at := commits[g.r.IntN(len(commits))].TS
	switch g.r.IntN(8) {
	case 0:
		at = mvcc.Timestamp(g.r.Uint64N(uint64(r.Model.newest()) + 1))
	case 1:
		at = r.Model.newest() + mvcc.Timestamp(g.r.IntN(3))
	case 2:
		at--
	case 3:
		if n := len(commits); n > 30 {
			at = commits[n-1-g.r.IntN(30)].TS
		}
	case 4:
		if r.Script.Settings.Hybrid && g.r.IntN(4) == 0 {
			ahead := time.Duration(g.r.IntN(20)) * time.Second
			at = mvcc.FromTime(r.wall.time().Add(ahead)) + mvcc.Timestamp(g.r.IntN(5000))
		}
	case 5:
		if h := r.Script.Settings.History; h > 0 {
			at = mvcc.FromTime(r.wall.time().Add(-h)) + mvcc.Timestamp(g.r.IntN(20000)) - 10000
		}
	}
	return at
}

// columns chooses what to read: all, some in any order, none.
func (g *Generator) columns(t *Table) []int {
	if g.r.IntN(2) == 0 {
		return nil
	}
	columns := g.r.Perm(len(t.Schema.Columns))
	return columns[:g.r.IntN(len(columns)+1)]
}

// scan makes the read of a scan or a count.
func (g *Generator) scan(r *Runner, t *Table) Read {
	rd := g.read(r)
	rd.Columns = g.columns(t)
	rd.Any = g.r.IntN(2) == 0
	if g.r.IntN(4) == 0 {
		rd.Limit = int64(g.r.IntN(20))
	}
	for range g.r.IntN(4) * g.r.IntN(2) {
		rd.Tests = append(rd.Tests, g.test(t))
	}
	if g.r.IntN(3) == 0 {
		rd.From = g.key(t)[:1+g.r.IntN(t.Schema.Keys)]
	}
	if g.r.IntN(3) == 0 {
		rd.To = g.key(t)[:1+g.r.IntN(t.Schema.Keys)]
	}
	return rd
}

// test makes a predicate whose values come from the table, mostly.
func (g *Generator) test(t *Table) Test {
	i := g.r.IntN(len(t.Schema.Columns))
	c := &t.Schema.Columns[i]
	test := Test{Column: i, Op: batch.Operator(1 + g.r.IntN(int(batch.NotNull))), Values: [][]byte{}}
	if c.Type == schema.Array { // tested for NULL only
		test.Op = batch.IsNull + batch.Operator(g.r.IntN(2))
	}
	n := 1
	switch test.Op {
	case batch.IsNull, batch.NotNull:
		n = 0
	case batch.In:
		n = g.r.IntN(5)
	}
	for range n {
		value := randomCell(g.r, c)
		if len(t.order) > 0 && g.r.IntN(3) > 0 {
			if row := t.order[g.r.IntN(len(t.order))].at(mvcc.Max); row != nil && row[i] != nil {
				value = row[i]
			}
		}
		test.Values = append(test.Values, value)
	}
	return test
}
