package compaction

import (
	"context"
	"fmt"
	"slices"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/delta"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/rowset"
	"github.com/oribi-db/oribi/schema"
)

// DeltaJob is one delta compaction of one rowset. It reads files only, never the delta mem store:
// changes may be made concurrently. What it writes becomes part of the table only by the caller's
// metadata commit of the row that it returns. Row IDs stay what they are.
type DeltaJob struct {
	Set *rowset.DiskRowSet
	// State is what of Set is compacted: no other delta compaction and no flush changes it
	// concurrently.
	State    *rowset.State
	Creation rowset.Creation
	// Floor is the earliest timestamp at which the result must still answer reads; Min keeps
	// everything.
	Floor mvcc.Timestamp
}

// Minor writes one file of redos in place of several; nil when there are not several. Every change
// stays what it is, and changes of one row and timestamp stay in their order. Errors: ctx's;
// ErrCorrupt. Source: tablet spec §14.1.
func Minor(ctx context.Context, job DeltaJob) (*rowset.Metadata, error) {
	files := job.State.Deltas.Redo
	if len(files) < 2 {
		return nil, nil
	}
	out := deltaFile{creation: job.Creation}
	rows := job.State.Meta.Rows
	err := delta.MergeRedos(files, job.Set.Schema, func(d change.Delta) error {
		if int64(d.Row) >= rows {
			return errRowBeyond(job.State, d.Row)
		}
		if out.count++; out.count%ctxEvery == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		return out.append(d)
	})
	if err != nil {
		return nil, err
	}
	row := *job.State.Meta
	row.Bytes -= sizeOf(files)
	if row.Redo, err = out.finish(&row.Bytes); err != nil {
		return nil, err
	}
	return &row, nil
}

// ctxEvery is after how many deltas a context is asked.
const ctxEvery = 4096

func errRowBeyond(s *rowset.State, row uint32) error {
	return fault.Corruptf("rowset %d: a change of row %d, of %d rows", s.Meta.ID, row, s.Meta.Rows)
}

func sizeOf(files []*delta.File) (n int64) {
	for _, f := range files {
		n += f.Bytes()
	}
	return n
}

// DropUndos is the rowset's metadata row without the undo files that no read at floor or later
// needs; nil when it needs all.
//
// Undo files may overlap in time, after major compactions of some columns, so each file is
// looked at alone. Nothing is read or written. Source: tablet spec §14.4.
func DropUndos(s *rowset.State, floor mvcc.Timestamp) *rowset.Metadata {
	if !slices.ContainsFunc(s.Deltas.Undo, func(f *delta.File) bool { return stale(f, floor) }) {
		return nil
	}
	row := *s.Meta
	row.Undo = nil
	for _, f := range s.Deltas.Undo {
		if stale(f, floor) {
			row.Bytes -= f.Bytes()
		} else {
			row.Undo = append(row.Undo, f.ID)
		}
	}
	return &row
}

// Gone reports whether no read at floor or later sees a row of the rowset: all were deleted at or
// below the floor, and files have it. Nothing can happen to such a rowset any more. Source: tablet
// spec §14.5.
func Gone(s *rowset.State, floor mvcc.Timestamp) bool {
	return s.Meta.LiveRows == 0 && s.Deltas.Mem.Empty() && s.Deltas.MaxTimestamp() <= floor
}

// UpdatedColumns is the indexes in the schema of the columns that redos in files change, rising.
func UpdatedColumns(s *schema.Schema, t *delta.Tracker) []int {
	var cols []int
	for i := s.Keys; i < len(s.Columns); i++ {
		id := s.Columns[i].ID
		if slices.ContainsFunc(t.Redo, func(f *delta.File) bool { st := f.Stats(); return st.Updates(id) > 0 }) {
			cols = append(cols, i)
		}
	}
	return cols
}

// deltaFile is a delta file to be written, begun by its first delta.
type deltaFile struct {
	creation rowset.Creation
	undo     bool
	count    int64 // the caller's
	sink     block.Sink
	w        *delta.Writer
}

func (f *deltaFile) append(d change.Delta) (err error) {
	if f.w == nil {
		if f.sink, err = f.creation.Create(); err != nil {
			return err
		}
		if f.w, err = delta.NewWriter(f.sink, f.undo); err != nil {
			return err
		}
	}
	return f.w.Append(d)
}

// finish ends the file, if there is one, and adds its size to bytes.
func (f *deltaFile) finish(bytes *int64) ([]block.ID, error) {
	if f.w == nil {
		return nil, nil
	}
	if _, err := f.w.Finish(); err != nil {
		return nil, err
	}
	if err := f.creation.Finish(f.sink); err != nil {
		return nil, fmt.Errorf("block %d: %w", f.sink.ID(), err)
	}
	*bytes += f.sink.Size()
	return []block.ID{f.sink.ID()}, nil
}
