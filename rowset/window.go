package rowset

import (
	"slices"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/delta"
)

// windowBytes is about what the cells of a window, and the changes to them, may take as they are
// stored. Many rowsets may be read side by side, a window of each in memory. Rows of up to 256
// bytes come in whole windows of batch.WindowRows.
const windowBytes = 1 << 20

// leastWindow is the smallest window, rows.
const leastWindow = 16

// windowRows is how many rows a window has, of as many as take so many bytes: a power of two, so
// that windows end where whole ones would.
func windowRows(bytes, rows int64) batch.Ordinal {
	n := int64(batch.WindowRows)
	for n > leastWindow && bytes/max(rows, 1)*n > windowBytes {
		n /= 2
	}
	return batch.Ordinal(n)
}

// windowOf is the window for reading columns, which are indexes in the schema, with their changes;
// it puts cols in order. It opens the columns' files where rows are so long that it matters.
// Errors: ErrCorrupt.
func (d *DiskRowSet) windowOf(cols []int, deltas *delta.Tracker) (batch.Ordinal, error) {
	m := d.Metadata()
	if whole := windowRows(m.Bytes, m.Rows); whole == batch.WindowRows {
		return whole, nil
	}
	bytes := int64(0)
	slices.Sort(cols)
	for _, col := range slices.Compact(cols) {
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
	return windowRows(bytes, m.Rows), nil
}
