package delta

import (
	"cmp"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/kudupb"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// Stats summarizes the contents of a delta file, so that most readers need not read it. It is
// stored as a DeltaStatsPB in the footer pair "deltafilestats":
//
//	no.  type     field            meaning
//	1    int64    delete_count     deletes
//	2             –                retired
//	2             –                no longer used
//	4    fixed64  max_timestamp    newest change; 0 in a file without any
//	5    message  column_stats     for each changed column, in any order:
//	              1 int32 col_id, 2 int64 update_count (updates and reinserts that set it)
//	6    int64    reinsert_count   reinserts
//
// 1 delete, timestamps 7 to 9, column 11 updated three times:
// 08 01 19 07 00 00 00 00 00 00 00 21 09 00 00 00 00 00 00 00 2a 04 08 0b 10 03 30 00
//
// Source: tablet spec §6.4.
type Stats struct {
	Deletes   int64
	Reinserts int64
	Columns   []ColumnUpdates // by ascending ID; columns that no change sets are absent
	Min, Max  mvcc.Timestamp  // inclusive
}

// ColumnUpdates is the number of changes that set one column.
type ColumnUpdates struct {
	ID      schema.ColumnID
	Updates int64
}

// emptyStats returns the statistics of no changes.
func emptyStats() Stats { return Stats{Min: mvcc.Max, Max: mvcc.Min} }

// Updates returns the number of changes that set a column.
func (s *Stats) Updates(id schema.ColumnID) int64 {
	if i, ok := s.find(id); ok {
		return s.Columns[i].Updates
	}
	return 0
}

func (s *Stats) find(id schema.ColumnID) (int, bool) {
	return slices.BinarySearchFunc(s.Columns, id, func(c ColumnUpdates, id schema.ColumnID) int {
		return cmp.Compare(c.ID, id)
	})
}

// set reports whether a change sets one of columns, which ascend. nil stands for all columns.
func (s *Stats) set(columns []schema.ColumnID) bool {
	if columns == nil {
		return true
	}
	for i := range s.Columns {
		c := &s.Columns[i]
		if _, found := slices.BinarySearch(columns, c.ID); found && c.Updates > 0 {
			return true
		}
	}
	return false
}

// add counts one change, whose list must be valid.
func (s *Stats) add(ts mvcc.Timestamp, list change.List) {
	s.Min, s.Max = min(s.Min, ts), max(s.Max, ts)
	switch list.Kind() {
	case change.Delete:
		s.Deletes++
		return
	case change.Reinsert:
		s.Reinserts++
	}
	columns := list.Columns()
	for id, _, ok := columns.Next(); ok; id, _, ok = columns.Next() {
		i, known := s.find(id)
		if !known {
			s.Columns = slices.Insert(s.Columns, i, ColumnUpdates{ID: id})
		}
		s.Columns[i].Updates++
	}
}

func (s *Stats) encode() ([]byte, error) {
	pb := &kudupb.DeltaStatsPB{
		DeleteCount:   &s.Deletes,
		MinTimestamp:  proto.Uint64(uint64(s.Min)),
		MaxTimestamp:  proto.Uint64(uint64(s.Max)),
		ReinsertCount: &s.Reinserts,
	}
	for i := range s.Columns {
		c := &s.Columns[i]
		pb.ColumnStats = append(pb.ColumnStats,
			&kudupb.DeltaStatsPB_ColumnStats{ColId: proto.Int32(int32(c.ID)), UpdateCount: &c.Updates})
	}
	return proto.MarshalOptions{Deterministic: true}.Marshal(pb)
}

// decodeStats decodes a DeltaStatsPB. Errors: ErrCorrupt.
func decodeStats(b []byte) (Stats, error) {
	var pb kudupb.DeltaStatsPB
	if err := proto.Unmarshal(b, &pb); err != nil {
		return Stats{}, fault.Corruptf("delta statistics: %v", err)
	}
	s := Stats{
		Deletes:   pb.GetDeleteCount(),
		Reinserts: pb.GetReinsertCount(),
		Min:       mvcc.Timestamp(pb.GetMinTimestamp()),
		Max:       mvcc.Timestamp(pb.GetMaxTimestamp()),
		Columns:   make([]ColumnUpdates, 0, len(pb.GetColumnStats())),
	}
	if s.Deletes < 0 || s.Reinserts < 0 {
		return Stats{}, fault.Corruptf("delta statistics: %d deletes, %d reinserts", s.Deletes, s.Reinserts)
	}
	for _, c := range pb.GetColumnStats() {
		if c.GetColId() < 0 || c.GetUpdateCount() < 0 {
			return Stats{}, fault.Corruptf("delta statistics: column %d: %d updates", c.GetColId(), c.GetUpdateCount())
		}
		s.Columns = append(s.Columns, ColumnUpdates{schema.ColumnID(c.GetColId()), c.GetUpdateCount()})
	}
	slices.SortFunc(s.Columns, func(a, b ColumnUpdates) int { return cmp.Compare(a.ID, b.ID) })
	for i := 1; i < len(s.Columns); i++ {
		if s.Columns[i].ID == s.Columns[i-1].ID {
			return Stats{}, fault.Corruptf("delta statistics: duplicate column %d", s.Columns[i].ID)
		}
	}
	return s, nil
}

// equal reports whether both are the same, except for columns without updates.
func (s *Stats) equal(o *Stats) bool {
	same := s.Deletes == o.Deletes && s.Reinserts == o.Reinserts && s.Min == o.Min && s.Max == o.Max
	used := func(columns []ColumnUpdates) []ColumnUpdates {
		return slices.DeleteFunc(slices.Clone(columns), func(c ColumnUpdates) bool { return c.Updates == 0 })
	}
	return same && slices.Equal(used(s.Columns), used(o.Columns))
}
