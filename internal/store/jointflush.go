package store

import (
	"context"
	"errors"
	"slices"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/tablet"
)

// Bounds of a joint flush. A metadata commit takes the time in which some 100 small tables are
// written, so more tables in one save little, and their changes since the cutover points would take
// more memory.
const (
	jointTables = 256
	jointBytes  = 16 << 20 // of memory of all tables
	jointShare  = 1 << 20  // of one table; a table with more is flushed alone
)

// FlushAll flushes tables, of which many small ones share a metadata commit. It passes over dropped
// tables. It returns the number of bytes that it wrote to new files. Errors: the errors of a flush,
// after which some of the tables may have been flushed.
func (w *Writer) FlushAll(ctx context.Context, tables []*tablet.Tablet) (written int64, err error) {
	tables = slices.SortedFunc(slices.Values(tables), tablet.Compare)
	var group []*tablet.Tablet
	bytes := int64(0)
	flush := func() error {
		n, err := tablet.FlushTogether(ctx, group)
		written += n
		group, bytes = group[:0], 0
		return err
	}
	for _, t := range slices.Compact(tables) {
		rows, changes := t.MemBytes()
		if rows+changes > jointShare {
			r, err := t.Flush(ctx)
			if written += r.BytesWritten; err != nil && !errors.Is(err, fault.ErrNoTable) {
				return written, err
			}
			continue
		}
		group, bytes = append(group, t), bytes+rows+changes
		if len(group) == jointTables || bytes >= jointBytes {
			if err := flush(); err != nil {
				return written, err
			}
		}
	}
	return written, flush()
}
