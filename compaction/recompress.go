package compaction

import (
	"context"

	"github.com/oribi-db/oribi/cfile"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/rowset"
	"github.com/oribi-db/oribi/schema"
)

// RecompressSet rewrites columns of the base so that they take less space: those whose form is not the
// one that the schema wants of a rowset at rest, see schema.Compression.Harder, and for which that
// pays. It folds the redos of these columns, like a major compaction of them. All other files stay,
// except the row file, which is written anew. The metadata then says that the columns are in that
// form. RecompressSet returns nil if they are already.
//
// Errors: ctx.Err(); ErrCorrupt.
func RecompressSet(ctx context.Context, job DeltaJob) (*rowset.Metadata, error) {
	s := job.Set.Schema
	unsettled := job.State.Meta.Unsettled(s)
	if len(unsettled) == 0 {
		return nil, nil
	}
	if err := job.begin(job.columnsRead(unsettled)); err != nil {
		return nil, err
	}
	var cols []int
	var options []cfile.WriterOptions
	for _, i := range unsettled {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		o, worth, err := job.Set.Smallest(i)
		if err != nil {
			return nil, err
		}
		if worth {
			cols, options = append(cols, i), append(options, o)
		}
	}
	row := *job.State.Meta
	if len(cols) > 0 {
		m, err := runMajor(ctx, job, cols, options)
		if err != nil {
			return nil, err
		}
		row = *m
	}
	row.SetForms(s, unsettled, true)
	return &row, nil
}

// describeRest sets Unsettled if the rowset is at rest: its base and redos were written at or before
// rest, and no update waits to be applied to its base.
func (in *DeltaInfo) describeRest(s *rowset.State, table *schema.Schema, rest mvcc.Timestamp) {
	if rest > 0 && s.Meta.Written <= rest && in.Columns == 0 && s.Deltas.Mem.Empty() {
		in.Unsettled, in.Written = len(s.Meta.Unsettled(table)), s.Meta.Written
	}
}

// recompressBytes estimates what RecompressSet reads and writes. Columns count as equally large.
func (in *DeltaInfo) recompressBytes() int64 {
	return 2 * in.BaseBytes / int64(max(in.OfColumns, 1)) * int64(in.Unsettled)
}
