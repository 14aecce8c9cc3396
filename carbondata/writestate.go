package carbondata

import (
	"errors"
	"fmt"

	"github.com/oribi-db/oribi/carbondata/internal/codec"
)

// Writer writes a folder of data files and their index file that CarbonData's SDK reads. Memory: a
// blocklet, its pages compressed, one page of values, and the descriptions of the blocklets of a
// file.
//
// A Writer is not safe for concurrent use. Either Close or Abort must be called.
type Writer struct {
	o          WriterOptions
	columns    []Column // in the user's order
	schema     *fileSchema
	compressor *codec.Compressor
	folder     *outFolder
	millis     int64

	rows     int   // of the page that is filled
	pageRows []int // of the blocklet
	bytes    int64 // of the blocklet, as the SDK counts
	file     *dataFile
	files    int
	index    []byte // entries of the index file

	last   []sortValue // of the row before the page
	sorter *rowSorter  // not nil after a row out of order
	err    error       // why the writer takes no more calls
}

// fail ends the writer after an error. Nothing of the folder is left.
func (w *Writer) fail(err error) error {
	if closeErr := w.abort(); closeErr != nil {
		err = errors.Join(err, closeErr)
	}
	w.err = fmt.Errorf("carbondata: %w", err)
	return w.err
}

// abort closes and removes files, unless the folder is complete.
func (w *Writer) abort() error {
	if w.sorter != nil {
		w.sorter.close()
	}
	if w.file != nil {
		w.file.f.Close()
		w.file = nil
	}
	w.schema = nil
	return w.folder.remove()
}
