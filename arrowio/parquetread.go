package arrowio

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/metadata"

	"github.com/oribi-db/oribi/batch"
)

// OpenParquet opens a Parquet file of size bytes. The caller closes r after the File. Reads of it
// are independent of each other, also concurrent ones.
//
// A file that this package has written has the definition of its table. Other types are read as
// types that represent each value: timestamps in UTC, also where the file has no time zone; UUID,
// fixed-length bytes, BSON, and geometries as binary; JSON and ENUM as string; times of day as
// int64 in their unit; a column without a type (UNKNOWN) as string. A logical type that is not
// known is ignored. Definition.Notes says where the unit or the type of values is not obvious.
// Dates and times before 1582-10-15 are Julian in files of old versions of Spark, see
// hybridCalendar. Groups other than lists, and intervals, are refused.
//
// Errors: ErrCorrupt for a damaged file; ErrUnsupported for a file that is encrypted, of a later
// version, or whose values are in other files; errors of r.
func OpenParquet(r io.ReaderAt, size int64, o OpenOptions) (*File, error) {
	p := &parquetSource{r: r, size: size, mem: newBounded(allocator(o.Allocator))}
	src := &source{ReaderAt: r}
	d, err := guarded(src, func() (*Definition, error) { return p.begin(src) })
	if err != nil {
		return nil, wrap(err)
	}
	return &File{definition: d, rows: p.metadata.GetNumRows(), content: p, mem: allocator(o.Allocator)}, nil
}

// begin reads the footer.
func (p *parquetSource) begin(src *source) (*Definition, error) {
	footer, err := readFooterBytes(src, p.size)
	if err != nil {
		return nil, err
	}
	s, rewritten, err := readFooter(footer)
	if err != nil {
		return nil, err
	}
	if p.metadata, err = metadata.NewFileMetaData(rewritten, nil); err != nil {
		return nil, err
	}
	if p.metadata.IsSetEncryptionAlgorithm() {
		return nil, unsupportedf("the file is encrypted")
	}
	if err := checkChunks(p.metadata, s); err != nil {
		return nil, err
	}
	fields, leaves := leavesOf(s)
	p.leaves = map[string]leaf{}
	for i := range fields {
		f := &fields[i]
		if f.err == nil {
			f.err = unreadable(p.metadata, leaves[i].index)
		}
		if _, twice := p.leaves[f.column.Name]; f.err == nil && !twice {
			p.leaves[f.column.Name] = leaves[i]
		}
	}
	stored := ""
	if kv := p.metadata.KeyValueMetadata(); kv != nil {
		durationNotes(fields, leaves, kv.FindValue(arrowSchemaKey))
		if text := kv.FindValue(definitionKey); text != nil {
			stored = *text
		}
	}
	return define(fields, stored)
}

// parquetMagic begins and ends a Parquet file; before its end is the length of the footer, a
// message of Thrift. One with an encrypted footer ends in encryptedMagic.
const (
	parquetMagic   = "PAR1"
	encryptedMagic = "PARE"
)

// readFooterBytes returns the footer of a Parquet file, which is well-formed.
func readFooterBytes(r io.ReaderAt, size int64) ([]byte, error) {
	var end [8]byte
	if size < 2*int64(len(parquetMagic))+4 {
		return nil, corruptf("a Parquet file of %d bytes", size)
	}
	if err := readAt(r, end[:], size-int64(len(end))); err != nil {
		return nil, err
	}
	n := int64(binary.LittleEndian.Uint32(end[:]))
	switch magic := string(end[4:]); {
	case magic == encryptedMagic:
		return nil, unsupportedf("the file is encrypted")
	case magic != parquetMagic || n > size-int64(len(end)+len(parquetMagic)):
		return nil, corruptf("the Parquet file has no footer")
	}
	footer := make([]byte, n)
	if err := readAt(r, footer, size-int64(len(end))-n); err != nil {
		return nil, err
	}
	return footer, checkThrift(footer)
}

// parquetSource is the content of a Parquet file.
type parquetSource struct {
	r        io.ReaderAt
	size     int64
	mem      memory.Allocator
	metadata *metadata.FileMetaData
	leaves   map[string]leaf // by the name of the field
}

// Byte strings of a batch: a batch ends at about batchText bytes, unless that are fewer than
// leastText in a column.
const (
	batchText = 32 << 20
	leastText = 256 << 10
)

// section makes a SectionReader what arrow-go calls a ReaderAtSeeker.
type section struct{ *io.SectionReader }

func (p *parquetSource) open(src *source, known *metadata.FileMetaData, mem memory.Allocator) (*file.Reader, error) {
	options := []file.ReadOption{file.WithReadProps(parquet.NewReaderProperties(mem))}
	if known != nil {
		options = append(options, file.WithMetadata(known))
	}
	return file.NewParquetReader(&section{io.NewSectionReader(src, 0, p.size)}, options...)
}

func (p *parquetSource) close() {}

func (p *parquetSource) read(q *request, owned bool) (batchReader, error) {
	columns := q.columns
	src := &source{ReaderAt: p.r}
	mem := newTracked(p.mem)
	in, err := guarded(src, func() (*file.Reader, error) { return p.open(src, p.metadata, mem) })
	if err != nil {
		return nil, err
	}
	r := &parquetReader{file: p, src: src, in: in, mem: mem, filter: q.filter, own: owned,
		out: batch.RecordBatch{Schema: columns, Columns: make([]*batch.Vector, len(columns))}}
	variable := 0
	for i := range columns {
		c := &columns[i]
		l, err := newLeafReader(c, p.leaves[c.Name], q.round)
		if err != nil {
			return nil, columnError(c.Name, err)
		}
		p.calendarOf(l)
		if c.Type.Variable() {
			variable++
		}
		r.columns = append(r.columns, l)
	}
	for _, l := range r.columns {
		l.budget = max(leastText, batchText/max(variable, 1))
	}
	return r, nil
}

func columnError(column string, err error) error { return in(column, -1, err) }

// parquetReader reads the rows of a Parquet file. It is a batchReader.
type parquetReader struct {
	file    *parquetSource
	src     *source
	in      *file.Reader
	mem     *tracked // of in
	filter  *rowFilter
	own     bool // the caller changes the batches
	columns []*leafReader
	out     batch.RecordBatch

	group int   // the next row group
	left  int64 // rows of the open row group that were not read yet
	rows  int64 // of the row groups before, skipped ones too
	done  int64 // rows of the file before the next batch
}

func (r *parquetReader) owned() bool { return r.own }

func (r *parquetReader) next() (*batch.RecordBatch, error) {
	b, err := guarded(r.src, r.read)
	if b == nil && err == nil {
		return nil, io.EOF
	}
	return b, err
}

// read returns the next batch, nil at the end.
func (r *parquetReader) read() (*batch.RecordBatch, error) {
	for r.left == 0 {
		if err := r.endGroup(); err != nil {
			return nil, err
		}
		if r.group == r.in.NumRowGroups() {
			return nil, nil
		}
		if err := r.nextGroup(); err != nil {
			return nil, err
		}
	}
	b := &r.out
	if r.own {
		b = &batch.RecordBatch{Schema: r.out.Schema, Columns: make([]*batch.Vector, len(r.columns))}
	}
	n := int(min(r.left, batch.WindowRows))
	for i, c := range r.columns { // how many rows there are depends on the byte strings
		err := c.fill(n)
		if err != nil {
			return nil, r.inGroup(i, err)
		}
		if c.column.Type.Variable() {
			n = min(n, c.ready())
		}
	}
	for i, c := range r.columns {
		v, err := c.take(n, r.own)
		if err != nil {
			return nil, r.inGroup(i, err)
		}
		b.Columns[i] = v
	}
	b.Len = n
	b.Selection = b.Selection.Resize(n)
	b.Selection.SetRange(0, n)
	r.left -= int64(n)
	r.done += int64(n)
	return b, nil
}

// nextGroup opens the next row group, or skips it if its statistics exclude all rows.
func (r *parquetReader) nextGroup() error {
	group := r.in.RowGroup(r.group)
	rows := group.NumRows()
	if rows < 0 {
		return corruptf("row group %d has %d rows", r.group, rows)
	}
	r.group++
	if r.filter != nil && !r.mayMatch(r.group-1) {
		r.done += rows
		return nil
	}
	for i, c := range r.columns {
		if err := r.openColumn(c, group); err != nil {
			return r.inGroup(i, err)
		}
	}
	r.left = rows
	return nil
}

// openColumn opens a column chunk, which must be inside the file.
func (r *parquetReader) openColumn(c *leafReader, group *file.RowGroupReader) error {
	chunk, err := group.MetaData().ColumnChunk(c.leaf.index)
	if err != nil {
		return err
	}
	start, size := chunk.DataPageOffset(), chunk.TotalCompressedSize()
	if chunk.HasDictionaryPage() && chunk.DictionaryPageOffset() > 0 {
		start = min(start, chunk.DictionaryPageOffset())
	}
	if start < 0 || size < 0 || start > r.file.size || size > r.file.size-start {
		return corruptf("a column chunk of %d bytes at byte %d of a file of %d", size, start, r.file.size)
	}
	if r.file.metadata.WriterVersion().LessThan(metadata.Parquet816FixedVersion) {
		size = min(size+missingBytes, r.file.size-start)
	}
	if c.words = nil; chunk.HasDictionaryPage() && !c.leaf.list {
		c.words = newWordCoder()
	}
	if c.pages == nil {
		c.pages = newPageReader(r.src, r.mem)
	}
	column := r.file.metadata.Schema.Column(c.leaf.index)
	if err := c.pages.open(column, chunk.Compression(), chunk.NumValues(), start, size); err != nil {
		return err
	}
	c.chunk = file.NewColumnReader(column, c.pages, r.mem, nil)
	return nil
}

// missingBytes is the size of a page header that parquet-mr before 1.2.9 did not count in the size
// of a column chunk with a dictionary. The pages end with the last value, not with the size.
const missingBytes = 100

// endGroup closes the column chunks, which must have no more values than rows.
func (r *parquetReader) endGroup() error {
	for i, c := range r.columns {
		if err := c.end(); err != nil {
			return r.inGroup(i, err)
		}
	}
	return nil
}

// inGroup returns an error of a column with the number of the open row group. Errors of values have
// the number of their row instead.
func (r *parquetReader) inGroup(column int, err error) error {
	if cell := (*cellError)(nil); !errors.As(err, &cell) {
		err = fmt.Errorf("row group %d: %w", r.group-1, err)
	}
	return in(r.out.Schema[column].Name, r.done, err)
}

func (r *parquetReader) close() {
	for _, c := range r.columns {
		if c.chunk != nil {
			c.chunk.Close()
			c.chunk = nil
		}
		if c.pages != nil {
			c.pages.free()
			c.pages = nil
		}
	}
	r.mem.freeAll()
}
