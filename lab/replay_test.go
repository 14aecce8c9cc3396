package lab

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/internal/must"
)

// A replay brings what was flushed: not jobs that begin, failed, are of other kinds or of other
// tables.
func TestReplayBringsOnlyWhatWasFlushed(t *testing.T) {
	name := filepath.Join(t.TempDir(), "events.jsonl")
	f := must.Get(os.Create(name))(t)
	rowset := func(id uint64, from, to string) []compaction.RowSetInfo {
		return []compaction.RowSetInfo{{ID: id, MinKey: []byte(from), MaxKey: []byte(to),
			Rows: 10, LiveRows: 9, Bytes: 1000}}
	}
	log := compaction.NewEventLog(f)
	before := compaction.Layout{Table: "t", RowSetBytes: 5000, RowSets: rowset(1, "a", "m")}
	for _, e := range []compaction.Event{
		{Kind: compaction.Flush, Table: "other", Outputs: rowset(9, "a", "z"), BytesWritten: 1000},
		{Kind: compaction.Flush, Table: "t", Begin: true, Before: before},
		{Kind: compaction.Flush, Table: "t", Err: errors.New("failed"), Outputs: rowset(2, "b", "c"), Before: before},
		{Kind: compaction.Flush, Table: "t", Outputs: rowset(3, "b", "z"), BytesWritten: 1000,
			Before: before, After: before},
		{Kind: compaction.Merge, Table: "t", Inputs: rowset(3, "b", "z"),
			Outputs: rowset(4, "b", "z"), BytesWritten: 1000},
		{Kind: compaction.DeltaFlush, Table: "t", Outputs: rowset(1, "a", "b"), BytesWritten: 300},
		{Kind: compaction.Ingest, Table: "t", Outputs: rowset(5, "zz", "zzz"), BytesWritten: 1000},
	} {
		e.Time = time.Unix(1, 0)
		log.Record(e)
	}
	must.Do(t, errors.Join(log.Err(), f.Close()))
	s := &Spec{Workloads: []Workload{{Name: "replay", Events: name, Table: "t"}}, Policies: []Policy{{Name: "none"}}}
	e := end(resultsOf(t, s)[0])
	if e.Operations != 3 || e.RowSets != 3 || e.Bytes != 3300 || e.WrittenBytes != 3300 || e.LiveRows != 27 {
		t.Errorf("%+v", e)
	}
	s.Workloads[0].Table = "absent"
	must.Refuse(t, must.Err(Results(t.Context(), s, nil)), "replayed a table that the log does not have")
}
