package tablet

import (
	"bytes"
	"fmt"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/bloom"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// Check is an operation that changes nothing: the batch is refused unless the Op's Condition is met
// by the row in the newest applied state, after the batch's earlier operations on it. The row stays
// locked until the batch is applied, so check and changes are one step.
const Check OpKind = DeleteIgnore + 1

// Purge is an operation that deletes a row if it is expired. Reads of the table do not change by it.
const Purge OpKind = Check + 1

// Condition is a condition on a row.
type Condition struct {
	Absent bool // the row does not exist; otherwise it exists and Filter is true for it
	Filter batch.Filter
}

var errNotMet = fmt.Errorf("condition not met: %w", fault.ErrConflict)

// holds reports whether the filter is true for a row, given its cells, one for each column of s. A
// dropped column counts as NULL.
func (c *Condition) holds(s *schema.Schema, cells [][]byte) bool {
	return c.Filter.EvalRow(func(id schema.ColumnID) []byte {
		if i := s.IndexID(id); i >= 0 {
			return cells[i]
		}
		return nil
	})
}

// check returns an error that wraps ErrConflict if the condition of operation i is not met. The
// operation's key is at p. again reports whether the batch has an earlier operation on the key.
func (w *Write) check(i int, p position, again bool) error {
	c, exists := w.ops[i].Check, w.exists(p)
	switch {
	case c.Absent && exists:
		return fmt.Errorf("condition not met: the row exists: %w", fault.ErrConflict)
	case c.Absent:
		return nil
	case !exists:
		return fmt.Errorf("condition not met: the row does not exist: %w", fault.ErrConflict)
	}
	if c.Filter.All() {
		return nil
	}
	columns := w.state.schema.Schema
	for test := range c.Filter.Tests() {
		if columns.IndexID(test.ID) < 0 {
			return fmt.Errorf("condition on column %q, which was dropped: %w", test.Column, fault.ErrSchema)
		}
	}
	var cells [][]byte
	var err error
	if again {
		cells, err = w.cellsBefore(i)
	} else {
		cells, err = w.cellsAt(w.ops[i].Key, p)
	}
	if err != nil {
		return err
	}
	if !c.holds(columns, cells) {
		return errNotMet
	}
	return nil
}

// cellsAt returns all cells of the newest applied state of a row, which is live at p.
func (w *Write) cellsAt(key []byte, p position) ([][]byte, error) {
	tableSchema := w.state.schema
	if p.mem != nil {
		row, _ := p.mem.NewestRow(key)
		return tableSchema.RowFormat.AppendCells(nil, row), nil
	}
	cells, _, err := p.set.Get(bloom.MakeProbe(key), mvcc.Everything, tableSchema.All, nil)
	return cells, err
}

// cellsBefore returns all cells of the row of operation i after the earlier operations of the
// batch, which leave the row live.
func (w *Write) cellsBefore(i int) (cells [][]byte, err error) {
	key, tableSchema := w.ops[i].Key, w.state.schema
	p, err := w.state.find(bloom.MakeProbe(key))
	if err != nil {
		return nil, err
	}
	if p.live {
		if cells, err = w.cellsAt(key, p); err != nil {
			return nil, err
		}
	}
	for j := range w.ops[:i] {
		to := &w.targets[j]
		if to.kind == 0 || !bytes.Equal(w.ops[j].Key, key) {
			continue
		}
		switch to.kind {
		case change.Insert, change.Replace:
			cells = tableSchema.RowFormat.AppendCells(nil, to.image(&w.ops[j]))
		case change.Update:
			tableSchema.set(cells, to.list)
		}
	}
	return cells, nil
}

// set sets the cells of the columns in a list. cells has one for each column of the schema.
func (sc *TableSchema) set(cells [][]byte, list change.List) {
	columns := list.Columns()
	for id, cell, ok := columns.Next(); ok; id, cell, ok = columns.Next() {
		if i := sc.Schema.IndexID(id); i >= 0 {
			cells[i] = cell
		}
	}
}

// After returns the row after op, which is encoded by sc. cells is the row before it, a cell for
// each column; nil means no row. After may modify cells. Errors: the cause for which Prepare would
// refuse op.
func (sc *TableSchema) After(op *Op, cells [][]byte) ([][]byte, error) {
	if op.Check != nil && op.Kind != Check && (cells == nil || !op.Check.holds(sc.Schema, cells)) {
		if op.Kind.Ignores() {
			return cells, nil
		}
		return nil, errNotMet
	}
	switch op.Kind {
	case Insert, InsertIgnore, Upsert, UpsertIgnore:
		switch {
		case cells == nil && op.Lacks != "":
			return nil, ErrNotSet
		case cells == nil:
			return sc.operate(op, sc.RowFormat.AppendCells(nil, op.Body), true)
		case op.Kind == Insert:
			return nil, fault.ErrKeyExists
		case op.Kind == InsertIgnore:
			return cells, nil
		}
		for c := sc.Schema.Keys; c < len(cells); c++ {
			if op.Set != nil && !op.Set.Get(c) {
				continue
			}
			switch {
			case !sc.Schema.Columns[c].Immutable:
				cells[c] = sc.RowFormat.Cell(op.Body, c)
			case op.Kind == Upsert:
				return nil, ErrImmutable
			}
		}
		return sc.operate(op, cells, false)
	}
	list, _, err := sc.mutable(op)
	if err != nil {
		return nil, err
	}
	switch op.Kind {
	case Update, Delete:
		if cells == nil {
			return nil, fault.ErrNotFound
		}
	}
	switch op.Kind {
	case Update, UpdateIgnore:
		if cells != nil {
			sc.set(cells, list)
			return sc.operate(op, cells, false)
		}
	case Delete, DeleteIgnore:
		cells = nil
	}
	return cells, nil
}
