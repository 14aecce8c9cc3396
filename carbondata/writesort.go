package carbondata

import (
	"path/filepath"

	"github.com/oribi-db/oribi/block"
)

// inOrder reports whether the rows of the page from the given one on are in order, also after the
// row before.
func (w *Writer) inOrder(from int) bool {
	for row := from; row < w.rows && len(w.schema.sort) > 0; row++ {
		if row == 0 && len(w.last) == 0 {
			continue
		}
		for i, c := range w.schema.sort {
			var before sortValue
			if row == 0 {
				before = w.last[i]
			} else {
				before = c.sortValue(row - 1)
			}
			order := before.compare(c.sortValue(row))
			if order > 0 {
				return false
			}
			if order < 0 {
				break
			}
		}
	}
	return true
}

// sortRows begins to sort: the rows so far go from their files into the sorter.
func (w *Writer) sortRows() error {
	keys := make([]int, len(w.schema.sort))
	for i, c := range w.schema.sort {
		keys[i] = c.Ordinal
	}
	if err := w.endRows(); err != nil {
		return err
	}
	w.sorter = newRowSorter(w.columns, keys, w.o.SortMemory, w.o.TempDir)
	for i := range w.files {
		if err := w.readBack(w.dataName(i)); err != nil {
			return err
		}
	}
	return w.restart()
}

// readBack gives the rows of a data file to the sorter.
func (w *Writer) readBack(name string) error {
	src, err := block.OpenFile(filepath.Join(w.folder.tmp, name))
	if err != nil {
		return err
	}
	defer src.Close()
	f, err := OpenFile(src)
	if err != nil {
		return err
	}
	for row, err := range f.Rows(w.o.Context) {
		if err == nil {
			err = w.sorter.add(row)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// restart begins the files again.
func (w *Writer) restart() (err error) {
	if err := w.folder.empty(); err != nil {
		return err
	}
	w.files, w.index, w.last = 0, nil, nil
	w.schema, err = newFileSchema(w.columns, &w.o, w.compressor)
	return err
}

// checkEvery is how many sorted rows are written between two checks of the context.
const checkEvery = 1024
