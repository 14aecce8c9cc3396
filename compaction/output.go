package compaction

import (
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/rowset"
	"github.com/oribi-db/oribi/schema"
)

// outBytes is about how many bytes of byte strings and change lists are written at once.
const outBytes = 1 << 20

// output is the stage through which every row of a merge reaches the writer. It drops what no read
// at or above the history floor needs: undos at or below the floor, and rows deleted there.
//
// Rows come in key order in one of three forms, from fastest to slowest: appendAll, a complete
// window of an input; appendRow, a row without redos whose key no other input has; appendFolded,
// one folded row.
type output struct {
	writer  *rowset.RollingWriter
	floor   mvcc.Timestamp
	window  window
	number  int64 // of the window, from 1
	gather  gatherer
	written int64 // rows
}

// window is up to batch.WindowRows rows of the output. Their cells are still in the rows of the
// inputs: flush gathers them column by column. The merger calls flush before an input overwrites
// such rows.
type window struct {
	keys       [][]byte
	undo, redo []change.Delta
	parts      []part
	patches    [][]patch // by column: cells that differ from those of the inputs
	bytes      int       // of byte strings and change lists
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

func newOutput(s *schema.Schema, floor mvcc.Timestamp, w *rowset.RollingWriter) output {
	return output{writer: w, floor: floor, number: 1, window: window{patches: make([][]patch, len(s.Columns))}, gather: newGatherer(s)}
}

// appendAll appends all rows of an input window, without copying, if the floor drops none of their
// data. Otherwise it returns false and appends nothing.
func (o *output) appendAll(rows *change.Rows) (done bool, err error) {
	if len(rows.Redo) > 0 {
		return false, nil
	}
	for i := range rows.Undo {
		if rows.Undo[i].TS <= o.floor {
			return false, nil
		}
	}
	if err := o.flush(); err != nil {
		return false, err
	}
	return true, o.write(rows)
}

// full reports whether the window must be flushed before another row is appended.
func (o *output) full() bool {
	return len(o.window.keys) == batch.WindowRows || o.window.bytes >= outBytes
}

// appendRow appends a row of an input, which has no redos. undo is its undos.
func (o *output) appendRow(h *head, row int, key []byte, undo []change.Delta) {
	w := &o.window
	at := uint32(len(w.keys))
	o.place(h, row, at)
	w.keys = append(w.keys, key)
	w.bytes += h.bytes
	if len(undo) > 0 {
		o.appendUndos(undo, at)
	}
}

// appendFolded appends a folded row and returns its position in the window. It drops a row that was
// deleted at or below the floor, where no read can see it.
func (o *output) appendFolded(key []byte, v *version) uint32 {
	if v.deleted != nil && v.deleted.TS <= o.floor {
		return dropped
	}
	w := &o.window
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
	w := &o.window
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

// appendUndos appends the undos of one row, newest first, that reads at or above the floor need: an
// undo at ts leads to the state before ts, which such a read needs only if ts is above the floor.
func (o *output) appendUndos(undo []change.Delta, row uint32) {
	w := &o.window
	for i := range undo {
		d := &undo[i]
		if d.TS <= o.floor {
			return
		}
		w.bytes += len(d.List)
		w.undo = append(w.undo, change.Delta{Row: row, TS: d.TS, List: d.List})
	}
}

// flush writes the rows of the window and begins a new one.
func (o *output) flush() error {
	w := &o.window
	var err error
	if len(w.keys) > 0 {
		err = o.write(&change.Rows{Batch: o.gather.rows(w), Keys: w.keys, Undo: w.undo, Redo: w.redo})
	}
	o.number++
	w.keys, w.undo, w.redo, w.parts, w.bytes = w.keys[:0], w.undo[:0], w.redo[:0], w.parts[:0], 0
	for i := range w.patches {
		w.patches[i] = w.patches[i][:0]
	}
	return err
}

// write passes rows to the writer, which does not retain them. All rows reach the writer through
// here.
func (o *output) write(rows *change.Rows) error {
	o.written += int64(len(rows.Keys))
	return o.writer.Append(rows)
}
