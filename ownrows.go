package oribi

import (
	"bytes"
	"slices"

	"github.com/oribi-db/oribi/internal/keyindex"
	"github.com/oribi-db/oribi/internal/tablet"
)

// ops returns the batch's operations on a table, or nil.
func (b *Batch) ops(t *Table) *tableOps {
	for _, p := range b.tables {
		if p.table == t {
			return p
		}
	}
	return nil
}

// keptAfter is the number of operations that are applied again for each read of a row.
const keptAfter = 4

// follows reports whether the state is that of a row which v sees with the given cells.
func (st *rowState) follows(v *view, cells [][]byte) bool {
	return st.schema == v.TableSchema && st.clock == v.Clock() && (st.clock < 0 || st.ts == v.ts) &&
		(st.base == nil) == (cells == nil) && slices.EqualFunc(st.base, cells, sameCell)
}

// bytes returns about how much memory the state takes.
func (st *rowState) bytes() (n int64) {
	n = 128 + int64(len(st.base)+len(st.cells))*sliceBytes
	for _, c := range st.base {
		n += int64(len(c))
	}
	return n
}

// after applies the batch's operations to a row with the given cells, as v sees it, and returns the
// result. nil means that the row does not exist, or is expired as of v.
func (b *Batch) after(t *Table, v *view, key []byte, cells [][]byte) ([][]byte, error) {
	p := b.ops(t)
	if p == nil {
		return cells, nil
	}
	e := p.find(key)
	if e < 0 {
		return cells, nil
	}
	st := p.states[e]
	if st != nil && !st.follows(v, cells) {
		st = nil
	}
	var few [2 * keptAfter]int
	ops := few[:0]
	for op := p.index.Last(e); op >= 0 && (st == nil || op != st.op); op = p.index.Before(op) {
		ops = append(ops, op)
	}
	var base [][]byte
	switch {
	case st != nil:
		base, cells = st.base, slices.Clone(st.cells)
	case len(ops) >= keptAfter:
		base = slices.Clone(cells)
	}
	for _, k := range slices.Backward(ops) {
		op := &p.ops[k]
		var err error
		if p.schema != v.TableSchema {
			if op, err = tablet.Converted(op, p.schema, v.TableSchema); err != nil {
				return nil, err
			}
		}
		if cells, err = v.TableSchema.After(op, cells); err != nil {
			return nil, tablet.Refusal(op.Index, t.tab.Name(), t.tab.KeyText(key), err)
		}
		if v.Expired(cells) {
			cells = nil
		}
	}
	if len(ops) >= keptAfter {
		p.keep(e, &rowState{op: ops[0], schema: v.TableSchema, clock: v.Clock(), ts: v.ts, base: base,
			cells: slices.Clone(cells)})
	}
	return cells, nil
}

// settled returns the row with a key, nil for none, if it does not depend on the row before the operations.
func (p *tableOps) settled(v *view, key []byte) (cells [][]byte, ok bool) {
	e := p.find(key)
	if e < 0 || p.schema != v.TableSchema || v.Clock() >= 0 {
		return nil, false
	}
	last := p.index.Last(e)
	if last < 0 {
		return nil, false
	}
	switch op := &p.ops[last]; {
	case v.TableSchema.Overwrites(op):
		return v.RowFormat.AppendCells(nil, op.Body), true
	case op.Kind == tablet.DeleteIgnore && op.Check == nil:
		return nil, true
	}
	return nil, false
}

// touch says that the row with a key was written, or a write of it undone.
func (p *tableOps) touch(key []byte) {
	if key == nil {
		return
	}
	for _, own := range p.byIndex {
		own.touched = append(own.touched, key)
		own.count(p, sliceBytes)
	}
}

// count counts n more bytes of memory.
func (own *ownEntries) count(p *tableOps, n int64) {
	own.bytes += n
	p.stateBytes += n
}

// ownEntriesOf returns the places of written rows in an index. touched has the rows that may be at new ones.
func (p *tableOps) ownEntriesOf(c tablet.IndexColumns) *ownEntries {
	i := slices.IndexFunc(p.byIndex, func(own *ownEntries) bool { return own.columns.Table == c.Table })
	if i >= 0 && len(p.byIndex[i].list) > 2*p.index.Keys()+1000 { // most are left
		p.stateBytes -= p.byIndex[i].bytes
		p.byIndex = slices.Delete(p.byIndex, i, i+1)
		i = -1
	}
	if i >= 0 {
		return p.byIndex[i]
	}
	own := &ownEntries{columns: c}
	own.index = &keyindex.Index{Key: func(op int) []byte { return own.list[op].position }}
	p.extend()
	for at := p.index.Range(nil, nil, false); at.Key() != nil; at.Next() {
		own.touched = append(own.touched, at.Key())
		own.count(p, sliceBytes)
	}
	p.byIndex = append(p.byIndex, own)
	return own
}

// ownEntryBytes is about the memory of an entry besides its bytes.
const ownEntryBytes = 3*sliceBytes + 32

// add adds the place of a row with a key and all its cells.
func (own *ownEntries) add(p *tableOps, key []byte, cells [][]byte) {
	entry, position := own.columns.Entry(key, cells)
	if own.index.Find(position) >= 0 {
		return
	}
	own.list = append(own.list, ownEntry{entry, position, bytes.Clone(key)})
	own.index.Extend(len(own.list))
	own.count(p, int64(len(position)+len(key))+ownEntryBytes)
}

// keep sets the state of an entry; nil removes it.
func (p *tableOps) keep(e int, st *rowState) {
	if old := p.states[e]; old != nil {
		p.stateBytes -= old.bytes()
		delete(p.states, e)
	}
	if st == nil {
		return
	}
	if p.states == nil {
		p.states = map[int]*rowState{}
	}
	p.states[e] = st
	p.stateBytes += st.bytes()
}

// find returns the entry of a key in p.index, below 0 if there is no operation on it.
func (p *tableOps) find(key []byte) int {
	p.extend()
	return p.index.Find(key)
}

// extend adds the operations to the index that it lacks.
func (p *tableOps) extend() {
	if p.index == nil {
		p.index = &keyindex.Index{Key: func(i int) []byte {
			op := &p.ops[i]
			switch {
			case op.Kind.Inserts() && p.schema.Schema.AutoIncrement() >= 0:
				return nil // Commit completes its key
			case op.Key == nil:
				return []byte{}
			}
			return op.Key
		}}
	}
	p.index.Extend(len(p.ops))
}

// truncate removes the operations from n on.
func (p *tableOps) truncate(n int) {
	if p.index != nil {
		p.index.Truncate(n, func(e int) { p.keep(e, nil) })
	}
	clear(p.ops[n:])
	if p.ops = p.ops[:n]; n == 0 {
		p.schema = nil // the next operation begins with the schema of its time
	}
}

// fold replaces an operation and the accepted next one on the same key by one, in the place of the first, if
// that is possible.
// It returns by how much the size of the operations grows. It calls replacing before it replaces an
// operation.
func (p *tableOps) fold(op *tablet.Op, replacing func(p *tableOps, i int)) (grown int64, ok bool) {
	e := p.find(op.Key)
	if e < 0 || op.Kind.Inserts() && p.schema.AutoIncrement() >= 0 {
		return 0, false
	}
	last := p.index.Last(e)
	if p.index.Before(last) >= 0 {
		return 0, false
	}
	prev := &p.ops[last]
	if p.table.tab.MovesUnique(p.schema, prev, op) {
		return 0, false // it may take what an operation in between frees, or the other way round
	}
	p.reserve(len(prev.Body) + len(op.Body) + 64)
	folded, buf, ok := p.schema.Folded(p.buf, prev, op)
	p.buf = buf
	if !ok {
		return 0, false
	}
	replacing(p, last)
	p.keep(e, nil)
	p.garbage += len(prev.Body) + len(op.Key)
	grown = int64(len(folded.Body) - len(prev.Body))
	folded.Key = prev.Key
	if folded.Operands == nil { // else the result is that of op
		folded.Index = prev.Index
	}
	*prev = folded
	return grown, true
}

// leastGarbage is the number of bytes of replaced operations from which on the others are copied.
const leastGarbage = 64 << 10

// collect copies the keys and bodies of the operations if more than half of the memory is garbage.
// live is the size of all of them.
func (p *tableOps) collect(live int64) {
	if p.garbage < leastGarbage || int64(p.garbage) < live {
		return
	}
	buf := make([]byte, 0, live)
	moved := func(b []byte) []byte {
		if b == nil {
			return nil
		}
		start := len(buf)
		buf = append(buf, b...)
		return buf[start:len(buf):len(buf)]
	}
	for i := range p.ops {
		p.ops[i].Key, p.ops[i].Body = moved(p.ops[i].Key), moved(p.ops[i].Body)
	}
	p.buf, p.garbage = buf, 0
}
