package rowset

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/cfile"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/parallel"
	"github.com/oribi-db/oribi/keyenc"
	"github.com/oribi-db/oribi/schema"
)

// BaseReader reads base cells of some columns from the first row to the last, without applying
// changes. Not safe for concurrent use.
type BaseReader struct {
	d       *DiskRowSet
	cols    []int // by index in the schema
	readers []*cfile.ColumnReader
	windows []baseWindow  // memory, used in turn
	rows    batch.Ordinal // of a window
	next    batch.Ordinal
}

// baseWindow is the memory of a window.
type baseWindow struct {
	vectors []*batch.Vector // by index in cols
	strings [][]byte
}

// NewBaseReader starts at the first row; cols are indexes in the schema. It opens their files,
// which stay open until the rowset is closed. The caller holds a reference to the rowset. Errors:
// ErrCorrupt.
func (d *DiskRowSet) NewBaseReader(cols []int) (*BaseReader, error) { return d.newBaseReader(cols, 1) }

// newBaseReader returns a BaseReader whose windows are valid until as many further calls of Next.
func (d *DiskRowSet) newBaseReader(cols []int, windows int) (*BaseReader, error) {
	b := &BaseReader{d: d, cols: cols, readers: make([]*cfile.ColumnReader, len(cols))}
	for range windows {
		w := baseWindow{strings: make([][]byte, len(cols))}
		for _, col := range cols {
			w.vectors = append(w.vectors, &batch.Vector{Type: d.Schema.Columns[col].Type})
		}
		b.windows = append(b.windows, w)
	}
	for i, col := range cols {
		f, err := d.File(col)
		if err != nil {
			return nil, err
		}
		if f != nil {
			b.readers[i] = f.NewColumnReader()
			b.readers[i].Transient = true
		}
	}
	var err error
	b.rows, err = d.windowOf(func() []int { return slices.Clone(cols) }, d.Tracker())
	return b, err
}

// Next returns the cells of rows [from, from+n), at most one window; n is 0 at the end. vectors[i]
// has the cells of column cols[i]. The caller may modify the vectors, which are valid until the
// next call. Errors: ErrCorrupt.
func (b *BaseReader) Next() (vectors []*batch.Vector, from batch.Ordinal, n int, err error) {
	if vectors, from, n = b.advance(); n == 0 {
		return nil, from, 0, nil
	}
	if err = b.readColumns(0, len(b.cols), from, n); err != nil {
		return nil, from, 0, err
	}
	return vectors, from, n, nil
}

// advance moves to the next window and returns its vectors, without cells, and its rows [from,
// from+n), none at the end.
func (b *BaseReader) advance() (vectors []*batch.Vector, from batch.Ordinal, n int) {
	from = b.next
	n = int(min(b.d.Metadata().Rows-int64(from), int64(b.rows)))
	if n <= 0 {
		b.readers, b.windows = nil, nil // the merge of other inputs may go on for long, and their cblocks take memory
		return nil, from, 0
	}
	w := b.windows[0]
	copy(b.windows, b.windows[1:])
	b.windows[len(b.windows)-1] = w
	b.next += batch.Ordinal(n)
	return w.vectors, from, n
}

// readColumns reads columns [low, high) of b.cols into the current window, rows [from, from+n).
func (b *BaseReader) readColumns(low, high int, from batch.Ordinal, n int) error {
	w := b.windows[len(b.windows)-1]
	// Half of the processors read, for a merge writes other rows meanwhile.
	return parallel.Each(high-low, runtime.GOMAXPROCS(0)/2, func(_, i int) error { return b.read(w, low+i, from, n) })
}

// read reads rows [from, from+n) of column i of b.cols.
func (b *BaseReader) read(w baseWindow, i int, from batch.Ordinal, n int) error {
	c, r := &b.d.Schema.Columns[b.cols[i]], b.readers[i]
	if r == nil {
		w.vectors[i].Fill(n, c.ReadDefault)
		return nil
	}
	r.Strings = w.strings[i]
	err := readFull(r, b.d, c, from, n, w.vectors[i])
	w.strings[i] = r.Strings
	return err
}

// ReadCells sets v to exactly n cells of column col, by its index in the schema. They are cells
// [from, from+n) of a file of the column that r reads. Errors: ErrCorrupt, also for a file with
// fewer cells.
func (d *DiskRowSet) ReadCells(r *cfile.ColumnReader, col int, from batch.Ordinal, n int, v *batch.Vector) error {
	return readFull(r, d, &d.Schema.Columns[col], from, n, v)
}

// readFull reads exactly n cells; a file with fewer cells is corrupt.
func readFull(r *cfile.ColumnReader, d *DiskRowSet, c *schema.Column, from batch.Ordinal, n int,
	v *batch.Vector) error {
	if c != nil && c.Type == schema.Array {
		return readArrays(r, d, c, from, n, v)
	}
	got, err := r.ReadVector(from, n, v)
	if err != nil {
		return err
	}
	for got < n {
		rest := batch.Vector{Type: v.Type}
		k, err := r.ReadVector(from+batch.Ordinal(got), n-got, &rest)
		if err != nil {
			return err
		}
		if k == 0 {
			return fault.Corruptf("rowset %d: column %q ends at row %d", d.Metadata().ID, c.Name, int(from)+got)
		}
		v.AppendRun(&rest, 0, k) // a read returns only a few long values in prefix encoding
		got += k
	}
	return nil
}

// BaseWriter writes files of base cells for some columns, in parallel. Not safe for concurrent use.
type BaseWriter struct {
	schema   *schema.Schema
	creation Creation
	cols     []int // by index in the schema
	outputs  []output[*cfile.Writer]
	rows     output[*rowFileWriter] // see AddRowFile
	encoder  *keyenc.Encoder
	keys     [][]byte
	picked   []*batch.Vector
}

// NewBaseWriter begins a file for each of cols, which are indexes in the schema. options are the
// options of the columns' files, by index in cols. If options is nil, the files are written as by a
// flush.
func NewBaseWriter(c Creation, s *schema.Schema, cols []int, options []cfile.WriterOptions) (*BaseWriter, error) {
	w := &BaseWriter{schema: s, creation: c, cols: cols}
	for k, i := range cols {
		o := columnOptions(s, i, nil)
		if options != nil {
			o = options[k]
		}
		p, err := newColumnOutput(c, s, i, o)
		if err != nil {
			return nil, err
		}
		w.outputs = append(w.outputs, p)
	}
	return w, nil
}

// AddRowFile makes w also write a row file, as the mode says. Columns that w does not write stay in
// blocks. AddRowFile is called before the first AppendRows.
func (w *BaseWriter) AddRowFile(blocks []ColumnBlock, mode schema.RowFile) {
	blocks = slices.Clone(blocks)
	for k, i := range w.cols {
		fresh := ColumnBlock{ID: w.schema.Columns[i].ID, Block: w.outputs[k].sink.ID()}
		blocks = slices.DeleteFunc(blocks, func(b ColumnBlock) bool { return b.ID == fresh.ID })
		blocks = append(blocks, fresh)
	}
	w.encoder = keyenc.NewEncoder(w.schema)
	w.rows.w = newRowFile(w.schema, blocks, mode)
	w.rows.w.decided = true // the rowset had one
}

// SetBounds adds the bounds of the rowset to the file of the key column, if w writes a key of one
// column.
func (w *BaseWriter) SetBounds(m *Metadata) {
	if k := slices.Index(w.cols, 0); k >= 0 && w.schema.SingleKey() {
		addBounds(w.outputs[k].w, m)
	}
}

// RowFile returns the block and the size of the finished row file, or 0 if w writes none.
func (w *BaseWriter) RowFile() (id block.ID, bytes int64) {
	if w.rows.sink == nil {
		return 0, 0
	}
	return w.rows.sink.ID(), w.rows.sink.Size()
}

// stringBlockBytes is the default size of a cblock of byte strings, without codes. A read of one
// row decodes the whole cblock: with 256 KiB, which suits everything else, ten strings of an
// uncached row would cost 2.5 MiB. The LZ4 window is at most 64 KiB.
const stringBlockBytes = 16 << 10

// columnsBytes is about how many bytes one cblock of each column has at most.
const columnsBytes = 16 << 20

// columnBlockBytes returns the size of the cblocks of a column. Without a size in the schema, many
// columns have smaller ones: a writer has a cblock of each column in memory, as cells and encoded,
// and a compaction has one or two of each column of each input. All columns together have
// columnsBytes, if their cblocks then are not smaller than the cblocks of strings.
func columnBlockBytes(s *schema.Schema, i int) int {
	if n := int(s.Columns[i].BlockBytes); n > 0 {
		return n
	}
	n := cfile.DefaultBlockBytes
	for n > stringBlockBytes && n*len(s.Columns) > columnsBytes {
		n /= 2
	}
	return n
}

// WriterBytes estimates the memory that a Writer of rows of s needs: for each column the cells of the
// cblock being filled, the same encoded and compressed, and what is not yet written to the file.
func WriterBytes(s *schema.Schema) (n int64) {
	const copies = 4
	for i := range s.Columns {
		n += copies * int64(columnBlockBytes(s, i))
	}
	return n
}

// columnOptions returns how a flush or a merge writes column i of s.
func columnOptions(s *schema.Schema, i int, words *Dictionaries) cfile.WriterOptions {
	c := &s.Columns[i]
	o := cfile.WriterOptions{Type: c.Stored(), Encoding: c.Encoding.Resolve(c.Stored()),
		Compression: c.Compression.Fast(), Nullable: c.Nullable, Array: c.Type == schema.Array,
		BlockBytes: columnBlockBytes(s, i), StringBytes: cmp.Or(int(c.BlockBytes), stringBlockBytes),
		PositionalIndex: true, ValueIndex: i == 0 && s.SingleKey()}
	if o.Encoding == schema.Dictionary {
		o.Words, o.NoWords = words.next(c.ID)
	}
	return o
}

func newColumnOutput(c Creation, s *schema.Schema, i int, o cfile.WriterOptions) (output[*cfile.Writer], error) {
	p, err := newOutput(c, func(sink block.Sink) (*cfile.Writer, error) { return cfile.NewWriter(sink, o) })
	if err != nil {
		return p, fmt.Errorf("column %q: %w", s.Columns[i].Name, err)
	}
	return p, nil
}

// Append adds cells. vectors[i] has the cells of column cols[i], and all vectors have the same
// length. It is for a BaseWriter without a row file.
func (w *BaseWriter) Append(vectors []*batch.Vector) error { return w.append(vectors, nil) }

// AppendRows adds rows. There is a vector for each column of the schema, in its order, and all have
// the same length.
func (w *BaseWriter) AppendRows(vectors []*batch.Vector) error {
	w.picked = w.picked[:0]
	for _, i := range w.cols {
		w.picked = append(w.picked, vectors[i])
	}
	w.keys = change.AppendVectorKeys(w.keys[:0], w.encoder, vectors, 0, vectors[0].Len)
	return w.append(w.picked, vectors)
}

// append adds cells to the columns' files, and rows to the row file unless all is nil.
func (w *BaseWriter) append(vectors, all []*batch.Vector) error {
	n := len(w.outputs)
	if all != nil {
		w.rows.w.setPageRows(all)
		err := w.rows.w.settle()
		if err == nil {
			err = createRowFile(w.creation, &w.rows)
		}
		if err != nil {
			return err
		}
		n++
	}
	return onCPUs(n, func(i int) error {
		if i == len(w.outputs) {
			return w.rows.w.append(w.keys, all)
		}
		c := &w.schema.Columns[w.cols[i]]
		if err := appendColumn(w.outputs[i].w, c, vectors[i]); err != nil {
			return fmt.Errorf("column %q: %w", c.Name, err)
		}
		return nil
	})
}

// Finish finishes all files. blocks[i] is the block of column cols[i]; bytes is the total size of
// the blocks.
func (w *BaseWriter) Finish() (blocks []ColumnBlock, bytes int64, err error) {
	if err := onCPUs(len(w.outputs), func(i int) error { return w.outputs[i].w.Finish() }); err != nil {
		return nil, 0, err
	}
	if err := finishRowFile(w.creation, &w.rows); err != nil {
		return nil, 0, err
	}
	if w.rows.sink != nil {
		if err := w.creation.Finish(w.rows.sink); err != nil {
			return nil, 0, err
		}
	}
	for i, p := range w.outputs {
		if err := w.creation.Finish(p.sink); err != nil {
			return nil, 0, err
		}
		blocks = append(blocks, ColumnBlock{ID: w.schema.Columns[w.cols[i]].ID, Block: p.sink.ID()})
		bytes += p.sink.Size()
	}
	return blocks, bytes, nil
}
