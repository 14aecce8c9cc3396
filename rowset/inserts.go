package rowset

import (
	"runtime"
	"slices"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/delta"
	"github.com/oribi-db/oribi/mvcc"
)

var deleteList = change.List(change.AppendDelete(nil))

// WriteInserts completes rowsets that a Writer has finished without changes: it writes an undo file
// with a DELETE at ts for each row and updates the metadata. It processes as many rowsets in
// parallel as there are CPUs.
//
// It is for rows whose timestamp is known only after all their other data is on disk. The undo
// files compress to a fraction of a byte per row, so little is left to write at that time.
func WriteInserts(c Creation, rows []*Metadata, ts mvcc.Timestamp) error {
	for some := range slices.Chunk(rows, runtime.GOMAXPROCS(0)) {
		files := make([]output[*delta.Writer], len(some))
		for i := range files {
			var err error
			if files[i], err = newOutput(c, func(sink block.Sink) (*delta.Writer, error) { return delta.NewWriter(sink, true) }); err != nil {
				return err
			}
		}
		err := onCPUs(len(some), func(i int) error {
			for n := range uint32(some[i].Rows) {
				if err := files[i].w.Append(change.Delta{Row: n, TS: ts, List: deleteList}); err != nil {
					return err
				}
			}
			_, err := files[i].w.Finish()
			return err
		})
		if err != nil {
			return err
		}
		for i, row := range some {
			sink := files[i].sink
			if err := c.Finish(sink); err != nil {
				return err
			}
			row.Undo = []block.ID{sink.ID()}
			row.MaxTimestamp = ts
			row.Bytes += sink.Size()
		}
	}
	return nil
}
