package delta

import (
	"slices"
	"sync"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// parser parses the cells of cblocks. Its memory is used for one cblock after another.
type parser struct {
	rows, first   []uint32 // by entry, see deltaBlock
	starts, shape []uint32 // by delta
	ts            []uint64 // by delta
	memory        []byte
	times         timeSet
	shaper        shaper
}

// maxParser limits the memory that the pool keeps, in deltas and in bytes of their lists.
const maxParser = 1 << 16

var parsers = sync.Pool{New: func() any { return new(parser) }}

// parseBlock parses the cells of a cblock into b, whose memory it reuses, and checks the lists
// against s. It also returns the size of the deltaBlock in bytes. Errors: ErrCorrupt.
func parseBlock(b *deltaBlock, cells [][]byte, s *schema.Schema) (*deltaBlock, int64, error) {
	p := parsers.Get().(*parser)
	defer p.release()
	if err := p.parse(b, cells, s); err != nil {
		return nil, 0, err
	}
	return b, b.size(), nil
}

func (p *parser) release() {
	p.shaper = shaper{}
	if cap(p.ts) <= maxParser && cap(p.memory) <= 16*maxParser {
		parsers.Put(p)
	}
}

// size returns the memory of the block in bytes.
func (b *deltaBlock) size() int64 {
	size := blockBytes + cap(b.lists) + 8*cap(b.times) + 4*(cap(b.columns)+cap(b.nonUpdates)) +
		depthBytes*cap(b.depths.list)
	for i := range b.shapes {
		size += shapeBytes + 4*len(b.shapes[i].ids) + 8*len(b.shapes[i].set)
	}
	return int64(size)
}

// parse sets *b, in its memory.
func (p *parser) parse(b *deltaBlock, cells [][]byte, s *schema.Schema) error {
	n := len(cells)
	p.rows, p.first, p.memory = p.rows[:0], p.first[:0], p.memory[:0]
	p.starts, p.shape, p.ts = slices.Grow(p.starts[:0], n+1), slices.Grow(p.shape[:0], n), slices.Grow(p.ts[:0], n)
	p.shaper = shaper{b: b, schema: s}
	*b = deltaBlock{lists: b.lists[:0], times: b.times[:0], depths: b.depths, shapes: b.shapes[:0],
		columns: b.columns[:0], nonUpdates: b.nonUpdates[:0], ascending: true, descending: true}
	if err := p.take(b, cells); err != nil {
		return err
	}
	p.first, p.starts = append(p.first, uint32(n)), append(p.starts, uint32(len(p.memory)))
	b.entries, b.deltas = len(p.rows), n
	b.low, b.high = p.rows[0], p.rows[b.entries-1]
	b.oldest, b.newest = mvcc.Timestamp(slices.Min(p.ts)), mvcc.Timestamp(slices.Max(p.ts))
	b.depths.set(p.first, p.ts, p.shape)
	p.findNonUpdates(b)
	p.pack(b)
	p.shaper.finish()
	b.checked.Store(s)
	return nil
}

// findNonUpdates sets b.nonUpdates.
func (p *parser) findNonUpdates(b *deltaBlock) {
	if !slices.ContainsFunc(b.shapes, func(s shape) bool { return s.kind != change.Update }) {
		return
	}
	for k := range p.rows {
		for _, at := range p.shape[p.first[k]:p.first[k+1]] {
			if b.shapes[at].kind != change.Update {
				b.nonUpdates = append(b.nonUpdates, uint32(k))
				break
			}
		}
	}
}

// take reads the cells, and appends their lists to the memory.
func (p *parser) take(b *deltaBlock, cells [][]byte) error {
	last, lastTS := uint32(0), uint64(0)
	for i, cell := range cells {
		d, err := Parse(cell)
		if err != nil {
			return err
		}
		ts := uint64(d.TS)
		switch {
		case i == 0 || d.Row > last:
			p.rows, p.first = append(p.rows, d.Row), append(p.first, uint32(i))
		case d.Row < last:
			return fault.Corruptf("row %d after row %d", d.Row, last)
		case ts < lastTS:
			b.ascending = false
		case ts > lastTS:
			b.descending = false
		}
		at, err := p.shaper.take(d.List)
		if err != nil {
			return err
		}
		last, lastTS = d.Row, ts
		p.ts, p.shape = append(p.ts, ts), append(p.shape, at)
		p.starts = append(p.starts, uint32(len(p.memory)))
		p.memory = append(p.memory, d.List...)
	}
	return nil
}

// pack puts the lists and integers into one piece of memory.
func (p *parser) pack(b *deltaBlock) {
	lists, memory := len(p.memory), p.memory
	b.rows, memory = pack(memory, p.rows, slopeOf(p.rows))
	b.first, memory = pack(memory, p.first, slopeOf(p.first))
	b.starts, memory = pack(memory, p.starts, slopeOf(p.starts))
	b.shape, memory = pack(memory, p.shape, 0)
	b.times = p.times.replace(b.times, p.ts)
	b.keys, memory = pack(memory, p.ts, 0)
	p.memory = growBytes(memory, packedPad)
	memory = append(b.lists, p.memory...)
	for _, list := range [...]*packed{&b.rows, &b.first, &b.starts, &b.shape, &b.keys} {
		list.attach(memory)
	}
	b.lists = memory[:lists]
}

// timeSet is a set of few timestamps.
type timeSet struct {
	slots [4 * maxTimes]uint16 // of a hash table: 1 + index in times; 0 = free
	times []uint64             // in the order in which they were added
	rank  [maxTimes]uint64     // by index in times
}

// maxTimes is the maximum number of different timestamps that are numbered.
const maxTimes = 256

// replace replaces timestamps by their positions among the different ones, which it appends to dst
// in ascending order. If there are so many that this takes more memory, it appends none and
// replaces nothing. dst is empty.
func (s *timeSet) replace(dst []mvcc.Timestamp, ts []uint64) []mvcc.Timestamp {
	clear(s.slots[:])
	s.times = s.times[:0]
	last := uint64(0)
	for i, t := range ts {
		if i > 0 && t == last {
			continue
		}
		last = t
		if at := s.slot(t); s.slots[at] == 0 {
			if len(s.times) == maxTimes || 4*len(s.times) > len(ts) {
				return dst
			}
			s.times = append(s.times, t)
			s.slots[at] = uint16(len(s.times))
		}
	}
	dst = slices.Grow(dst, len(s.times))
	for _, t := range s.times {
		dst = append(dst, mvcc.Timestamp(t))
	}
	slices.Sort(dst)
	for k, t := range dst {
		s.rank[s.slots[s.slot(uint64(t))]-1] = uint64(k)
	}
	for i, t := range ts {
		ts[i] = s.rank[s.slots[s.slot(t)]-1]
	}
	return dst
}

// slot returns the slot of a timestamp: its own, or the free one where it belongs.
func (s *timeSet) slot(t uint64) uint64 {
	i := t * 0x9e3779b97f4a7c15 >> 54 // 10 bits
	for s.slots[i] != 0 && s.times[s.slots[i]-1] != t {
		i = (i + 1) % uint64(len(s.slots))
	}
	return i
}

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

// maxSets limits the memory of the sets of columns, in words. A cblock with thousands of columns
// and of shapes would otherwise take as much as their product.
const maxSets = 1 << 14

// finish sets the fields that depend on all shapes.
func (m *shaper) finish() {
	b := m.b
	for i := range b.shapes {
		b.columns = append(b.columns, b.shapes[i].ids...)
	}
	slices.Sort(b.columns)
	b.columns = slices.Compact(b.columns)
	words := len(batch.MakeBitmap(len(b.columns)))
	if words*len(b.shapes) > maxSets {
		return
	}
	sets := make([]uint64, words*len(b.shapes))
	for i := range b.shapes {
		s := &b.shapes[i]
		s.set = batch.Bitmap(sets[i*words : (i+1)*words : (i+1)*words])
		for _, id := range s.ids {
			at, _ := slices.BinarySearch(b.columns, id)
			s.set.Set(at)
		}
		s.all = s.set.Count() == len(b.columns)
	}
}
