package rewrite

import (
	"context"
	"slices"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/cfile"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/delta"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/rowset"
	"github.com/oribi-db/oribi/schema"
)

// Major folds the redos of some columns into the base. It writes new files of these columns, a file
// of undos that lead back from them, and the redos of all other columns in one file. cols are
// indexes in the schema; nil means every column that redos change. The key index, the bloom file
// and the files of other columns stay. Major returns nil if no redo changes one of the columns.
//
//	before   base a b c    redo  @5 a=1    @6 b=2    @7 DELETE
//	major a  base a'b c    redo            @6 b=2    @7 DELETE    undo  @5 a=its old value
//
// DELETEs stay redos, and so do REINSERTs, without these columns: a REINSERT without columns is
// still a REINSERT. (Stores of this engine have no REINSERT in redos.) The undo of a REINSERT's
// cells is therefore an UPDATE: no read sees the cells of a row while it is deleted. Changes to
// columns that are not in the schema are dropped. A row file has cells of the columns, so it is
// written anew, from all columns, or dropped.
//
// Simpler than Kudu: it reads one window of rows at a time, with all their redos in memory. Errors:
// ctx.Err(); ErrCorrupt. Source: tablet spec §14.2, §13.4.
func Major(ctx context.Context, job DeltaJob, cols []int) (*rowset.Metadata, error) {
	updated := UpdatedColumns(job.Set.Schema, job.State.Deltas)
	if cols == nil {
		cols = updated
		if !slices.ContainsFunc(job.State.Deltas.Redo, func(f *delta.File) bool { return len(f.Stats().Columns) > 0 }) {
			return nil, nil
		}
	} else {
		cols = slices.DeleteFunc(slices.Clone(updated), func(c int) bool { return !slices.Contains(cols, c) })
		if len(cols) == 0 {
			return nil, nil
		}
	}
	if err := job.begin(columnsRead(job.Set.Schema, cols, job.writesRowFile(cols))); err != nil {
		return nil, err
	}
	return runMajor(ctx, job, cols, nil)
}

// runMajor is Major for exactly cols. options are the options of the columns' files, by index in
// cols. If options is nil, the files are written as by a flush.
func runMajor(ctx context.Context, job DeltaJob, cols []int, options []cfile.WriterOptions) (*rowset.Metadata, error) {
	m, err := newMajor(job, cols, options)
	if err != nil {
		return nil, err
	}
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		more, err := m.window()
		if err != nil {
			return nil, err
		}
		if !more {
			return m.finish()
		}
	}
}

// major is a running major compaction.
type major struct {
	job    DeltaJob
	schema *schema.Schema
	cols   []int
	base   *rowset.BaseReader
	redos  *delta.Collector
	folder folder
	thinner
	out  *rowset.BaseWriter
	rows bool // out writes a row file
	undo deltaFile
	redo deltaFile

	picked []*batch.Vector // of cols, in a window of all columns
	cells  [][]byte        // of one row, by index in cols
	fresh  []change.Delta  // undos of one row, oldest first
	seen   int64           // deltas read
}

func newMajor(job DeltaJob, cols []int, options []cfile.WriterOptions) (*major, error) {
	s := job.Set.Schema
	m := &major{job: job, schema: s, cols: cols, undo: deltaFile{creation: job.Creation, undo: true},
		redo:  deltaFile{creation: job.Creation},
		cells: make([][]byte, len(cols))}
	m.folder = folder{schema: s, setBy: make([]uint64, len(cols)),
		index: func(id schema.ColumnID) int { return slices.Index(cols, s.IndexID(id)) }}
	m.thinner = thinner{Retained: job.Retained, folder: &m.folder}
	// The redos in files, without the undos and the delta mem store.
	m.redos = (&delta.Tracker{Schema: s, Redo: job.State.Deltas.Redo}).NewCollector(mvcc.Everything)
	var err error
	m.rows = job.writesRowFile(cols)
	if m.base, err = job.Set.NewBaseReader(columnsRead(s, cols, m.rows)); err != nil {
		return nil, err
	}
	if m.out, err = rowset.NewBaseWriter(job.Creation, s, cols, options); err == nil && m.rows {
		m.out.AddRowFile(job.State.Meta.Columns, job.RowFile)
	}
	return m, err
}

// window processes the next rows; more is false at the end.
func (m *major) window() (more bool, err error) {
	all, from, n, err := m.base.Next()
	if err != nil || n == 0 {
		return false, err
	}
	vectors := all
	if m.rows {
		m.picked = m.picked[:0]
		for _, col := range m.cols {
			m.picked = append(m.picked, all[col])
		}
		vectors = m.picked
	}
	_, redo, err := m.redos.Collect(from, n)
	if err != nil {
		return false, err
	}
	m.seen += int64(len(redo))
	for len(redo) > 0 {
		end := 1
		for end < len(redo) && redo[end].Row == redo[0].Row {
			end++
		}
		if err := m.row(vectors, int(redo[0].Row-uint32(from)), redo[:end]); err != nil {
			return false, err
		}
		redo = redo[end:]
	}
	m.folder.reuse(m.folder.take(nil)) // the undos are in their file
	if m.rows {
		return true, m.out.AppendRows(all)
	}
	return true, m.out.Append(vectors)
}

// row applies the redos of one row, oldest first, to its cells, at index i of the vectors.
func (m *major) row(vectors []*batch.Vector, i int, redo []change.Delta) error {
	for c, v := range vectors {
		m.cells[c] = v.Cell(i)
	}
	m.fresh = m.fresh[:0]
	for _, d := range redo {
		if d.List.Kind() != change.Delete {
			if back := m.folder.update(m.cells, d.List, change.Update); back != nil && d.TS > m.thinner.First() {
				m.fresh = append(m.fresh, change.Delta{Row: d.Row, TS: d.TS, List: back})
			}
			if d.List = m.rest(d.List); d.List == nil {
				continue
			}
		}
		if err := m.redo.append(d); err != nil {
			return err
		}
	}
	for c, v := range vectors {
		v.SetCell(i, m.cells[c])
	}
	slices.Reverse(m.fresh)
	for _, d := range m.thin(m.fresh[:0], m.fresh) {
		if err := m.undo.append(d); err != nil {
			return err
		}
	}
	return nil
}

// rest returns a list without the columns that are folded into the base and those that are not in
// the schema; nil for an UPDATE without other columns.
func (m *major) rest(list change.List) change.List {
	out := change.AppendUpdateHeader(nil, list.Kind())
	for r := list.Columns(); ; {
		id, cell, ok := r.Next()
		if !ok {
			break
		}
		if m.schema.IndexID(id) >= 0 && m.folder.index(id) < 0 {
			out = change.AppendColumn(out, id, cell)
		}
	}
	if len(out) == 1 && list.Kind() == change.Update {
		return nil
	}
	return out
}

// finish finishes the files and returns the rowset's new metadata.
func (m *major) finish() (*rowset.Metadata, error) {
	old := m.job.State
	var count int64
	for _, f := range old.Deltas.Redo {
		count += f.Len()
	}
	if m.seen != count {
		return nil, fault.Corruptf("rowset %d: %d changes of rows that it does not have", old.Meta.ID, count-m.seen)
	}
	row := *old.Meta
	row.Columns = slices.Clone(row.Columns)
	m.out.SetBounds(old.Meta)
	row.SetForms(m.schema, m.cols, false)
	blocks, bytes, err := m.out.Finish()
	if err != nil {
		return nil, err
	}
	if m.rows || m.job.RowFile == schema.NoRowFile {
		row.RowFile, row.RowFileBytes = m.out.RowFile()
	}
	row.Bytes += bytes + row.RowFileBytes - old.Meta.RowFileBytes - sizeOf(old.Deltas.Redo)
	for i, b := range blocks {
		at := slices.IndexFunc(row.Columns, func(c rowset.ColumnBlock) bool { return c.ID == b.ID })
		if at < 0 { // the rowset was written before the column was added
			row.Columns = append(row.Columns, b)
			continue
		}
		f, err := m.job.Set.File(m.cols[i])
		if err != nil {
			return nil, err
		}
		row.Bytes -= f.Info().Bytes
		row.Columns[at] = b
	}
	if row.Redo, err = m.redo.finish(&row.Bytes); err != nil {
		return nil, err
	}
	undo, err := m.undo.finish(&row.Bytes)
	if err != nil {
		return nil, err
	}
	row.Undo = append(undo, row.Undo...)
	return &row, nil
}

// writesRowFile reports whether Major writes a row file when it rewrites cols.
func (job *DeltaJob) writesRowFile(cols []int) bool {
	return job.RowFile == schema.FullRowFile ||
		job.RowFile == schema.AutoRowFile && job.State.Meta.RowFile != 0 && !job.Set.KeepsRowFile(cols)
}

// columnsRead returns the columns that Major reads to rewrite cols: all of them if it writes a row
// file.
func columnsRead(s *schema.Schema, cols []int, rows bool) []int {
	if !rows {
		return cols
	}
	all := make([]int, len(s.Columns))
	for i := range all {
		all[i] = i
	}
	return all
}
