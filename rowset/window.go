package rowset

import (
	"slices"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/delta"
	"github.com/oribi-db/oribi/schema"
)

// windowBytes is the approximate limit for the stored bytes of a window's cells and changes. Many
// rowsets may be read at the same time, each with a window in memory. With rows of up to 256 bytes,
// windows have the full batch.WindowRows.
const windowBytes = 1 << 20

// leastWindow is the minimum number of rows of a window.
const leastWindow = 16

// windowRows returns the number of rows of a window of rows with that total size: a power of two,
// so that windows end at the same positions as full ones.
func windowRows(bytes, rows int64) batch.Ordinal {
	n := int64(batch.WindowRows)
	for n > leastWindow && bytes/max(rows, 1)*n > windowBytes {
		n /= 2
	}
	return batch.Ordinal(n)
}

// windowOf returns the number of rows of a window for reading columns with their changes. If rows may be long, it calls
// columns, which returns a list of indexes in the schema that may be changed, and opens the
// columns' files to learn their sizes. Errors: ErrCorrupt.
func (d *DiskRowSet) windowOf(columns func() []int, deltas *delta.Tracker) (batch.Ordinal, error) {
	m := d.Metadata()
	if whole := windowRows(m.Bytes, m.Rows); whole == batch.WindowRows &&
		batch.RowsOf(len(d.columns)*batch.CellBytes(schema.Binary)) == batch.WindowRows {
		return whole, nil
	}
	cols, bytes, cells := columns(), int64(0), 0
	slices.Sort(cols)
	cols = slices.Compact(cols)
	for _, col := range cols {
		cells += batch.CellBytes(d.Schema.Columns[col].Type)
	}
	most := batch.Ordinal(batch.RowsOf(cells))
	if windowRows(m.Bytes, m.Rows) == batch.WindowRows {
		return most, nil
	}
	for _, col := range cols {
		f, err := d.File(col)
		if err != nil {
			return 0, err
		}
		if f != nil {
			bytes += f.Info().Bytes
		}
	}
	for _, files := range [2][]*delta.File{deltas.Undo, deltas.Redo} {
		for _, f := range files {
			bytes += f.Bytes()
		}
	}
	return min(most, windowRows(bytes, m.Rows)), nil
}
