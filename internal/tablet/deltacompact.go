package tablet

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/rewrite"
	"github.com/oribi-db/oribi/rowset"
	"github.com/oribi-db/oribi/schema"
)

// A delta compaction rewrites files of one rowset, whose rows keep their IDs. It reads no memory
// store, so it needs no cutover point: concurrent changes go to the delta mem store, which stays,
// and the included LSN stays:
//
//	claims      ├──────────────────────────────────────────────┤   no delta flush, no other compaction
//	gate                                          ├────────────┤   of the rowset; writers wait for the
//	            read redos and base, write blocks   commit, install  metadata commit
//
// The rowset's successor takes over the delta mem store as it is when the gate is held. Running
// readers keep the old rowset, whose files stay open.

// CompactMinor merges the redo files of each rowset into one.
func (t *Tablet) CompactMinor(ctx context.Context) (res compaction.Result, err error) {
	return t.eachRowSet(func(id uint64) (int64, error) {
		return t.compactDeltas(ctx, compaction.DeltaChoice{RowSet: id, Kind: compaction.MinorDelta, Why: requested})
	})
}

// CompactMajor applies the redos of the named columns to the base data of each rowset; empty means
// all columns. Errors: ErrNoColumn for a column that the table does not have; ErrSchema for a key
// column.
func (t *Tablet) CompactMajor(ctx context.Context, columns []string) (res compaction.Result, err error) {
	if _, err := columnIndexes(t.Schema().Schema, columns); err != nil {
		return compaction.Result{}, fmt.Errorf("table %q: %w", t.Name(), err)
	}
	return t.eachRowSet(func(id uint64) (int64, error) {
		return t.compactDeltas(ctx,
			compaction.DeltaChoice{RowSet: id, Kind: compaction.MajorDelta, Columns: columns, Why: requested})
	})
}

// Recompress rewrites the columns of each rowset that take less space in the form that the schema
// wants of rowsets at rest.
func (t *Tablet) Recompress(ctx context.Context) (res compaction.Result, err error) {
	return t.eachRowSet(func(id uint64) (int64, error) {
		return t.compactDeltas(ctx, compaction.DeltaChoice{RowSet: id, Kind: compaction.Recompress, Why: requested})
	})
}

// Savings returns the shares of bytes that recompressing each column for schema.LZ4HC and for
// schema.Dense would save, by samples of the largest rowset; 0 if it would not pay.
func (t *Tablet) Savings(ctx context.Context) (lz4hc, dense []float64, err error) {
	st, err := t.acquire()
	if err != nil {
		return nil, nil, err
	}
	defer st.release()
	s := t.Schema().Schema
	lz4hc, dense = make([]float64, len(s.Columns)), make([]float64, len(s.Columns))
	if len(st.tree.Sets) == 0 {
		return lz4hc, dense, nil
	}
	d := slices.MaxFunc(st.tree.Sets, func(a, b *rowset.DiskRowSet) int {
		return cmp.Compare(a.Metadata().Bytes, b.Metadata().Bytes)
	})
	for i := range d.Schema.Columns {
		f, err := d.File(i)
		if err == nil {
			err = ctx.Err()
		}
		k := s.IndexID(d.Schema.Columns[i].ID)
		if err == nil && f != nil && k >= 0 {
			lz4hc[k], dense[k], err = d.Savings(i)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("table %q: %w", t.Name(), err)
		}
	}
	return lz4hc, dense, nil
}

// requested is the reason recorded for a compaction that a caller requested.
const requested = "requested"

// CollectUndos drops history older than the history floor, as far as possible without rewriting
// files: whole undo files, and rowsets in which every row is deleted or expired.
func (t *Tablet) CollectUndos(ctx context.Context) (res compaction.Result, err error) {
	res.RowSetsBefore = len(t.Info().RowSets)
	res.BytesWritten, err = t.collectUndos(ctx, requested)
	res.RowSetsAfter = len(t.Info().RowSets)
	return res, err
}

// CompactDeltas runs a chosen delta compaction and returns the number of bytes written. It does
// nothing if the rowset no longer exists.
func (t *Tablet) CompactDeltas(ctx context.Context, c compaction.DeltaChoice) (bytes int64, err error) {
	if c.Kind == compaction.UndoGC {
		return t.collectUndos(ctx, c.Why)
	}
	return t.compactDeltas(ctx, c)
}

// eachRowSet calls work for each rowset in turn; each makes its own commit.
func (t *Tablet) eachRowSet(work func(id uint64) (int64, error)) (res compaction.Result, err error) {
	sets := t.Info().RowSets
	res.RowSetsBefore = len(sets)
	for _, s := range sets {
		var n int64
		if n, err = work(s.ID); err != nil {
			break
		}
		res.BytesWritten += n
	}
	res.RowSetsAfter = len(t.Info().RowSets)
	return res, err
}

// columnIndexes returns the indexes of columns for a major compaction; nil for no names.
func columnIndexes(s *schema.Schema, names []string) ([]int, error) {
	if len(names) == 0 {
		return nil, nil
	}
	cols, err := s.Project(names)
	if err != nil {
		return nil, err
	}
	for _, c := range cols {
		if c < s.Keys {
			return nil, fmt.Errorf("column %q is in the key, whose cells never change: %w", s.Columns[c].Name,
				fault.ErrSchema)
		}
	}
	return cols, nil
}

// compactDeltas runs a minor or major compaction of one rowset, or recompresses it, and returns the
// number of bytes written.
func (t *Tablet) compactDeltas(ctx context.Context, c compaction.DeltaChoice) (bytes int64, err error) {
	err = t.compacting(ctx, []uint64{c.RowSet}, func() error {
		bytes, err = t.rewriteDeltas(ctx, c)
		return err
	})
	return bytes, err
}

// rewriteDeltas is compactDeltas for the owner of the rowset.
func (t *Tablet) rewriteDeltas(ctx context.Context, c compaction.DeltaChoice) (bytes int64, err error) {
	j, err := t.begin()
	if err != nil {
		return 0, err
	}
	defer j.end()
	i := slices.IndexFunc(j.st.tree.Sets, func(d *rowset.DiskRowSet) bool { return d.Metadata().ID == c.RowSet })
	if i < 0 {
		return 0, nil
	}
	e := &j.edit
	e.Kind, e.Why = c.Kind, c.Why
	e.Replaced = []Replaced{{Set: j.st.tree.Sets[i]}}
	j.detach()
	row, err := j.writeDeltaFiles(ctx, c)
	switch {
	case err != nil:
		err = fmt.Errorf("table %q: %w", t.Name(), inRowSet(c.RowSet, err))
		if j.number == 0 { // it failed before there was anything to do
			j.announce()
		}
	case row == nil:
		return 0, nil
	default:
		e.Replaced[0].Row = row
		err = j.commitFiles()
	}
	j.record(err)
	return e.BytesWritten, err
}

// writeDeltaFiles writes the new files of the rowset; nil when there is nothing to do.
func (j *job) writeDeltaFiles(ctx context.Context, c compaction.DeltaChoice) (*rowset.Metadata, error) {
	t, e, d := j.t, &j.edit, j.edit.Replaced[0].Set
	run := rewrite.DeltaJob{Set: d, State: d.State(), Creation: j.output(ctx), Begin: func(bytes int64) {
		e.BytesRead = bytes
		j.announce()
	}}
	if c.Kind == compaction.MinorDelta {
		return rewrite.Minor(ctx, run)
	}
	cols, err := columnIndexes(d.Schema, c.Columns)
	if err != nil {
		return nil, err
	}
	e.Retained = t.opts.Store.Retained(t, t.Metadata().HistorySec)
	run.Retained = e.Retained
	run.RowFile = t.Metadata().RowFile
	n := len(cols)
	switch {
	case c.Kind == compaction.Recompress:
		n = 1 // one column after another
	case cols == nil:
		n = len(rewrite.UpdatedColumns(d.Schema, run.State.Deltas))
	}
	if memory, err := d.HistoriesBytes(); err == nil { // an error is reported by the compaction
		memory += rowset.WriterBytes(d.Schema)
		defer reserve(t.opts.GrowMerge, memory*int64(n)/int64(len(d.Schema.Columns)))()
	}
	var row *rowset.Metadata
	if c.Kind == compaction.Recompress {
		row, err = rewrite.Recompress(ctx, run)
	} else {
		row, err = rewrite.Major(ctx, run, cols)
	}
	if row != nil {
		e.RowsRead, e.RowsWritten = row.Rows, row.Rows
	}
	return row, err
}

// commitFiles commits an edit that was computed without a cutover point.
func (j *job) commitFiles() error {
	// Sync before writers are blocked, so that they do not wait for most of the I/O.
	if err := j.creation.Sync(); err != nil {
		return err
	}
	if err := j.blockWriters(); err != nil {
		return err
	}
	return j.commit()
}

// collectUndos makes one commit for all rowsets that no other compaction owns.
func (t *Tablet) collectUndos(ctx context.Context, why string) (bytes int64, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	err = t.compactingRest(ctx, func(ids []uint64) error {
		bytes, err = t.dropUndos(ctx, ids, why)
		return err
	})
	return bytes, err
}

// dropUndos is collectUndos for the owner of rowsets.
func (t *Tablet) dropUndos(ctx context.Context, ids []uint64, why string) (bytes int64, err error) {
	j, err := t.begin()
	if err != nil {
		return 0, err
	}
	defer j.end()
	e := &j.edit
	e.Kind, e.Why = compaction.UndoGC, why
	e.Retained = t.opts.Store.Retained(t, t.Metadata().HistorySec)
	for _, d := range j.st.tree.Sets {
		s := d.State()
		if !slices.Contains(ids, s.Meta.ID) {
			continue
		}
		if j.schema.gone(d, e.First()) {
			e.Removed = append(e.Removed, d)
		} else if row := rewrite.DropUndos(s, e.First()); row != nil {
			e.Replaced = append(e.Replaced, Replaced{Set: d, Row: row})
		}
	}
	if len(e.Removed)+len(e.Replaced) == 0 {
		return 0, nil
	}
	if slices.ContainsFunc(e.Removed, func(d *rowset.DiskRowSet) bool { return !d.Tracker().Mem.Empty() }) {
		// The deletes in memory must be durable before their rowset is gone: a power failure that
		// loses them would lose the rows instead. Replay does not find the rows of these deletes.
		if err := t.opts.Store.Wait(ctx, t.opts.Store.LastLSN()); err != nil {
			return 0, err
		}
	}
	j.announce()
	err = j.commitFiles()
	j.record(err)
	return e.BytesWritten, err
}
