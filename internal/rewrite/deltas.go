package rewrite

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

// DeltaJob is one delta compaction of one rowset. It reads only files, not the delta mem store, so
// changes may be made concurrently. Its output becomes part of the table by the caller's metadata
// commit of the metadata that it returns. Row IDs do not change.
type DeltaJob struct {
	Set *rowset.DiskRowSet
	// State is the state of Set to compact. No other delta compaction or delta flush may change it
	// concurrently.
	State    *rowset.State
	Creation rowset.Creation
	// Retained says which states Major keeps; Floor Min keeps everything.
	mvcc.Retained
	// RowFile says whether Major writes a row file. With schema.AutoRowFile it does if the rowset has
	// a file that would not be of use any more. A row file of which half of the columns remain is left as
	// it is: the rewritten columns are then read from their files.
	RowFile schema.RowFile
	// Begin is called if there is something to do, before it is done, with the sum of the sizes of
	// the files that will be read, in bytes. Nil disables it.
	Begin func(bytes int64)
}

// begin calls job.Begin for a compaction that reads the redos and some of the columns, by their
// indexes.
func (job *DeltaJob) begin(cols []int) error {
	if job.Begin == nil {
		return nil
	}
	bytes := sizeOf(job.State.Deltas.Redo)
	for _, c := range cols {
		f, err := job.Set.File(c)
		if err != nil {
			return err
		}
		if f != nil { // the rowset was written after the column was added
			bytes += f.Info().Bytes
		}
	}
	job.Begin(bytes)
	return nil
}

// Minor merges several redo files into one; it returns nil if there are fewer than two. It keeps
// every change, and the order of changes of one row and timestamp. Errors: ctx.Err(); ErrCorrupt.
// Source: tablet spec §14.1.
func Minor(ctx context.Context, job DeltaJob) (*rowset.Metadata, error) {
	files := job.State.Deltas.Redo
	if len(files) < 2 {
		return nil, nil
	}
	if err := job.begin(nil); err != nil {
		return nil, err
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

// ctxEvery is the number of deltas between two checks of the context.
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

// DropUndos returns the rowset's metadata without the undo files and births that no read at first
// or later needs; nil if all are needed.
//
// Undo files may overlap in time, after major compactions of some columns, so each file is
// considered separately. DropUndos does no I/O. Source: tablet spec §14.4.
func DropUndos(s *rowset.State, first mvcc.Timestamp) *rowset.Metadata {
	staleBirth := func(b delta.Birth) bool { return b.TS <= first }
	if !slices.ContainsFunc(s.Deltas.Undo, func(f *delta.File) bool { return stale(f, first) }) &&
		!slices.ContainsFunc(s.Meta.Births, staleBirth) {
		return nil
	}
	row := *s.Meta
	row.Undo, row.Births = nil, slices.DeleteFunc(slices.Clone(row.Births), staleBirth)
	for _, f := range s.Deltas.Undo {
		if stale(f, first) {
			row.Bytes -= f.Bytes()
		} else {
			row.Undo = append(row.Undo, f.ID)
		}
	}
	return &row
}

// UpdatedColumns returns the schema indexes of the columns that redos in files change, ascending.
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

// deltaFile is a delta file that is created by its first delta.
type deltaFile struct {
	creation rowset.Creation
	undo     bool
	count    int64 // maintained by the caller
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

// finish finishes the file, if it was begun, and adds its size to bytes.
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
