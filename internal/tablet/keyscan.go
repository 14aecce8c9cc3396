package tablet

import (
	"bytes"
	"slices"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/scan"
	"github.com/oribi-db/oribi/schema"
)

// keyScanRows is the number of rows of a batch of a keyScan.
const keyScanRows = 256

// keyScan reads the rows with given keys that pass the filter of a request.
type keyScan struct {
	r       *scan.Request
	view    *View
	release bool     // Close releases view
	left    [][]byte // the keys of the rows that are not read yet, in the order of the scan

	columns []int // of the rows that are read: those of the request, then those of its filter
	cells   [][]byte
	batch   *batch.RecordBatch
	keys    [][]byte
	err     error
}

// newKeyScan returns an iterator over rows with the keys, which ascend. It changes the order of keys.
func newKeyScan(r *scan.Request, v *View, release bool, keys [][]byte) *keyScan {
	s := &keyScan{r: r, view: v, release: release, left: keys, columns: slices.Clone(r.Columns()),
		batch: batch.New(r.Projection(), 0)}
	for p := range r.Filter().Tests() {
		if i := v.Schema.IndexID(p.ID); i >= 0 && !slices.Contains(s.columns, i) {
			s.columns = append(s.columns, i)
		}
	}
	lower, upper := r.Bounds()
	s.left = slices.DeleteFunc(keys, func(key []byte) bool {
		return bytes.Compare(key, lower) < 0 || upper != nil && bytes.Compare(key, upper) >= 0
	})
	if r.Descending() {
		slices.Reverse(s.left)
	}
	return s
}

func (s *keyScan) Next() bool {
	for s.err == nil && len(s.left) > 0 {
		n := min(len(s.left), keyScanRows)
		s.batch.Reset(n)
		s.keys = s.keys[:0]
		rows := 0
		for _, key := range s.left[:n] {
			var found bool
			if s.cells, found, s.err = s.view.Get(key, s.columns, s.cells[:0]); s.err != nil {
				return false
			}
			if !found || !s.r.Filter().EvalRow(s.cell) {
				continue
			}
			for i, v := range s.batch.Columns {
				v.SetCell(rows, s.cells[i])
			}
			s.keys = append(s.keys, key)
			rows++
		}
		s.left = s.left[n:]
		if rows > 0 {
			s.batch.Selection.ClearRange(rows, n)
			return true
		}
	}
	return false
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

// Seek implements scan.Iterator.
func (s *keyScan) Seek(key []byte) error {
	i := slices.IndexFunc(s.left, func(k []byte) bool {
		order := bytes.Compare(k, key)
		return order == 0 || (order > 0) != s.r.Descending()
	})
	if i < 0 {
		i = len(s.left)
	}
	s.left = s.left[i:]
	return s.err
}

func (s *keyScan) Close() error {
	s.left = nil
	if s.release {
		s.release = false
		s.view.Release()
	}
	return s.err
}
