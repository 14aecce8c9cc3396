// Package rewrite writes the rowsets and files that replace others in a table.
//
// Run rewrites rows, both for a flush, whose only input is the MemRowSet, and for a merging
// compaction, whose inputs are rowsets. It merges rows by key, applies their redos to the base,
// keeps the undos, joins the histories of a key that was deleted in one input and inserted again in
// another, and drops versions that are not retained. The new files become part of the table by
// the caller's metadata commit.
//
// Minor, Major, and Recompress rewrite files of one rowset, whose rows keep their IDs: Minor merges
// several redo files into one, Major applies the redos of some columns to the base, and Recompress
// rewrites columns so that they take less space. DropUndos drops undo files that no
// read needs. Package compaction chooses which of these are due; DescribeDeltas describes a
// rowset for that choice.
//
// Run reads inputs as of one snapshot, with concurrent writers. Source: tablet spec §13 and §14.
//
// Simpler than Kudu: Run does not read the inputs a second time for concurrent changes. The stores
// record such changes in change logs, and the caller catches up from the change logs.
package rewrite

import (
	"context"

	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/rowset"
	"github.com/oribi-db/oribi/schema"
)

// Input returns rows with all their versions in key order, nil at the end. The rows, and everything
// they refer to, are valid until the next call.
type Input interface {
	Next() (*change.Rows, error)
}

// Bounded is an Input whose first key is known before it is read. Run begins to read it when the
// merge reaches that key, so that only one at a time of several rowsets with disjoint key ranges is
// in memory.
type Bounded interface {
	Input
	First() []byte
}

// Keeper is an Input whose rows stay valid for longer: Keeps returns how many results of Next are
// valid at a time, the last one included. With two, Run reads further rows while earlier ones are
// written.
type Keeper interface {
	Input
	Keeps() int
}

// Storer is an Input of rows that are stored in a rowset. A stretch of them that no other input
// overlaps, and that has no redos, is written as it is stored where possible, cblock by cblock.
// NextStored is Next without cells. Complete adds the cells to the rows that NextStored returned
// last.
type Storer interface {
	Input
	NextStored() (*rowset.StoredRows, error)
	Complete() error
}

// Job is one flush or merging compaction.
type Job struct {
	Schema *schema.Schema
	Inputs []Input
	// Retained says which states the result must have. Floor Min keeps everything.
	mvcc.Retained
	Writer *rowset.RollingWriter
	// Convert, if not nil, turns rows with the columns of Schema into rows with the columns of
	// Writer. It gets the rows that are written: what is not retained is gone. It is called by one
	// goroutine, in the order of the rows. Its argument is valid during the call, its result until
	// the next one. No rows are then written as they are stored.
	Convert func(*change.Rows) (*change.Rows, error)
	// Progress is called after each window of an input with the number of rows read so far. Nil
	// disables it.
	Progress func(rowsRead int64)
}

// Stats counts the rows of one Run, ghosts included.
type Stats struct{ RowsRead, RowsWritten int64 }

// Run rewrites the inputs into the job's writer, which the caller finishes. It reads and merges
// rows while a goroutine writes others, which has ended when Run returns. It needs memory for a
// window of each input (two of a Keeper) and a window of the output, and reuses it for all windows.
// The files do not depend on the number of processors. Errors: ctx.Err(); ErrCorrupt if histories
// contradict each other.
func Run(ctx context.Context, job Job) (stats Stats, err error) {
	m := &merger{job: job, folder: newFolder(job.Schema)}
	m.out = newOutput(&job, &m.folder)
	defer func() { // also if an input panics
		written, e := m.out.close()
		if err == nil {
			err = e
		}
		stats = Stats{RowsRead: m.read, RowsWritten: written}
	}()
	return stats, m.run(ctx)
}
