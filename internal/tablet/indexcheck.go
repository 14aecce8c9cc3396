package tablet

import (
	"bytes"
	"context"
	"fmt"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/celltext"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/scan"
)

// checkEvery is the number of rows between two checks of the context.
const checkEvery = 1024

// CheckIndex compares the entries of an index with the rows of its table. v and entries are as of the same
// timestamp. Errors: ErrCorrupt, for the first difference; ctx.Err(); errors of reading files.
func (v *View) CheckIndex(ctx context.Context, index *Tablet, entries *View) error {
	var rows, n int64
	plan := newIndexPlan(v.TableSchema, []*Tablet{index})
	c := &plan.indexes[0]
	err := v.each(ctx, plan.watched, func(key []byte, cells [][]byte) error {
		rows++
		entry := c.appendEntry(nil, key, cells)
		found, ok, err := entries.Get(entry, entries.All, nil)
		switch i := entries.Schema.Index(RowColumn); {
		case err != nil:
			return err
		case !ok:
			return fault.Corruptf("no entry of row %s", c.keyText(v, key))
		case i >= 0 && !bytes.Equal(found[i], key):
			return fault.Corruptf("the entry of row %s is of row %s", c.keyText(v, key), c.keyText(v, found[i]))
		case plan.clock >= 0 && !equalCells(found[entries.Schema.Index(clockColumn)], cells[plan.clock]):
			return fault.Corruptf("the entry of row %s expires at another time", c.keyText(v, key))
		}
		return nil
	})
	if err == nil {
		err = entries.each(ctx, nil, func([]byte, [][]byte) error { n++; return nil })
	}
	if err == nil && n != rows {
		err = fault.Corruptf("%d entries of %d rows", n, rows)
	}
	if err != nil {
		return fmt.Errorf("index %q: %w", c.Table.Index().Name, err)
	}
	return nil
}

func (c *IndexColumns) keyText(v *View, key []byte) string {
	return celltext.KeyText(v.Schema, v.Encoder, key)
}

// each calls use with the key and some cells of each row that v sees, in key order. Both are valid until use
// returns.
func (v *View) each(ctx context.Context, columns []int, use func(key []byte, cells [][]byte) error) error {
	it, err := v.Ref().Scan(scan.Options{Columns: columns, Filter: v.Alive(batch.Filter{}), Keys: true}, true)
	if err != nil {
		return err
	}
	defer it.Close()
	cells := make([][]byte, len(columns))
	for n := 0; it.Next(); {
		rows, keys := it.Batch(), it.Keys()
		for i := rows.Selection.Next(0); i >= 0; i = rows.Selection.Next(i + 1) {
			if n++; n%checkEvery == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			for k := range columns {
				cells[k] = rows.Columns[k].Cell(i)
			}
			if err := use(keys[i], cells); err != nil {
				return err
			}
		}
	}
	return it.Close()
}
