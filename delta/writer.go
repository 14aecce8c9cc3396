package delta

import (
	"errors"
	"fmt"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/cfile"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/invariant"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// Writer writes one delta file with the settings of Kudu's writer. Not for concurrent use. Source:
// tablet spec §6.3, §6.5.
type Writer struct {
	out   *cfile.Writer
	undo  bool
	stats Stats
	count int64
	row   uint32         // of the last delta
	ts    mvcc.Timestamp // of the last delta

	// Deltas are passed to the cfile a few hundred at a time. This does not affect its cblocks.
	cells batch.Vector
	buf   []byte // memory of cells
}

const (
	pendingCells = 256
	pendingBytes = 32 << 10
)

// errNoDeltas is returned by Finish, since a delta file must not be empty.
var errNoDeltas = errors.New("delta: a file without deltas")

// NewWriter begins a file of undos or of redos in sink. If it is not finished, sink contains part
// of a file, which the caller discards.
func NewWriter(sink block.Sink, undo bool) (*Writer, error) {
	return newWriter(sink, undo, cblockBytes)
}

func newWriter(sink block.Sink, undo bool, cblockBytes int) (*Writer, error) {
	out, err := cfile.NewWriter(sink, cfile.WriterOptions{
		Type:          schema.Binary,
		Encoding:      schema.Plain,
		Compression:   schema.LZ4,
		BlockBytes:    cblockBytes,
		ValueIndex:    true,
		FullIndexKeys: true,
		IndexKey:      keyOf,
		Exact:         true,
		Hasty:         true,
	})
	if err != nil {
		return nil, fmt.Errorf("delta: %w", err)
	}
	return &Writer{out: out, undo: undo, stats: emptyStats(), cells: batch.Vector{Type: schema.Binary}}, nil
}

// Append adds one delta and copies its list. Rows must not descend. Within a row the timestamps of
// redos must not descend, and the timestamps of undos must not ascend; otherwise Append returns an
// error. Deltas with the same timestamp keep their order.
func (w *Writer) Append(d change.Delta) error {
	if w.count > 0 && (d.Row < w.row || d.Row == w.row && (w.undo && d.TS > w.ts || !w.undo && d.TS < w.ts)) {
		return fmt.Errorf("delta: row %d at %d after row %d at %d: out of order", d.Row, uint64(d.TS),
			w.row, uint64(w.ts))
	}
	if invariant.Enabled {
		if err := d.List.Check(&schema.Schema{}); err != nil {
			panic(fmt.Sprintf("delta: row %d at %d: list %x: %v", d.Row, uint64(d.TS), []byte(d.List), err))
		}
	}
	w.row, w.ts = d.Row, d.TS
	w.count++
	w.stats.add(d.TS, d.List)

	start := len(w.buf)
	w.buf = AppendKey(w.buf, d.Row, d.TS)
	w.buf = append(w.buf, d.List...)
	// If buf is reallocated as it grows, earlier cells stay in the old memory.
	w.cells.Bytes = append(w.cells.Bytes, w.buf[start:len(w.buf):len(w.buf)])
	w.cells.Len++
	if w.cells.Len >= pendingCells || len(w.buf) >= pendingBytes {
		return w.flush()
	}
	return nil
}

func (w *Writer) flush() error {
	if w.cells.Len == 0 {
		return nil
	}
	if err := w.out.Append(&w.cells); err != nil {
		return fmt.Errorf("delta: %w", err)
	}
	w.cells.Reset(0)
	w.buf = w.buf[:0]
	return nil
}

// Finish writes the rest of the file and returns its statistics. A file without deltas is an error.
func (w *Writer) Finish() (Stats, error) {
	if w.count == 0 {
		return Stats{}, errNoDeltas
	}
	if err := w.flush(); err != nil {
		return Stats{}, err
	}
	message, err := w.stats.encode()
	if err != nil {
		return Stats{}, fmt.Errorf("delta: statistics: %w", err)
	}
	w.out.AddMetadata(statsKey, message)
	if err := w.out.Finish(); err != nil {
		return Stats{}, fmt.Errorf("delta: %w", err)
	}
	return w.stats, nil
}

// Len returns the number of deltas so far.
func (w *Writer) Len() int64 { return w.count }
