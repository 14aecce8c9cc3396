package arrowio

import (
	"errors"
	"io"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/oribi-db/oribi/batch"
)

// ArrowOptions are options of WriteFile and WriteStream.
type ArrowOptions struct {
	Zstd      bool             // compresses the buffers
	Allocator memory.Allocator // nil means memory.DefaultAllocator

	// Progress is called after each record batch, with the number of rows so far. nil disables it.
	Progress func(rows int64)
}

func (o *ArrowOptions) ipc(s *arrow.Schema) []ipc.Option {
	options := []ipc.Option{ipc.WithSchema(s), ipc.WithAllocator(allocator(o.Allocator))}
	if o.Zstd {
		options = append(options, ipc.WithZstd())
	}
	return options
}

// WriteStream writes all rows of a reader as an Arrow IPC stream, one record batch after the other,
// and returns their number. The reader is not released.
//
// Errors: the errors of the reader and of w.
func WriteStream(w io.Writer, r array.RecordReader, o ArrowOptions) (rows int64, err error) {
	out := ipc.NewWriter(w, o.ipc(r.Schema())...)
	return writeAll(out, r, o.Progress)
}

// WriteFile is like WriteStream but writes an Arrow IPC file, in which record batches can be found
// without reading those before them. In a file, all record batches have the same dictionaries.
func WriteFile(w io.Writer, r array.RecordReader, o ArrowOptions) (rows int64, err error) {
	out, err := ipc.NewFileWriter(w, o.ipc(r.Schema())...)
	if err != nil {
		return 0, wrap(err)
	}
	return writeAll(out, r, o.Progress)
}

// recordWriter is a writer of package ipc.
type recordWriter interface {
	Write(arrow.RecordBatch) error
	Close() error
}

func writeAll(w recordWriter, r array.RecordReader, progress func(rows int64)) (rows int64, err error) {
	for r.Next() {
		rec := r.RecordBatch()
		if err := w.Write(rec); err != nil {
			return rows, wrap(err)
		}
		rows += rec.NumRows()
		if progress != nil {
			progress(rows)
		}
	}
	if err := r.Err(); err != nil {
		return rows, err
	}
	return rows, wrap(w.Close())
}

// fileMagic begins an Arrow file. A stream begins with the length of a message.
const fileMagic = "ARROW1"

// oldMagic begins a file of Feather's first version, which is no Arrow file.
const oldMagic = "FEA1"

// OpenArrow opens an Arrow IPC file or, by its first bytes, an Arrow IPC stream of size bytes. The
// caller closes r after the File. Reads of a file are independent of each other, also concurrent
// ones; every read of a stream begins at its first byte.
//
// Errors: ErrCorrupt for a damaged file; ErrUnsupported for types of later versions of Arrow,
// tensors, and Feather's first version; errors of r.
func OpenArrow(r io.ReaderAt, size int64, o OpenOptions) (*File, error) {
	magic := make([]byte, len(fileMagic))
	if _, err := r.ReadAt(magic, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, wrap(err)
	}
	a := &arrowSource{mem: allocator(o.Allocator)}
	if strings.HasPrefix(string(magic), oldMagic) {
		return nil, wrap(unsupportedf("a file of Feather version 1"))
	}
	if string(magic) == fileMagic {
		a.open = func(src *source) (*ipc.Reader, error) {
			src.ReaderAt = r
			in, err := fileMessages(src, size, newBounded(a.mem))
			if err != nil {
				return nil, err
			}
			return openMessages(in)
		}
	} else {
		a.open = func(src *source) (*ipc.Reader, error) {
			src.Reader = io.NewSectionReader(r, 0, size)
			return openMessages(streamMessages(src, newBounded(a.mem)))
		}
	}
	return openArrow(a)
}

// OpenStream opens an Arrow IPC stream that cannot be read twice, such as a pipe: of the File, only
// one Read is possible. The caller closes r after the File. Errors: the errors of OpenArrow.
func OpenStream(r io.Reader, o OpenOptions) (*File, error) {
	a := &arrowSource{mem: allocator(o.Allocator)}
	src := &source{Reader: r}
	reader, err := guarded(src, func() (*ipc.Reader, error) {
		return openMessages(streamMessages(src, newBounded(a.mem)))
	})
	if err != nil {
		return nil, wrap(err)
	}
	first := &arrowReader{src: src, records: reader}
	a.open = nil
	a.first = first
	f, err := newFile(reader.Schema(), a)
	if err != nil {
		first.close()
	}
	return f, wrap(err)
}

// guarded calls f and returns a panic as an error.
func guarded[T any](src *source, f func() (T, error)) (v T, err error) {
	defer guard(&err, src)
	v, err = f()
	return v, damage(err, src)
}

// openMessages returns a reader of the record batches in messages.
func openMessages(m *messages) (*ipc.Reader, error) {
	r, err := ipc.NewReaderFromMessageReader(m, ipc.WithAllocator(m.mem))
	if err != nil {
		m.Release()
	}
	return r, err
}

// arrowSource is the content of an Arrow file or stream.
type arrowSource struct {
	mem   memory.Allocator
	open  func(src *source) (*ipc.Reader, error) // nil: only first can be read
	first *arrowReader                           // of a stream that can be read once; nil after that
}

func openArrow(a *arrowSource) (*File, error) {
	r, err := a.reader()
	if err != nil {
		return nil, wrap(err)
	}
	defer r.close()
	f, err := newFile(r.records.Schema(), a)
	return f, wrap(err)
}

// newFile returns the file with the rows of a.
func newFile(s *arrow.Schema, a *arrowSource) (*File, error) {
	d, err := Define(s)
	if err != nil {
		return nil, err
	}
	return &File{definition: d, rows: -1, content: a, mem: a.mem}, nil
}

func (a *arrowSource) reader() (*arrowReader, error) {
	if a.open == nil {
		r := a.first
		if r == nil {
			return nil, errReadOnce
		}
		a.first = nil
		return r, nil
	}
	src := &source{}
	records, err := guarded(src, func() (*ipc.Reader, error) { return a.open(src) })
	if err != nil {
		return nil, err
	}
	return &arrowReader{src: src, records: records}, nil
}

func (a *arrowSource) read(q *request, _ bool) (batchReader, error) {
	r, err := a.reader()
	if err != nil {
		return nil, err
	}
	if r.importer, err = newBatchImporter(q.columns, r.records.Schema(), q.round); err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

func (a *arrowSource) close() {
	if a.first != nil {
		a.first.close()
		a.first = nil
	}
}

// arrowReader reads record batches. It is a batchReader.
type arrowReader struct {
	src      *source
	records  *ipc.Reader
	importer *batchImporter
}

func (r *arrowReader) next() (*batch.RecordBatch, error) {
	rec, err := guarded(r.src, func() (arrow.RecordBatch, error) {
		rec, err := r.records.Read()
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		return rec, err
	})
	switch {
	case err != nil:
		return nil, err
	case rec == nil:
		return nil, io.EOF
	}
	return r.importer.batch(rec)
}

// owned reports that batches do not belong to the caller: they alias record batches.
func (r *arrowReader) owned() bool { return false }

func (r *arrowReader) close() { r.records.Release() }
