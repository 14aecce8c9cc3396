package rewrite

import (
	"maps"
	"slices"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/delta"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/rowset"
	"github.com/oribi-db/oribi/schema"
)

// Ages are the timestamps by which DescribeDeltas tells old files.
type Ages struct {
	First mvcc.Timestamp // the lowest that can be read
	// Rest is the timestamp up to which the base and the redos of a rowset at rest were written. With
	// 0 no rowset is at rest.
	Rest mvcc.Timestamp
	Now  mvcc.Timestamp // the present time; 0 if it is not known
	// Opened is the time when the table was opened. A table is not idle before: a process that opens
	// it for a moment does not fold what others have written.
	Opened mvcc.Timestamp
}

// DescribeDeltas describes a rowset of a table to compaction.PickDeltas. files says which row files
// the table has, and lengths returns the sizes of blocks.
func DescribeDeltas(s *rowset.State, table *schema.Schema, ages Ages, files schema.RowFile,
	lengths func(dst []int64, ids ...block.ID) []int64) compaction.DeltaInfo {
	in := compaction.DeltaInfo{
		RowSet:    s.Meta.ID,
		Rows:      s.Meta.Rows,
		RedoBytes: sizeOf(s.Deltas.Redo),
		Redos:     len(s.Deltas.Redo),
		Updated:   updatedColumns(s, table, lengths),
		OfColumns: len(s.Meta.Columns),
		Gone:      Gone(s, ages.First),
	}
	in.BaseBytes = s.Meta.Bytes - in.RedoBytes - sizeOf(s.Deltas.Undo)
	for _, f := range s.Deltas.Redo {
		in.LargestRedo = max(in.LargestRedo, f.Bytes())
	}
	in.RowFileBytes = s.Meta.RowFileBytes
	switch files {
	case schema.NoRowFile: // a row file that the rowset still has is dropped
		in.RowFileBytes = 0
	case schema.AutoRowFile: // see rowset.DiskRowSet.KeepsRowFile
		in.Spare = len(table.Columns) / 2
	}
	if since := max(s.Meta.Written, ages.Opened); ages.Now > since {
		in.Age = ages.Now.Time().Sub(since.Time())
	}
	if ages.Rest > 0 && s.Meta.Written <= ages.Rest && len(in.Updated) == 0 && s.Deltas.Mem.Empty() {
		in.Recompressible, in.Written = len(s.Meta.Recompressible(table)), s.Meta.Written
	}
	for _, f := range s.Deltas.Undo {
		if stale(f, ages.First) {
			in.StaleUndos++
			in.StaleBytes += f.Bytes()
		}
	}
	if !slices.ContainsFunc(s.Meta.Births, func(b delta.Birth) bool { return b.TS > ages.First }) {
		in.StaleBirths = len(s.Meta.Births)
	}
	return in
}

// changeBytes is the size of a change in a file besides its cells, about.
const changeBytes = 8

// updatedColumns returns the columns that the redos of a rowset change. It divides the bytes of the
// redos among them by the numbers of changes, each of which has the size of a cell in the column's
// file and changeBytes.
func updatedColumns(s *rowset.State, table *schema.Schema,
	lengths func(dst []int64, ids ...block.ID) []int64) (list []compaction.UpdatedColumn) {
	updates := map[schema.ColumnID]int64{}
	sum, total := 0.0, sizeOf(s.Deltas.Redo)
	for _, f := range s.Deltas.Redo {
		stats := f.Stats()
		sum += changeBytes * float64(stats.Deletes)
		for _, c := range stats.Columns {
			updates[c.ID] += c.Updates
		}
	}
	if len(updates) == 0 {
		return nil
	}
	sizes := make(map[schema.ColumnID]int64, len(updates))
	for _, c := range s.Meta.Columns {
		if updates[c.ID] > 0 {
			sizes[c.ID] = max(0, lengths(nil, c.Block)[0])
		}
	}
	redo := func(id schema.ColumnID) float64 {
		return float64(updates[id]) * (changeBytes + float64(sizes[id])/float64(s.Meta.Rows))
	}
	ids := slices.Sorted(maps.Keys(updates))
	for _, id := range ids {
		sum += redo(id)
	}
	for _, id := range ids {
		c := compaction.UpdatedColumn{Bytes: sizes[id], Redo: int64(redo(id) / sum * float64(total))}
		if i := table.IndexID(id); i >= 0 {
			c.Name = table.Columns[i].Name
		}
		list = append(list, c)
	}
	return list
}

// stale reports whether no read at first or later needs an undo file: an undo at ts leads to the
// state before ts.
func stale(f *delta.File, first mvcc.Timestamp) bool { return f.Stats().Max <= first }

// Gone reports whether no read at first or later sees any row of the rowset: all rows were deleted
// at or before first. Such a rowset never changes again. Some of the deletes may be in memory only.
// Source: tablet spec §14.5.
func Gone(s *rowset.State, first mvcc.Timestamp) bool {
	live := s.Meta.LiveRows
	if mem := s.Deltas.Mem; mem != nil {
		live -= mem.Deleted()
	}
	return live == 0 && s.Deltas.MaxTimestamp() <= first
}
