package tablet

import (
	"context"

	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/record"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/rowset"
)

// Sets calls use with each rowset, in the order of first keys, until an error.
func (t *Tablet) Sets(ctx context.Context, use func(d *rowset.DiskRowSet) error) error {
	return t.eachSet(ctx, func(d *rowset.DiskRowSet, _ *rowset.Metadata) error { return use(d) })
}

// Contains reports whether the files contain an operation of the log because of its schema version.
func (t *Tablet) Contains(op *record.Op, at lsn.LSN) bool {
	row := t.Metadata()
	return op.SchemaVersion < row.SchemaVersion && at <= row.FlushedLSN
}

// Fits reports whether an operation of the log can be applied to the table.
func (t *Tablet) Fits(op *record.Op) bool {
	sc := t.Schema()
	if op.SchemaVersion != sc.Version {
		return false
	}
	if _, err := sc.Encoder.Decode(op.Key); err != nil {
		return false
	}
	switch op.Kind {
	case change.Update:
		return change.List(op.Body).Check(sc.Schema) == nil
	case change.Insert, change.Replace:
		return sc.RowFormat.Check(op.Body) == nil
	}
	return true
}

// AutoValue returns the value of the auto-incrementing column in an insert that fits, 0 if there is
// no such column.
func (t *Tablet) AutoValue(op *record.Op) int64 {
	sc := t.Schema()
	if sc.auto < 0 || op.Kind != change.Insert {
		return 0
	}
	return autoValue(sc.RowFormat.Cell(op.Body, sc.auto))
}

// NeedsLog reports whether the table needs records up to an LSN: its files do not contain them.
func (t *Tablet) NeedsLog(lsn lsn.LSN) bool {
	st := t.state.Load()
	if t.Metadata().FlushedLSN < lsn {
		return true
	}
	for _, d := range st.tree.Sets {
		if d.Metadata().IncludedLSN < lsn {
			return true
		}
	}
	return false
}
