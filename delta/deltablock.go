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

// deltaBlock is a data cblock of a File, taken apart: what the cache holds. Delta i is of row
// rows[i] at ts[i], and its list is lists[starts[i]:starts[i+1]]. Rows do not fall. It is shared by
// all readers and changed by none; the garbage collector finds few pointers in it, however many
// deltas it has.
//
// Most lists set the same columns as others do. Delta i has the shape shapes[shape[i]], which says
// them without a look at the list.
type deltaBlock struct {
	rows   []uint32
	ts     []mvcc.Timestamp
	starts []uint32 // one more than rows
	shape  []uint32
	shapes []shape
	lists  []byte

	columns       []schema.ColumnID // of all lists, rising
	hasNonUpdates bool              // some delta is no update

	checked atomic.Pointer[schema.Schema] // the lists fit it; nil: not compared with any yet
}

// shape is what lists have in common that do the same to the same columns.
type shape struct {
	kind change.Kind
	ids  []schema.ColumnID // in the order of the list
	set  batch.Bitmap      // bit i: ids has the block's columns[i]
}

// parseBlock makes a deltaBlock of the cells of a cblock, the lists checked against s. Errors:
// ErrCorrupt.
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
	deltaBytes = 4 + 8 + 4 + 4 // of a delta beside its list
	blockBytes = 256
	shapeBytes = 64 // beside its columns
)

// shaper finds the shapes of a block's lists, and checks the lists.
type shaper struct {
	b      *deltaBlock
	schema *schema.Schema
	rules  [][]rule          // for each shape and column, what its cells have to be
	known  map[string]uint32 // by kind and columns, as bytes
	last   [4]uint32         // by kind, 1 + the shape of the last list of it; 0 = none yet
}

// rule says what the schema demands of the cells of a column.
type rule struct {
	width   int // −1 = any
	null    bool
	array   bool // they are arrays of element
	element schema.Type
}

// take is the shape of a list. Errors: ErrCorrupt.
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

// add makes a new shape.
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

// fits reports whether a list has a shape, and passes List.Check.
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

// finish fills in what needs all shapes, and returns how many bytes they take.
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

// check reports whether the lists fit s. Errors: ErrCorrupt.
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

// lastRow is the row of the last delta.
func (b *deltaBlock) lastRow() uint32 { return b.rows[len(b.rows)-1] }

// atOrAfter is the index of the first delta, from index from on, of row or a later one.
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

// covers reports whether seen has all columns of the shape.
func (s *shape) covers(seen batch.Bitmap) bool {
	for i, w := range s.set {
		if w&^seen[i] != 0 {
			return false
		}
	}
	return true
}
