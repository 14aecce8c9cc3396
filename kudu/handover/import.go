package handover

import (
	"context"
	"fmt"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/kudu"
	"github.com/oribi-db/oribi/mvcc"
)

// ImportOptions change what Import copies. The zero value is the default.
type ImportOptions struct {
	// Name of the new table. Default: the name of the table in the directory.
	Name string

	// RowsOnly leaves the history out: only the rows as of AsOf are copied, encoded again. They are
	// inserted at AsOf, or at the time of the newest operation if that is earlier, which is also
	// when the history of the new table begins, however long ago that is.
	RowsOnly bool
	AsOf     mvcc.Timestamp
}

// Import copies a table from a Kudu directory into a store, as a new table: all its tablets, or the
// one tablet that was opened. It is one metadata commit. The schema has the columns, their IDs and
// defaults; the partitions are not kept.
//
// Reads of the new table as of from.KeptSince() or any later timestamp return what the server would
// have returned, with o.RowsOnly as of the time of the rows or any later timestamp. The table keeps
// its history forever, since all of it may be older than the store's default, unless Table.Alter
// with SetHistory shortens it. Column files have no zone maps before the next compaction.
//
// Nothing is written if the store refuses the table. Errors: ErrExists if the store has a table
// with the name; ErrFuture if an operation is more than 10 s ahead of the machine's clock;
// ErrSchema; ErrCorrupt for damage, also in blocks that a read of the rows does not need; the
// errors of oribi.Store.Adopt.
func Import(ctx context.Context, to *oribi.Store, from *kudu.Table, o ImportOptions) (*oribi.Table, error) {
	a := oribi.Adoption{Name: o.Name, Schema: from.Schema, SchemaVersion: from.SchemaVersion,
		HistoryFloor: from.KeptSince(), RowSets: from.RowSets(ctx)}
	if a.Name == "" {
		a.Name = from.Name
	}
	if o.RowsOnly {
		ts := max(min(o.AsOf, from.Newest()), mvcc.First)
		a.HistoryFloor, a.RowSets = ts, encoded(ctx, from, mvcc.AsOf(o.AsOf), ts)
	}
	// Adopt checks the timestamps too, but only after it has copied the files.
	if err := to.AdvanceClock(from.Newest()); err != nil {
		return nil, fmt.Errorf("handover: import table %q: %w", a.Name, err)
	}
	return to.Adopt(ctx, a, oribi.History(oribi.HistoryForever))
}
