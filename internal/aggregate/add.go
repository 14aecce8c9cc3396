package aggregate

import (
	"fmt"
	"math"

	"github.com/oribi-db/oribi/batch"
)

// assign finds the groups of the selected rows, and counts these.
//
// Rows have slots if there are few groups, or dictionaries with few words: sums of a batch are
// added up by slot, and then once to the groups.
func (a *Aggregator) assign(b *batch.RecordBatch) {
	r := &a.selected
	a.ids, a.slots, a.of = nil, nil, nil
	if len(a.groups.columns) == 0 {
		a.rows[0] += int64(r.n)
		return
	}
	if slots, n := a.groups.slots(b, r); slots != nil {
		a.countSlots(slots, n)
		for slot, rows := range a.counts {
			if rows > 0 {
				a.of[slot] = a.groups.group(b, uint32(slot))
			}
		}
		a.reserve(a.groups.count())
	} else {
		a.ids = a.groups.number(b, r)
		a.reserve(a.groups.count())
		if a.groups.count() > r.n { // passing over all groups would take longer
			for _, g := range a.ids {
				a.rows[g]++
			}
			return
		}
		a.countSlots(a.ids, a.groups.count())
		for slot := range a.of {
			a.of[slot] = uint32(slot)
		}
	}
	for slot, rows := range a.counts {
		if rows > 0 {
			a.rows[a.of[slot]] += rows
		}
	}
}

// countSlots sets the slots, below n, and counts the rows of each.
func (a *Aggregator) countSlots(slots []uint32, n int) {
	a.ofBuf, a.scratch = grown(a.ofBuf, n), grown(a.scratch, 3*n)
	a.slots, a.of, a.counts = slots, a.ofBuf, a.scratch[:n]
	clear(a.scratch[:2*n])
	// Two rows in turn: one would wait for the other if both had the same slot.
	counts, odd := a.counts, a.scratch[n:2*n]
	for ; len(slots) >= 2; slots = slots[2:] {
		counts[slots[0]]++
		odd[slots[1]]++
	}
	for _, slot := range slots {
		counts[slot]++
	}
	for slot, rows := range odd {
		counts[slot] += rows
	}
}

// groupIDs returns the group of each row, nil if there are no keys.
func (a *Aggregator) groupIDs() []uint32 {
	if a.ids == nil && a.slots != nil {
		a.idBuf = grown(a.idBuf, len(a.slots))
		for j, slot := range a.slots {
			a.idBuf[j] = a.of[slot]
		}
		a.ids = a.idBuf
	}
	return a.ids
}

// add updates the state of a figure.
func (a *Aggregator) add(s *state, b *batch.RecordBatch) error {
	switch s.kind {
	case CountCells:
		c := &a.columns[s.column]
		c.loadValid(b.Columns[s.column], &a.selected)
		a.addCounts(s.cells, c.valid, c.count)
	case Min, Max:
		c := &a.columns[s.column]
		c.loadValid(b.Columns[s.column], &a.selected)
		if c.count > 0 {
			s.extreme.add(b.Columns[s.column], c.valid, &a.selected, a.groupIDs())
		}
	case Sum:
		for p := s.product; p != nil; p = p.before {
			i := p.term.Column
			a.columns[i].load(b.Columns[i], &a.selected)
		}
		if err := s.product.eval(a.columns, a.selected.n); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		a.addSums(s)
	}
	return nil
}

// addCounts counts the values by group: the values of rows j with valid[j] = 1, or of all rows if
// valid is nil. count is their number.
func (a *Aggregator) addCounts(counts []int64, valid []uint8, count int64) {
	switch {
	case len(a.groups.columns) == 0:
		counts[0] += count
	case valid != nil:
		for j, g := range a.groupIDs() {
			counts[g] += int64(valid[j])
		}
	case a.slots == nil:
		for _, g := range a.ids {
			counts[g]++
		}
	default:
		for slot, rows := range a.counts {
			if rows > 0 {
				counts[a.of[slot]] += rows
			}
		}
	}
}

// addSums adds the values of a product.
func (a *Aggregator) addSums(s *state) {
	p, n, one := s.product, uint64(a.selected.n), len(a.groups.columns) == 0
	switch {
	case p.floats:
		ids := a.groupIDs()
		for j, v := range p.float {
			if p.valid == nil || p.valid[j] != 0 {
				s.floats[group(ids, j)].Add(v)
			}
		}
	case p.ints == nil:
		ids := a.groupIDs()
		for j, v := range p.wide {
			if p.valid == nil || p.valid[j] != 0 {
				s.ints[group(ids, j)].Add(v, 1)
			}
		}
	case one && p.most > 0 && p.most <= math.MaxInt64/n:
		s.ints[0].Add(batch.Int128Of(sumSmall(p.ints)), p.count)
	case one:
		s.ints[0].Add(sumInts(p.ints), p.count)
	case a.slots == nil || p.bound(a.columns) > math.MaxInt64/n:
		for j, g := range a.groupIDs() {
			if p.valid == nil || p.valid[j] != 0 {
				s.ints[g].Add(batch.Int128Of(p.ints[j]), 1)
			}
		}
	default:
		a.addSlots(s)
	}
}

// group returns the group of row j.
func group(ids []uint32, j int) uint32 {
	if ids == nil {
		return 0
	}
	return ids[j]
}

// addSlots adds integers whose sums fit 64 bits, first by slot.
func (a *Aggregator) addSlots(s *state) {
	p, n := s.product, len(a.of)
	clear(a.scratch[n:])
	sums, odd := a.scratch[n:2*n], a.scratch[2*n:]
	slots, values := a.slots, p.ints[:len(a.slots)]
	for ; len(slots) >= 2 && len(values) >= 2; slots, values = slots[2:], values[2:] {
		sums[slots[0]] += values[0]
		odd[slots[1]] += values[1]
	}
	for j, slot := range slots {
		sums[slot] += values[j]
	}
	for slot, rows := range a.counts {
		if rows == 0 {
			continue
		}
		if p.valid != nil {
			rows = 0
		}
		s.ints[a.of[slot]].Add(batch.Int128Of(sums[slot]+odd[slot]), rows)
	}
	if p.valid != nil {
		for j, slot := range a.slots {
			s.ints[a.of[slot]].n += int64(p.valid[j])
		}
	}
}
