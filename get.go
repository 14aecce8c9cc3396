package oribi

import (
	"bytes"
	"context"
	"fmt"

	"github.com/oribi-db/oribi/internal/bind"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/tablet"
	"github.com/oribi-db/oribi/schema"
)

// Get reads one row. key is a Go value if the key has one column; otherwise it is a Key or a Row of
// the key columns.
//
// Errors: ErrNotFound if there is no such row; the errors of AsOf and At; ErrRow for a key that
// does not fit; ErrCorrupt; ErrClosed; ctx.Err().
func (t *Table) Get(ctx context.Context, key any, opts ...GetOption) (Row, error) {
	for tries := 0; ; tries++ {
		row, err := t.getRow(ctx, key, opts)
		if err == nil || !restarts(ctx, t, opts, err, tries) {
			return row, err
		}
	}
}

func (t *Table) getRow(ctx context.Context, key any, opts []GetOption) (Row, error) {
	k := keyReads.Get().(*keyRead)
	defer k.release()
	collectInto(&k.o, opts)
	var v view
	if err := t.read(ctx, &k.o, &v); err != nil {
		return nil, err
	}
	defer t.done(&v)
	cols, err := t.project(v.TableSchema, &k.o)
	if err != nil {
		return nil, err
	}
	var few [fewCells][]byte
	cells, err := t.get(&v, k, key, cols, few[:0])
	if err != nil {
		return nil, err
	}
	return bind.Row(v.Schema.Columns, cols, cells), nil
}

// read begins a read of one row and sets v to the state that it sees; done ends it.
func (t *Table) read(ctx context.Context, o *readOptions, v *view) error {
	return t.begin(ctx, o, false, v)
}

// begin is read. long is as of setView.
func (t *Table) begin(ctx context.Context, o *readOptions, long bool, v *view) error {
	if err := t.store.enter(); err != nil {
		return err
	}
	begun := false
	defer func() {
		if !begun { // also if the context or the clock panics
			t.store.leave()
		}
	}()
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("oribi: table %q: %w", t.tab.Name(), err)
	}
	v.get = t.store.core.Counters.BeginGet()
	err := t.setView(ctx, o, long, v)
	begun = err == nil
	return err
}

func (t *Table) done(v *view) {
	v.Release()
	t.store.core.Counters.EndGet(v.get)
	t.store.leave()
}

// fewCells is how many cells of a row fit on the stack.
const fewCells = 32

// GetCells is like Get but returns the columns read and their cells, nil for NULL. They must not be
// modified.
func (t *Table) GetCells(
	ctx context.Context, key any, opts ...GetOption,
) (columns []schema.Column, cells [][]byte, err error) {
	for tries := 0; ; tries++ {
		columns, cells, err = t.getCells(ctx, key, opts)
		if err == nil || !restarts(ctx, t, opts, err, tries) {
			return columns, cells, err
		}
	}
}

func (t *Table) getCells(
	ctx context.Context, key any, opts []GetOption,
) (columns []schema.Column, cells [][]byte, err error) {
	k := keyReads.Get().(*keyRead)
	defer k.release()
	collectInto(&k.o, opts)
	var v view
	if err := t.read(ctx, &k.o, &v); err != nil {
		return nil, nil, err
	}
	defer t.done(&v)
	cols, err := t.project(v.TableSchema, &k.o)
	if err != nil {
		return nil, nil, err
	}
	if cells, err = t.get(&v, k, key, cols, nil); err != nil {
		return nil, nil, err
	}
	return k.o.columnsOf(v.TableSchema, cols), cells, nil
}

// columnsOf returns the columns with the indexes cols, which project returned. They must not be
// modified.
func (o *readOptions) columnsOf(tableSchema *tablet.TableSchema, cols []int) []schema.Column {
	if o.all && o.fit == nil {
		return tableSchema.Schema.Columns
	}
	columns := make([]schema.Column, len(cols))
	for i, c := range cols {
		columns[i] = tableSchema.Schema.Columns[c]
	}
	return columns
}

// get appends the cells of one row to dst. k is memory for its encoded key.
func (t *Table) get(v *view, k *keyRead, key any, columns []int, dst [][]byte) ([][]byte, error) {
	encoded, err := t.appendKey(k.key[:0], v.TableSchema, key, false)
	if err != nil {
		return nil, err
	}
	k.key = encoded
	cells, found, err := v.Get(encoded, columns, dst)
	if err != nil {
		return nil, fmt.Errorf("oribi: %w", err)
	}
	if !found {
		return nil, t.missing(encoded)
	}
	return cells, nil
}

// missingRow is the ErrNotFound of a row with an encoded key. Its text is built only when it is
// needed: most callers only test for ErrNotFound, and building the text takes longer than finding
// out that there is no row.
type missingRow struct {
	tab *tablet.Tablet
	key shortKey
}

// missingLong is missingRow for a longer key.
type missingLong struct {
	tab *tablet.Tablet
	key []byte
}

// shortKey is a key with its length in the last byte: with it, a missingRow takes 32 bytes.
type shortKey [24]byte

// missing returns the error for a key without a row. It copies the key.
func (t *Table) missing(key []byte) error {
	if len(key) >= len(shortKey{}) {
		return &missingLong{t.tab, bytes.Clone(key)}
	}
	m := &missingRow{tab: t.tab}
	m.key[len(m.key)-1] = byte(copy(m.key[:], key))
	return m
}

func (m *missingRow) Error() string {
	return (&missingLong{m.tab, m.key[:m.key[len(m.key)-1]]}).Error()
}

func (m *missingLong) Error() string {
	return fmt.Sprintf("oribi: table %q: key %s: %v", m.tab.Name(), m.tab.KeyText(m.key), fault.ErrNotFound)
}

func (m *missingRow) Unwrap() error  { return fault.ErrNotFound }
func (m *missingLong) Unwrap() error { return fault.ErrNotFound }
