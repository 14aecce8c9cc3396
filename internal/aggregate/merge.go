package aggregate

import (
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/schema"
)

// Merge adds the rows of o, which was made with the same arguments as a. o must not be used any
// more. Error: the groups take more memory than allowed.
func (a *Aggregator) Merge(o *Aggregator) error {
	for from, n := range o.rows {
		if n == 0 && len(o.groups.columns) > 0 {
			continue
		}
		to := a.groups.of(o.Key(from))
		a.reserve(a.groups.count())
		a.rows[to] += n
		for i, s := range a.states {
			s.merge(to, o.states[i], from)
		}
		if err := a.checkMemory(); err != nil {
			return err
		}
	}
	return nil
}

// merge adds group from of o to group to of s.
func (s *state) merge(to uint32, o *state, from int) {
	switch {
	case s.cells != nil:
		s.cells[to] += o.cells[from]
	case s.ints != nil:
		s.ints[to].merge(&o.ints[from])
	case s.floats != nil:
		s.floats[to].merge(&o.floats[from])
	case s.extreme != nil && o.extreme.seen[from]:
		s.extreme.addCell(to, o.extreme.cell(from))
	}
}

// of returns the group of a key, given as cells.
func (g *groups) of(key [][]byte) uint32 {
	if len(key) == 0 {
		return 0
	}
	n := g.columns[0].numberCell(key[0])
	for i, cell := range key[1:] {
		n = g.pairs[i].number(uint64(n)<<32 | uint64(g.columns[i+1].numberCell(cell)))
	}
	return n
}

// numberCell returns the number of a cell.
func (k *keyColumn) numberCell(cell []byte) uint32 {
	if cell == nil || k.text() {
		return k.numberText(cell)
	}
	var number [1]uint32
	k.number(oneCell(k.typ, cell), &rows{n: 1, all: true}, number[:])
	return number[0]
}

// addCell adds a cell that is not NULL to a group.
func (e *extreme) addCell(group uint32, cell []byte) {
	e.add(oneCell(e.typ, cell), nil, &rows{n: 1, all: true}, []uint32{group})
}

// oneCell returns a vector of one cell.
func oneCell(t schema.Type, cell []byte) *batch.Vector {
	v := batch.NewVector(t, 1)
	v.SetCell(0, cell)
	return v
}
