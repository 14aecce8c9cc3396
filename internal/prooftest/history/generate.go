package history

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/prooftest/model"
	"github.com/oribi-db/oribi/internal/prooftest/script"
	"github.com/oribi-db/oribi/internal/prooftest/values"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// Generator generates the steps of a history.
type Generator struct {
	o      script.Settings
	r      *rand.Rand
	made   int                   // tables so far
	Pools  map[string][][][]byte // per table name: keys to choose from
	Weight []Weighted
	tables int  // number of tables to create first; 0 = 1
	widest int  // columns of a new table; 0 = no limit
	inside bool // one write in four is in the middle of a compaction, most with a flush
}

// Weighted is a kind of step with its share of all steps.
type Weighted struct {
	Kind  script.Kind
	share int
}

// NewGenerator returns the generator of the history with seed o.Seed.
func NewGenerator(o script.Settings) *Generator {
	g := &Generator{o: o, r: values.NewRand(o.Seed), Pools: map[string][][][]byte{}}
	if g.o.Keys == 0 {
		g.o.Keys = 300
	}
	g.Weight = []Weighted{{script.Write, 500}, {script.Ingest, 25}, {script.UpdateWhere, 14}, {script.DeleteWhere, 8},
		{script.DeleteRange, 7}, {script.Truncate, 4}, {script.Restore, 12}, {script.Get, 200}, {script.Find, 150},
		{script.Count, 40}, {script.Many, 30}, {script.Begin, 40}, {script.Versions, 60}, {script.Diff, 60},
		{script.Flush, 40}, {script.FlushAll, 10}, {script.Merge, 20}, {script.Compact, 4},
		{script.Deltas, 15}, {script.Minor, 10}, {script.Major, 20}, {script.Recompress, 8},
		{script.UndoGC, 6}, {script.Maintain, 20},
		{script.Check, 6}, {script.Hold, 2}, {script.Reopen, 4}, {script.ReadOnly, 2}, {script.Verify, 1},
		{script.Create, 1}, {script.Drop, 1}, {script.Alter, 15}, {script.Rename, 6}}
	if !o.NoCrashes {
		g.Weight = append(g.Weight, Weighted{script.Kill, 5}, Weighted{script.Cut, 5}, Weighted{script.Tear, 6})
	}
	if o.History > 0 {
		g.Weight = append(g.Weight, Weighted{script.Hold, 15})
	}
	if o.Hybrid {
		g.Weight = append(g.Weight, Weighted{script.Tick, 60})
	}
	return g
}

// RandomSettings returns the settings of the history of a seed. Sizes are small, which creates many
// rowsets.
func RandomSettings(seed uint64) script.Settings {
	r := values.NewRand(seed ^ 0x5e77)
	o := script.Settings{Seed: seed, Hybrid: r.IntN(2) == 0, FlushBytes: 1 << (14 + r.IntN(6)),
		RowSetBytes: 1 << (10 + r.IntN(7)), Keys: 1 << (3 + r.IntN(8))}
	if o.Hybrid && r.IntN(2) == 0 {
		o.History = time.Hour
	}
	if r.IntN(4) == 0 {
		o.Batch = 1 << (2 + r.IntN(4))
	}
	if r.IntN(3) > 0 {
		o.Segment = 1 << (12 + r.IntN(6))
	}
	o.Policy = []string{"", "none", "overlap2", "budgeted", "tiered", "leveled"}[r.IntN(6)]
	o.Eager, o.Scarce = seed%2 == 0, seed%4 < 2
	return o
}

const maxTables = 4

// Next returns a step that fits the state of r.
func (g *Generator) Next(r *Runner) script.Step {
	names := r.Model.Names()
	if len(names) < max(g.tables, 1) {
		return g.create(r)
	}
	name := names[g.r.IntN(len(names))]
	st := script.Step{Kind: g.kind(), Table: name}
	if len(r.txs) > 0 && g.r.IntN(3) > 0 { // most transactions are short
		st.Kind = script.Begin
	}
	switch st.Kind {
	case script.Create:
		if len(names) < maxTables {
			return g.create(r)
		}
		st.Kind = script.Flush
	case script.Drop:
		if len(names) < 2 {
			st.Kind = script.Compact
		}
	case script.Alter:
		var in []oribi.IndexInfo
		if t, err := r.Store.Table(name); err == nil {
			in = t.Indexes()
		}
		st.Alter = g.alterations(r.Model.Tables[name], in)
	case script.Write:
		if !g.inside && g.r.IntN(16) > 0 || g.inside && g.r.IntN(4) > 0 {
			return g.Write(r, names)
		}
		st = g.Write(r, []string{name})
		st.Table, st.Mask = name, g.mask()
		st.During = g.rewrite()
		return st
	case script.Rename:
		st.Name = g.rename(r, name)
	case script.UpdateWhere, script.DeleteWhere, script.DeleteRange, script.Truncate, script.Restore:
		g.bulk(r, r.Model.Tables[name], &st)
	case script.Ingest:
		g.ingest(r.Model.Tables[name], &st)
	case script.Get:
		st.Read = g.read(r)
		st.Read.Columns = g.columns(r.Model.Tables[name])
		st.Read.Key = g.key(r.Model.Tables[name])
	case script.Versions:
		st.Read = g.read(r)
		st.Read.Columns = g.columns(r.Model.Tables[name])
		st.Read.Key = g.key(r.Model.Tables[name])
	case script.Diff:
		st.Read = g.scan(r, r.Model.Tables[name])
		st.Read.At, st.Read.Until = g.past(r), g.past(r)
	case script.Many:
		st.Read = g.read(r)
		st.Read.Columns = g.columns(r.Model.Tables[name])
		for range g.r.IntN(8) * g.r.IntN(8) {
			st.Keys = append(st.Keys, g.key(r.Model.Tables[name]))
		}
	case script.Find, script.Count:
		st.Read = g.scan(r, r.Model.Tables[name])
	case script.Merge, script.Major, script.Tear, script.Maintain:
		st.Mask = g.r.Uint64() & g.r.Uint64()
	case script.Tick:
		st.Time = g.tick()
	case script.Begin:
		g.transactionStep(r, &st, r.Model.Tables[name])
	case script.Hold:
		st.Read = script.Read{AsOf: true, At: g.past(r), Limit: -1}
	case script.Check:
		st.Read = g.read(r)
	}
	switch st.Kind {
	case script.Check, script.Verify, script.Copy, script.Maintain, script.Tick, script.Reopen, script.ReadOnly,
		script.Kill, script.Cut, script.Tear:
		st.Table = ""
	}
	return st
}

func (g *Generator) kind() script.Kind {
	sum := 0
	for _, w := range g.Weight {
		sum += w.share
	}
	n := g.r.IntN(sum)
	for _, w := range g.Weight {
		if n -= w.share; n < 0 {
			return w.Kind
		}
	}
	return script.Check
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
	return []time.Duration{0, time.Microsecond, time.Millisecond, time.Second, time.Minute,
		20 * time.Minute}[g.r.IntN(6)]
}

// create returns a step that creates a table, sometimes under the name of a dropped one.
func (g *Generator) create(r *Runner) script.Step {
	g.made++
	name := fmt.Sprintf("t%d", g.r.IntN(g.made))
	for r.Model.Tables[name] != nil {
		name = fmt.Sprintf("t%d", g.made)
		g.made++
	}
	s := values.RandomSchema(g.r)
	for g.widest > 0 && len(s.Columns) > g.widest {
		s = values.RandomSchema(g.r)
	}
	pool := make([][][]byte, 1+g.r.IntN(2*g.o.Keys))
	for i := range pool {
		pool[i] = make([][]byte, s.Keys)
		for c := range pool[i] {
			if pool[i][c] = values.RandomCell(g.r, &s.Columns[c]); s.Columns[c].AutoIncrement {
				pool[i][c] = binary.LittleEndian.AppendUint64(nil, uint64(g.r.IntN(2*g.o.Keys)))
			}
		}
	}
	g.Pools[name] = pool
	st := script.Step{Kind: script.Create, Table: name, Schema: s, RowFile: g.made%2 == 1}
	if g.o.Hybrid && g.r.IntN(2) == 0 {
		g.expire(&st)
	}
	return st
}

// key returns one of the table's keys; the first ones are more frequent.
func (g *Generator) key(t *model.Table) [][]byte {
	pool := g.Pools[t.Name]
	n := len(pool)
	if t.Schema.AutoIncrement() >= 0 && len(t.Order) > 0 && g.r.IntN(2) == 0 {
		return t.Order[g.r.IntN(len(t.Order))].Key // assigned by the store
	}
	if g.r.IntN(3) == 0 {
		n = 1 + n/10
	}
	return pool[g.r.IntN(n)]
}

// Write returns a batch for one or several tables. A third of the batches use a key more than once.
func (g *Generator) Write(r *Runner, names []string) script.Step {
	st := script.Step{Kind: script.Write, Sync: g.r.IntN(4) == 0,
		As: []string{AsCells, AsCells, asRows, asVectors}[g.r.IntN(4)]}
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
	like := script.Op{}
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
				key = g.key(t) // the commit assigns its key
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

// view is the set of rows that exist after the operations so far, if none is refused.
type view struct{ rows map[string][][]byte }

func (v *view) row(t *model.Table, key [][]byte) [][]byte {
	if row, ok := v.rows[t.Name+"\x00"+model.KeyText(key)]; ok {
		return row
	}
	return t.Row(key, mvcc.Max)
}

func (v *view) live(t *model.Table, key [][]byte) bool { return v.row(t, key) != nil }

func (v *view) see(t *model.Table, op *script.Op) {
	if t.Schema.AutoIncrement() >= 0 && op.Ask.Inserts() {
		return
	}
	key := op.Cells[:t.Schema.Keys]
	if next, _, refused := t.Decide(op, v.row(t, key)); !refused {
		v.rows[t.Name+"\x00"+model.KeyText(key)] = next
	}
}

// op returns an operation that usually succeeds, given whether the row exists.
func (g *Generator) op(t *model.Table, key [][]byte, live bool, like *script.Op) script.Op {
	s := t.Schema
	fit := []oribi.Op{oribi.OpInsert, oribi.OpInsert, oribi.OpUpsert, oribi.OpInsertIgnore, oribi.OpUpsertIgnore,
		oribi.OpUpdateIgnore, oribi.OpDeleteIgnore}
	if live {
		fit = []oribi.Op{oribi.OpUpdate, oribi.OpUpdate, oribi.OpUpsert, oribi.OpDelete, oribi.OpInsertIgnore,
			oribi.OpUpsertIgnore, oribi.OpUpdateIgnore, oribi.OpDeleteIgnore}
	}
	if g.seldom(300) {
		fit = []oribi.Op{oribi.OpInsert, oribi.OpUpdate, oribi.OpDelete}
	}
	op := script.Op{Ask: fit[g.r.IntN(len(fit))], Table: t.Name, Cells: make([][]byte, len(s.Columns)),
		Set: make([]bool, len(s.Columns))}
	if like.Ask != 0 {
		op.Ask = like.Ask
		if op.Ask == oribi.OpInsert && live && !g.seldom(300) {
			op.Ask = oribi.OpUpsert
		}
	}
	if len(s.Columns) == s.Keys && (op.Ask == oribi.OpUpdate || op.Ask == oribi.OpUpdateIgnore) {
		op.Ask = oribi.OpUpsert // no column can be updated
	}
	g.fill(t, &op, key, live, like)
	if like.Ask == 0 && g.r.IntN(4) == 0 {
		g.operands(s, &op)
	}
	return op
}

// seldom is true for one in n operations, and for fewer in larger write batches: one refused
// operation ends the batch.
func (g *Generator) seldom(n int) bool { return g.r.IntN(n*max(g.o.Batch, 1)) == 0 }

// fill chooses the columns that an operation sets, and their values.
func (g *Generator) fill(t *model.Table, op *script.Op, key [][]byte, live bool, like *script.Op) {
	s := t.Schema
	copy(op.Cells, key)
	all := g.r.IntN(2) == 0
	some := s.Keys
	if len(s.Columns) > s.Keys {
		some += g.r.IntN(len(s.Columns) - s.Keys)
	}
	inserts := op.Ask != oribi.OpUpdate && op.Ask != oribi.OpUpdateIgnore && op.Ask != oribi.OpDelete &&
		op.Ask != oribi.OpDeleteIgnore
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
			op.Cells[i] = g.cell(t, i)
		} else if op.Set[i] && !c.Nullable && !g.seldom(500) {
			op.Cells[i] = g.cell(t, i)
		}
	}
}

// operands makes some values of an update or upsert operands.
func (g *Generator) operands(s *schema.Schema, op *script.Op) {
	if op.Ask.Inserts() || op.Ask == oribi.OpDelete || op.Ask == oribi.OpDeleteIgnore {
		return
	}
	for i := s.Keys; i < len(s.Columns); i++ {
		if !op.Set[i] || op.Cells[i] == nil || g.r.IntN(2) == 0 {
			continue
		}
		if op.Operands == nil {
			op.Operands = make([]script.Operand, len(s.Columns))
		}
		c := &s.Columns[i]
		kinds := []script.Operand{script.SetIfNull}
		if c.Type != schema.Array {
			kinds = append(kinds, script.Min, script.Max)
		}
		if c.Type.Variable() && c.Type != schema.Array {
			kinds = append(kinds, script.Append)
		}
		if !c.Type.Variable() && c.Type != schema.Bool && c.Type != schema.Date && c.Type != schema.Timestamp {
			kinds = append(kinds, script.Add, script.Add, script.Add)
		}
		op.Operands[i] = kinds[g.r.IntN(len(kinds))]
		if small := op.Operands[i] == script.Add && !c.Type.Float() && !g.seldom(20); small {
			clear(op.Cells[i])
			op.Cells[i][0] = byte(g.r.IntN(4)) // so that few sums are out of range
		}
	}
}

// read chooses a timestamp: now, of a commit, between commits, or slightly ahead of now.
func (g *Generator) read(r *Runner) script.Read {
	rd := script.Read{Limit: -1, Values: g.r.IntN(5) == 0}
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
		at = mvcc.Timestamp(g.r.Uint64N(uint64(r.Model.Newest()) + 1))
	case 1:
		at = r.Model.Newest() + mvcc.Timestamp(g.r.IntN(3))
	case 2:
		at--
	case 3:
		if n := len(commits); n > 30 {
			at = commits[n-1-g.r.IntN(30)].TS
		}
	case 4:
		if r.Script.Settings.Hybrid && g.r.IntN(4) == 0 {
			ahead := time.Duration(g.r.IntN(20)) * time.Second
			at = mvcc.FromTime(r.Wall.time().Add(ahead)) + mvcc.Timestamp(g.r.IntN(5000))
		}
	case 5:
		if h := r.Script.Settings.History; h > 0 {
			at = mvcc.FromTime(r.Wall.time().Add(-h)) + mvcc.Timestamp(g.r.IntN(20000)) - 10000
		}
	}
	return at
}

// columns chooses the columns to read: all, some in any order, or none.
func (g *Generator) columns(t *model.Table) []int {
	if g.r.IntN(2) == 0 {
		return nil
	}
	columns := g.r.Perm(len(t.Schema.Columns))
	return columns[:g.r.IntN(len(columns)+1)]
}

// scan returns the parameters of a scan or a count.
func (g *Generator) scan(r *Runner, t *model.Table) script.Read {
	rd := g.read(r)
	rd.Columns = g.columns(t)
	switch g.r.IntN(4) {
	case 0, 2:
		rd.Any, rd.Workers = true, g.r.IntN(4)
	case 3:
		rd.Desc = true
	}
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

// test returns a predicate, usually with values from the table.
func (g *Generator) test(t *model.Table) script.Test {
	i := g.r.IntN(len(t.Schema.Columns))
	c := &t.Schema.Columns[i]
	test := script.Test{Column: i, Op: batch.Operator(1 + g.r.IntN(int(batch.NotNull))), Values: [][]byte{}}
	if c.Type == schema.Array { // only IsNull and NotNull apply
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
		value := values.RandomCell(g.r, c)
		if len(t.Order) > 0 && g.r.IntN(3) > 0 {
			if row := t.Order[g.r.IntN(len(t.Order))].At(mvcc.Max); row != nil && row[i] != nil {
				value = row[i]
			}
		}
		test.Values = append(test.Values, value)
	}
	return test
}
