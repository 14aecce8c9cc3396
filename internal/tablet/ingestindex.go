package tablet

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/bloom"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/keyenc"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/rowset"
	"github.com/oribi-db/oribi/schema"
)

// defaultIndexBytes is Ingest.IndexBytes if the caller does not set it.
const defaultIndexBytes = 4 << 20

// indexIntake is the part of an Ingest that concerns an index. The rows arrive in the order of their keys, so
// that their entries do not ascend: they are collected, and written as a run of rowsets whenever they take
// the index's part of IndexBytes. The runs overlap until a compaction merges them.
type indexIntake struct {
	intake
	*IndexColumns
	in      *Ingest
	entries []newEntry
	buf     []byte // of their keys and cells: the chunk being filled
	size    int64  // of entries
	window  change.Rows
}

// newEntry is the entry of an ingested row.
type newEntry struct {
	head  uint64 // keyenc.Head of the key
	key   []byte
	row   []byte // the key of the row
	clock []byte // the cell by which the row expires; nil for NULL
	at    int64  // number of the row
}

// newEntryBytes is the memory of a newEntry without its byte strings.
const newEntryBytes = 96

// add adds the entries of rows, of which the first has the number at.
func (x *indexIntake) add(rows *change.Rows, at int64) error {
	plan := x.in.plan
	cells := make([][]byte, len(plan.watched))
	for i, key := range rows.Keys {
		size := len(key) + 2*len(x.at) + 16
		for k, c := range plan.watched {
			cells[k] = rows.Batch.Columns[c].Cell(i)
			size += 2*len(cells[k]) + 2
		}
		if cap(x.buf)-len(x.buf) < size {
			x.buf = make([]byte, 0, max(size, listChunk))
		}
		start := len(x.buf)
		x.buf = x.appendEntry(x.buf, key, cells)
		e := newEntry{key: x.buf[start:len(x.buf):len(x.buf)], at: at + int64(i)}
		if n := len(e.key); n > schema.MaxKeyBytes {
			return x.in.rowError(e.at, key, entryTooLong(x.Table, n))
		}
		e.head = keyenc.Head(e.key)
		if x.Table.Index().Unique {
			e.row = x.keep(key)
		}
		if plan.clock >= 0 && cells[plan.clock] != nil {
			e.clock = x.keep(cells[plan.clock])
		}
		x.entries = append(x.entries, e)
		if x.size += int64(newEntryBytes + len(e.key) + len(e.row) + len(e.clock)); x.size < x.in.IndexBytes/int64(len(x.in.indexes)) {
			continue
		}
		if err := x.write(); err != nil {
			return err
		}
		if err := x.endRun(); err != nil {
			return err
		}
		if err := x.open(); err != nil {
			return err
		}
		x.beginRun()
	}
	return nil
}

// keep returns a copy of b in x.buf, which has room.
func (x *indexIntake) keep(b []byte) []byte {
	start := len(x.buf)
	x.buf = append(x.buf, b...)
	return x.buf[start:len(x.buf):len(x.buf)]
}

// write writes the collected entries to the present run, and forgets them.
func (x *indexIntake) write() error {
	slices.SortFunc(x.entries, func(a, b newEntry) int {
		if a.head != b.head {
			return cmp.Compare(a.head, b.head)
		}
		return cmp.Or(bytes.Compare(a.key, b.key), cmp.Compare(a.at, b.at))
	})
	if err := x.check(); err != nil {
		return err
	}
	w := &x.window
	for left := x.entries; len(left) > 0; {
		n := min(len(left), batch.WindowRows)
		if w.Batch == nil {
			w.Batch = batch.New(x.intake.schema.Schema.Columns, 0)
		}
		w.Batch.Reset(0)
		w.Keys = w.Keys[:0]
		for _, e := range left[:n] {
			for i, v := range w.Batch.Columns {
				v.AppendCell(e.cell(x.intake.schema.Schema.Columns[i].Name))
			}
			w.Keys = append(w.Keys, e.key)
		}
		w.Batch.Len = n
		if err := x.writer.Append(w); err != nil {
			return x.errorf(err)
		}
		left = left[n:]
	}
	clear(x.entries)
	x.entries, x.buf, x.size = x.entries[:0], nil, 0
	return nil
}

func (e *newEntry) cell(column string) []byte {
	switch column {
	case entryColumn:
		return e.key
	case RowColumn:
		return e.row
	}
	return e.clock
}

// check returns an error for the first of the collected entries of a unique index, in their order, that another row
// has: one of them, of an earlier run, or of the table. It deletes those that the index has and that are expired,
// also of rows that are no longer there.
func (x *indexIntake) check() error {
	unique := x.Table.Index().Unique
	if !unique && x.in.plan.clock < 0 {
		return nil
	}
	st, err := x.t.acquire()
	if err != nil {
		return err
	}
	defer st.release()
	w := Write{t: x.t, state: st} // not locked: Finish looks up what was written since
	if err := w.startExpiry(); err != nil {
		return err
	}
	var expired [][]byte
	for i := range x.entries {
		e, probe := &x.entries[i], bloom.MakeProbe(x.entries[i].key)
		if unique {
			if err := x.checkNew(i, probe); err != nil {
				return err
			}
		}
		p, err := w.find(probe)
		switch {
		case err != nil:
			return x.errorf(err)
		case !p.live:
		case !w.exists(p):
			expired = append(expired, e.key)
		case unique:
			cells, err := w.cellsAt(e.key, p)
			if err != nil {
				return x.errorf(err)
			}
			return x.notUnique(e.at, e.row, cells[x.rowColumn()])
		} // else another writer has inserted the row, which Finish finds
	}
	if len(expired) == 0 {
		return nil
	}
	return x.in.Purge(x.t, expired)
}

// checkNew returns an error if another row of the ingest has entry i of a unique index.
func (x *indexIntake) checkNew(i int, p bloom.Probe) error {
	e := &x.entries[i]
	if i > 0 && bytes.Equal(e.key, x.entries[i-1].key) {
		return x.notUnique(e.at, e.row, x.entries[i-1].row)
	}
	d, _, err := x.find(p)
	if d == nil || err != nil {
		return err
	}
	other, err := x.rowIn(d, p)
	if err != nil {
		return err
	}
	return x.notUnique(e.at, e.row, other)
}

func (x *indexIntake) rowColumn() int { return x.intake.schema.Schema.Index(RowColumn) }

// rowIn returns the key of the row of an entry in the new rowset d.
func (x *indexIntake) rowIn(d *rowset.DiskRowSet, p bloom.Probe) ([]byte, error) {
	cells, _, err := d.Get(p, mvcc.Everything, []int{x.rowColumn()}, nil)
	if err != nil {
		return nil, x.errorf(err)
	}
	return cells[0], nil
}

func (x *indexIntake) notUnique(at int64, row, other []byte) error {
	return x.in.rowError(at, row, &change.NotUnique{Index: x.Table.Index().Name, Key: bytes.Clone(other),
		Other: x.in.t.KeyText(other)})
}

// entryTaken returns the error of an entry in the new rowset d that is live in st.
func (x *indexIntake) entryTaken(st *tabletState, entry []byte, _ int64, d *rowset.DiskRowSet) error {
	w, probe := Write{t: x.t, state: st}, bloom.MakeProbe(entry)
	p, err := w.find(probe)
	if err != nil || !p.live { // it was deleted again
		return err
	}
	other, err := w.cellsAt(entry, p)
	if err != nil {
		return x.errorf(err)
	}
	row, err := x.rowIn(d, probe)
	if err != nil {
		return err
	}
	_, at, err := x.in.find(bloom.MakeProbe(row))
	if err != nil {
		return err
	}
	return x.notUnique(int64(at), row, other[x.rowColumn()])
}

func entryTooLong(index *Tablet, n int) error {
	return fmt.Errorf("index %q: an entry of %d bytes, at most %d are possible", index.Index().Name, n, schema.MaxKeyBytes)
}
