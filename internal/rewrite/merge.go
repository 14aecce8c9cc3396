package rewrite

import (
	"bytes"
	"context"
	"slices"

	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/rowset"
)

// merger merges inputs by key. It finds the order of the rows by their keys; their cells are copied
// later, column by column.
type merger struct {
	job    Job
	tree   tree // of the inputs with rows left
	folder folder
	out    *output
	read   int64 // rows

	// Reused for each key, or each window.
	copies   []copied
	last     []byte // the last key of the rows before those that are loaded
	versions []version
}

// copied is a row of an input.
type copied struct {
	h   *head
	row int
}

func (m *merger) run(ctx context.Context) error {
	for _, in := range m.job.Inputs {
		h := &head{in: in, keeps: 1}
		if m.job.Convert == nil {
			h.storer, _ = in.(Storer)
		}
		if k, ok := in.(Keeper); ok {
			h.keeps = k.Keeps()
		}
		if b, ok := in.(Bounded); ok {
			h.first = b.First()
		} else if more, err := m.load(h); err != nil || !more {
			if err != nil {
				return err
			}
			continue
		}
		m.tree.heads = append(m.tree.heads, h)
	}
	m.tree.build()
	for len(m.tree.heads) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := m.step(); err != nil {
			return err
		}
	}
	return m.out.flush()
}

// next reads a head's next rows; a head without any leaves the tree.
func (m *merger) next(h *head) error {
	more, err := m.load(h)
	if err != nil {
		return err
	}
	if !more {
		i := slices.Index(m.tree.heads, h)
		m.tree.heads = slices.Delete(m.tree.heads, i, i+1)
	}
	m.tree.build()
	return nil
}

// load reads a head's next rows and reports whether there are any.
func (m *merger) load(h *head) (bool, error) {
	overwritten := h.used // the last window that refers to rows that Next overwrites
	if h.keeps > 1 {
		overwritten = h.before
	}
	if err := m.out.wait(overwritten); err != nil {
		return false, err
	}
	if h.rows != nil {
		m.last = append(m.last[:0], h.rows.Keys[len(h.rows.Keys)-1]...)
	}
	rows, stored, err := h.nextRows()
	if err != nil || rows == nil {
		return false, err
	}
	if h.rows != nil && bytes.Compare(m.last, rows.Keys[0]) >= 0 {
		return false, fault.Corruptf("key %x of a rowset comes after key %x", rows.Keys[0], m.last)
	}
	m.read += int64(len(rows.Keys))
	if m.job.Progress != nil {
		m.job.Progress(m.read)
	}
	if _, bounded := h.in.(Bounded); bounded && h.rows == nil && !bytes.Equal(rows.Keys[0], h.first) {
		return false, fault.Corruptf("the first key of a rowset is %x, its metadata contain %x", rows.Keys[0], h.first)
	}
	*h = head{in: h.in, storer: h.storer, keeps: h.keeps, rows: rows, stored: stored, before: h.used}
	if stored == nil {
		h.bytes = stringBytes(rows)
	}
	return true, nil
}

// nextRows reads an input's next rows. A Storer returns stored rows.
func (h *head) nextRows() (*change.Rows, *rowset.StoredRows, error) {
	if h.storer == nil {
		rows, err := h.in.Next()
		return rows, nil, err
	}
	stored, err := h.storer.NextStored()
	if err != nil || stored == nil {
		return nil, nil, err
	}
	return stored.Rows, stored, nil
}

// complete reads the cells of h.rows if that was not done yet.
func (h *head) complete() error {
	if h.stored == nil {
		return nil
	}
	h.stored = nil
	if err := h.storer.Complete(); err != nil {
		return err
	}
	h.bytes = stringBytes(h.rows)
	return nil
}

// stringBytes returns the size of the byte strings of an average row.
func stringBytes(rows *change.Rows) int {
	n := 0
	for _, v := range rows.Batch.Columns {
		switch {
		case !v.Type.Variable():
		case v.Dict != nil:
			for _, code := range v.Codes {
				n += len(v.Dict.Words[code])
			}
		default:
			for _, cell := range v.Bytes {
				n += len(cell)
			}
		}
	}
	return n / len(rows.Keys)
}

// step merges rows until the window is written or an input's next rows are read.
func (m *merger) step() error {
	for {
		i := m.tree.first()
		h := m.tree.heads[i]
		if h.rows == nil {
			return m.next(h)
		}
		if h.row == 0 {
			if done, err := m.all(h); done || err != nil {
				return err
			}
			if err := h.complete(); err != nil {
				return err
			}
		}
		row, key, prefix := h.row, h.key(), m.tree.prefix[i]
		m.tree.advance(i)
		other, err := m.another(key, prefix)
		if err != nil {
			return err
		}
		switch {
		case other || h.redo < len(h.rows.Redo) && int(h.rows.Redo[h.redo].Row) == row:
			return m.join(copied{h, row}, key, prefix)
		}
		m.out.appendRow(h, row, key, h.undosBefore(row+1))
		if m.out.isFull() {
			if err := m.out.flush(); err != nil {
				return err
			}
		}
		if h.ended() {
			return m.next(h)
		}
	}
}

// all appends all rows of a head, if they are below the next keys of the others.
func (m *merger) all(h *head) (done bool, err error) {
	last := h.rows.Keys[len(h.rows.Keys)-1]
	if o := m.tree.second(); o != nil && bytes.Compare(last, o.key()) >= 0 {
		return false, nil
	}
	if done, err = m.out.appendAll(h); !done || err != nil {
		return done, err
	}
	return true, m.next(h)
}

// another reports whether the first head's next key is key. It reads a bounded input that begins
// with key.
func (m *merger) another(key []byte, prefix uint64) (bool, error) {
	for {
		i := m.tree.first()
		if m.tree.prefix[i] != prefix {
			return false, nil
		}
		h := m.tree.heads[i]
		if h.ended() || !bytes.Equal(h.key(), key) {
			return false, nil
		}
		if h.rows != nil {
			return true, h.complete()
		}
		if err := m.next(h); err != nil {
			return false, err
		}
	}
}

// join appends a row with redos, or the rows of one key that several inputs have. The first of them
// was taken from the tree.
func (m *merger) join(first copied, key []byte, prefix uint64) error {
	m.copies = append(m.copies[:0], first)
	for {
		other, err := m.another(key, prefix)
		if err != nil {
			return err
		}
		if !other {
			break
		}
		i := m.tree.first()
		h := m.tree.heads[i]
		if slices.ContainsFunc(m.copies, func(c copied) bool { return c.h == h }) {
			return fault.Corruptf("key %x is twice in one rowset", key)
		}
		m.copies = append(m.copies, copied{h, h.row})
		m.tree.advance(i)
	}
	if err := m.fold(key); err != nil {
		return err
	}
	if m.out.isFull() {
		if err := m.out.flush(); err != nil {
			return err
		}
	}
	for _, c := range m.copies {
		if c.h.ended() {
			if err := m.next(c.h); err != nil {
				return err
			}
		}
	}
	return nil
}

// fold appends the result of m.copies, which have the same key.
func (m *merger) fold(key []byte) error {
	for len(m.versions) < len(m.copies) {
		n := len(m.job.Schema.Columns)
		m.versions = append(m.versions, version{cells: make([][]byte, n), changed: make([]bool, n)})
	}
	versions := m.versions[:len(m.copies)]
	for i, c := range m.copies {
		if err := m.take(c, &versions[i]); err != nil {
			return err
		}
	}
	seen := 0
	for i := range versions {
		if m.out.sees(&versions[i]) {
			versions[seen], versions[i] = versions[i], versions[seen]
			seen++
		}
	}
	newest, err := m.folder.chain(versions[:max(seen, 1)])
	if err != nil {
		return err
	}
	at := m.out.appendFolded(key, newest)
	for _, c := range m.copies {
		if c.h == newest.head {
			m.out.place(c.h, c.row, at)
		} else {
			m.out.place(c.h, c.row, dropped)
		}
	}
	return nil
}

// take folds a row of an input into v.
func (m *merger) take(c copied, v *version) error {
	for i, col := range c.h.rows.Batch.Columns {
		v.cells[i] = col.Cell(c.row)
	}
	v.head, v.deleted = c.h, nil
	v.undo = c.h.undosBefore(c.row + 1)
	return m.folder.fold(v, c.h.redosBefore(c.row+1))
}

// undosBefore moves past the undos of rows below row and returns them.
func (h *head) undosBefore(row int) []change.Delta {
	from := h.undo
	for h.undo < len(h.rows.Undo) && int(h.rows.Undo[h.undo].Row) < row {
		h.undo++
	}
	return h.rows.Undo[from:h.undo:h.undo]
}

func (h *head) redosBefore(row int) []change.Delta {
	from := h.redo
	for h.redo < len(h.rows.Redo) && int(h.rows.Redo[h.redo].Row) < row {
		h.redo++
	}
	return h.rows.Redo[from:h.redo:h.redo]
}
