package carbondata

import (
	"bytes"
	"fmt"
	"math"
)

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
