package rewrite

import (
	"slices"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/delta"
	"github.com/oribi-db/oribi/rowset"
)

// outBytes is about how many bytes of byte strings and change lists are written at once.
const outBytes = 1 << 20

// output is the stage through which every row of a merge reaches the writer. It drops what no
// retained state needs: undos, and rows that were deleted.
//
// Rows come in key order in one of three forms, from fastest to slowest: appendAll, a complete window
// of an input, either as it is stored or with its cells; appendRow, a row without redos whose key no
// other input has; appendFolded, one folded row.
//
// A goroutine gathers and writes full windows, while the merger reads further rows and finds the
// order of the next window. The writer gets the same windows in the same order whatever the number
// of processors.
type output struct {
	thinner
	window *window   // the current one
	spare  []*window // their memory
	number int64     // of the current window, from 1
	most   int       // rows of a window
	done   int64     // the number of the last window that was written

	full    chan *window  // to the goroutine
	written chan *window  // from it, with their errors
	ended   chan struct{} // closed by it
	writer  *rowset.RollingWriter
	convert func(*change.Rows) (*change.Rows, error) // nil: rows are written as they are
	gather  gatherer
	rows    int64 // written
}

// windows is the number of windows in memory, without the cells of their rows: the current one, the
// one being written, and one between the two.
const windows = 3

// window is up to batch.WindowRows rows of the output. Their cells are in the rows of the inputs
// until they are gathered, column by column.
type window struct {
	all        *change.Rows       // the rows, if they are the rows of one input's window
	stored     *rowset.StoredRows // the same, as they are stored
	keys       [][]byte
	undo, redo []change.Delta
	parts      []part
	patches    [][]patch // by column: cells that differ from the inputs' cells
	bytes      int       // of byte strings and change lists
	lists      [][]byte  // buffers of the folder that it refers to
	err        error     // of writing it
}

// part is a run of rows of one input. Row from+i is row to[i] of the window; dropped: of none.
type part struct {
	columns []*batch.Vector
	from    int
	to      []uint32
	apart   bool // the rows are not adjacent in the window, or one of them is dropped
}

const dropped = batch.WindowRows

// patch is the cell of a row that redos changed; nil for NULL.
type patch struct {
	row  uint32
	cell []byte
}

// newOutput starts the goroutine, which close ends.
func newOutput(job *Job, f *folder) *output {
	o := &output{thinner: thinner{Retained: job.Retained, folder: f}, number: 1, most: batch.RowsOf(batch.RowBytes(job.Schema.Columns)), writer: job.Writer, convert: job.Convert,
		gather: newGatherer(job.Schema),
		full:   make(chan *window, windows), written: make(chan *window, windows), ended: make(chan struct{})}
	for range windows {
		o.spare = append(o.spare, &window{patches: make([][]patch, len(job.Schema.Columns))})
	}
	o.window, o.spare = o.spare[0], o.spare[1:]
	go o.writeAll()
	return o
}

// appendAll appends all rows of an input window, without copying, if they have no redos and, unless
// they are stored ones, none of their undos is below the floor. Otherwise it returns false and appends
// nothing.
func (o *output) appendAll(h *head) (done bool, err error) {
	if len(h.rows.Redo) > 0 {
		return false, nil
	}
	if h.stored != nil {
		return true, o.appendStored(h)
	}
	for i := range h.rows.Undo {
		if h.rows.Undo[i].TS <= o.Floor {
			return false, nil
		}
	}
	if err := o.flush(); err != nil {
		return false, err
	}
	h.used, h.part = o.number, -1
	o.window.all = h.rows
	return true, o.flush()
}

// appendStored appends the rows of an input window, which have no redos, as they are stored.
func (o *output) appendStored(h *head) error {
	if err := o.flush(); err != nil {
		return err
	}
	s := h.stored
	if o.writer.NeedsCells() {
		if err := h.complete(); err != nil {
			return &rowset.ReadError{ID: s.Set.Metadata().ID, Err: err}
		}
	}
	s.Undo = o.thinRows(s.Undo)
	s.Births = slices.DeleteFunc(s.Births, func(b delta.Birth) bool { return b.TS <= o.First() })
	h.used, h.part = o.number, -1
	o.window.stored = s
	return o.flush()
}

// isFull reports whether the window must be flushed before another row is appended.
func (o *output) isFull() bool {
	// Lists that were dropped count too.
	return len(o.window.keys) >= o.most || o.window.bytes >= outBytes || o.folder.bytes() >= outBytes
}

// appendRow appends a row of an input, which has no redos. undo is its undos.
func (o *output) appendRow(h *head, row int, key []byte, undo []change.Delta) {
	w := o.window
	at := uint32(len(w.keys))
	o.place(h, row, at)
	w.keys = append(w.keys, key)
	w.bytes += h.bytes
	if len(undo) > 0 {
		o.appendUndos(undo, at)
	}
}

// appendFolded appends a folded row and returns its position in the window. It drops a row that was
// deleted and that no retained state has.
func (o *output) appendFolded(key []byte, v *version) uint32 {
	if !o.sees(v) {
		return dropped
	}
	w := o.window
	at := uint32(len(w.keys))
	w.keys = append(w.keys, key)
	for i, cell := range v.cells {
		w.bytes += len(cell)
		if v.changed[i] {
			w.patches[i] = append(w.patches[i], patch{at, cell})
		}
	}
	o.appendUndos(v.undo, at)
	if v.deleted != nil {
		w.redo = append(w.redo, change.Delta{Row: at, TS: v.deleted.TS, List: deleteList})
	}
	return at
}

// place records where the next row of an input goes. No row of the input's rows is left out.
func (o *output) place(h *head, row int, at uint32) {
	w := o.window
	if h.used != o.number {
		h.used, h.part = o.number, len(w.parts)
		if h.part < cap(w.parts) {
			w.parts = w.parts[:h.part+1]
		} else {
			w.parts = append(w.parts, part{})
		}
		p := &w.parts[h.part]
		p.columns, p.from, p.to, p.apart = h.rows.Batch.Columns, row, append(p.to[:0], at), at == dropped
		return
	}
	p := &w.parts[h.part]
	p.apart = p.apart || at != p.to[len(p.to)-1]+1
	p.to = append(p.to, at)
}

// appendUndos appends what retained states need of the undos of one row, newest first.
func (o *output) appendUndos(undo []change.Delta, row uint32) {
	w := o.window
	n := len(w.undo)
	w.undo = o.thin(w.undo, undo)
	for i := range w.undo[n:] {
		d := &w.undo[n+i]
		d.Row = row
		w.bytes += len(d.List)
	}
}

// flush passes the window to the goroutine and begins a new one.
func (o *output) flush() error {
	w := o.window
	if len(w.keys) == 0 && w.all == nil && w.stored == nil && len(w.parts) == 0 {
		return nil
	}
	w.lists = o.folder.take(w.lists)
	o.full <- w
	o.number++
	for len(o.spare) == 0 {
		if err := o.receive(); err != nil {
			return err
		}
	}
	n := len(o.spare) - 1
	o.window, o.spare = o.spare[n], o.spare[:n]
	return nil
}

// wait returns when the window with that number is written. The merger calls it before the rows
// that the window refers to are overwritten.
func (o *output) wait(number int64) error {
	if number == o.number {
		if err := o.flush(); err != nil {
			return err
		}
	}
	for o.done < number {
		if err := o.receive(); err != nil {
			return err
		}
	}
	return nil
}

// receive waits until the next window is written.
func (o *output) receive() error {
	w := <-o.written
	o.done++
	o.folder.reuse(w.lists)
	w.reset()
	o.spare = append(o.spare, w)
	return w.err
}

// close waits until all windows are written, ends the goroutine, and returns the number of rows
// that were written. It must be called once, whatever happened.
func (o *output) close() (rows int64, err error) {
	err = o.wait(o.number - 1)
	close(o.full)
	<-o.ended
	return o.rows, err
}

// reset makes w an empty window and keeps its memory and its error.
func (w *window) reset() {
	w.all, w.stored = nil, nil
	w.keys, w.undo, w.redo, w.parts, w.bytes, w.lists = w.keys[:0], w.undo[:0], w.redo[:0], w.parts[:0], 0, w.lists[:0]
	for i := range w.patches {
		w.patches[i] = w.patches[i][:0]
	}
}

// writeAll writes windows until there are no more. After an error it writes none.
func (o *output) writeAll() {
	defer close(o.ended)
	var err error
	for w := range o.full {
		if err == nil {
			err = o.write(w)
		}
		w.err = err
		o.written <- w
	}
}

// write passes the rows of a window to the writer, which does not retain them. All rows reach the
// writer through here.
func (o *output) write(w *window) error {
	if w.stored != nil {
		o.rows += int64(len(w.stored.Keys))
		return o.writer.AppendStored(w.stored)
	}
	rows := w.all
	if rows == nil {
		if len(w.keys) == 0 {
			return nil
		}
		rows = &change.Rows{Batch: o.gather.rows(w), Keys: w.keys, Undo: w.undo, Redo: w.redo}
	}
	o.rows += int64(len(rows.Keys))
	if o.convert != nil {
		var err error
		if rows, err = o.convert(rows); err != nil {
			return err
		}
	}
	return o.writer.Append(rows)
}
