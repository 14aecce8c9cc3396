package tablet

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/operand"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// Operands are the operands of an operation. They are not modified, so that operations may share
// them.
//
// Prepare computes the new cells, with the row locked, from the newest applied state and the earlier
// operations of the batch. What enters the log, memory, and indexes is the update or insert of plain
// cells that results. A row that an upsert inserts has, before its operands, the cells of a row that
// leaves their columns unset; a column that every new row must set is NULL before.
type Operands struct {
	List       []operand.Operand // in the order of the schema, each column once
	CellLimit  int               // of strings and binaries
	BatchLimit int64             // of the bytes that operands of a write batch append to, and append
}

// Bytes returns about how much memory the operands take; of nil, 0.
func (o *Operands) Bytes() (n int64) {
	if o == nil {
		return 0
	}
	for i := range o.List {
		n += int64(len(o.List[i].Cell)) + 48
	}
	return n
}

// Has reports whether there is an operand for a column.
func (o *Operands) Has(id schema.ColumnID) bool {
	return o != nil && slices.ContainsFunc(o.List, func(x operand.Operand) bool { return x.Column == id })
}

// Result is the cell that an operand has given its column.
type Result struct {
	Index  int // of the operation in the write batch
	Column *schema.Column
	Cell   []byte
}

// Results calls use with the results of the operands, by operation and in the order of the schema.
func (w *Write) Results(use func(Result)) {
	for _, r := range w.results {
		use(r)
	}
}

// columnError is the cause of a refusal that is about a column.
type columnError struct {
	column string
	cause  error
}

func (e *columnError) Error() string { return fmt.Sprintf("column %q: %v", e.column, e.cause) }
func (e *columnError) Unwrap() error { return e.cause }

// Refusal returns the error about a row that is refused for a cause which this package has returned.
func Refusal(row int, table, key string, cause error) *change.RowError {
	e := &change.RowError{Row: row, Table: table, Key: key, Cause: cause}
	if c, ok := cause.(*columnError); ok {
		e.Column, e.Cause = c.column, c.cause
	}
	return e
}

// operates returns the column of an operand of op; skip is set if op leaves the column as it is.
func (sc *TableSchema) operates(op *Op, o *operand.Operand, inserts bool) (c int, skip bool, err error) {
	c = sc.Schema.IndexID(o.Column)
	column := &sc.Schema.Columns[c]
	if inserts || !column.Immutable {
		return c, false, nil
	}
	if op.Kind == Upsert || op.Kind == Update {
		return c, true, &columnError{column.Name, ErrImmutable}
	}
	return c, true, nil
}

// operate applies the operands of op to the cells of its row, which it may modify. inserts says that
// op inserts the row.
func (sc *TableSchema) operate(op *Op, cells [][]byte, inserts bool) ([][]byte, error) {
	if op.Operands == nil {
		return cells, nil
	}
	for k := range op.Operands.List {
		o := &op.Operands.List[k]
		c, skip, err := sc.operates(op, o, inserts)
		if err != nil {
			return nil, err
		}
		if skip {
			continue
		}
		column, before := &sc.Schema.Columns[c], cells[c]
		if inserts && column.Required() {
			before = nil
		}
		if cells[c], err = o.Apply(column, before, op.Operands.CellLimit); err != nil {
			return nil, &columnError{column.Name, err}
		}
	}
	return cells, nil
}

// insertOperands returns the row image that operation i inserts, with the results of its operands.
func (w *Write) insertOperands(i int) ([]byte, error) {
	sc, op := w.state.schema, &w.ops[i]
	cells, err := sc.operate(op, sc.RowFormat.AppendCells(nil, op.Body), true)
	if err != nil {
		return nil, err
	}
	for k := range op.Operands.List {
		c := sc.Schema.IndexID(op.Operands.List[k].Column)
		if err := w.addResult(i, k, c, cells[c]); err != nil {
			return nil, err
		}
	}
	return sc.RowFormat.AppendRow(nil, cells), nil
}

// addResult notes the result of operand k of operation i.
func (w *Write) addResult(i, k, c int, cell []byte) error {
	op := &w.ops[i]
	if op.Operands.List[k].Kind == operand.Append {
		if w.grown += int64(len(cell)); w.grown > op.Operands.BatchLimit {
			return fmt.Errorf("the results of Append have %d bytes, limit %d: %w", w.grown, op.Operands.BatchLimit,
				fault.ErrBatchTooLarge)
		}
	}
	w.results = append(w.results, Result{op.Index, &w.state.schema.Schema.Columns[c], cell})
	return nil
}

// updateOperands returns a change list with the columns of list, which may be empty, and those that the
// operands of operation i change in its row, which is at p. Without any it is nil.
func (w *Write) updateOperands(i int, p position, list change.List) (change.List, error) {
	sc, op := w.state.schema, &w.ops[i]
	out := append(w.list[:0], list...)
	if len(list) == 0 {
		out = change.AppendUpdateHeader(out, change.Update)
	}
	header := len(change.AppendUpdateHeader(nil, change.Update))
	var stored [][]byte // of the columns of the operands, once it is read
	for k := range op.Operands.List {
		o := &op.Operands.List[k]
		c, skip, err := sc.operates(op, o, false)
		if err != nil {
			return nil, err
		}
		if skip {
			continue
		}
		before, ok := w.cellBefore(i, c)
		if !ok {
			if stored == nil {
				if stored, err = w.storedCells(i, p); err != nil {
					return nil, err
				}
			}
			before = stored[k]
		}
		cell, err := o.Apply(&sc.Schema.Columns[c], before, op.Operands.CellLimit)
		if err != nil {
			return nil, &columnError{sc.Schema.Columns[c].Name, err}
		}
		if err := w.addResult(i, k, c, cell); err != nil {
			return nil, err
		}
		if before == nil || !bytes.Equal(before, cell) {
			out = change.AppendColumn(out, o.Column, cell)
		}
	}
	if w.list = out; len(out) == header {
		return nil, nil
	}
	w.reserveList(len(out))
	start := len(w.lists)
	w.lists = append(w.lists, out...)
	return change.List(w.lists[start:len(w.lists):len(w.lists)]), nil
}

// cellBefore returns the cell of column c that an earlier operation of the batch on the key of
// operation i has set, if one has.
func (w *Write) cellBefore(i, c int) (cell []byte, ok bool) {
	if len(w.before) == 0 {
		return nil, false
	}
	sc := w.state.schema
	for j := w.before[i]; j >= 0; j = w.before[j] {
		switch to := &w.targets[j]; to.kind {
		case change.Insert, change.Replace:
			return sc.RowFormat.Cell(to.image(&w.ops[j]), c), true
		case change.Update:
			if cell, ok := to.list.Find(sc.Schema.Columns[c].ID); ok {
				return cell, true
			}
		}
	}
	return nil, false
}

// storedCells returns the newest applied cells of the columns of the operands of operation i, whose row
// is live at p.
func (w *Write) storedCells(i int, p position) ([][]byte, error) {
	sc, list := w.state.schema, w.ops[i].Operands.List
	columns := make([]int, len(list))
	for k := range list {
		columns[k] = sc.Schema.IndexID(list[k].Column)
	}
	if p.mem == nil {
		cells, _, err := p.set.Get(w.probes[i], mvcc.Everything, columns, nil)
		return cells, err
	}
	image, _ := p.mem.NewestRow(w.ops[i].Key)
	cells := make([][]byte, len(list))
	for k, c := range columns {
		cells[k] = sc.RowFormat.Cell(image, c)
	}
	return cells, nil
}

// convert converts the operands to another version of the schema: without those for columns that it
// does not have.
func (o *Operands) convert(to *TableSchema) *Operands {
	if o == nil {
		return nil
	}
	out := *o
	out.List = slices.DeleteFunc(slices.Clone(o.List), func(x operand.Operand) bool {
		return to.Schema.IndexID(x.Column) < 0
	})
	if len(out.List) == 0 {
		return nil
	}
	return &out
}
