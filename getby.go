package oribi

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

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
	for tries := 0; ; tries++ {
		row, err := t.getRowBy(ctx, index, values, opts)
		if err == nil || !restarts(ctx, t, opts, err, tries) {
			return row, err
		}
	}
}

func (t *Table) getRowBy(ctx context.Context, index string, values any, opts []GetOption) (Row, error) {
	r := indexReads.Get().(*indexRead)
	defer r.release()
	collectInto(&r.o, opts)
	if err := r.begin(ctx, t, index, values); err != nil {
		return nil, err
	}
	defer t.done(&r.v)
	cols, err := t.project(r.v.TableSchema, &r.o)
	if err != nil {
		return nil, err
	}
	if err := r.get(t, cols); err != nil {
		return nil, err
	}
	return bind.Row(r.v.Schema.Columns, cols, r.cells), nil
}

// indexRead is the memory of a read of one row by a unique index.
type indexRead struct {
	o     readOptions
	v     view
	look  indexLookup
	key   []byte // of the row
	cells [][]byte
}

var indexReads = sync.Pool{New: func() any { return new(indexRead) }}

// release makes r available to later reads, which overwrite the list r.cells, and not the cells in it.
func (r *indexRead) release() {
	clear(r.cells)
	*r = indexRead{cells: r.cells[:0], look: indexLookup{entry: r.look.entry[:0]}}
	if cap(r.look.entry) <= maxKeptKey && cap(r.cells) <= fewCells {
		indexReads.Put(r)
	}
}

// begin finds the key of the row with the given values. The caller calls t.done, unless begin returns an error.
func (r *indexRead) begin(ctx context.Context, t *Table, index string, values any) (err error) {
	entries, err := t.uniqueIndex(index)
	if err != nil {
		return err
	}
	if err := t.begin(ctx, &r.o, true, &r.v); err != nil { // with the index's history
		return err
	}
	defer func() {
		if err != nil {
			t.done(&r.v)
		}
	}()
	if err := t.lookupIn(&r.look, &r.v, entries, values); err != nil {
		return err
	}
	if complete(entries, r.v.ts) {
		r.key, err = r.look.key(t, &r.v, &r.o)
	} else {
		r.key, err = t.keyBy(ctx, &r.v, &r.look)
	}
	return t.errorf(err)
}

// get sets r.cells to the cells of columns of the row.
func (r *indexRead) get(t *Table, cols []int) (err error) {
	var ok bool
	r.cells, ok, err = r.v.Get(r.key, cols, r.cells[:0])
	if err == nil && !ok {
		err = fmt.Errorf("index %q: %w", r.look.entries.Index().Name, fault.Corruptf(
			"an entry of key %s, which does not exist", t.tab.KeyText(r.key)))
	}
	return t.errorf(err)
}

// indexLookup is a look for the row with some values in the columns of a unique index.
type indexLookup struct {
	tablet.IndexColumns
	entries *store.Table
	values  Key
	entry   []byte

	view    tablet.View // of the entries
	one     [1]any
	found   [1][]byte
	scratch [bind.MaxWidth]byte
}

// uniqueIndex returns the entries of a unique index. Errors: ErrSchema.
func (t *Table) uniqueIndex(name string) (*store.Table, error) {
	entries, err := t.index(name)
	if err == nil && !entries.Index().Unique {
		err = t.errorf(fmt.Errorf("index %q is not unique: %w", name, fault.ErrSchema))
	}
	return entries, err
}

// lookupIn sets l to a look for the row with the given values. It uses the memory of l.
func (t *Table) lookupIn(l *indexLookup, v *view, entries *store.Table, values any) error {
	l.entries = entries
	var ok bool
	name := entries.Index().Name
	if l.IndexColumns, ok = t.tab.IndexColumns(v.TableSchema, entries.Tablet); !ok {
		return t.errorf(fmt.Errorf("index %q was dropped: %w", name, fault.ErrSchema))
	}
	if l.values, ok = values.(Key); !ok {
		l.one[0] = values
		l.values = l.one[:]
	}
	if err := t.encodeEntry(l, v.Schema); err != nil {
		return fmt.Errorf("oribi: index %q: %w", name, err)
	}
	return nil
}

// key returns the key of the row. Errors: ErrNotFound.
func (l *indexLookup) key(t *Table, v *view, o *readOptions) ([]byte, error) {
	if err := t.entriesView(&l.view, v, o, l.entries); err != nil {
		return nil, err
	}
	defer l.view.Release()
	found, ok, err := l.view.Get(l.entry, tablet.RowColumns, l.found[:0])
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
func (t *Table) keyBy(ctx context.Context, v *view, l *indexLookup) ([]byte, error) {
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

// encodeEntry sets the entry of a look. None of its values may be NULL.
func (t *Table) encodeEntry(l *indexLookup, s *schema.Schema) error {
	bad := func(column string, cause error) error {
		return &RowError{Table: t.tab.Name(), Column: column, Cause: cause}
	}
	if len(l.values) != len(l.Columns) {
		return bad("", fmt.Errorf("%d values, the index has %d columns", len(l.values), len(l.Columns)))
	}
	l.entry = l.entry[:0]
	for i, value := range l.values {
		column := &s.Columns[l.Columns[i]]
		cell, err := bind.Append(l.scratch[:0], column, value)
		if err == nil && cell == nil {
			err = errors.New("NULL is in no unique index: use Scan")
		}
		if err != nil {
			return bad(column.Name, err)
		}
		l.entry = l.AppendValue(l.entry, i, cell)
	}
	return nil
}
