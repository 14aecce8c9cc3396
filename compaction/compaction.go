// Package compaction chooses which files to rewrite, and rewrites them.
//
// A Policy chooses: it is a pure function from bounds and sizes to a list of rowsets. Run rewrites,
// both for a flush (the MemRowSet is the only input) and for a merging compaction (rowsets are the
// inputs). It merges rows by key, applies their redos to the base, keeps undos that lead back,
// joins the histories of a key that was deleted in one input and inserted again in another, and
// drops versions below the history floor. The new files become part of the table by the caller's
// metadata commit.
//
// Delta compactions rewrite files of one rowset whose rows keep their IDs: Minor merges several
// redo files into one, Major applies the redos of some columns to the base, and DropUndos drops
// undo files that are below the history floor. PickDeltas chooses among them.
//
// Run reads inputs as of one snapshot, with concurrent writers. It is for one goroutine. Source:
// tablet spec §13.
//
// Simpler than Kudu: there is no second phase here that reads the inputs again for concurrent
// changes. The stores record such changes in change logs, and the caller catches up from these.
package compaction

import (
	"bytes"
	"context"
	"slices"

	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/fault"
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
// merge reaches that key, so that of rowsets whose key ranges do not overlap only one is in memory
// at a time.
type Bounded interface {
	Input
	First() []byte
}

// Job is one flush or merging compaction.
type Job struct {
	Schema *schema.Schema
	Inputs []Input
	// Floor is the lowest timestamp at which the result must be readable. Min keeps everything.
	Floor  mvcc.Timestamp
	Writer *rowset.RollingWriter
	// Progress is called after each window of an input with the number of rows read so far. Nil
	// disables it.
	Progress func(rowsRead int64)
}

// Stats counts the rows of one Run, ghosts included.
type Stats struct{ RowsRead, RowsWritten int64 }

// Run rewrites the inputs into the job's writer, which the caller finishes. It needs memory for one
// window of each input and one of the output, and reuses it for all windows. Errors: ctx.Err();
// ErrCorrupt if histories contradict each other.
func Run(ctx context.Context, job Job) (Stats, error) {
	m := &merger{job: job, folder: newFolder(job.Schema), out: newOutput(job.Schema, job.Floor, job.Writer)}
	err := m.run(ctx)
	return Stats{RowsRead: m.read, RowsWritten: m.out.written}, err
}

// head is an input and the position in its current rows.
type head struct {
	in    Input
	first []byte // of a bounded input until it is read
	rows  *change.Rows
	row   int // the next row
	undo  int // index in rows.Undo of the first undo of row or a later one
	redo  int
}

func (h *head) key() []byte {
	if h.rows == nil {
		return h.first
	}
	return h.rows.Keys[h.row]
}

// merger merges inputs by key.
type merger struct {
	job    Job
	heads  []*head // the inputs with rows left, by their next keys
	folder folder
	out    output
	read   int64 // rows

	// Reused for each step.
	taken    []*head
	versions []version
}

func (m *merger) run(ctx context.Context) error {
	for _, in := range m.job.Inputs {
		h := &head{in: in}
		if b, ok := in.(Bounded); ok {
			h.first = b.First()
			m.insert(h)
		} else if err := m.load(h); err != nil {
			return err
		}
	}
	for len(m.heads) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := m.step(); err != nil {
			return err
		}
	}
	return m.flush()
}

// flush writes the pending rows. After it the inputs and the folder may reuse their memory.
func (m *merger) flush() error {
	err := m.out.flush()
	m.folder.reuse()
	return err
}

// load reads an input's next rows, and inserts it into the heads if there are any.
func (m *merger) load(h *head) error {
	if h.rows != nil {
		// The pending rows refer to the rows that Next overwrites.
		if err := m.flush(); err != nil {
			return err
		}
	}
	rows, err := h.in.Next()
	if err != nil || rows == nil {
		return err
	}
	m.read += int64(len(rows.Keys))
	if m.job.Progress != nil {
		m.job.Progress(m.read)
	}
	if h.rows == nil && h.first != nil && !bytes.Equal(rows.Keys[0], h.first) {
		return fault.Corruptf("the first key of a rowset is %x, its metadata contain %x", rows.Keys[0], h.first)
	}
	*h = head{in: h.in, rows: rows}
	m.insert(h)
	return nil
}

// begin reads the first rows of the bounded inputs whose first key is the next of all.
func (m *merger) begin() error {
	for i := 0; i < len(m.heads) && bytes.Equal(m.heads[i].key(), m.heads[0].key()); {
		h := m.heads[i]
		if h.rows != nil {
			i++
			continue
		}
		m.heads = slices.Delete(m.heads, i, i+1)
		if err := m.load(h); err != nil {
			return err
		}
	}
	return nil
}

// insert inserts h into the heads, which are few.
func (m *merger) insert(h *head) {
	i := 0
	for i < len(m.heads) && bytes.Compare(m.heads[i].key(), h.key()) < 0 {
		i++
	}
	m.heads = slices.Insert(m.heads, i, h)
}

// step merges a run of rows of one input, or one key that several inputs have.
func (m *merger) step() error {
	if err := m.begin(); err != nil || len(m.heads) == 0 {
		return err
	}
	first := m.heads[0]
	same := 1
	for same < len(m.heads) && bytes.Equal(m.heads[same].key(), first.key()) {
		same++
	}
	var err error
	if same > 1 {
		err = m.join(m.heads[:same])
	} else {
		err = m.copy(first, m.runEnd(first))
	}
	if err != nil {
		return err
	}
	m.taken = append(m.taken[:0], m.heads[:same]...)
	m.heads = slices.Delete(m.heads, 0, same)
	for _, h := range m.taken {
		if h.row < len(h.rows.Keys) {
			m.insert(h)
		} else if err := m.load(h); err != nil {
			return err
		}
	}
	return nil
}

// runEnd returns the row of the first head before which all keys are below the other heads' next
// ones.
func (m *merger) runEnd(h *head) int {
	if len(m.heads) == 1 {
		return len(h.rows.Keys)
	}
	bound := m.heads[1].key()
	end := h.row + 1
	for end < len(h.rows.Keys) && bytes.Compare(h.rows.Keys[end], bound) < 0 {
		end++
	}
	return end
}

// copy moves rows [h.row, end) of one input to the output.
func (m *merger) copy(h *head, end int) error {
	if h.row == 0 && end == len(h.rows.Keys) {
		if done, err := m.out.appendAll(h.rows); done || err != nil {
			h.row = end
			return err
		}
	}
	for h.row < end {
		to := min(end, h.row+m.out.room())
		if h.redo < len(h.rows.Redo) {
			to = min(to, int(h.rows.Redo[h.redo].Row))
		}
		var err error
		if to > h.row {
			err = m.out.appendRun(h.rows, h.row, to, h.undosBefore(to))
			h.row = to
		} else {
			err = m.join([]*head{h})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// undosBefore moves past the undos of rows below row and returns them.
func (h *head) undosBefore(row int) []change.Delta {
	from := h.undo
	for h.undo < len(h.rows.Undo) && int(h.rows.Undo[h.undo].Row) < row {
		h.undo++
	}
	return h.rows.Undo[from:h.undo:h.undo]
}

func (h *head) redosBefore(row int) []change.Delta {
	from := h.redo
	for h.redo < len(h.rows.Redo) && int(h.rows.Redo[h.redo].Row) < row {
		h.redo++
	}
	return h.rows.Redo[from:h.redo:h.redo]
}

// join moves the next row, which has the same key in all of heads, to the output.
func (m *merger) join(heads []*head) error {
	key := heads[0].key()
	for len(m.versions) < len(heads) {
		m.versions = append(m.versions, version{cells: make([][]byte, len(m.job.Schema.Columns))})
	}
	versions := m.versions[:len(heads)]
	for i, h := range heads {
		if err := m.take(h, &versions[i]); err != nil {
			return err
		}
	}
	newest, err := m.folder.chain(versions)
	if err != nil {
		return err
	}
	if err := m.out.appendRow(key, newest); err != nil {
		return err
	}
	if m.folder.bytes() >= outBytes { // lists that the output dropped count too
		return m.flush()
	}
	return nil
}

// take folds an input's next row into v and moves past it.
func (m *merger) take(h *head, v *version) error {
	for i, col := range h.rows.Batch.Columns {
		v.cells[i] = col.Cell(h.row)
	}
	v.deleted = nil
	v.undo = h.undosBefore(h.row + 1)
	redo := h.redosBefore(h.row + 1)
	h.row++
	return m.folder.fold(v, redo)
}
