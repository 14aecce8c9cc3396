package tablet

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/celltext"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/rewrite"
	"github.com/oribi-db/oribi/schema"
)

// Retype replaces a column by one of another type, with a new ID in the same place. The type of an
// ID never changes, so no file, record of the log, or write batch is ever read with a wrong type.
type Retype struct {
	From, To schema.ColumnID
	Convert  Conversion
}

// Conversion appends to dst the cell of the new column for a cell of the old one, which is not NULL.
type Conversion func(dst, cell []byte) ([]byte, error)

// takeAll takes all rows: the MemRowSet, and the rowsets with their delta mem stores. Writers are
// blocked.
func (j *job) takeAll() {
	j.takeMemRowSet()
	j.edit.Removed = slices.Clone(j.st.tree.Sets)
}

// replacedColumns returns the columns that others of another type have replaced, after an alteration
// of s.
func replacedColumns(s *TableSchema, retypes []Retype) []schema.ColumnID {
	ids := slices.Clip(s.replaced)
	for _, r := range retypes {
		ids = append(ids, r.From)
	}
	return ids
}

// writeRetyped rewrites all rows of the table, with all versions that history keeps, for an Alter that
// has blocked writers. The MemRowSet is frozen.
func (j *job) writeRetyped(ctx context.Context) error {
	inputs, rows, err := j.removed()
	if err != nil {
		return err
	}
	if f := j.edit.Frozen; f != nil {
		inputs = append(inputs, j.dropping(rewrite.NewMemInput(f.mem.Histories(f.snap)), nil))
		rows += int64(f.mem.Len())
	}
	if len(inputs) == 0 {
		return nil
	}
	return j.writeRows(ctx, inputs, rows, j.at.lsn)
}

// retyper converts rows to the new types of some columns.
type retyper struct {
	t       *Tablet
	from    *schema.Schema
	to      *schema.Schema
	convert []Conversion // by column; nil = unchanged
	out     change.Rows
	batch   batch.RecordBatch
	vectors []batch.Vector
	undo    []change.Delta
	redo    []change.Delta
	set     []bool // columns of a list
	buf     []byte // cells of a window
}

// newRetyper returns the retyper of an alteration. Its schema to has the columns of from, with the
// new ones in the places of those that they replace; the rest of the alteration follows when the
// rowsets are opened with the altered schema.
func newRetyper(t *Tablet, from, altered *schema.Schema, list []Retype) (*retyper, error) {
	r := &retyper{t: t, from: from, convert: make([]Conversion, len(from.Columns)),
		set:     make([]bool, len(from.Columns)),
		vectors: make([]batch.Vector, len(from.Columns)), buf: make([]byte, 0, 1<<10)}
	columns := slices.Clone(from.Columns)
	for _, re := range list {
		i, k := from.IndexID(re.From), altered.IndexID(re.To)
		if i < 0 || k < 0 { // it was dropped by the same alteration
			continue
		}
		name := columns[i].Name
		columns[i] = altered.Columns[k]
		columns[i].Name = name
		r.convert[i] = re.Convert
	}
	var err error
	if r.to, err = schema.New(columns, from.Keys); err != nil {
		return nil, err
	}
	r.batch.Schema = r.to.Columns
	return r, nil
}

// rows converts rows, which stay valid as long as the result is used: until the next call. The
// error is about the first row with a value that does not fit.
func (r *retyper) rows(in *change.Rows) (*change.Rows, error) {
	r.buf = r.buf[:0]
	r.batch.Len, r.batch.Selection = in.Batch.Len, in.Batch.Selection
	r.batch.Columns = append(r.batch.Columns[:0], in.Batch.Columns...)
	end := len(in.Keys) // the row of err
	var err error
	for i, convert := range r.convert {
		if convert == nil {
			continue
		}
		v, src := &r.vectors[i], in.Batch.Columns[i]
		v.Type = r.to.Columns[i].Type
		v.Reset(0)
		for row := range end {
			cell, e := r.cell(i, src.Cell(row))
			if e != nil {
				end, err = row, r.misfit(in, row, i, src.Cell(row), e)
				break
			}
			v.AppendCell(cell)
		}
		r.batch.Columns[i] = v
	}
	r.out = change.Rows{Batch: &r.batch, Keys: in.Keys}
	for _, deltas := range []struct {
		in  []change.Delta
		out *[]change.Delta
		mem *[]change.Delta
	}{{in.Undo, &r.out.Undo, &r.undo}, {in.Redo, &r.out.Redo, &r.redo}} {
		converted := (*deltas.mem)[:0]
		for _, d := range deltas.in {
			if int(d.Row) >= end {
				break
			}
			list, e := r.list(d.List)
			if e != nil {
				end, err = int(d.Row), r.misfitBefore(in, d, e)
				break
			}
			d.List = list
			converted = append(converted, d)
		}
		*deltas.out, *deltas.mem = converted, converted
	}
	return &r.out, err
}

// cell converts a cell of column i. The result is in r.buf, whose earlier memory stays valid when it
// grows.
func (r *retyper) cell(i int, cell []byte) ([]byte, error) {
	if cell == nil {
		return nil, nil
	}
	from := len(r.buf)
	buf, err := r.convert[i](r.buf, cell)
	if err != nil {
		return nil, err
	}
	r.buf = buf
	return buf[from:len(buf):len(buf)], nil
}

// listError is a cell in a change list that cannot be converted.
type listError struct {
	column int
	cell   []byte
	cause  error
}

func (e *listError) Error() string { return e.cause.Error() }

// list converts a change list. It returns an update without the columns of another type unchanged.
// A reinsert sets them even if they were added after it was written, and had their read default.
func (r *retyper) list(list change.List) (change.List, error) {
	if list.Kind() == change.Delete {
		return list, nil
	}
	out, found := change.AppendUpdateHeader(nil, list.Kind()), 0
	clear(r.set)
	for c := list.Columns(); ; {
		id, cell, ok := c.Next()
		if !ok {
			break
		}
		if i := r.from.IndexID(id); i >= 0 && r.convert[i] != nil {
			converted, err := r.cell(i, cell)
			if err != nil {
				return nil, &listError{i, cell, err}
			}
			id, cell, r.set[i] = r.to.Columns[i].ID, converted, true
			found++
		}
		out = change.AppendColumn(out, id, cell)
	}
	if list.Kind() == change.Reinsert {
		for i, convert := range r.convert {
			c := &r.from.Columns[i]
			if convert == nil || r.set[i] || c.ReadDefault == nil && !c.Nullable {
				continue
			}
			converted, err := r.cell(i, c.ReadDefault)
			if err != nil {
				return nil, &listError{i, c.ReadDefault, err}
			}
			out = change.AppendColumn(out, r.to.Columns[i].ID, converted)
			found++
		}
	}
	if found == 0 {
		return list, nil
	}
	return out, nil
}

// misfit returns the error for a cell of the newest version of a row.
func (r *retyper) misfit(in *change.Rows, row, column int, cell []byte, cause error) error {
	when := "since the history begins"
	for _, d := range in.Undo {
		if int(d.Row) == row {
			when = "since " + d.TS.String()
			break
		}
	}
	return r.error(in.Keys[row], column, cell, when, cause)
}

// misfitBefore returns the error for a cell of an earlier version of a row.
func (r *retyper) misfitBefore(in *change.Rows, d change.Delta, cause error) error {
	e, ok := cause.(*listError)
	if !ok {
		return cause
	}
	return r.error(in.Keys[d.Row], e.column, e.cell, "before "+d.TS.String(), e.cause)
}

func (r *retyper) error(key []byte, column int, cell []byte, when string, cause error) error {
	c := &r.from.Columns[column]
	value := celltext.Printable(string(celltext.AppendJSON(nil, c, cell)))
	if len(value) > 64 {
		value = strings.ToValidUTF8(value[:64], "") + "…"
	}
	return fmt.Errorf("column %q: key %s, %s: %s does not fit %s: %w: %w", c.Name, r.t.KeyText(key), when,
		value, r.to.Columns[column].TypeName(), cause, fault.ErrRow)
}
