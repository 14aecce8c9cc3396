package rowset

import (
	"github.com/oribi-db/oribi/delta"
	"github.com/oribi-db/oribi/internal/block"
	"github.com/oribi-db/oribi/internal/change"
	"github.com/oribi-db/oribi/internal/meta"
	"github.com/oribi-db/oribi/mvcc"
)

var deleteList = change.List(change.AppendDelete(nil))

// WriteInserts gives rowsets, which a Writer has finished without any change, their beginning in time: an undo file with a DELETE at
// ts for each row. The metadata rows are completed.
//
// It serves rows whose timestamp is known only when all else of them is on disk: a delta of some bytes a row, packed to a fraction of
// one, is all that is left to write then.
func WriteInserts(c Creation, rows []*meta.RowSet, ts mvcc.Timestamp) error {
	return parallel(len(rows), func(i int) error {
		row := rows[i]
		p, err := newPart(c, func(sink block.Sink) (*delta.Writer, error) { return delta.NewWriter(sink, true) })
		if err != nil {
			return err
		}
		for n := range uint32(row.Rows) {
			if err := p.w.Append(change.Delta{Row: n, TS: ts, List: deleteList}); err != nil {
				return err
			}
		}
		if _, err := p.w.Finish(); err != nil {
			return err
		}
		if err := c.Finish(p.sink); err != nil {
			return err
		}
		row.Undo = []block.ID{p.sink.ID()}
		row.MaxTimestamp = ts
		row.Bytes += p.sink.Size()
		return nil
	})
}
