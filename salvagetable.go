package oribi

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/blockmanager"
	"github.com/oribi-db/oribi/internal/budget"
	"github.com/oribi-db/oribi/internal/meta"
	"github.com/oribi-db/oribi/internal/record"
	"github.com/oribi-db/oribi/internal/storedir"
	"github.com/oribi-db/oribi/internal/tablet"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/rowset"
)

// salvagedTable salvages one table.
type salvagedTable struct {
	v   *salvager
	t   *Table
	tab *tablet.Tablet
	row meta.Table // of the new store

	// holes reports whether records of the log or metadata are missing. Then operations may
	// contradict the rowsets, and rowsets one another.
	holes bool
	unfit int64              // operations that do not fit the schema
	gone  []*rowset.Metadata // rowsets that cannot be opened at all

	groups []*salvagedGroup
	ops    []rowset.LoggedOp
	chunk  []byte // of memory for keys and bodies

	conflicts, dropped int64
	b                  *blockmanager.Builder
	out                *rowset.RollingWriter // nil while none is needed
	newest             mvcc.Timestamp        // of the rowsets in out
}

// salvagedGroup is rowsets that overlap one another, by their bounds, and no others.
type salvagedGroup struct {
	low, high []byte // inclusive
	sets      []*rowset.DiskRowSet
	max       mvcc.Timestamp // of their changes
	damaged   bool           // some block is
	keyless   bool           // not all keys can be read
	rewrite   bool           // its rows are written anew
}

// maxReported is how many contradictions of a table are reported one by one.
const maxReported = 100

// opBytes is about how much memory an operation takes besides its key and body.
const opBytes = 96

// opChunk is the size of the chunks of memory for keys and bodies.
const opChunk = 256 << 10

// table returns the salvager of a table of the metadata.
func (v *salvager) table(number uint32) *salvagedTable {
	t := v.tables[number]
	if t == nil {
		t = &salvagedTable{v: v}
		v.tables[number] = t
	}
	return t
}

func (w *salvagedTable) set(t *Table) { w.t, w.tab, w.row = t, t.tab, *t.tab.Metadata() }

// loseRowSet reports a rowset that cannot be opened at all.
func (v *salvager) loseRowSet(t *meta.Table, m *rowset.Metadata, err error) {
	w := v.table(t.Number)
	w.gone = append(w.gone, m)
	v.report(Loss{Table: t.Name, File: storedir.MetaName, Rows: m.Rows, Lost: fmt.Sprintf("rowset %d: %v", m.ID, err)})
}

// plan groups the rowsets and decides which groups are written anew: those with damage; if the log
// or the metadata has holes, also those of several rowsets, in which a key may be live twice.
// Operations of the log may add others, see take.
func (w *salvagedTable) plan() error {
	w.holes = w.holes || w.v.older
	var groups []*salvagedGroup
	err := w.tab.Sets(w.v.ctx, func(d *rowset.DiskRowSet) error {
		m := d.Metadata()
		g := &salvagedGroup{low: m.MinKey, high: m.MaxKey, sets: []*rowset.DiskRowSet{d}, max: m.MaxTimestamp}
		g.damaged, g.keyless = w.damage(d)
		groups = append(groups, g)
		return nil
	})
	for _, m := range w.gone {
		groups = append(groups, &salvagedGroup{low: m.MinKey, high: m.MaxKey, max: m.MaxTimestamp, damaged: true,
			keyless: true})
	}
	slices.SortFunc(groups, func(a, b *salvagedGroup) int { return bytes.Compare(a.low, b.low) })
	for _, g := range groups {
		last := len(w.groups) - 1
		if last < 0 || bytes.Compare(w.groups[last].high, g.low) < 0 {
			w.groups = append(w.groups, g)
			continue
		}
		to := w.groups[last]
		if bytes.Compare(to.high, g.high) < 0 {
			to.high = g.high
		}
		to.sets, to.max = append(to.sets, g.sets...), max(to.max, g.max)
		to.damaged, to.keyless = to.damaged || g.damaged, to.keyless || g.keyless
	}
	for _, g := range w.groups {
		g.rewrite = g.damaged || w.holes && len(g.sets) > 1
	}
	return err
}

// damage reports whether blocks of a rowset are damaged, other than such that repeat what others
// have, and whether keys may be among what is lost.
func (w *salvagedTable) damage(d *rowset.DiskRowSet) (damaged, keys bool) {
	m := *d.Metadata()
	bad := func(id block.ID) bool { return w.v.bad[id] != nil || w.v.blocks[id].ID == 0 }
	w.dropRowFile(&m)
	for _, c := range m.Columns {
		if i := d.Schema.IndexID(c.ID); i >= 0 && i < d.Schema.Keys {
			keys = keys || bad(c.Block)
		}
	}
	return slices.ContainsFunc(m.Blocks(nil), bad), keys
}

// dropRowFile removes a damaged row file or key directory from the metadata: other files have what
// they have.
func (w *salvagedTable) dropRowFile(m *rowset.Metadata) {
	bad := func(id block.ID) bool { return id != 0 && (w.v.bad[id] != nil || w.v.blocks[id].ID == 0) }
	if bad(m.RowFile) || bad(m.KeyDirectory) {
		m.DropRowFile()
	}
}

// rewrites reports whether operations of the log belong into rowsets of the new store.
func (w *salvagedTable) rewrites() bool {
	return w.holes || slices.ContainsFunc(w.groups, func(g *salvagedGroup) bool { return g.rewrite })
}

// takes reports whether the operations on a key belong into rowsets of the new store: all of them,
// if there are holes.
func (w *salvagedTable) takes(key []byte) bool {
	if w.holes {
		return true
	}
	g := w.group(key)
	return g != nil && g.rewrite
}

// group returns the group whose bounds have a key, or nil.
func (w *salvagedTable) group(key []byte) *salvagedGroup {
	i, _ := slices.BinarySearchFunc(w.groups, key,
		func(g *salvagedGroup, key []byte) int { return bytes.Compare(g.high, key) })
	if i == len(w.groups) || bytes.Compare(w.groups[i].low, key) > 0 {
		return nil
	}
	return w.groups[i]
}

// take keeps an operation for the rowsets of the new store. Its group is written anew.
func (w *salvagedTable) take(op *record.Op, at lsn.LSN, ts mvcc.Timestamp) {
	w.row.AutoIncrement = max(w.row.AutoIncrement, w.tab.AutoValue(op))
	if g := w.group(op.Key); g != nil {
		g.rewrite = true
	}
	w.ops = append(w.ops, rowset.LoggedOp{Kind: op.Kind, Key: w.keep(op.Key), Body: w.keep(op.Body), TS: ts, LSN: at})
	w.v.s.core.Budget.Reserve(budget.MemRowSet, opBytes)
}

// keep returns a copy of b.
func (w *salvagedTable) keep(b []byte) []byte {
	if b == nil {
		return nil
	}
	if cap(w.chunk)-len(w.chunk) < len(b) {
		n := max(opChunk, len(b))
		w.chunk = make([]byte, 0, n)
		w.v.s.core.Budget.Reserve(budget.MemRowSet, int64(n))
	}
	at := len(w.chunk)
	w.chunk = append(w.chunk, b...)
	return w.chunk[at:len(w.chunk):len(w.chunk)]
}

// build copies groups, and writes the others anew, with the operations that were taken.
func (w *salvagedTable) build(b *blockmanager.Builder) error {
	w.b = b
	slices.SortStableFunc(w.ops, func(a, b rowset.LoggedOp) int { return bytes.Compare(a.Key, b.Key) })
	ops := w.ops
	before := func(key []byte, inclusive int) (taken []rowset.LoggedOp) {
		n, _ := slices.BinarySearchFunc(ops, inclusive, func(op rowset.LoggedOp, inclusive int) int {
			return cmp.Or(bytes.Compare(op.Key, key), -inclusive)
		})
		taken, ops = ops[:n], ops[n:]
		return taken
	}
	for _, g := range w.groups {
		if err := w.merge(&salvagedGroup{}, before(g.low, 0)); err != nil {
			return err
		}
		if g.rewrite {
			if err := w.merge(g, before(g.high, 1)); err != nil {
				return err
			}
			continue
		}
		if err := w.finish(); err != nil {
			return err
		}
		for _, d := range g.sets {
			w.copy(d)
		}
	}
	if err := w.merge(&salvagedGroup{}, ops); err != nil {
		return err
	}
	if w.holes {
		w.row.FlushedLSN = w.v.s.core.LastLSN()
	}
	w.ops, w.chunk = nil, nil
	w.reportRest()
	return w.finish()
}

// copy copies a rowset.
func (w *salvagedTable) copy(d *rowset.DiskRowSet) {
	m := *d.Metadata()
	w.dropRowFile(&m)
	for _, id := range m.Blocks(nil) {
		w.v.whole = append(w.v.whole, w.v.blocks[id].BlockInfo)
	}
	w.add(&m)
}

func (w *salvagedTable) add(m *rowset.Metadata) {
	w.v.rows = append(w.v.rows, blockmanager.Row{Key: meta.RowSetKey(w.row.Number, m.ID), Value: m.Encode()})
}

// merge writes the rows of a group and those that operations begin.
func (w *salvagedTable) merge(g *salvagedGroup, ops []rowset.LoggedOp) error {
	if len(g.sets) == 0 && len(ops) == 0 {
		return nil
	}
	v := w.v
	sc := w.row.Schema
	if w.out == nil {
		w.out = rowset.NewRollingWriter(w.b, sc, w.nextRowSet, v.s.opts.RowSetBytes)
		w.out.RowFiles = w.row.RowFile
	}
	m := rowset.SalvageMerge{Schema: sc, Options: rowset.SalvageOptions{FillNull: v.o.fillNull,
		Floor: w.row.HistoryFloor}, Sets: g.sets,
		Ops: ops, Gaps: v.log.gaps, Flushed: w.tab.Metadata().FlushedLSN, Incomplete: w.holes || g.keyless,
		Use: w.out.Append, Conflict: w.conflict, Progress: v.advance,
		Dropped: func(*rowset.LoggedOp) { w.dropped++ },
		Lost:    func(_ *rowset.Metadata, l *rowset.Lost) { v.lose(w.row.Name, l.Block, l.Rows, lostText(l)) },
	}
	w.newest = max(w.newest, g.max)
	return m.Run(v.ctx)
}

func (w *salvagedTable) nextRowSet() uint64 {
	w.row.NextRowSetID++
	return w.row.NextRowSetID - 1
}

// finish ends the rowsets that are being written. They contain the whole log.
func (w *salvagedTable) finish() error {
	if w.out == nil {
		return nil
	}
	sets, err := w.out.Finish()
	if err != nil {
		return err
	}
	for _, n := range sets {
		n.IncludedLSN, n.MaxTimestamp = w.v.s.core.LastLSN(), max(n.MaxTimestamp, w.newest)
		w.add(n)
	}
	w.out, w.newest = nil, 0
	return nil
}

// conflict reports a contradiction.
func (w *salvagedTable) conflict(c *rowset.Conflict) {
	if w.conflicts++; w.conflicts > maxReported {
		return
	}
	text := fmt.Sprintf("key %s: when its version in %s ended; one in %s begins at %d", w.t.tab.KeyText(c.Key),
		c.Older, c.Newer, uint64(c.To))
	if c.From < c.To {
		text += fmt.Sprintf("; from %d until then the key is absent", uint64(c.From))
	}
	w.v.report(Loss{Table: w.row.Name, Rows: 1, Lost: text})
}

// reportRest reports the number of losses that were not reported one by one.
func (w *salvagedTable) reportRest() {
	if n := w.conflicts - maxReported; n > 0 {
		w.v.report(Loss{Table: w.row.Name, Rows: n,
			Lost: fmt.Sprintf("when versions of %d more keys ended, which have newer ones in other sources", n)})
	}
	if w.dropped > 0 {
		w.v.report(Loss{Table: w.row.Name, File: storedir.LogName, Rows: -1,
			Lost: fmt.Sprintf("%d operations that are in the log: what the rows were before them is lost", w.dropped)})
	}
}

// lostText describes the loss by the damage of one block.
func lostText(l *rowset.Lost) string {
	newest := fmt.Sprintf("the newest of %d", l.Newest)
	switch {
	case l.Changes:
		return fmt.Sprintf("changes of %d rows, %s", l.Rows, newest)
	case l.Filled:
		return fmt.Sprintf("column %q: filled with NULL in %d rows, in the newest version of %d", l.Column, l.Rows,
			l.Newest)
	}
	return fmt.Sprintf("column %q: versions of %d rows, %s", l.Column, l.Rows, newest)
}
