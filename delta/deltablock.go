package delta

import (
	"slices"
	"sort"
	"sync/atomic"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// deltaBlock is a parsed data cblock of a File, as the cache stores it. Delta i changes row rows[i]
// at ts[i], and its list is lists[starts[i]:starts[i+1]]. Rows do not descend. A deltaBlock is
// immutable and shared by all readers. However many deltas it has, it contains few pointers for the
// garbage collector to visit.
//
// Most lists set the same columns as other lists. shapes[shape[i]] is the shape of delta i, which
// makes reading the list itself unnecessary.
type deltaBlock struct {
	rows   []uint32
	ts     []mvcc.Timestamp
	starts []uint32 // one more than rows
	shape  []uint32
	shapes []shape
	lists  []byte

	columns       []schema.ColumnID // of all lists, ascending
	hasNonUpdates bool              // some delta is not an update

	checked atomic.Pointer[schema.Schema] // the schema that all lists have been checked against; nil if there is none
}

// shape is the kind and the columns of a change list. Lists with the same kind and columns share
// it.
type shape struct {
	kind change.Kind
	ids  []schema.ColumnID // in the order of the list
	set  batch.Bitmap      // bit i: ids has the block's columns[i]
}

// parseBlock parses the cells of a cblock and checks the lists against s. It also returns the size
// of the deltaBlock in bytes. Errors: ErrCorrupt.
func parseBlock(cells [][]byte, s *schema.Schema) (*deltaBlock, int64, error) {
	n, size := len(cells), 0
	for _, cell := range cells {
		size += len(cell)
	}
	b := &deltaBlock{rows: make([]uint32, n), ts: make([]mvcc.Timestamp, n), starts: make([]uint32, n+1), shape: make([]uint32, n),
		lists: make([]byte, 0, size)}
	m := shaper{b: b, schema: s}
	last := uint32(0)
	for i, cell := range cells {
		d, err := parseDelta(cell)
		if err == nil && d.Row < last {
			err = fault.Corruptf("row %d after row %d", d.Row, last)
		}
		if err == nil {
			b.shape[i], err = m.take(d.List)
		}
		if err != nil {
			return nil, 0, err
		}
		last = d.Row
		b.rows[i], b.ts[i] = d.Row, d.TS
		b.lists = append(b.lists, d.List...)
		b.starts[i+1] = uint32(len(b.lists))
	}
	b.checked.Store(s)
	return b, int64(n*deltaBytes+cap(b.lists)+m.finish()) + blockBytes, nil
}

const (
	deltaBytes = 4 + 8 + 4 + 4 // of a delta without its list
	blockBytes = 256
	shapeBytes = 64 // without its columns
)

// shaper finds the shapes of the lists of a block, and checks the lists.
type shaper struct {
	b      *deltaBlock
	schema *schema.Schema
	rules  [][]rule          // for each shape and column, the requirements on its cells
	known  map[string]uint32 // by kind and columns, as bytes
	last   [4]uint32         // by kind, 1 + the shape of the previous list of that kind; 0 = none
}

// rule contains the schema's requirements on the cells of a column.
type rule struct {
	width   int // −1 = any
	null    bool
	array   bool // they are arrays of element
	element schema.Type
}

// take checks a list and returns its shape. Errors: ErrCorrupt.
func (m *shaper) take(list change.List) (uint32, error) {
	if kind := int(list.Kind()); kind < len(m.last) && m.last[kind] > 0 {
		if at := m.last[kind] - 1; m.fits(at, list) {
			return at, nil
		}
	}
	if err := list.Check(m.schema); err != nil {
		return 0, err
	}
	var ids []schema.ColumnID
	key := []byte{byte(list.Kind())}
	columns := list.Columns()
	for id, _, ok := columns.Next(); ok; id, _, ok = columns.Next() {
		ids = append(ids, id)
		key = append(key, byte(id), byte(id>>8), byte(id>>16), byte(id>>24))
	}
	at, ok := m.known[string(key)]
	if !ok {
		at = m.add(list.Kind(), ids, string(key))
	}
	m.last[list.Kind()] = at + 1
	return at, nil
}

// add adds a shape.
func (m *shaper) add(kind change.Kind, ids []schema.ColumnID, key string) uint32 {
	rules := make([]rule, len(ids))
	for i, id := range ids {
		rules[i] = rule{width: -1, null: true}
		if at := m.schema.IndexID(id); at >= 0 {
			c := &m.schema.Columns[at]
			rules[i].null, rules[i].array, rules[i].element = c.Nullable, c.Type == schema.Array, c.Element
			if !c.Type.Variable() {
				rules[i].width = c.Type.Width()
			}
		}
	}
	if m.known == nil {
		m.known = map[string]uint32{}
	}
	at := uint32(len(m.rules))
	m.known[key] = at
	m.rules = append(m.rules, rules)
	m.b.shapes = append(m.b.shapes, shape{kind: kind, ids: ids})
	m.b.hasNonUpdates = m.b.hasNonUpdates || kind != change.Update
	return at
}

// fits reports whether a list has the shape and passes List.Check.
func (m *shaper) fits(at uint32, list change.List) bool {
	ids, rules := m.b.shapes[at].ids, m.rules[at]
	columns := list.Columns()
	for i := range ids {
		id, cell, ok := columns.Next()
		if !ok || id != ids[i] {
			return false
		}
		if cell == nil {
			ok = rules[i].null
		} else {
			ok = rules[i].width < 0 || rules[i].width == len(cell)
			ok = ok && (!rules[i].array || schema.CheckArray(rules[i].element, cell) == nil)
		}
		if !ok {
			return false
		}
	}
	return columns.Left() == 0
}

// finish sets the fields that depend on all shapes, and returns their size in bytes.
func (m *shaper) finish() (size int) {
	b := m.b
	for i := range b.shapes {
		b.columns = append(b.columns, b.shapes[i].ids...)
	}
	slices.Sort(b.columns)
	b.columns = slices.Clip(slices.Compact(b.columns))
	words := len(batch.MakeBitmap(len(b.columns)))
	sets := make([]uint64, words*len(b.shapes))
	for i := range b.shapes {
		s := &b.shapes[i]
		s.set = batch.Bitmap(sets[i*words : (i+1)*words : (i+1)*words])
		for _, id := range s.ids {
			at, _ := slices.BinarySearch(b.columns, id)
			s.set.Set(at)
		}
		size += shapeBytes + 4*len(s.ids)
	}
	return size + 8*len(sets) + 4*cap(b.columns)
}

// check returns an error unless the lists fit s. Errors: ErrCorrupt.
func (b *deltaBlock) check(s *schema.Schema) error {
	if b.checked.Load() == s {
		return nil
	}
	for i := range b.rows {
		if err := b.list(i).Check(s); err != nil {
			return err
		}
	}
	b.checked.Store(s)
	return nil
}

func (b *deltaBlock) list(i int) change.List {
	end := b.starts[i+1]
	return change.List(b.lists[b.starts[i]:end:end])
}

func (b *deltaBlock) delta(i int) change.Delta {
	return change.Delta{Row: b.rows[i], TS: b.ts[i], List: b.list(i)}
}

// lastRow returns the row of the last delta.
func (b *deltaBlock) lastRow() uint32 { return b.rows[len(b.rows)-1] }

// atOrAfter returns the index of the first delta at or after index from whose row is at or after
// row.
func (b *deltaBlock) atOrAfter(from int, row uint64) int {
	rows := b.rows[from:]
	if len(rows) == 0 || uint64(rows[0]) >= row {
		return from
	}
	if uint64(rows[len(rows)-1]) < row {
		return len(b.rows)
	}
	return from + sort.Search(len(rows), func(i int) bool { return uint64(rows[i]) >= row })
}

// covers reports whether seen contains all columns of the shape.
func (s *shape) covers(seen batch.Bitmap) bool {
	for i, w := range s.set {
		if w&^seen[i] != 0 {
			return false
		}
	}
	return true
}
