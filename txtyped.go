package oribi

import (
	"iter"

	"github.com/oribi-db/oribi/internal/bind"
)

// TxOf is a table with rows of type T in a transaction. See TableOf.In.
type TxOf[T any] struct {
	tx    *Tx
	table *TableOf[T]
}

// In returns the table as a transaction sees it.
func (t *TableOf[T]) In(tx *Tx) TxOf[T] { return TxOf[T]{tx, t} }

// Get reads a row, as Tx.Get does.
func (t TxOf[T]) Get(key any, opts ...ColumnsOption) (T, error) {
	var row T
	var b *bind.Binding
	o := collect(opts)
	o.fit = t.table.fit(&b, &o)
	err := t.tx.get(t.table.Table, key, &o, func(_ *view, _ []int, cells [][]byte) error {
		return t.table.read(b, &row, cells)
	})
	return row, err
}

// GetBy reads the row with the given values in the columns of a unique index, as Tx.GetBy does.
func (t TxOf[T]) GetBy(index string, values any, opts ...ColumnsOption) (T, error) {
	var row T
	var b *bind.Binding
	o := collect(opts)
	o.fit = t.table.fit(&b, &o)
	err := t.tx.getBy(t.table.Table, index, values, &o, func(_ *view, _ []int, cells [][]byte) error {
		return t.table.read(b, &row, cells)
	})
	return row, err
}

// Scan reads rows in key order, as Tx.Scan does.
func (t TxOf[T]) Scan(opts ...RowsOption) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		sc := t.tx.newScan(t.table.Table)
		collectInto(&sc.o, opts)
		t.table.scan(sc, yield)
	}
}

// Cursor returns a cursor over the rows that the options select, with the columns of the struct, as
// Tx.Cursor does.
func (t TxOf[T]) Cursor(opts ...TxCursorOption) *CursorOf[T] {
	c := newCursorOf(t.table, t.tx.ctx, opts)
	t.tx.bindCursor(c.c)
	return c
}

// Insert adds rows. Errors: ErrKeyExists if the key of one exists; the errors of Tx.Row.
func (t TxOf[T]) Insert(rows ...T) error { return t.Add(OpInsert, rows...) }

// Upsert adds rows, or sets the struct's columns of those that exist. Errors: as for Tx.Row.
func (t TxOf[T]) Upsert(rows ...T) error { return t.Add(OpUpsert, rows...) }

// Update sets the struct's columns of rows. Errors: ErrNotFound if one does not exist; the errors
// of Tx.Row.
func (t TxOf[T]) Update(rows ...T) error { return t.Add(OpUpdate, rows...) }

// Delete deletes the rows with the keys of the structs. It ignores other fields. Errors:
// ErrNotFound if one does not exist; the errors of Tx.Row.
func (t TxOf[T]) Delete(rows ...T) error { return t.Add(OpDelete, rows...) }

// Add carries out one operation of any kind for each row, or none of them if one is refused. See
// Tx.Row.
func (t TxOf[T]) Add(op Op, rows ...T) error {
	return t.tx.add(t.table.Table, func() { t.table.InBatch(t.tx.batch).Add(op, rows...) })
}

// Has reports whether there is a row with a key, as Tx.Has does.
func (t TxOf[T]) Has(key any) (bool, error) { return t.tx.Has(t.table.Table, key) }
