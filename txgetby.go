package oribi

import (
	"slices"

	"github.com/oribi-db/oribi/internal/bind"
	"github.com/oribi-db/oribi/internal/store"
	"github.com/oribi-db/oribi/keyenc"
)

// GetBy reads the row with the given values in the columns of a unique index, as Table.GetBy does. What it reads
// is that row, and that no other one has these values.
//
// Rows of the transaction that a unique index excludes are refused by Commit, and until then both are there:
// GetBy returns a row that the transaction has written, if there is one.
//
// Errors: ErrTxEnded; ErrTransactionsFull and ErrBatchTooLarge, see Tx; those of Table.GetBy.
func (tx *Tx) GetBy(t *Table, index string, values any, opts ...ColumnsOption) (Row, error) {
	o := collect(opts)
	var row Row
	err := tx.getBy(t, index, values, &o, func(v *view, cols []int, cells [][]byte) error {
		row = bind.Row(v.Schema.Columns, cols, cells)
		return nil
	})
	return row, err
}

// getBy passes the cells of a row to found.
func (tx *Tx) getBy(t *Table, index string, values any, o *readOptions,
	found func(v *view, cols []int, cells [][]byte) error) error {
	if err := tx.reading(t); err != nil {
		return err
	}
	entries, err := t.uniqueIndex(index)
	if err != nil {
		return err
	}
	if !complete(entries, tx.snapshot.pin.TS) {
		key, err := tx.keyWhere(t, entries, values)
		if err != nil {
			return t.errorf(err)
		}
		return tx.get(t, key, o, found)
	}
	var v view
	if err := tx.beginRead(t, o, &v); err != nil {
		return err
	}
	defer t.done(&v)
	var l indexLookup
	if err := t.lookupIn(&l, &v, entries, values); err != nil {
		return err
	}
	key, err := tx.keyBy(t, &v, &l, o)
	if err != nil {
		return t.errorf(err)
	}
	return tx.getKey(t, &v, key, o, found)
}

// beginRead begins a read of the transaction's state, with the history of the table's indexes.
func (tx *Tx) beginRead(t *Table, o *readOptions, v *view) error {
	At(tx.snapshot).apply(o)
	return t.begin(tx.ctx, o, true, v)
}

// keyBy returns the key of a row by an index. Errors: ErrNotFound.
func (tx *Tx) keyBy(t *Table, v *view, l *indexLookup, o *readOptions) ([]byte, error) {
	own, err := tx.ownIn(t, v, l.IndexColumns, false, func(yield func(lower, upper []byte) bool) {
		yield(l.entry, keyenc.PrefixEnd(l.entry))
	})
	if err != nil {
		return nil, err
	}
	if len(own) > 0 {
		return own[0].key, nil
	}
	tx.readsIndex(t, l.entries)
	tx.reads.AddKey(l.entries.Number, l.entry)
	key, err := l.key(t, v, o)
	if err == nil && tx.wrote(t, key) { // it has other values now
		err = l.missing()
	}
	return key, err
}

// keyWhere returns the cells of the key of a row by a look through the table, for an index that is not complete.
// Errors: ErrNotFound.
func (tx *Tx) keyWhere(t *Table, entries *store.Table, values any) ([][]byte, error) {
	var o readOptions
	var v view
	if err := tx.beginRead(t, &o, &v); err != nil {
		return nil, err
	}
	var l indexLookup
	err := t.lookupIn(&l, &v, entries, values)
	t.done(&v)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, c := range v.Schema.Columns[:v.Schema.Keys] {
		names = append(names, c.Name)
	}
	sc := &Scan{t: t, ctx: tx.ctx, tx: tx}
	collectInto(&sc.o, []RowsOption{Columns(names...), Where(l.tests(v.Schema)...), NoIndex(), Limit(1)})
	for cells, err := range sc.Cells() {
		return slices.Clone(cells), err
	}
	return nil, l.missing()
}
