package rowset

import (
	"fmt"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/cfile"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/delta"
	"github.com/oribi-db/oribi/schema"
)

// StoredRows are consecutive rows of a rowset whose cells stay in its files until they are
// appended. The rows have no redos.
type StoredRows struct {
	*change.Rows // Batch is nil, or has the cells of all columns too
	Set          *DiskRowSet
	From         batch.Ordinal // of the first row
	Births       []delta.Birth // apart from Undo; row IDs are relative to From
}

// ReadError is an error of reading a rowset.
type ReadError struct {
	ID  uint64 // of the rowset
	Err error
}

func (e *ReadError) Error() string { return fmt.Sprintf("rowset %d: %v", e.ID, e.Err) }

func (e *ReadError) Unwrap() error { return e.Err }

// storedCells are cells of a column that are to be appended to a file: rows [from, to) of a rowset.
// Whole cblocks are appended as they are stored, if the file takes them. So rows wait until the
// cblock that they are in is complete.
type storedCells struct {
	set      *DiskRowSet // nil: there are none
	from, to batch.Ordinal
	window   int // rows that are read at a time

	file   *cfile.Reader // nil: the rowset does not have the column
	whole  bool          // file has cblocks to be taken as they are
	reader *cfile.ColumnReader
	cells  batch.Vector
}

// add appends cells [from, from+n) of column col to w, or keeps them for later.
func (s *storedCells) add(w *cfile.Writer, set *DiskRowSet, col int, from batch.Ordinal, n int) error {
	if s.set != set || s.to != from {
		if err := s.flush(w, col); err != nil {
			return err
		}
		if err := s.begin(w, set, col, from); err != nil {
			return &ReadError{set.Metadata().ID, err}
		}
	}
	s.to += batch.Ordinal(n)
	s.window = max(s.window, n)
	if !s.whole {
		return s.decode(w, col, s.to)
	}
	return s.take(w, col)
}

// begin makes s the cells from row from on of a column, none yet.
func (s *storedCells) begin(w *cfile.Writer, set *DiskRowSet, col int, from batch.Ordinal) error {
	file, err := set.File(col)
	if err != nil {
		return err
	}
	*s = storedCells{set: set, from: from, to: from, file: file, cells: s.cells}
	s.cells.Type = set.Schema.Columns[col].Type
	if file != nil {
		s.whole = w.Takes(file)
		s.reader = file.NewColumnReader()
		s.reader.Transient = true
	}
	return nil
}

// take appends all cblocks of which no row is missing.
func (s *storedCells) take(w *cfile.Writer, col int) error {
	for s.from < s.to {
		i, first, end, err := s.file.BlockOf(s.from)
		if err != nil {
			return &ReadError{s.set.Metadata().ID, err}
		}
		if end > s.to {
			return nil
		}
		taken := false
		if first == s.from {
			if taken, err = s.takeBlock(w, i); err != nil {
				return err
			}
		}
		if taken {
			s.from = end
		} else if err := s.decode(w, col, end); err != nil {
			return err
		}
	}
	return nil
}

// takeBlock appends cblock i, or returns false if its cells must be decoded.
func (s *storedCells) takeBlock(w *cfile.Writer, i int) (taken bool, err error) {
	b, err := s.file.Stored(i)
	if err != nil {
		return false, &ReadError{s.set.Metadata().ID, err}
	}
	defer b.Release()
	return w.AppendStored(b)
}

// decode appends the cells below row to.
func (s *storedCells) decode(w *cfile.Writer, col int, to batch.Ordinal) error {
	c := &s.set.Schema.Columns[col]
	for s.from < to {
		n := min(s.window, int(to-s.from))
		if s.file == nil {
			s.cells.Fill(n, c.ReadDefault)
		} else if err := readFull(s.reader, s.set, c, s.from, n, &s.cells); err != nil {
			return &ReadError{s.set.Metadata().ID, err}
		}
		if err := appendColumn(w, c, &s.cells); err != nil {
			return err
		}
		s.from += batch.Ordinal(n)
	}
	return nil
}

// flush appends all cells and forgets the rowset.
func (s *storedCells) flush(w *cfile.Writer, col int) error {
	if s.set == nil {
		return nil
	}
	err := s.decode(w, col, s.to)
	*s = storedCells{cells: s.cells}
	return err
}

// AppendStored is Append for rows that are stored in a rowset with w's schema, which must stay open
// until Finish returns. Cells are taken from its files: whole cblocks as they are stored, where
// that is possible, others decoded, which makes no difference to the cells of the new rowset. If w
// writes a row file, rows must have all cells. Errors: the errors of Append; ReadError.
func (w *Writer) AppendStored(rows *StoredRows) error {
	if len(rows.Keys) == 0 {
		return nil
	}
	first, err := w.begin(rows.Rows)
	if err != nil {
		return err
	}
	if w.stored == nil {
		w.stored = make([]storedCells, len(w.columns))
	}
	return w.append(rows.Rows, rows, w.joinBirths(rows, first), first)
}

// appendCells appends cells to column i, those that are stored if stored is not nil.
func (w *Writer) appendCells(i int, rows *change.Rows, stored *StoredRows) (err error) {
	c, file := &w.schema.Columns[i], w.columns[i].w
	switch {
	case stored != nil:
		err = w.stored[i].add(file, stored.Set, i, stored.From, len(rows.Keys))
	default:
		if err = w.flushStored(i); err == nil {
			err = appendColumn(file, c, rows.Batch.Columns[i])
		}
	}
	return inColumn(c, err)
}

// flushStored appends the stored cells that are kept for later to column i.
func (w *Writer) flushStored(i int) error {
	if w.stored == nil {
		return nil
	}
	return w.stored[i].flush(w.columns[i].w, i)
}

// inColumn returns err as an error of a column; nil for nil.
func inColumn(c *schema.Column, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("column %q: %w", c.Name, err)
}
