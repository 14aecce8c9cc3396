package oribi

import (
	"context"

	"github.com/oribi-db/oribi/internal/bind"
)

// CursorOf is a Cursor whose rows are structs of type T. Not safe for concurrent use.
type CursorOf[T any] struct {
	c     *Cursor
	t     *TableOf[T]
	bound *bind.Binding
	row   T
}

// Cursor returns a cursor over the rows that the options select, with the columns of the struct, as
// Table.Cursor does. The caller closes it.
func (t *TableOf[T]) Cursor(ctx context.Context, opts ...CursorOption) *CursorOf[T] {
	return newCursorOf(t, ctx, opts)
}

func newCursorOf[T any, O option](t *TableOf[T], ctx context.Context, opts []O) *CursorOf[T] {
	c := &CursorOf[T]{t: t, c: &Cursor{scan: Scan{t: t.Table, ctx: ctx}}}
	collectInto(&c.c.scan.o, opts)
	c.c.scan.o.fit = t.fit(&c.bound, &c.c.scan.o)
	return c
}

// First moves to the first row.
func (c *CursorOf[T]) First() bool { return c.read(c.c.First()) }

// Last moves to the last row.
func (c *CursorOf[T]) Last() bool { return c.read(c.c.Last()) }

// Seek moves to the first row whose key is not below key, as Cursor.Seek does.
func (c *CursorOf[T]) Seek(key ...any) bool { return c.read(c.c.Seek(key...)) }

// SeekBefore moves to the last row whose key is below key, as Cursor.SeekBefore does.
func (c *CursorOf[T]) SeekBefore(key ...any) bool { return c.read(c.c.SeekBefore(key...)) }

// Next moves to the next row.
func (c *CursorOf[T]) Next() bool { return c.read(c.c.Next()) }

// Prev moves to the previous row.
func (c *CursorOf[T]) Prev() bool { return c.read(c.c.Prev()) }

// Row returns the current row, the zero value if the cursor is not on a row.
func (c *CursorOf[T]) Row() T { return c.row }

// Key returns the key of the current row, nil if the cursor is not on a row.
func (c *CursorOf[T]) Key() Key { return c.c.Key() }

// Err returns the error with which the cursor ended, as Cursor.Err does; ErrSchema for a value that
// its field cannot contain.
func (c *CursorOf[T]) Err() error { return c.c.Err() }

// Close ends the cursor and returns the error of Err. It may be called twice.
func (c *CursorOf[T]) Close() error {
	c.read(false)
	return c.c.Close()
}

// read sets the row after a move and reports whether there is one.
func (c *CursorOf[T]) read(ok bool) bool {
	var none T
	c.row = none
	if !ok {
		return false
	}
	if err := c.t.read(c.bound, &c.row, c.c.Cells()); err != nil {
		c.row = none
		c.c.err = err
		c.c.reset()
		return false
	}
	return true
}
