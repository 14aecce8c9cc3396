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

// Check is an operation that changes nothing: the batch is refused unless the Op's Condition holds
// for the row, in the newest applied state and after the batch's earlier operations on it. The
// row's lock makes of it, and of what follows in the batch, one step.
const Check OpKind = DeleteIgnore + 1

// Condition is what a Check asks of a row.
type Condition struct {
	Absent bool // there is no row; else there is one for which Filter is true
	Filter batch.Filter
}

// check tells whether the condition of operation i holds, whose key is at p. again tells that the
// batch has an earlier operation on the key.
func (w *Write) check(i int, p position, again bool) error {
	c := w.ops[i].Check
	switch {
	case c.Absent && p.live:
		return fmt.Errorf("there is a row, against the condition: %w", fault.ErrConflict)
	case c.Absent:
		return nil
	case !p.live:
		return fmt.Errorf("there is no row, against the condition: %w", fault.ErrConflict)
	}
	if c.Filter.All() {
		return nil
	}
	columns := w.state.shape.Schema
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
	if !c.Filter.EvalRow(func(id schema.ColumnID) []byte { return cells[columns.IndexID(id)] }) {
		return fmt.Errorf("condition not met: %w", fault.ErrConflict)
	}
	return nil
}

// cellsAt is all cells of the newest applied state of a row, which is live at p.
func (w *Write) cellsAt(key []byte, p position) ([][]byte, error) {
	shape := w.state.shape
	if p.mem != nil {
		row, _ := p.mem.NewestRow(key)
		return shape.RowFormat.AppendCells(nil, row), nil
	}
	cells, _, err := p.set.Get(bloom.MakeProbe(key), mvcc.Everything, shape.All, nil)
	return cells, err
}

// cellsBefore is all cells of the row of operation i after the operations before it, which leave it
// live.
func (w *Write) cellsBefore(i int) (cells [][]byte, err error) {
	key, shape := w.ops[i].Key, w.state.shape
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
		case change.Insert:
			cells = shape.RowFormat.AppendCells(nil, w.ops[j].Body)
		case change.Update:
			shape.set(cells, to.list)
		}
	}
	return cells, nil
}

// set puts the columns of a list over cells, one for each column.
func (sh *Shape) set(cells [][]byte, list change.List) {
	columns := list.Columns()
	for id, cell, ok := columns.Next(); ok; id, cell, ok = columns.Next() {
		if i := sh.Schema.IndexID(id); i >= 0 {
			cells[i] = cell
		}
	}
}

// After is what op, encoded by sh, makes of a row with the given cells, one for each column; nil
// cells are no row. They may be changed. Errors: the cause for which Prepare would refuse it.
func (sh *Shape) After(op *Op, cells [][]byte) ([][]byte, error) {
	switch op.Kind {
	case Insert, InsertIgnore, Upsert, UpsertIgnore:
		switch {
		case cells == nil && op.Lacks != "":
			return nil, ErrNotSet
		case cells == nil:
			return sh.RowFormat.AppendCells(nil, op.Body), nil
		case op.Kind == Insert:
			return nil, fault.ErrKeyExists
		case op.Kind == InsertIgnore:
			return cells, nil
		}
		for c := sh.Schema.Keys; c < len(cells); c++ {
			if op.Set != nil && !op.Set.Get(c) {
				continue
			}
			switch {
			case !sh.Schema.Columns[c].Immutable:
				cells[c] = sh.RowFormat.Cell(op.Body, c)
			case op.Kind == Upsert:
				return nil, ErrImmutable
			}
		}
		return cells, nil
	}
	list, _, err := sh.mutable(op)
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
			sh.set(cells, list)
		}
	case Delete, DeleteIgnore:
		cells = nil
	}
	return cells, nil
}
