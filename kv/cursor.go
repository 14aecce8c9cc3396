package kv

import (
	"context"
	"slices"

	"github.com/oribi-db/oribi"
)

// Cursor moves among the keys of a bucket, in both directions. At the beginning it is before the first
// key. Each move returns true if the cursor is on a key afterwards. If it returns false, there is no
// such key, or the cursor has ended with an error, which Err returns:
//
//	c := bucket.Cursor(ctx)
//	defer c.Close()
//	for ok := c.Seek([]byte("m")); ok; ok = c.Next() {
//		use(c.Key(), c.Value())
//	}
//	err := c.Err()
//
// Not safe for concurrent use.
type Cursor struct {
	rows *oribi.Cursor // nil if err is set from the beginning
	tx   *Tx           // with a snapshot, which closes the cursor; else nil
	err  error
}

// Cursor returns a cursor over the keys of the bucket, or over those that options such as oribi.Prefix
// select; Columns has no effect. All moves see the state of the first one. The caller closes it: until
// then it keeps the history that it sees. Errors of its moves: those of Table.Cursor.
func (b *Bucket) Cursor(ctx context.Context, opts ...oribi.CursorOption) *Cursor {
	return &Cursor{rows: b.t.Cursor(ctx, append(slices.Clip(opts), oribi.CursorOption(bothParts))...)}
}

// Cursor returns a cursor over the keys of the bucket, or over those that options such as oribi.Prefix
// select; Columns has no effect. Each move sees the writes that the transaction has made until then,
// and not those that it was rolled back past: after the current key was deleted, Next moves to the key
// after it. What the cursor has passed counts as read, see oribi.Tx.Cursor.
//
// The end of the transaction closes the cursor. Errors of its moves: ErrTxEnded; those of oribi.Tx.Scan.
func (b TxBucket) Cursor(opts ...oribi.TxCursorOption) *Cursor {
	if err := b.ready(); err != nil {
		return &Cursor{err: err}
	}
	if b.tx.rows != nil {
		return &Cursor{rows: b.tx.rows.Cursor(b.t, append(slices.Clip(opts), oribi.TxCursorOption(bothParts))...)}
	}
	all := make([]oribi.CursorOption, 0, len(opts)+2)
	for _, o := range opts {
		all = append(all, o)
	}
	c := &Cursor{rows: b.t.Cursor(b.tx.ctx, append(all, bothParts, b.tx.at)...), tx: b.tx}
	b.tx.cursors = append(b.tx.cursors, c)
	return c
}

// First moves to the first key.
func (c *Cursor) First() bool { return c.ready() && c.rows.First() }

// Last moves to the last key.
func (c *Cursor) Last() bool { return c.ready() && c.rows.Last() }

// Seek moves to the first key that is not below key. If there is none, the cursor is after the last key.
func (c *Cursor) Seek(key []byte) bool { return c.ready() && c.rows.Seek(notNil(key)) }

// SeekBefore moves to the last key below key. If there is none, the cursor is before the first key.
func (c *Cursor) SeekBefore(key []byte) bool { return c.ready() && c.rows.SeekBefore(notNil(key)) }

// Next moves to the next key: from before the first key to the first one.
func (c *Cursor) Next() bool { return c.ready() && c.rows.Next() }

// Prev moves to the previous key: from after the last key to the last one.
func (c *Cursor) Prev() bool { return c.ready() && c.rows.Prev() }

// Key returns the current key, nil if the cursor is not on a key. It may be kept and must not be
// modified.
func (c *Cursor) Key() []byte { return c.cell(keyColumn) }

// Value returns the value of the current key as of the move to it, nil if the cursor is not on a key.
// It may be kept and must not be modified.
func (c *Cursor) Value() []byte { return c.cell(valueColumn) }

func (c *Cursor) cell(i int) []byte {
	if c.rows == nil {
		return nil
	}
	return c.rows.Cell(i)
}

// Err returns the error with which the cursor ended.
func (c *Cursor) Err() error {
	if c.err == nil && c.rows != nil {
		return c.rows.Err()
	}
	return c.err
}

// Close ends the cursor and returns the error of Err. It may be called twice.
func (c *Cursor) Close() error {
	if c.tx != nil {
		c.tx.cursors = slices.DeleteFunc(c.tx.cursors, func(o *Cursor) bool { return o == c })
	}
	if c.rows != nil {
		c.rows.Close()
	}
	return c.Err()
}

// ready reports whether the cursor may move.
func (c *Cursor) ready() bool {
	if c.err == nil && c.tx != nil && c.tx.ended {
		c.err = errEnded
	}
	return c.err == nil
}
