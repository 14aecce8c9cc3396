package tablet

import (
	"context"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/internal/meta"
	"github.com/oribi-db/oribi/schema"
)

// Alter changes the table's schema and settings: edit gets a copy of the metadata row and changes
// Schema, NextColumnID, HistorySec and Comment; what it refuses changes nothing. Readers go on with
// the schema that they began with. Writers of the table wait while the last of memory is written
// and committed, 1 MiB or so; a schema changes seldom, and they would have to begin again with the
// new one anyway.
//
// What memory holds goes to files first, at the latest in the metadata commit of the new row. So
// all that the log has of an older schema is in files, which go by column IDs, and replay never has
// to turn an old operation into a new one:
//
//	log      ── 0 0 0 0 ──┤ alter ├── 1 1 1 ──    schema versions
//	flushed LSN           ▲
//
// A crash before the commit leaves the old schema and the log; one after it the new schema, and
// replay passes over what is of the old. Source: design §4.1, §5.
func (t *Tablet) Alter(ctx context.Context, edit func(row *meta.Table) error) (err error) {
	t.exclusively(func() { err = t.alter(ctx, edit) })
	return err
}

// alter is Alter under the work lock, without which nobody changes the row.
func (t *Tablet) alter(ctx context.Context, edit func(row *meta.Table) error) error {
	old := t.Metadata()
	row := *old
	if err := edit(&row); err != nil {
		return err
	}
	row.SchemaVersion++
	if err := t.flushBefore(ctx); err != nil {
		return err
	}
	j, err := t.beginBlocked(ctx)
	if err != nil {
		return err
	}
	defer j.end()
	j.takeMemory()
	e := &j.edit
	e.Confirm = true // the log does not contain schema changes
	shape := newShape(row.Schema, row.SchemaVersion)
	e.Alter = &alteration{row: &row, shape: shape, mem: t.newMem(shape)}
	if e.Frozen != nil {
		e.Kind, e.Why = compaction.Flush, "the schema changes"
		e.Floor = t.opts.Store.HistoryFloor(t, longer(old.HistorySec, row.HistorySec))
	} else if len(e.Replaced) > 0 {
		e.Kind, e.Why = compaction.DeltaFlush, "the schema changes"
	}
	if err = j.writeMemory(ctx); err == nil {
		err = j.commit()
	}
	if e.Kind != "" {
		j.record(err)
	}
	return err
}

// heldBytes is how much of memory an Alter writes with writers held, at most, or what comes while
// it flushes the rest.
const maxBlockedBytes = 1 << 20

// flushBefore flushes what an Alter should not keep writers waiting for, and what an earlier flush
// has left: that is of another moment.
func (t *Tablet) flushBefore(ctx context.Context) error {
	st, err := t.acquire()
	if err != nil {
		return err
	}
	left := st.frozen != nil
	st.release()
	if mem, deltas := t.MemBytes(); left || mem+deltas > maxBlockedBytes {
		_, err = t.flush(ctx)
	}
	return err
}

// longer is the longer of two retentions in seconds: what one of them still keeps an Alter does not
// drop.
func longer(a, b int64) int64 {
	if a < 0 || b < 0 {
		return meta.KeepForever
	}
	return max(a, b)
}

// convert brings operations that were encoded by one version of the schema to another. Columns are
// matched by their IDs, whose types never change: cells of dropped columns go, an added column is
// one that the operation does not set.
//
// An update of which no column is left has an empty Body.
func convert(ops []Op, from, to *Shape) {
	source := make([]int, len(to.Schema.Columns)) // by column of to: its index in from; −1 = it was added
	for i := range source {
		source[i] = from.Schema.IndexID(to.Schema.Columns[i].ID)
	}
	for i := range ops {
		switch op := &ops[i]; op.Kind {
		case Update, UpdateIgnore:
			op.Body, _ = filterList(op.Body, func(id schema.ColumnID) (bool, error) { return to.Schema.IndexID(id) >= 0, nil })
		case Insert, InsertIgnore, Upsert, UpsertIgnore:
			op.convertRow(source, from, to)
		}
	}
}

// Converted is op, encoded by from, as to encodes it.
func Converted(op *Op, from, to *Shape) *Op {
	ops := []Op{*op}
	convert(ops, from, to)
	return &ops[0]
}

// convertRow brings the row image of an insert or upsert to another version of the schema. What an
// upsert did not set, and all that was added, is what the new version makes of an unset column.
func (op *Op) convertRow(source []int, from, to *Shape) {
	cells := make([][]byte, len(source))
	set, unset := batch.MakeBitmap(len(source)), false
	op.Lacks = ""
	for i, j := range source {
		if j >= 0 && (op.Set == nil || op.Set.Get(j)) {
			cells[i] = from.RowFormat.Cell(op.Body, j)
			set.Set(i)
			continue
		}
		c := &to.Schema.Columns[i]
		if cells[i], unset = c.Unset(), true; c.Required() && op.Lacks == "" {
			op.Lacks = c.Name
		}
	}
	op.Set = nil
	if unset {
		op.Set = set
	}
	op.Body = to.RowFormat.AppendRow(nil, cells)
}

// filterList makes an update of the columns that keep wants; nil when there is none. An error of
// keep ends it.
func filterList(list change.List, keep func(schema.ColumnID) (bool, error)) (change.List, error) {
	out := change.AppendUpdateHeader(make(change.List, 0, len(list)), change.Update)
	empty := len(out)
	for r := list.Columns(); ; {
		id, cell, ok := r.Next()
		if !ok {
			break
		}
		want, err := keep(id)
		if err != nil {
			return nil, err
		}
		if want {
			out = change.AppendColumn(out, id, cell)
		}
	}
	if len(out) == empty {
		return nil, nil
	}
	return out, nil
}
