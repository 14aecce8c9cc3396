package carbondata

import (
	"bytes"
	"errors"
	"fmt"
	"math"
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
	compressor *compressor
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
	c, err := newCompressor(o.Compressor)
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

// check returns why a row is refused, and the column if it is for a value.
func (w *Writer) check(row []any) (column string, err error) {
	if len(row) != len(w.columns) {
		return "", fmt.Errorf("%d values for %d columns", len(row), len(w.columns))
	}
	var n rowSize
	for i, c := range w.schema.columns {
		if err := c.check(row[i], &n); err != nil {
			return w.columns[i].Name, err
		}
	}
	return "", nil
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

// pageMemory returns the memory of the page when it is read.
func (w *Writer) pageMemory() int {
	n := w.rows * w.schema.rowMemory
	for _, c := range w.schema.texts {
		n += c.textMemory()
	}
	return n
}

// pageFull reports whether the page must end.
func (w *Writer) pageFull() bool { return w.rows == w.o.PageRows || w.pageMemory() >= maxPageMemory }

// endPage ends the page that is filled, and the blocklet before it or with it. last is the page at
// the end of the rows: as in the SDK, it belongs to the blocklet, whatever its size.
func (w *Writer) endPage(last bool) error {
	w.last = w.last[:0]
	for _, c := range w.schema.sort {
		v := c.sortValue(w.rows - 1)
		v.text = bytes.Clone(v.text)
		w.last = append(w.last, v)
	}
	size, coded := int64(0), int64(0)
	if err := eachColumn(w.schema.chunks, w.rows, func(i int) error {
		return w.schema.chunks[i].encodePage()
	}); err != nil {
		return err
	}
	for _, c := range w.schema.chunks {
		size += int64(c.next.size())
		coded = max(coded, c.coded)
	}
	full := withHeaders(w.bytes)+size >= w.o.BlockletBytes && !last || coded >= maxCodedBytes ||
		len(w.pageRows) == maxBlockletPages
	if full && len(w.pageRows) > 0 {
		if err := w.endBlocklet(); err != nil {
			return err
		}
		full = false
	}
	for _, c := range w.schema.chunks {
		c.takePage()
	}
	w.pageRows = append(w.pageRows, w.rows)
	w.bytes += size
	w.rows = 0
	if full || last {
		return w.endBlocklet()
	}
	return nil
}

// maxBlockletPages keeps the number of rows of a blocklet in 32 bits.
const maxBlockletPages = math.MaxInt32 / maxPageRows

// withHeaders returns the size of a blocklet with the 15 % that the SDK adds for headers.
func withHeaders(size int64) int64 { return size + size*15/100 }

// endBlocklet writes the blocklet, to a new data file if this one is full.
func (w *Writer) endBlocklet() error {
	heads := make([][]byte, len(w.schema.chunks))
	size := withHeaders(w.bytes)
	for i, c := range w.schema.chunks {
		var err error
		if heads[i], err = c.chunkHeader(); err != nil {
			return inside(err, "column %q", c.path)
		}
		size += int64(len(heads[i]))
	}
	if w.file != nil && w.file.sdkBytes+size >= w.o.FileBytes-w.o.FileBytes/10 {
		if err := w.closeFile(); err != nil {
			return err
		}
	}
	if w.file == nil {
		if err := w.openFile(); err != nil {
			return err
		}
	}
	f := w.file
	b := writtenBlocklet{blocklet: blocklet{pages: len(w.pageRows), pageRows: w.pageRows, dimensions: f.size}}
	for _, n := range w.pageRows {
		b.rows += n
	}
	for i, c := range w.schema.chunks {
		b.offsets, b.lengths = append(b.offsets, f.size), append(b.lengths, len(heads[i]))
		if err := f.write(heads[i]); err != nil {
			return err
		}
		for _, p := range c.pages {
			if err := f.write(p.body); err != nil {
				return err
			}
		}
		if i < w.schema.dimensions {
			b.dimensions = f.size
		}
		low, high, present := c.appendBounds(c.bounds)
		b.min, b.max, b.present = append(b.min, low), append(b.max, high), append(b.present, present)
		c.endBlocklet()
	}
	b.measures = f.size
	f.blocklets = append(f.blocklets, b)
	f.rows += int64(b.rows)
	f.sdkBytes += size
	w.pageRows, w.bytes = nil, 0
	return nil
}

// dataName returns the name of a data file.
func (w *Writer) dataName(number int) string {
	return fmt.Sprintf("part-%d-%s_batchno0-0-null-%d.%s%s", number, w.o.Task, w.millis, w.o.Compressor, dataSuffix)
}

func (w *Writer) openFile() error {
	name := w.dataName(w.files)
	f, err := w.folder.create(name)
	if err != nil {
		return err
	}
	w.file = &dataFile{outFile: f, name: name}
	w.files++
	return f.write(w.header())
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

// endRows writes the rows that are not in the data file yet, and its footer.
func (w *Writer) endRows() error {
	if w.rows > 0 {
		if err := w.endPage(true); err != nil {
			return err
		}
	} else if len(w.pageRows) > 0 {
		if err := w.endBlocklet(); err != nil {
			return err
		}
	}
	if w.file == nil {
		return nil
	}
	return w.closeFile()
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
