package tablet

import (
	"bytes"
	"errors"
	"slices"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/scan"
	"github.com/oribi-db/oribi/schema"
)

// keyScanRows is the number of rows of a batch of a keyScan, at most.
const keyScanRows = 256

// keyScan reads the rows with given keys that pass the filter of a request.
type keyScan struct {
	r       *scan.Request
	view    *View
	release bool // Close releases view
	row     func(key []byte, columns []int, dst [][]byte) ([][]byte, bool, error)
	left    scan.Keys // of the rows that are not read yet; nil after Close
	rows    int       // of the next batch

	columns []int // of the rows that are read: those of the request, then those of its filter
	cells   [][]byte
	batch   *batch.RecordBatch
	keys    [][]byte
	err     error
}

// newKeyScan returns an iterator over the rows with the keys of o.Only.
func newKeyScan(r *scan.Request, v *View, o *scan.Options, release bool) *keyScan {
	s := &keyScan{r: r, view: v, release: release, row: o.Row, left: o.Only(), columns: slices.Clone(r.Columns()),
		batch: batch.New(r.Projection(), 0), rows: keyScanRows}
	if s.row == nil {
		s.row = v.Get
	}
	if o.Limit > 0 {
		s.rows = int(min(o.Limit, keyScanRows))
	}
	for p := range r.Filter().Tests() {
		if i := v.Schema.IndexID(p.ID); i >= 0 && !slices.Contains(s.columns, i) {
			s.columns = append(s.columns, i)
		}
	}
	return s
}

func (s *keyScan) Next() bool {
	if s.err != nil || s.left == nil {
		return false
	}
	most := min(s.rows, s.r.MostRows())
	s.rows = min(2*s.rows, keyScanRows)
	s.batch.Reset(most)
	s.keys = s.keys[:0]
	for len(s.keys) < most && s.add() {
	}
	s.batch.Selection.ClearRange(len(s.keys), most)
	return s.err == nil && len(s.keys) > 0
}

// add adds the next row to the batch, if the request selects it. It returns false at the end.
func (s *keyScan) add() bool {
	key, ok, err := s.left.Next()
	if s.err = err; !ok || err != nil {
		return false
	}
	if lower, upper := s.r.Bounds(); bytes.Compare(key, lower) < 0 || upper != nil && bytes.Compare(key, upper) >= 0 {
		return true
	}
	var found bool
	if s.cells, found, s.err = s.row(key, s.columns, s.cells[:0]); s.err != nil {
		return false
	}
	if !found || !s.r.Filter().EvalRow(s.cell) {
		return true
	}
	for i, v := range s.batch.Columns {
		v.SetCell(len(s.keys), s.cells[i])
	}
	s.keys = append(s.keys, key)
	return true
}

// cell returns a cell of the present row.
func (s *keyScan) cell(id schema.ColumnID) []byte {
	if i := slices.Index(s.columns, s.view.Schema.IndexID(id)); i >= 0 {
		return s.cells[i]
	}
	return nil
}

func (s *keyScan) Batch() *batch.RecordBatch { return s.batch }

func (s *keyScan) Keys() [][]byte { return s.keys }

// Seek is not supported: nothing merges these rows with others.
func (s *keyScan) Seek([]byte) error { return errors.New("seek in a scan by keys") }

func (s *keyScan) Close() error {
	if s.left != nil {
		s.left.Close()
		s.left = nil
	}
	if s.release {
		s.release = false
		s.view.Release()
	}
	return s.err
}
