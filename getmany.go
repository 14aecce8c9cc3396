package oribi

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/oribi-db/oribi/internal/bind"
	"github.com/oribi-db/oribi/rowset"
	"github.com/oribi-db/oribi/schema"
)

// ctxEvery is the number of rows read between two checks of the context.
const ctxEvery = 256

// GetMany reads the rows with the given keys, each a key as in Get, under one snapshot. Row i of
// the result has the key keys[i]; it is nil if no such row exists. A key may occur more than once.
// The keys are looked up in key order, so keys near each other share the blocks that are read.
//
// Errors: as for Get, except that a missing row is no error.
func (t *Table) GetMany(ctx context.Context, keys []any, opts ...GetOption) ([]Row, error) {
	rows := make([]Row, len(keys))
	var few [fewCells][]byte
	cells := few[:0]
	_, err := t.getMany(ctx, keys, collect(opts), func(v *view, i int, key []byte, cols []int) (err error) {
		var found bool
		rows[i] = nil
		if cells, found, err = v.Get(key, cols, cells[:0]); found {
			rows[i] = bind.Row(v.Schema.Columns, cols, cells)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return rows, nil
}

// rowsTogether is how many rows of a GetManyCells share one piece of memory.
const rowsTogether = 64

// GetManyCells is like GetMany but returns the columns read, and for each key the cells of its row
// as GetCells does, or nil if there is no row. They must not be modified. Cells may be kept, but a
// kept row keeps the memory of the rows around it alive.
func (t *Table) GetManyCells(
	ctx context.Context, keys []any, opts ...GetOption,
) (columns []schema.Column, rows [][][]byte, err error) {
	rows = make([][][]byte, len(keys))
	var cells [][]byte
	left := len(keys)
	columns, err = t.getMany(ctx, keys, collect(opts), func(v *view, i int, key []byte, cols []int) (err error) {
		if cells == nil || cap(cells)-len(cells) < len(cols) {
			cells = make([][]byte, 0, len(cols)*min(rowsTogether, max(left, 1)))
		}
		left--
		start, found := len(cells), false
		rows[i] = nil
		if cells, found, err = v.Get(key, cols, cells); found {
			rows[i] = cells[start:len(cells):len(cells)]
		}
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	return columns, rows, nil
}

// getMany opens one view of the table and calls get with each encoded key and its index in keys, in
// key order. It returns the columns read.
//
// If a follower begins again, get is called for all keys again, in another state; it sets what it
// set before.
func (t *Table) getMany(
	ctx context.Context, keys []any, o readOptions, get func(v *view, i int, key []byte, cols []int) error,
) (columns []schema.Column, err error) {
	for tries := 0; ; tries++ {
		columns, err = t.getManyOnce(ctx, keys, o, get)
		if err == nil || !t.store.core.Restarts(ctx, o.asOf, err, tries) {
			return columns, err
		}
	}
}

func (t *Table) getManyOnce(
	ctx context.Context, keys []any, o readOptions, get func(v *view, i int, key []byte, cols []int) error,
) (columns []schema.Column, err error) {
	if err := t.store.enter(); err != nil {
		return nil, err
	}
	defer t.store.leave()
	begin := t.store.core.Counters.Now()
	v, err := t.view(ctx, &o, true)
	if err != nil {
		return nil, err
	}
	defer v.Release()
	cols, err := t.project(v.TableSchema, &o)
	if err != nil {
		return nil, err
	}
	encoded, order, err := t.encodeKeys(&v, keys)
	if err != nil {
		return nil, err
	}
	near := t.nearOf(&v, encoded, order)
	for n, i := range order {
		if near != nil {
			near.Next = near.Next[1:]
		}
		if n%ctxEvery == 0 && ctx.Err() != nil {
			return nil, t.errorf(ctx.Err())
		}
		if err := get(&v, i, encoded[i], cols); err != nil {
			return nil, callErr("", err)
		}
	}
	t.store.core.Counters.GotMany(begin, len(keys))
	return o.columnsOf(v.TableSchema, cols), nil
}

// nearOf makes v read rows that are near each other together, if the table has row files. The
// caller removes each key from Next before it gets its row.
func (t *Table) nearOf(v *view, encoded [][]byte, order []int) *rowset.Near {
	if len(order) < 2 || t.tab.Metadata().RowFile == schema.NoRowFile {
		return nil
	}
	v.Near = &rowset.Near{Next: make([][]byte, len(order))}
	for n, i := range order {
		v.Near.Next[n] = encoded[i]
	}
	return v.Near
}

// encodeKeys encodes keys and returns them with the indexes of keys in key order.
func (t *Table) encodeKeys(v *view, keys []any) (encoded [][]byte, order []int, err error) {
	encoded, order = make([][]byte, len(keys)), make([]int, len(keys))
	ends := make([]int, len(keys))
	var buf []byte
	for i, key := range keys {
		if i == 1 {
			buf = slices.Grow(buf, len(buf)*(len(keys)-1)) // most keys have the same length
		}
		if buf, err = t.appendKey(buf, v.TableSchema, key, false); err != nil {
			return nil, nil, fmt.Errorf("%w (key %d of %d)", err, i, len(keys))
		}
		ends[i], order[i] = len(buf), i
	}
	start := 0
	for i, end := range ends {
		encoded[i], start = buf[start:end:end], end
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(bytes.Compare(encoded[a], encoded[b]), cmp.Compare(a, b))
	})
	return encoded, order, nil
}
