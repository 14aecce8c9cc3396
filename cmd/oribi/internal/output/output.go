// Package output prints rows: one JSON object per line, one JSON array, CSV, or a table for people.
//
//	w := output.New(os.Stdout, output.JSONL, columns)
//	for b := range batches {
//		if err := w.Write(b); err != nil { … }
//	}
//	err := w.Close()
//
// Rows are appended to one buffer, which is written when it is full: no string is allocated per
// cell. A Writer is not safe for concurrent use.
package output

import (
	"fmt"
	"io"
	"slices"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/celltext"
	"github.com/oribi-db/oribi/internal/nearest"
	"github.com/oribi-db/oribi/schema"
)

// Format is a form of output.
type Format uint8

// The forms.
const (
	JSONL Format = iota
	JSON
	CSV
	Table
)

var formats = map[string]Format{"jsonl": JSONL, "json": JSON, "csv": CSV, "table": Table}

// ParseFormat parses the name of a format.
func ParseFormat(name string) (Format, error) {
	f, ok := formats[name]
	if !ok {
		return 0, fmt.Errorf("unknown format %q%s", name, nearest.Hint(name, nearest.Keys(formats)))
	}
	return f, nil
}

// flushBytes is how much is buffered before it is written. Only a write detects that the reader has
// gone.
const flushBytes = 64 << 10

// Writer prints batches of the same columns.
type Writer struct {
	out     io.Writer
	columns []schema.Column
	buffer  []byte
	rows    rowWriter
	err     error
}

// rowWriter is one form of output: the text before all rows, each row, and the text after them.
// flush appends rows that row has buffered.
type rowWriter interface {
	begin(dst []byte) []byte
	row(dst []byte, vectors []*batch.Vector, i int) []byte
	flush(dst []byte) []byte
	end(dst []byte) []byte
}

// New returns a writer of rows with the given columns, which the batches must have in the same
// order.
func New(out io.Writer, f Format, columns []schema.Column) *Writer {
	w := &Writer{out: out, columns: columns}
	switch f {
	case CSV:
		w.rows = &csvRows{columns: columns}
	case Table:
		w.rows = newTableRows(columns)
	default:
		w.rows = newJSONRows(columns, f == JSON)
	}
	w.buffer = w.rows.begin(nil)
	return w
}

// Style sets the layout of tables; it does not affect other forms. It must be called before the
// first Write.
func (w *Writer) Style(s Style) {
	if r, ok := w.rows.(*tableRows); ok {
		r.style = s
		for i := range r.seen {
			r.seen[i].size = slices.Contains(s.Sizes, r.columns[i].Name)
			if s.Bare {
				r.seen[i].header = 0
			}
		}
	}
}

// Write prints the selected rows of b.
func (w *Writer) Write(b *batch.RecordBatch) error {
	for i := b.Selection.Next(0); i >= 0 && w.err == nil; i = b.Selection.Next(i + 1) {
		w.buffer = w.rows.row(w.buffer, b.Columns, i)
		if len(w.buffer) >= flushBytes {
			w.flush()
		}
	}
	return w.err
}

// Flush writes the rows printed so far.
func (w *Writer) Flush() error {
	if w.err == nil {
		w.buffer = w.rows.flush(w.buffer)
		w.flush()
	}
	return w.err
}

// Close prints the text after the last row and writes all that is buffered. It does not close the
// underlying writer.
func (w *Writer) Close() error {
	if w.err == nil {
		w.buffer = w.rows.end(w.buffer)
		w.flush()
	}
	return w.err
}

func (w *Writer) flush() {
	if len(w.buffer) > 0 {
		_, w.err = w.out.Write(w.buffer)
		w.buffer = w.buffer[:0]
	}
}

// jsonRows prints one object per row. names[i] is the text before the value of column i.
type jsonRows struct {
	columns []schema.Column
	names   [][]byte
	array   bool
	some    bool
}

func newJSONRows(columns []schema.Column, array bool) *jsonRows {
	r := &jsonRows{columns: columns, array: array}
	for i := range columns {
		before := []byte{','}
		if i == 0 {
			before[0] = '{'
		}
		r.names = append(r.names, append(celltext.AppendQuoted(before, []byte(columns[i].Name)), ':'))
	}
	return r
}

func (r *jsonRows) begin(dst []byte) []byte {
	if r.array {
		dst = append(dst, '[')
	}
	return dst
}

func (r *jsonRows) row(dst []byte, vectors []*batch.Vector, i int) []byte {
	if r.array { // without one, several goroutines may be here
		if r.some {
			dst = append(dst, ",\n"...)
		}
		r.some = true
	}
	for k, v := range vectors {
		dst = append(dst, r.names[k]...)
		dst = celltext.AppendJSON(dst, &r.columns[k], v.Cell(i))
	}
	if r.array {
		return append(dst, '}')
	}
	return append(dst, "}\n"...)
}

func (r *jsonRows) flush(dst []byte) []byte { return dst }

func (r *jsonRows) end(dst []byte) []byte {
	if r.array {
		dst = append(dst, "]\n"...)
	}
	return dst
}
