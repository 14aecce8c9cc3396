package tablet

import (
	"context"
	"fmt"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/meta"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// Alter changes the table's schema and settings: edit gets a copy of the metadata row and changes
// Schema, NextColumnID, HistorySec, RowFile, Comment and Expiry, to which it may add an entry from
// mvcc.Max, which stands for the alteration's timestamp. If it returns an error, nothing changes.
// Readers continue with the schema that they began with. The table's writers wait while the rest of
// memory, about 1 MiB, is written and committed. Schemas change rarely, and writers would have to
// start over with the new schema anyway.
//
// Memory is flushed first, at the latest in the metadata commit of the new row. So the files
// contain every operation of an older schema that is in the log. Files identify columns by ID, so
// replay never has to convert an old operation:
//
//	log      ── 0 0 0 0 ──┤ alter ├── 1 1 1 ──    schema versions
//	flushed LSN           ▲
//
// A crash before the commit leaves the old schema and the log; a crash after it leaves the new
// schema, and replay skips the operations of the old one. Source: design §4.1, §5.
//
// edit returns the columns that get another type. All rows are then rewritten with writers blocked.
// Before that, while writers continue, the table is compacted: of rowsets that do not overlap, the
// rewriting has one in memory at a time. It and the new schema are one metadata commit, so a crash
// leaves the rows and the schema from before, or those from after. A value that does not fit is
// ErrRow, and nothing changes.
func (t *Tablet) Alter(ctx context.Context, edit func(row *meta.Table) ([]Retype, error)) error {
	return t.exclusively(ctx, func() error { return t.alter(ctx, edit) })
}

// alter is Alter for the owner of the table, which protects the metadata row from other changes.
func (t *Tablet) alter(ctx context.Context, edit func(row *meta.Table) ([]Retype, error)) error {
	old := t.Metadata()
	row := *old
	retypes, err := edit(&row)
	if err != nil {
		return err
	}
	row.SchemaVersion++
	if len(retypes) > 0 {
		if _, err := t.compact(ctx); err != nil {
			return err
		}
	}
	if err := t.flushBefore(ctx); err != nil {
		return err
	}
	j, err := t.beginBlocked(ctx)
	if err != nil {
		return err
	}
	defer j.end()
	if n := len(row.Expiry); n > 0 && row.Expiry[n-1].From == mvcc.Max {
		c := ruleChange{j: j, row: &row}
		defer c.end()
		if err := c.changeRule(ctx); err != nil {
			return err
		}
	}
	e := &j.edit
	e.Confirm = true // the log does not contain schema changes
	tableSchema := tableSchemaOf(&row)
	tableSchema.replaced = replacedColumns(j.schema, retypes)
	e.Alter, e.Mem = &alteration{row: &row, schema: tableSchema}, t.newMem(tableSchema)
	write := j.writeMemory
	if len(retypes) > 0 {
		if e.Alter.retype, err = newRetyper(t, j.schema.Schema, row.Schema, retypes); err != nil {
			return err
		}
		j.takeAll()
		write = j.writeRetyped
	} else {
		j.takeMemory()
	}
	switch {
	case len(e.Removed) > 0:
		e.Kind, e.Why = compaction.Merge, "a column gets another type"
	case e.Frozen != nil:
		e.Kind, e.Why = compaction.Flush, "the schema changes"
	case len(e.Replaced) > 0:
		e.Kind, e.Why = compaction.DeltaFlush, "the schema changes"
	}
	if e.Frozen != nil || len(e.Removed) > 0 {
		e.Retained = t.opts.Store.Retained(t, longer(old.HistorySec, row.HistorySec))
	}
	if e.Kind != "" {
		j.announce()
	}
	if err = write(ctx); err == nil {
		if row.RowFile == schema.NoRowFile {
			j.dropRowFiles()
		}
		err = j.commit()
	}
	if e.Kind != "" {
		j.record(err)
	}
	return err
}

// dropRowFiles makes the edit remove the row files and key directories of all rowsets. Their cells
// are in the columns' files too.
func (j *job) dropRowFiles() {
	e := &j.edit
	replaced := e.replaced()
	var rest []Replaced
	for _, d := range j.st.tree.Sets {
		m := d.Metadata()
		if r, edited := replaced[d]; r != nil {
			m = r.Row
		} else if edited {
			continue // it is removed
		}
		if m.RowFile == 0 && m.KeyDirectory == 0 {
			continue
		}
		row := *m
		row.DropRowFile()
		if r := replaced[d]; r != nil {
			r.Row = &row
		} else {
			rest = append(rest, Replaced{Set: d, Row: &row})
		}
	}
	e.Replaced = append(e.Replaced, rest...)
}

// maxBlockedBytes limits how much of memory Alter writes with writers blocked. Writes that are
// concurrent with the preceding flush may add to it.
const maxBlockedBytes = 1 << 20

// flushBefore flushes memory that is too large to be written with writers blocked. It also flushes
// a frozen MemRowSet left by a failed flush, because that MemRowSet has a different cutover point.
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

// longer returns the longer of two retentions in seconds: an Alter drops only history that neither
// retention keeps.
func longer(a, b int64) int64 {
	if a < 0 || b < 0 {
		return meta.KeepForever
	}
	return max(a, b)
}

// convert converts operations from one version of the schema to another. Columns are matched by ID,
// and the type of an ID never changes. Cells of dropped columns are removed; added columns are not
// set. An update with no column left has an empty Body. Errors: ErrConflict if a column of from has
// another type in to, also if no operation has the column; the operations are then unchanged.
func convert(ops []Op, from, to *TableSchema) error {
	for _, id := range to.replaced {
		if i := from.Schema.IndexID(id); i >= 0 {
			return fmt.Errorf("column %q was given another type after the operation was added: %w",
				from.Schema.Columns[i].Name, fault.ErrConflict)
		}
	}
	source := make([]int, len(to.Schema.Columns)) // by column of to: its index in from; −1 = it was added
	for i := range source {
		source[i] = from.Schema.IndexID(to.Schema.Columns[i].ID)
	}
	for i := range ops {
		op := &ops[i]
		op.Operands = op.Operands.convert(to)
		switch op.Kind {
		case Update, UpdateIgnore:
			op.Body, _ = filterList(op.Body, func(id schema.ColumnID) (bool, error) {
				return to.Schema.IndexID(id) >= 0, nil
			})
		case Insert, InsertIgnore, Upsert, UpsertIgnore:
			op.convertRow(source, from, to)
		}
	}
	return nil
}

// Converted returns a copy of op, converted from one version of the schema to another. Errors:
// ErrConflict if a column of from has another type in to.
func Converted(op *Op, from, to *TableSchema) (*Op, error) {
	ops := []Op{*op}
	if err := convert(ops, from, to); err != nil {
		return nil, err
	}
	return &ops[0], nil
}

// convertRow converts the row image of an insert or upsert to another version of the schema.
// Columns that were not set keep the default that from had when the row was added to its batch;
// added columns get the cell that to has for an unset column. source has, for each column of to,
// its index in from; −1 = it was added.
func (op *Op) convertRow(source []int, from, to *TableSchema) {
	cells := make([][]byte, len(source))
	set, unset := batch.MakeBitmap(len(source)), false
	op.Lacks = ""
	for i, j := range source {
		c := &to.Schema.Columns[i]
		if j < 0 {
			cells[i] = c.Unset()
		} else {
			cells[i] = from.RowFormat.Cell(op.Body, j)
			if op.Set == nil || op.Set.Get(j) {
				set.Set(i)
				continue
			}
			c = &from.Schema.Columns[j]
		}
		if unset = true; c.Required() && op.Lacks == "" && !op.Operands.Has(to.Schema.Columns[i].ID) {
			op.Lacks = to.Schema.Columns[i].Name
		}
	}
	op.Set = nil
	if unset {
		op.Set = set
	}
	op.Body = to.RowFormat.AppendRow(nil, cells)
}

// filterList returns an update of the columns for which keep returns true, or nil if it returns
// true for none. It stops at keep's first error.
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
