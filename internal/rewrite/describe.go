package rewrite

import (
	"slices"

	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/delta"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/rowset"
	"github.com/oribi-db/oribi/schema"
)

// DescribeDeltas describes a rowset of a table with that schema to compaction.PickDeltas. floor is
// the history floor. The rowset may be at rest if its base and its redos were written at or before
// the timestamp rest. With rest 0 no rowset is at rest.
func DescribeDeltas(s *rowset.State, table *schema.Schema, floor, rest mvcc.Timestamp) compaction.DeltaInfo {
	in := compaction.DeltaInfo{
		RowSet:    s.Meta.ID,
		RedoBytes: sizeOf(s.Deltas.Redo),
		Redos:     len(s.Deltas.Redo),
		OfColumns: len(s.Meta.Columns),
		Gone:      Gone(s, floor),
	}
	in.BaseBytes = s.Meta.Bytes - in.RedoBytes - sizeOf(s.Deltas.Undo)
	var updated []schema.ColumnID
	for _, f := range s.Deltas.Redo {
		for _, c := range f.Stats().Columns {
			updated = append(updated, c.ID)
		}
	}
	slices.Sort(updated)
	in.Columns = len(slices.Compact(updated))
	if rest > 0 && s.Meta.Written <= rest && in.Columns == 0 && s.Deltas.Mem.Empty() {
		in.Recompressible, in.Written = len(s.Meta.Recompressible(table)), s.Meta.Written
	}
	for _, f := range s.Deltas.Undo {
		if stale(f, floor) {
			in.StaleUndos++
			in.StaleBytes += f.Bytes()
		}
	}
	if !slices.ContainsFunc(s.Meta.Births, func(b delta.Birth) bool { return b.TS > floor }) {
		in.StaleBirths = len(s.Meta.Births)
	}
	return in
}

// stale reports whether no read at floor or later needs an undo file: an undo at ts leads to the
// state before ts.
func stale(f *delta.File, floor mvcc.Timestamp) bool { return f.Stats().Max <= floor }

// Gone reports whether no read at floor or later sees any row of the rowset: all rows were deleted
// at or below the floor. Such a rowset never changes again. Some of the deletes may be in memory only.
// Source: tablet spec §14.5.
func Gone(s *rowset.State, floor mvcc.Timestamp) bool {
	live := s.Meta.LiveRows
	if mem := s.Deltas.Mem; mem != nil {
		live -= mem.Deleted()
	}
	return live == 0 && s.Deltas.MaxTimestamp() <= floor
}
