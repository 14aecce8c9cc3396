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
// window of an input; appendRun, rows without redos; appendRow, one folded row.
//
// The pending rows are copies, except for byte strings, keys and change lists, which belong to the
// inputs and the folder. The merger calls flush before one of these reuses its memory.
type output struct {
	writer  *rowset.RollingWriter
	floor   mvcc.Timestamp
	pending change.Rows
	bytes   int   // of byte strings and change lists in pending
	written int64 // rows
}

func newOutput(s *schema.Schema, floor mvcc.Timestamp, w *rowset.RollingWriter) output {
	return output{writer: w, floor: floor, pending: change.Rows{Batch: batch.New(s.Columns, 0)}}
}

// appendAll appends all rows of an input window, without copying, if the floor drops none of their
// data. Otherwise it returns false and appends nothing.
func (o *output) appendAll(rows *change.Rows) (done bool, err error) {
	if len(o.pending.Keys) > 0 || len(rows.Redo) > 0 {
		return false, nil
	}
	for i := range rows.Undo {
		if rows.Undo[i].TS <= o.floor {
			return false, nil
		}
	}
	return true, o.write(rows)
}

// room returns how many more rows can be appended before the output is full.
func (o *output) room() int { return batch.WindowRows - len(o.pending.Keys) }

// appendRun appends rows [from, to), which have no redos, at most room of them. undo is the undos
// of these rows.
func (o *output) appendRun(rows *change.Rows, from, to int, undo []change.Delta) error {
	base := uint32(len(o.pending.Keys)) - uint32(from)
	for i, v := range o.pending.Batch.Columns {
		before := len(v.Bytes)
		v.AppendRun(rows.Batch.Columns[i], from, to)
		for _, cell := range v.Bytes[min(before, len(v.Bytes)):] {
			o.bytes += len(cell)
		}
	}
	o.pending.Keys = append(o.pending.Keys, rows.Keys[from:to]...)
	for len(undo) > 0 {
		n := sameRow(undo)
		o.appendUndos(undo[:n], undo[0].Row+base)
		undo = undo[n:]
	}
	return o.flushFull()
}

// appendRow appends one folded row, unless it was deleted at or below the floor, where no read can
// see it.
func (o *output) appendRow(key []byte, v *version) error {
	if v.deleted != nil && v.deleted.TS <= o.floor {
		return nil
	}
	row := uint32(len(o.pending.Keys))
	for i, col := range o.pending.Batch.Columns {
		col.AppendCell(v.cells[i])
		o.bytes += len(v.cells[i])
	}
	o.pending.Keys = append(o.pending.Keys, key)
	o.appendUndos(v.undo, row)
	if v.deleted != nil {
		o.pending.Redo = append(o.pending.Redo, change.Delta{Row: row, TS: v.deleted.TS, List: deleteList})
	}
	return o.flushFull()
}

// appendUndos appends the undos of one row, newest first, that reads at or above the floor need: an
// undo at ts leads to the state before ts, which such a read needs only if ts is above the floor.
func (o *output) appendUndos(undo []change.Delta, row uint32) {
	for _, d := range undo {
		if d.TS <= o.floor {
			return
		}
		d.Row = row
		o.bytes += len(d.List)
		o.pending.Undo = append(o.pending.Undo, d)
	}
}

// sameRow returns how many of the first changes are of the row of the first.
func sameRow(list []change.Delta) int {
	n := 1
	for n < len(list) && list[n].Row == list[0].Row {
		n++
	}
	return n
}

func (o *output) flushFull() error {
	if o.room() > 0 && o.bytes < outBytes {
		return nil
	}
	return o.flush()
}

// flush writes the pending rows.
func (o *output) flush() error {
	p := &o.pending
	if len(p.Keys) == 0 {
		return nil
	}
	p.Batch.Len = len(p.Keys)
	err := o.write(p)
	p.Batch.Reset(0)
	p.Keys, p.Undo, p.Redo = p.Keys[:0], p.Undo[:0], p.Redo[:0]
	o.bytes = 0
	return err
}

// write passes rows to the writer, which does not retain them. All rows reach the writer through
// here.
func (o *output) write(rows *change.Rows) error {
	o.written += int64(len(rows.Keys))
	return o.writer.Append(rows)
}
