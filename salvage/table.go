package salvage

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"log/slog"
	"slices"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/blockmanager"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/budget"
	"github.com/oribi-db/oribi/internal/celltext"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/meta"
	"github.com/oribi-db/oribi/internal/record"
	"github.com/oribi-db/oribi/internal/salvage/damaged"
	"github.com/oribi-db/oribi/internal/salvage/versions"
	"github.com/oribi-db/oribi/internal/storedir"
	"github.com/oribi-db/oribi/keyenc"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/rowset"
)

// table salvages one table.
type table struct {
	v       *salvager
	row     meta.Table // of the new store
	flushed lsn.LSN    // rowsets contain the inserts up to it // inclusive
	encoder *keyenc.Encoder
	format  *change.RowFormat
	sets    []*damaged.RowSet

	// holes reports whether records of the log or metadata are missing. Then operations may
	// contradict the rowsets, and rowsets one another.
	holes bool
	unfit int64              // operations that do not fit the schema
	gone  []*rowset.Metadata // rowsets that cannot be opened at all

	groups    []*group
	rewritten bool // some group was to be written anew before the log was read

	ops    []versions.LoggedOp
	ranges []versions.LoggedRange
	merged *versions.Ranges // ranges, while groups are built
	chunk  []byte           // of memory for keys and bodies

	conflicts, dropped int64
	b                  *blockmanager.Builder
	out                *rowset.RollingWriter // nil while none is needed
	newest             mvcc.Timestamp        // of the rowsets in out
}

// group is rowsets that overlap one another, by their bounds, and no others.
type group struct {
	low, high []byte // inclusive
	sets      []*damaged.RowSet
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

// load reads the metadata of the tables.
func (v *salvager) load() error {
	found := false
	err := v.blocks.Rows(meta.StoreKey(), func(_, value []byte) error {
		row, err := meta.DecodeStore(value)
		if err == nil {
			v.stored, found = *row, true
		}
		return err
	})
	if err == nil && !found {
		err = fault.Corruptf("metadata: no row of the store")
	}
	if err != nil {
		return err
	}
	named := map[string]bool{}
	return v.blocks.Rows(meta.TablePrefix(), func(_, value []byte) error {
		row, err := meta.DecodeTable(value)
		if err != nil {
			return err
		}
		if named[row.Name] {
			return fault.Corruptf("metadata: two tables are named %q", row.Name)
		}
		named[row.Name] = true
		if row.Index != nil {
			v.indexes = append(v.indexes, row)
			return nil
		}
		t := &table{v: v, row: *row, flushed: row.FlushedLSN, encoder: keyenc.NewEncoder(row.Schema),
			format: change.NewRowFormat(row.Schema)}
		v.tables[row.Number] = t
		return t.open()
	})
}

// open opens the rowsets.
func (w *table) open() error {
	o := w.v.rowSets
	o.Damaged = func(rowSet uint64, id block.ID, err error) {
		w.v.o.Logger.Error("row file or key directory damaged: other files are read instead",
			slog.String("table", w.row.Name), slog.Uint64("rowset", rowSet), slog.Uint64("block", uint64(id)),
			slog.Any("err", err))
	}
	return w.v.blocks.Rows(meta.RowSetPrefix(w.row.Number), func(_, value []byte) error {
		m, err := rowset.DecodeMetadata(value)
		if err == nil && m.ID >= w.row.NextRowSetID {
			err = fault.Corruptf("metadata: table %q: rowset %d, want less than %d", w.row.Name, m.ID,
				w.row.NextRowSetID)
		}
		if err != nil {
			return err
		}
		d, err := damaged.Open(w.row.Schema, m, o)
		if err == nil {
			w.sets = append(w.sets, d)
			return nil
		}
		if !damaged.Unreadable(err) {
			return fmt.Errorf("table %q: %w", w.row.Name, err)
		}
		w.gone = append(w.gone, m)
		w.v.report(Loss{Table: w.row.Name, File: storedir.MetaName, Rows: m.Rows,
			Lost: fmt.Sprintf("rowset %d: %v", m.ID, err)})
		return nil
	})
}

// needsLog reports whether the table needs records up to an LSN: its files do not contain them.
func (w *table) needsLog(to lsn.LSN) bool {
	return w.flushed < to ||
		slices.ContainsFunc(w.sets, func(d *damaged.RowSet) bool { return d.Metadata.IncludedLSN < to })
}

// contains reports whether the files contain an operation of the log because of its schema version.
func (w *table) contains(op *record.Op, at lsn.LSN) bool {
	return op.SchemaVersion < w.row.SchemaVersion && at <= w.flushed
}

// fits reports whether an operation of the log can be applied to the table.
func (w *table) fits(op *record.Op) bool {
	if op.SchemaVersion != w.row.SchemaVersion {
		return false
	}
	if op.Kind == change.DeleteRange {
		return true
	}
	if _, err := w.encoder.Decode(op.Key); err != nil {
		return false
	}
	switch op.Kind {
	case change.Update:
		return change.List(op.Body).Check(w.row.Schema) == nil
	case change.Insert, change.Replace:
		return w.format.Check(op.Body) == nil
	}
	return true
}

// autoValue returns the value of the auto-incrementing column in an insert that fits, 0 if there is
// no such column.
func (w *table) autoValue(op *record.Op) int64 {
	auto := w.row.Schema.AutoIncrement()
	if auto < 0 || op.Kind != change.Insert {
		return 0
	}
	return int64(binary.LittleEndian.Uint64(w.format.Cell(op.Body, auto)))
}

// plan groups the rowsets and decides which groups are written anew: those with damage; if the log
// or the metadata has holes, also those of several rowsets, in which a key may be live twice.
// Operations of the log may add others, see take.
func (w *table) plan() {
	w.holes = w.holes || w.v.older
	var groups []*group
	for _, d := range w.sets {
		m := d.Metadata
		g := &group{low: m.MinKey, high: m.MaxKey, sets: []*damaged.RowSet{d}, max: m.MaxTimestamp}
		g.damaged, g.keyless = w.damage(d)
		groups = append(groups, g)
	}
	for _, m := range w.gone {
		groups = append(groups, &group{low: m.MinKey, high: m.MaxKey, max: m.MaxTimestamp, damaged: true,
			keyless: true})
	}
	slices.SortStableFunc(groups, func(a, b *group) int { return bytes.Compare(a.low, b.low) })
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
		w.rewritten = w.rewritten || g.rewrite
	}
}

// damage reports whether blocks of a rowset are damaged, other than such that repeat what others
// have, and whether keys may be among what is lost.
func (w *table) damage(d *damaged.RowSet) (damaged, keys bool) {
	m := *d.Metadata
	bad := func(id block.ID) bool { return w.v.bad[id] != nil || w.v.infos[id].ID == 0 }
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
func (w *table) dropRowFile(m *rowset.Metadata) {
	bad := func(id block.ID) bool { return id != 0 && (w.v.bad[id] != nil || w.v.infos[id].ID == 0) }
	if bad(m.RowFile) || bad(m.KeyDirectory) {
		m.DropRowFile()
	}
}

// rewrites reports whether operations of the log belong into rowsets of the new store.
func (w *table) rewrites() bool {
	return w.holes || slices.ContainsFunc(w.groups, func(g *group) bool { return g.rewrite })
}

// takes reports whether an operation belongs into rowsets of the new store: all of them do if there are
// holes.
func (w *table) takes(op *record.Op) bool {
	if w.holes {
		return true
	}
	if op.Kind == change.DeleteRange {
		return w.rewritten
	}
	g := w.group(op.Key)
	return g != nil && g.rewrite
}

// keeps reports whether an operation stays in the log. The delete of a range does, also for rows that are
// in no rowset: the rowsets that are written anew contain the log, and replay passes over them.
func (w *table) keeps(op *record.Op) bool {
	return !w.takes(op) || op.Kind == change.DeleteRange && !w.holes
}

// group returns the group whose bounds have a key, or nil.
func (w *table) group(key []byte) *group {
	i, _ := slices.BinarySearchFunc(w.groups, key,
		func(g *group, key []byte) int { return bytes.Compare(g.high, key) })
	if i == len(w.groups) || bytes.Compare(w.groups[i].low, key) > 0 {
		return nil
	}
	return w.groups[i]
}

// take keeps an operation for the rowsets of the new store. Its group is written anew.
func (w *table) take(op *record.Op, at lsn.LSN, ts mvcc.Timestamp) {
	w.v.budget.Reserve(budget.MemRowSet, opBytes)
	if op.Kind == change.DeleteRange {
		if w.holes && len(w.ranges) == 0 {
			for _, g := range w.groups {
				g.rewrite = true
			}
		}
		w.ranges = append(w.ranges, versions.LoggedRange{Lower: w.keep(op.Key), Upper: w.keep(op.Body), TS: ts, LSN: at})
		return
	}
	w.row.AutoIncrement = max(w.row.AutoIncrement, w.autoValue(op))
	if g := w.group(op.Key); g != nil {
		g.rewrite = true
	}
	w.ops = append(w.ops, versions.LoggedOp{Kind: op.Kind, Key: w.keep(op.Key), Body: w.keep(op.Body), TS: ts, LSN: at})
}

// keep returns a copy of b.
func (w *table) keep(b []byte) []byte {
	if b == nil {
		return nil
	}
	if cap(w.chunk)-len(w.chunk) < len(b) {
		n := max(opChunk, len(b))
		w.chunk = make([]byte, 0, n)
		w.v.budget.Reserve(budget.MemRowSet, int64(n))
	}
	at := len(w.chunk)
	w.chunk = append(w.chunk, b...)
	return w.chunk[at:len(w.chunk):len(w.chunk)]
}

// build copies groups, and writes the others anew, with the operations that were taken.
func (w *table) build(b *blockmanager.Builder) error {
	w.b, w.merged = b, versions.NewRanges(w.ranges)
	slices.SortStableFunc(w.ops, func(a, b versions.LoggedOp) int { return bytes.Compare(a.Key, b.Key) })
	ops := w.ops
	before := func(key []byte, inclusive int) (taken []versions.LoggedOp) {
		n, _ := slices.BinarySearchFunc(ops, inclusive, func(op versions.LoggedOp, inclusive int) int {
			return cmp.Or(bytes.Compare(op.Key, key), -inclusive)
		})
		taken, ops = ops[:n], ops[n:]
		return taken
	}
	for _, g := range w.groups {
		if err := w.merge(&group{}, before(g.low, 0)); err != nil {
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
	if err := w.merge(&group{}, ops); err != nil {
		return err
	}
	if w.holes {
		w.row.FlushedLSN = w.v.last
	}
	w.ops, w.ranges, w.merged, w.chunk = nil, nil, nil, nil
	w.reportRest()
	return w.finish()
}

// copy copies a rowset.
func (w *table) copy(d *damaged.RowSet) {
	m := *d.Metadata
	w.dropRowFile(&m)
	for _, id := range m.Blocks(nil) {
		w.v.whole = append(w.v.whole, w.v.infos[id].BlockInfo)
	}
	w.add(&m)
}

func (w *table) add(m *rowset.Metadata) {
	w.v.rows = append(w.v.rows, blockmanager.Row{Key: meta.RowSetKey(w.row.Number, m.ID), Value: m.Encode()})
}

// merge writes the rows of a group and those that operations begin.
func (w *table) merge(g *group, ops []versions.LoggedOp) error {
	if len(g.sets) == 0 && len(ops) == 0 {
		return nil
	}
	v := w.v
	sc := w.row.Schema
	if w.out == nil {
		w.out = rowset.NewRollingWriter(w.b, sc, w.nextRowSet, v.o.RowSetBytes)
		w.out.RowFiles = w.row.RowFile
	}
	m := versions.Merge{Schema: sc, Options: versions.Options{FillNull: v.options.fillNull,
		Floor: w.row.HistoryFloor}, Sets: g.sets,
		Ops: ops, Ranges: w.merged, Gaps: v.log.gaps, Flushed: w.flushed, Incomplete: w.holes || g.keyless,
		Use: w.out.Append, Conflict: w.conflict, Progress: v.advance,
		Dropped: func(*versions.LoggedOp) { w.dropped++ },
		Lost:    func(_ *rowset.Metadata, l *versions.Lost) { v.lose(w.row.Name, l.Block, l.Rows, lostText(l)) },
	}
	w.newest = max(w.newest, g.max)
	if err := m.Run(v.ctx); err != nil {
		return err
	}
	for _, d := range g.sets { // nothing reads them again
		d.Close()
	}
	return nil
}

func (w *table) nextRowSet() uint64 {
	w.row.NextRowSetID++
	return w.row.NextRowSetID - 1
}

// finish ends the rowsets that are being written. They contain the whole log.
func (w *table) finish() error {
	if w.out == nil {
		return nil
	}
	sets, err := w.out.Finish()
	if err != nil {
		return err
	}
	for _, n := range sets {
		n.IncludedLSN, n.MaxTimestamp = w.v.last, max(n.MaxTimestamp, w.newest)
		w.add(n)
	}
	w.out, w.newest = nil, 0
	return nil
}

// conflict reports a contradiction.
func (w *table) conflict(c *versions.Conflict) {
	if w.conflicts++; w.conflicts > maxReported {
		return
	}
	text := fmt.Sprintf("key %s: when its version in %s ended; one in %s begins at %d",
		celltext.KeyText(w.row.Schema, w.encoder, c.Key), c.Older, c.Newer, uint64(c.To))
	if c.From < c.To {
		text += fmt.Sprintf("; from %d until then the key is absent", uint64(c.From))
	}
	w.v.report(Loss{Table: w.row.Name, Rows: 1, Lost: text})
}

// reportRest reports the number of losses that were not reported one by one.
func (w *table) reportRest() {
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
func lostText(l *versions.Lost) string {
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
