package rewrite

import (
	"context"

	"github.com/oribi-db/oribi/cfile"
	"github.com/oribi-db/oribi/rowset"
)

// Recompress rewrites columns of the base so that they take less space: the columns that are not in
// the form that the schema wants of a rowset at rest, see schema.Compression.Harder, and for which
// that form is smaller. It folds the redos of these columns, like a major compaction of them. All
// other files stay, except the row file, which is written anew. The metadata then says that the
// columns are in that form. Recompress returns nil if they are already.
//
// Errors: ctx.Err(); ErrCorrupt.
func Recompress(ctx context.Context, job DeltaJob) (*rowset.Metadata, error) {
	s := job.Set.Schema
	recompressible := job.State.Meta.Recompressible(s)
	if len(recompressible) == 0 {
		return nil, nil
	}
	if err := job.begin(columnsRead(job.Set.Schema, recompressible, job.writesRowFile(recompressible))); err != nil {
		return nil, err
	}
	var cols []int
	var options []cfile.WriterOptions
	for _, i := range recompressible {
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
	row.SetForms(s, recompressible, true)
	return &row, nil
}
