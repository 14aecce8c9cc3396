// Package compaction chooses what to rewrite, and rewrites it.
//
// Choosing is a Policy, a pure function from bounds and sizes to a list of rowsets. Rewriting is
// Run: one routine for a flush (the MemRowSet is the only input) and for a merging compaction
// (rowsets are the inputs). It merges rows by key, brings their redos into the base, keeps what
// leads back as undos, joins the histories of a key that was deleted in one input and inserted
// again in another, and drops what lies below the history floor. What it writes becomes part of the
// table only by the caller's metadata commit.
//
// Delta compactions rewrite files of one rowset whose rows keep their IDs: Minor makes one redo
// file of several, Major brings the redos of some columns into the base, DropUndos leaves out undo
// files that history no longer holds. PickDeltas says which is due.
//
// Run reads inputs that give the rows as of one moment, whatever is written meanwhile, and is for
// one goroutine. Source: tablet spec §13.
//
// Simpler than Kudu: there is no second phase here, in which inputs are read again for what came
// meanwhile. The stores note such changes, and the caller carries them over.
package compaction

import (
	"bytes"
	"context"
	"slices"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/rowset"
	"github.com/oribi-db/oribi/schema"
)

// Input yields rows with all their versions in key order; nil at the end. The rows hold until the
// next call; keys, byte strings and the lists of changes as long as they are referenced.
type Input interface {
	Next() (*change.Rows, error)
}

// Bounded is an Input that knows its first key without being read. It is asked for rows when the
// others have come so far: of rowsets that lie one behind the other one alone is in memory.
type Bounded interface {
	Input
	First() []byte
}

// Job is one flush or merging compaction.
type Job struct {
	Schema *schema.Schema
	Inputs []Input
	// Floor is the earliest timestamp at which the result must still answer reads; Min keeps
	// everything.
	Floor  mvcc.Timestamp
	Writer *rowset.RollingWriter
	// Progress is told, batch by batch, how many rows have been read. Nil: nobody asks.
	Progress func(rowsRead int64)
}

// Stats counts the rows of one Run, ghosts included.
type Stats struct{ RowsRead, RowsWritten int64 }

// Run rewrites the inputs into the job's writer, which the caller finishes.
// Errors: ctx's; ErrCorrupt when histories contradict one another.
func Run(ctx context.Context, job Job) (Stats, error) {
	m := &merger{job: job, folder: newFolder(job.Schema)}
	m.clear()
	for _, in := range job.Inputs {
		s := &source{in: in}
		if b, ok := in.(Bounded); ok {
			s.first = b.First()
			m.insert(s)
		} else if err := m.load(s); err != nil {
			return m.stats, err
		}
	}
	for len(m.heads) > 0 {
		if err := ctx.Err(); err != nil {
			return m.stats, err
		}
		if err := m.step(); err != nil {
			return m.stats, err
		}
	}
	return m.stats, m.flush()
}

// source is an input and its place in its current rows.
type source struct {
	in    Input
	first []byte // the first key, as long as nothing has been read
	rows  *change.Rows
	row   int // the next row
	undo  int // index in rows.Undo of the first one of row
	redo  int
}

func (s *source) key() []byte {
	if s.rows == nil {
		return s.first
	}
	return s.rows.Keys[s.row]
}

// merger joins sources by key. heads are those with rows left, by their next keys.
type merger struct {
	job    Job
	heads  []*source
	folder folder
	out    *change.Rows
	bytes  int // of byte strings and changes in out
	stats  Stats
}

// outBytes is about what the byte strings and changes of the rows may take that are handed to the
// writer at once. Most of them lie in the inputs' cblocks, which they hold in memory.
const outBytes = 1 << 20

// full tells that out is to be written.
func (m *merger) full() bool { return len(m.out.Keys) >= batch.WindowRows || m.bytes >= outBytes }

// load takes a source's next rows and puts it among the heads, if it has any.
func (m *merger) load(s *source) error {
	rows, err := s.in.Next()
	if err != nil || rows == nil {
		return err
	}
	m.stats.RowsRead += int64(len(rows.Keys))
	if m.job.Progress != nil {
		m.job.Progress(m.stats.RowsRead)
	}
	if s.rows == nil && s.first != nil && !bytes.Equal(rows.Keys[0], s.first) {
		return fault.Corruptf("the first key of a rowset is %x, its metadata say %x", rows.Keys[0], s.first)
	}
	*s = source{in: s.in, rows: rows}
	m.insert(s)
	return nil
}

// begin reads the first rows of the sources whose first key is the next of all.
func (m *merger) begin() error {
	for i := 0; i < len(m.heads) && bytes.Equal(m.heads[i].key(), m.heads[0].key()); {
		s := m.heads[i]
		if s.rows != nil {
			i++
			continue
		}
		m.heads = slices.Delete(m.heads, i, i+1)
		if err := m.load(s); err != nil {
			return err
		}
	}
	return nil
}

func (m *merger) insert(s *source) {
	i := 0
	for i < len(m.heads) && bytes.Compare(m.heads[i].key(), s.key()) < 0 {
		i++
	}
	m.heads = append(m.heads, nil)
	copy(m.heads[i+1:], m.heads[i:])
	m.heads[i] = s
}

// step takes a run of rows of one source, or one key that several sources hold.
func (m *merger) step() error {
	if err := m.begin(); err != nil || len(m.heads) == 0 {
		return err
	}
	first := m.heads[0]
	same := 1
	for same < len(m.heads) && bytes.Equal(m.heads[same].key(), first.key()) {
		same++
	}
	taken := append([]*source(nil), m.heads[:same]...)
	end := first.row + 1
	if same == 1 {
		end = m.runEnd(first)
	}
	m.heads = m.heads[same:]
	var err error
	switch {
	case same > 1:
		err = m.join(taken)
	case first.row == 0 && end == len(first.rows.Keys) && len(m.out.Keys) == 0 && m.untouched(first):
		err = m.write(first.rows)
		first.row = end
	default:
		err = m.run(first, end)
	}
	if err != nil {
		return err
	}
	for _, s := range taken {
		if s.row < len(s.rows.Keys) {
			m.insert(s)
		} else if err := m.load(s); err != nil {
			return err
		}
	}
	return nil
}

// runEnd is the row of s, the first head, before which all keys are below the other heads' next
// ones.
func (m *merger) runEnd(s *source) int {
	if len(m.heads) == 1 {
		return len(s.rows.Keys)
	}
	bound := m.heads[1].key()
	end := s.row + 1
	for end < len(s.rows.Keys) && bytes.Compare(s.rows.Keys[end], bound) < 0 {
		end++
	}
	return end
}

// untouched tells whether all of s's rows can be written as they are: no redo to bring in, no undo
// to drop.
func (m *merger) untouched(s *source) bool {
	if len(s.rows.Redo) > 0 {
		return false
	}
	for i := range s.rows.Undo {
		if s.rows.Undo[i].TS <= m.job.Floor {
			return false
		}
	}
	return true
}

// run takes rows [s.row, end) of one source: rows without redos are copied as runs, the others
// folded one by one.
func (m *merger) run(s *source, end int) error {
	for s.row < end {
		to := end
		if s.redo < len(s.rows.Redo) {
			to = min(end, int(s.rows.Redo[s.redo].Row))
		}
		to = min(to, s.row+batch.WindowRows-len(m.out.Keys))
		if to > s.row {
			m.copyRows(s, to)
		} else {
			v, err := m.take(s)
			if err != nil {
				return err
			}
			m.emit(s.rows.Keys[s.row-1], v)
		}
		if m.full() {
			if err := m.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

// copyRows copies rows [s.row, to), which have no redos, with the undos that the floor leaves.
func (m *merger) copyRows(s *source, to int) {
	base := uint32(len(m.out.Keys)) - uint32(s.row)
	for i, v := range m.out.Batch.Columns {
		before := len(v.Bytes)
		v.AppendRun(s.rows.Batch.Columns[i], s.row, to)
		for _, cell := range v.Bytes[min(before, len(v.Bytes)):] {
			m.bytes += len(cell)
		}
	}
	m.out.Keys = append(m.out.Keys, s.rows.Keys[s.row:to]...)
	undo := s.rows.Undo
	cut := -1 // the row whose undos have reached the floor
	for ; s.undo < len(undo) && int(undo[s.undo].Row) < to; s.undo++ {
		d := undo[s.undo]
		if int(d.Row) == cut {
			continue
		}
		if d.TS <= m.job.Floor {
			cut = int(d.Row)
			continue
		}
		d.Row += base
		m.bytes += len(d.List)
		m.out.Undo = append(m.out.Undo, d)
	}
	s.row = to
}

// take folds the row s.row and goes on to the next.
func (m *merger) take(s *source) (version, error) {
	v := version{cells: make([][]byte, len(m.job.Schema.Columns))}
	for i, col := range s.rows.Batch.Columns {
		v.cells[i] = col.Cell(s.row)
	}
	row := uint32(s.row)
	from := s.undo
	for s.undo < len(s.rows.Undo) && s.rows.Undo[s.undo].Row == row {
		s.undo++
	}
	v.undo = s.rows.Undo[from:s.undo:s.undo]
	from = s.redo
	for s.redo < len(s.rows.Redo) && s.rows.Redo[s.redo].Row == row {
		s.redo++
	}
	s.row++
	return v, m.folder.fold(&v, s.rows.Redo[from:s.redo])
}

// join takes one row, of the same key, from each source.
func (m *merger) join(sources []*source) error {
	key := sources[0].key()
	copies := make([]version, len(sources))
	for i, s := range sources {
		var err error
		if copies[i], err = m.take(s); err != nil {
			return err
		}
	}
	v, err := m.folder.chain(copies)
	if err != nil {
		return err
	}
	m.emit(key, v)
	if m.full() {
		return m.flush()
	}
	return nil
}

// emit writes one folded row, unless it was deleted at or below the floor: no read asks for it any
// more.
func (m *merger) emit(key []byte, v version) {
	if v.deleted != nil && v.deleted.TS <= m.job.Floor {
		return
	}
	row := uint32(len(m.out.Keys))
	for i, col := range m.out.Batch.Columns {
		col.AppendCell(v.cells[i])
		m.bytes += len(v.cells[i])
	}
	m.out.Keys = append(m.out.Keys, key)
	for _, d := range keepUndos(v.undo, m.job.Floor) {
		d.Row = row
		m.bytes += len(d.List)
		m.out.Undo = append(m.out.Undo, d)
	}
	if v.deleted != nil {
		m.out.Redo = append(m.out.Redo, change.Delta{Row: row, TS: v.deleted.TS, List: deleteList})
	}
}

// clear begins a new output batch in the memory of the last one, with which the writer is done.
// Byte strings, keys and lists are the sources' or the folder's and are never written again.
func (m *merger) clear() {
	if m.out == nil {
		m.out = &change.Rows{Batch: batch.New(m.job.Schema.Columns, 0)}
	}
	m.out.Batch.Reset(0)
	m.out.Keys, m.out.Undo, m.out.Redo = m.out.Keys[:0], m.out.Undo[:0], m.out.Redo[:0]
	m.bytes = 0
}

func (m *merger) flush() error {
	if len(m.out.Keys) == 0 {
		return nil
	}
	m.out.Batch.Len = len(m.out.Keys)
	err := m.write(m.out)
	m.clear()
	return err
}

func (m *merger) write(rows *change.Rows) error {
	m.stats.RowsWritten += int64(len(rows.Keys))
	return m.job.Writer.Append(rows)
}
