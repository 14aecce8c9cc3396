package oribi

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/oribi-db/oribi/internal/bind"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/store"
	"github.com/oribi-db/oribi/internal/tablet"
	"github.com/oribi-db/oribi/scan"
	"github.com/oribi-db/oribi/schema"
)

// GetBy reads the row with the given values in the columns of a unique index: a Go value if the index has
// one column, otherwise a Key. Errors: ErrNotFound if there is no such row; ErrSchema if the table has no
// unique index of that name; ErrRow for a value that does not fit, as NULL does not; those of Get.
func (t *Table) GetBy(ctx context.Context, index string, values any, opts ...GetOption) (Row, error) {
	var row Row
	err := t.getBy(ctx, index, values, collect(opts), func(v *view, cols []int, cells [][]byte) error {
		row = bind.Row(v.Schema.Columns, cols, cells)
		return nil
	})
	return row, err
}

// getBy passes the cells of a row to found.
func (t *Table) getBy(ctx context.Context, index string, values any, o readOptions,
	found func(v *view, cols []int, cells [][]byte) error) error {
	for tries := 0; ; tries++ {
		err := t.getByOnce(ctx, index, values, &o, found)
		if err == nil || !t.store.core.Restarts(ctx, o.asOf, err, tries) {
			return err
		}
	}
}

func (t *Table) getByOnce(ctx context.Context, index string, values any, o *readOptions,
	found func(v *view, cols []int, cells [][]byte) error) error {
	r, err := t.readBy(ctx, index, values, o)
	if err != nil {
		return err
	}
	defer r.end()
	cols, err := t.project(r.v.TableSchema, o)
	if err != nil {
		return err
	}
	cells, ok, err := r.v.Get(r.key, cols, nil)
	if err == nil && !ok {
		err = fmt.Errorf("index %q: %w", index, fault.Corruptf("an entry of key %s, which does not exist",
			t.tab.KeyText(r.key)))
	}
	if err != nil {
		return t.errorf(err)
	}
	return found(&r.v, cols, cells)
}

// indexRead is a read of a row by a unique index.
type indexRead struct {
	t   *Table
	v   view
	key []byte // of the row
}

func (r *indexRead) end() { r.t.done(&r.v) }

// readBy finds the key of the row with the given values. The caller calls end, unless it returns an error.
func (t *Table) readBy(ctx context.Context, index string, values any, o *readOptions) (_ *indexRead, err error) {
	entries, err := t.uniqueIndex(index)
	if err != nil {
		return nil, err
	}
	r := &indexRead{t: t}
	if err := t.begin(ctx, o, true, &r.v); err != nil { // with the index's history
		return nil, err
	}
	defer func() {
		if err != nil {
			r.end()
		}
	}()
	l, err := t.lookupIn(&r.v, entries, values)
	if err != nil {
		return nil, err
	}
	if complete(entries, r.v.ts) {
		r.key, err = l.key(t, &r.v, o)
	} else {
		r.key, err = t.keyBy(ctx, &r.v, l)
	}
	return r, t.errorf(err)
}

// indexLookup is a look for the row with some values in the columns of a unique index.
type indexLookup struct {
	tablet.IndexColumns
	entries *store.Table
	values  Key
	entry   []byte
}

// uniqueIndex returns the entries of a unique index. Errors: ErrSchema.
func (t *Table) uniqueIndex(name string) (*store.Table, error) {
	entries, err := t.index(name)
	if err == nil && !entries.Index().Unique {
		err = t.errorf(fmt.Errorf("index %q is not unique: %w", name, fault.ErrSchema))
	}
	return entries, err
}

// lookupIn returns a look for the row with the given values.
func (t *Table) lookupIn(v *view, entries *store.Table, values any) (l indexLookup, err error) {
	l.entries = entries
	var ok bool
	name := entries.Index().Name
	if l.IndexColumns, ok = t.tab.IndexColumns(v.TableSchema, entries.Tablet); !ok {
		return l, t.errorf(fmt.Errorf("index %q was dropped: %w", name, fault.ErrSchema))
	}
	if l.values, ok = values.(Key); !ok {
		l.values = Key{values}
	}
	cells, err := t.indexCells(&l.IndexColumns, v.Schema, l.values)
	if err != nil {
		return l, fmt.Errorf("oribi: index %q: %w", name, err)
	}
	l.entry = l.AppendPrefix(nil, cells)
	return l, nil
}

// key returns the key of the row. Errors: ErrNotFound.
func (l *indexLookup) key(t *Table, v *view, o *readOptions) ([]byte, error) {
	var entries tablet.View
	if err := t.entriesView(&entries, v, o, l.entries); err != nil {
		return nil, err
	}
	defer entries.Release()
	found, ok, err := entries.Get(l.entry, []int{entries.Schema.Index(tablet.RowColumn)}, nil)
	switch {
	case err != nil:
		return nil, fmt.Errorf("index %q: %w", l.entries.Index().Name, err)
	case !ok:
		return nil, l.missing()
	}
	return found[0], nil
}

func (l *indexLookup) missing() error {
	return fmt.Errorf("index %q: no row with these values: %w", l.entries.Index().Name, fault.ErrNotFound)
}

// tests returns predicates that are true for the row alone.
func (l *indexLookup) tests(s *schema.Schema) (tests []Predicate) {
	for i, value := range l.values {
		tests = append(tests, Eq(s.Columns[l.Columns[i]].Name, value))
	}
	return tests
}

// keyBy returns the key of a row with the given values in the columns of an index, by a look through the
// table. Errors: ErrNotFound.
func (t *Table) keyBy(ctx context.Context, v *view, l indexLookup) ([]byte, error) {
	filter, err := t.filter(v.Schema, l.tests(v.Schema), false)
	if err != nil {
		return nil, err
	}
	it, err := v.Ref().Scan(scan.Options{Filter: v.Alive(filter), Keys: true}, false)
	if err != nil {
		return nil, err
	}
	defer it.Close()
	for it.Next() {
		if i := it.Batch().Selection.Next(0); i >= 0 {
			return bytes.Clone(it.Keys()[i]), nil
		}
		if err := t.store.interrupted(ctx); err != nil {
			return nil, err
		}
	}
	return nil, cmp.Or(it.Close(), l.missing())
}

// indexCells returns the cells of values in the columns of an index, of which none is NULL.
func (t *Table) indexCells(c *tablet.IndexColumns, s *schema.Schema, list Key) ([][]byte, error) {
	bad := func(column string, cause error) error {
		return &RowError{Table: t.tab.Name(), Column: column, Cause: cause}
	}
	if len(list) != len(c.Columns) {
		return nil, bad("", fmt.Errorf("%d values, the index has %d columns", len(list), len(c.Columns)))
	}
	cells := make([][]byte, len(list))
	for i, value := range list {
		column := &s.Columns[c.Columns[i]]
		cell, err := bind.Append(nil, column, value)
		if err == nil && cell == nil {
			err = errors.New("NULL is in no unique index: use Scan")
		}
		if err != nil {
			return nil, bad(column.Name, err)
		}
		cells[i] = cell
	}
	return cells, nil
}
