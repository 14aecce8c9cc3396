package carbondata

import (
	"fmt"

	"github.com/oribi-db/oribi/carbondata/internal/codec"
)

// Create begins a folder at dir, which must not exist: it appears, complete and durable, at Close.
// Until then there is a folder with a temporary name in the same directory. The columns need only
// name, type, precision, scale, and children. Names are stored in lower case, as the SDK does.
//
// Errors: wrong columns and options; ErrNoColumn; fs.ErrExist; errors of package os.
func Create(dir string, columns []Column, o WriterOptions) (*Writer, error) {
	w, err := create(sharedFS{}, dir, columns, o)
	if err != nil {
		return nil, fmt.Errorf("carbondata: %w", err)
	}
	return w, nil
}

func create(fsys folderFS, dir string, columns []Column, o WriterOptions) (*Writer, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	c, err := codec.NewCompressor(o.Compressor, procs())
	if err != nil {
		return nil, err
	}
	w := &Writer{o: o, columns: columns, compressor: c, millis: o.Time.UnixMilli()}
	if w.schema, err = newFileSchema(columns, &w.o, c); err != nil {
		return nil, err
	}
	w.folder, err = newOutFolder(fsys, dir)
	return w, err
}

// Append adds a row: values of the Go types that Type gives, in the order of the columns. It
// retains nothing of it. A value that CarbonData would read as another value, or does not have, is
// refused with a *RowError; the writer then goes on without the row. After another error it takes
// no more rows.
func (w *Writer) Append(row []any) error {
	if w.err != nil {
		return w.err
	}
	if column, err := w.check(row); err != nil {
		return fmt.Errorf("carbondata: %w", &RowError{-1, column, err})
	}
	if err := w.append(row); err != nil {
		return w.fail(err)
	}
	return nil
}

// append adds a checked row.
func (w *Writer) append(row []any) error {
	if w.sorter != nil {
		return w.sorter.add(row)
	}
	for i, c := range w.schema.columns {
		c.add(row[i])
	}
	w.rows++
	if !w.inOrder(w.rows - 1) {
		return w.sortRows()
	}
	if w.pageFull() {
		return w.endPage(false)
	}
	return nil
}

// Close writes the rows that are left, and gives the folder its name. After an error there is no
// folder: ErrNoRows if there was no row, fs.ErrExist if dir exists by now, errors of package os. A
// second call returns ErrClosed.
func (w *Writer) Close() error {
	if w.err != nil {
		return w.err
	}
	if err := w.close(); err != nil {
		return w.fail(err)
	}
	w.err = fmt.Errorf("carbondata: %w", ErrClosed)
	return nil
}

func (w *Writer) close() error {
	if w.sorter != nil {
		if err := w.writeSorted(); err != nil {
			return err
		}
	}
	if err := w.endRows(); err != nil {
		return err
	}
	if w.files == 0 {
		return ErrNoRows
	}
	if err := w.writeIndex(); err != nil {
		return err
	}
	return w.folder.publish()
}

// Abort gives up the folder. After Close, or a second time, it does nothing, so that it can be
// deferred. After an error that has left files it tries again to remove them.
func (w *Writer) Abort() error {
	if w.err == nil {
		w.err = fmt.Errorf("carbondata: %w", ErrClosed)
	}
	if err := w.abort(); err != nil {
		return fmt.Errorf("carbondata: %w", err)
	}
	return nil
}

// writeSorted writes the sorted rows.
func (w *Writer) writeSorted() error {
	sorter := w.sorter
	w.sorter = nil
	defer sorter.close()
	n := 0
	for row, err := range sorter.sorted() {
		if n++; err == nil && n%checkEvery == 0 {
			err = w.o.Context.Err()
		}
		if err == nil {
			err = w.append(row)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
