package arrowio

import (
	"context"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/metadata"
	pq "github.com/apache/arrow-go/v18/parquet/schema"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/schema"
)

// Compression is the codec of the pages of a Parquet file.
type Compression int

// Codecs.
const (
	Zstd Compression = iota
	Snappy
	Gzip
	None
)

var codecs = []struct {
	name  string
	codec compress.Compression
}{
	Zstd: {"zstd", compress.Codecs.Zstd}, Snappy: {"snappy", compress.Codecs.Snappy},
	Gzip: {"gzip", compress.Codecs.Gzip}, None: {"none", compress.Codecs.Uncompressed},
}

// ParseCompression returns the codec with a name: zstd, snappy, gzip, or none.
func ParseCompression(name string) (Compression, error) {
	for c, codec := range codecs {
		if codec.name == name {
			return Compression(c), nil
		}
	}
	return 0, fmt.Errorf("unknown compression %q, want zstd, snappy, gzip, or none", name)
}

// String returns the name of the codec.
func (c Compression) String() string {
	if c < 0 || int(c) >= len(codecs) {
		return fmt.Sprintf("compression %d", int(c))
	}
	return codecs[c].name
}

// ParquetOptions are options of WriteParquet.
type ParquetOptions struct {
	Compression Compression // zstd by default

	// RowGroupRows is the number of rows of a row group; 0 means 1,000,000. A row group ends
	// earlier when its pages take 256 MiB: they are in memory until then.
	RowGroupRows int

	// Bloom names columns that get Bloom filters: one for each row group, of up to 1 MiB, all of
	// which stay in memory until the end. nil means the key columns that the metadata of the
	// reader's schema names; an empty list means none.
	Bloom []string

	// Progress is called after each record batch, with the number of rows so far. nil disables it.
	Progress func(rows int64)
}

// createdBy is the name of the writer in files of this package.
const createdBy = "oribi" // file format: never change

const (
	defaultRowGroupRows = 1_000_000
	maxRowGroupBytes    = 256 << 20
	maxRowGroups        = 1<<15 - 1 // arrow-go counts them in 16 bits
	zstdLevel           = 1         // takes a sixth less time than the default, for 3 % more bytes
	bloomSizes          = 10        // of a filter for an unknown number of values, by factors of 2 from 1 MiB on
)

// WriteParquet writes all rows of a reader as a Parquet file and returns their number. The reader
// is not released. The file has statistics of row groups and of pages (a page index), and in its
// metadata the definition that the metadata of the reader's schema has.
//
// Errors: a *ColumnError with ErrUnsupported for a field of which no column of a table represents
// each value, and with ErrRow for a value that the column cannot represent exactly; errors of the
// reader and of w.
func WriteParquet(w io.Writer, r array.RecordReader, o ParquetOptions) (rows int64, err error) {
	d, err := Define(r.Schema())
	if err != nil {
		return 0, err
	}
	if d, err = d.project(nil); err != nil {
		return 0, wrap(err)
	}
	next, copies, err := vectorsIn(r, d)
	if err != nil {
		return 0, wrap(err)
	}
	b, err := next()
	if err != nil {
		return 0, wrap(err)
	}
	p, err := newParquetWriter(w, d, &o, mostRows(r), b)
	if err != nil {
		return 0, wrap(err)
	}
	for _, c := range p.columns {
		c.copies = copies
	}
	for b != nil && err == nil {
		if err = p.write(b); err != nil {
			break
		}
		if o.Progress != nil {
			o.Progress(p.rows)
		}
		b, err = next()
	}
	if err == nil {
		err = p.close()
	}
	return p.rows, wrap(p.cause(err))
}

// mostRows returns an upper bound of the number of a reader's rows, or 0 if none is known.
func mostRows(r array.RecordReader) int64 {
	s, ok := r.(*scanReader)
	if !ok || s.scan.Table().Properties().Expiry.Column != "" { // these are counted one by one
		return 0
	}
	n, err := s.scan.Table().Count(context.Background())
	if err != nil {
		return 0 // the scan returns the error
	}
	return max(n, 1)
}

// vectorsIn returns a function that returns the next batch of a reader, nil at the end, and whether
// its byte strings are valid until the next one only. Rows of a scan are not converted to Arrow
// first.
func vectorsIn(r array.RecordReader, d *Definition) (next func() (*batch.RecordBatch, error), copies bool, err error) {
	if s, ok := r.(*scanReader); ok && !s.begun {
		s.run(false)
		return func() (*batch.RecordBatch, error) {
			b := s.step()
			return b, s.err
		}, false, nil
	}
	im, err := newBatchImporter(d.Columns, r.Schema(), false)
	return func() (*batch.RecordBatch, error) {
		if !r.Next() {
			return nil, r.Err()
		}
		return im.batch(r.RecordBatch())
	}, true, err
}

// repeats reports whether few enough of the cells of a vector are distinct for a dictionary. A hash
// of each cell, and a page of words that is given up later, take longer than they save otherwise.
func repeats(v *batch.Vector) bool {
	const (
		sample = 4096
		share  = 8 // of the cells, one in this many
		few    = 64
	)
	n := min(v.Len, sample)
	if v.Dict != nil && len(v.Dict.Words) <= n/share {
		return true
	}
	distinct := map[string]bool{}
	for i := range n {
		distinct[string(v.Cell(i))] = true
	}
	return len(distinct) <= max(n/share, few)
}

// sink is the writer of a file. It keeps the first error, which arrow-go does not always return.
type sink struct {
	w   io.Writer
	err error
}

func (s *sink) Write(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	n, err := s.w.Write(p)
	if err == nil && n < len(p) {
		err = io.ErrShortWrite
	}
	s.err = err
	return n, err
}

// parquetWriter writes batches to a Parquet file, one row group after the other.
type parquetWriter struct {
	sink    *sink
	out     *file.Writer
	limit   int
	group   file.BufferedRowGroupWriter // nil: none is open
	groups  int
	in      int // rows in it
	columns []*leafWriter
	rows    int64
}

// newParquetWriter returns a writer of rows with a definition, of which first are the first ones;
// nil means that there are none. Bloom filters are made for up to distinct values; 0 means that the
// number is not known.
func newParquetWriter(
	w io.Writer, d *Definition, o *ParquetOptions, distinct int64, first *batch.RecordBatch,
) (p *parquetWriter, err error) {
	if o.Compression < 0 || int(o.Compression) >= len(codecs) {
		return nil, fmt.Errorf("unknown compression %d", int(o.Compression))
	}
	if o.RowGroupRows < 0 {
		return nil, fmt.Errorf("row groups of %d rows", o.RowGroupRows)
	}
	p = &parquetWriter{sink: &sink{w: w}, limit: o.RowGroupRows}
	if p.limit == 0 {
		p.limit = defaultRowGroupRows
	}
	var nodes pq.FieldList
	for i := range d.Columns {
		c := &d.Columns[i]
		rep := parquet.Repetitions.Required
		if c.Nullable {
			rep = parquet.Repetitions.Optional
		}
		node, err := parquetNode(c, rep)
		if err != nil {
			return nil, in(c.Name, -1, err)
		}
		nodes = append(nodes, node)
		p.columns = append(p.columns, newLeafWriter(c))
	}
	root, err := pq.NewGroupNode("schema", parquet.Repetitions.Required, nodes, -1)
	if err != nil {
		return nil, err
	}
	properties, err := o.properties(d, distinct)
	if err != nil {
		return nil, err
	}
	for i, c := range d.Columns {
		if first == nil || c.Type == schema.Array || repeats(first.Columns[i]) {
			continue
		}
		properties = append(properties, parquet.WithDictionaryFor(c.Name, false))
		if w := p.columns[i]; w.integers() && differs(first.Columns[i]) {
			w.delta = true
			properties = append(properties, parquet.WithEncodingFor(c.Name, parquet.Encodings.DeltaBinaryPacked))
		}
	}
	stored := metadata.NewKeyValueMetadata()
	if d.Stored {
		stored.Append(definitionKey, d.encode())
	}
	defer p.recovered(&err)
	p.out = file.NewParquetWriter(p.sink, root, file.WithWriterProps(parquet.NewWriterProperties(properties...)),
		file.WithWriteMetadata(stored))
	return p, nil
}

// recovered turns a panic of arrow-go, which has no other way to return some errors of the sink,
// into an error. It is deferred.
func (p *parquetWriter) recovered(err *error) {
	if r := recover(); r != nil {
		if p.sink.err == nil {
			panic(r)
		}
		*err = p.sink.err
	}
}

// cause returns the error of the sink if it failed, otherwise err: arrow-go hides the sink's error.
func (p *parquetWriter) cause(err error) error {
	if p.sink.err != nil {
		return p.sink.err
	}
	return err
}

// levelsPerWrite is above the number of levels of any call that writes values: arrow-go must not
// divide them, so that no row of a list is in two pages.
const levelsPerWrite = 1 << 40

func (o *ParquetOptions) properties(d *Definition, distinct int64) ([]parquet.WriterProperty, error) {
	properties := []parquet.WriterProperty{
		parquet.WithAllocator(memory.NewGoAllocator()),
		parquet.WithCompression(codecs[o.Compression].codec), parquet.WithStats(true),
		parquet.WithPageIndexEnabled(true), parquet.WithBatchSize(levelsPerWrite), parquet.WithCreatedBy(createdBy),
		parquet.WithVersion(parquet.V2_LATEST),
	}
	if o.Compression == Zstd {
		properties = append(properties, parquet.WithCompressionLevel(zstdLevel))
	}
	bloom := o.Bloom
	if bloom == nil {
		bloom = d.Key
	}
	for _, name := range bloom {
		i := d.index(name)
		if i < 0 {
			return nil, columnErrorf(name, "no such column for a Bloom filter: %w", ErrNoColumn)
		}
		if d.Columns[i].Type.Width() == 1 {
			continue // it has at most 256 values; and there are none for booleans
		}
		properties = append(properties, parquet.WithBloomFilterEnabledFor(name, true))
		if distinct > 0 {
			properties = append(properties, parquet.WithBloomFilterNDVFor(name, min(distinct, defaultRowGroupRows)))
		} else {
			properties = append(properties, parquet.WithAdaptiveBloomFilterEnabledFor(name, true),
				parquet.WithBloomFilterCandidatesFor(name, bloomSizes))
		}
	}
	return properties, nil
}

// write appends the selected rows of a batch, which it makes dense.
func (p *parquetWriter) write(b *batch.RecordBatch) (err error) {
	defer p.recovered(&err)
	if b.Selected() < b.Len {
		b.Compact()
	}
	base := p.rows
	for from := 0; from < b.Len && err == nil; {
		if p.group == nil {
			if err := p.begin(); err != nil {
				return err
			}
		}
		to := min(b.Len, from+p.limit-p.in)
		for i, c := range p.columns {
			if err := c.write(b.Columns[i], from, to); err != nil {
				return in(b.Schema[i].Name, base, err)
			}
		}
		p.in += to - from
		p.rows += int64(to - from)
		from = to
		if p.in == p.limit || p.group.TotalBytesWritten() >= maxRowGroupBytes {
			err = p.end()
		}
	}
	return err
}

// begin begins a row group.
func (p *parquetWriter) begin() error {
	if p.groups == maxRowGroups {
		return fmt.Errorf("more than %d row groups: write larger ones: %w", maxRowGroups, ErrUnsupported)
	}
	p.groups++
	p.group = p.out.AppendBufferedRowGroup()
	for i, c := range p.columns {
		column, err := p.group.Column(i)
		if err != nil {
			return err
		}
		c.out, c.page, c.nans = column, 0, false
	}
	return nil
}

// end ends the row group.
func (p *parquetWriter) end() error {
	group := p.group
	p.group, p.in = nil, 0
	return group.Close()
}

func (p *parquetWriter) close() (err error) {
	defer p.recovered(&err)
	if p.group != nil {
		if err := p.end(); err != nil {
			return err
		}
	}
	if err := p.out.FlushWithFooter(); err != nil { // Close drops its error
		return err
	}
	return p.out.Close()
}
