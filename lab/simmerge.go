package lab

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"

	"github.com/oribi-db/oribi/compaction"
)

// merge replaces rowsets by others that do not overlap.
func (s *simulation) merge(c compaction.Choice) error {
	inputs := make([]*simSet, 0, len(c.RowSets))
	for _, id := range c.RowSets {
		if set := s.byID[id]; set != nil {
			inputs = append(inputs, set)
		}
	}
	slices.SortFunc(inputs, byKeys)
	if len(inputs) < max(2, len(c.RowSets)) || len(slices.Compact(slices.Clone(inputs))) < len(inputs) {
		return c.Check(s.layout())
	}
	all := s.joined(inputs)
	outputs := s.split(all, newKeyShares(inputs))
	s.replace(inputs, outputs)
	s.report(compaction.Merge, c.Why, inputs, outputs, all.rows)
	return nil
}

// joined returns one rowset with the rows of the inputs, redos applied, without rows and undos that
// history no longer needs.
func (s *simulation) joined(inputs []*simSet) *simSet {
	m, floor := &s.costs, s.floor()
	all := new(simSet)
	for _, in := range inputs {
		set := *in // fold changes it
		set.fold(m, s.value)
		kept := since(floor, set.deletes)
		if gone := min(set.rows, round(amount(set.deletes)-amount(kept))); gone > 0 {
			set.rows -= gone
			all.base -= float64(gone) * m.row(s.value)
		}
		all.rows, all.live = all.rows+set.rows, all.live+set.live
		all.deletes, all.changed = joinAges(all.deletes, kept), max(all.changed, set.changed)
		all.base += set.base - m.RowSet
		all.memUpdates, all.memDeletes = all.memUpdates+set.memUpdates, all.memDeletes+set.memDeletes
		all.undos = joinAges(all.undos, since(floor, set.undos))
	}
	all.base = max(all.base, 0)
	return all
}

// maxOutputs bounds the rowsets that a merge writes, for layouts with rowsets of absurd sizes.
const maxOutputs = 10_000

// split divides a rowset into rowsets of the size at which a writer starts a new one.
func (s *simulation) split(all *simSet, keys *keyShares) []*simSet {
	m := &s.costs
	total := all.base + amount(all.undos)
	if all.rows == 0 && s.value > 0 {
		return nil
	}
	full := max(m.fullBytes(total/float64(max(all.rows, 1)), max(s.rowset-m.RowSet-m.DeltaFile, s.rowset/2)),
		total/maxOutputs)
	if all.rows > 0 { // each has a row, also where the history of a row is larger than a rowset
		full = max(full, total/float64(all.rows)*(1+1e-9))
	}
	count := int64(max(1, math.Ceil(total/full-1e-9)))
	outputs := make([]*simSet, 0, count)
	for i, from := int64(0), 0.0; i < count; i++ {
		to := float64(i+1) * full / max(total, 1)
		if i == count-1 {
			to = 1
		}
		part := func(n int64) int64 { return int64(to*float64(n)) - int64(from*float64(n)) }
		s.id++
		set := &simSet{id: s.id, rows: part(all.rows), live: part(all.live), changed: all.changed,
			memUpdates: part(all.memUpdates), memDeletes: part(all.memDeletes), base: m.RowSet + (to-from)*all.base,
			deletes: share(to-from, all.deletes), undos: share(to-from, all.undos)}
		if len(set.undos) > 0 {
			set.undoFiles = 1
		}
		set.fold(m, s.value)
		set.min, set.max = keys.at(from), keys.at(to)
		if i > 0 {
			set.min = outputs[i-1].max
			if next := successorOf(set.min); bytes.Compare(next, set.max) <= 0 {
				set.min = next
			}
		}
		outputs = append(outputs, set)
		from = to
	}
	return outputs
}

// successorOf returns the next key of the same length. The last key, of bytes 0xff, is its own
// successor.
func successorOf(key []byte) []byte {
	next := slices.Clone(key)
	for i := len(next) - 1; i >= 0; i-- {
		if next[i]++; next[i] != 0 {
			return next
		}
	}
	return key
}

// keyShares is the distribution of the data of some rowsets over their keys: the bytes of each are
// spread evenly between its first and last key, by the 8 bytes after the common prefix of all.
type keyShares struct {
	prefix, first, last []byte
	numbers             []uint64  // ascending
	sums                []float64 // of the data up to each number
}

func newKeyShares(sets []*simSet) *keyShares {
	k := &keyShares{first: sets[0].min, last: sets[0].max}
	for _, set := range sets {
		if bytes.Compare(set.min, k.first) < 0 {
			k.first = set.min
		}
		if bytes.Compare(set.max, k.last) > 0 {
			k.last = set.max
		}
	}
	n := 0
	for n < min(len(k.first), len(k.last)) && k.first[n] == k.last[n] {
		n++
	}
	k.prefix = k.first[:n]
	type end struct {
		at    uint64
		slope float64
	}
	var ends []end
	for _, set := range sets {
		from, to := number(set.min[min(n, len(set.min)):]), number(set.max[min(n, len(set.max)):])
		if to == from {
			to = max(from, from+1) // not past the greatest number
		}
		if to > from {
			slope := (set.base + 1) / float64(to-from)
			ends = append(ends, end{from, slope}, end{to, -slope})
		}
	}
	slices.SortStableFunc(ends, func(a, b end) int {
		switch {
		case a.at < b.at:
			return -1
		case a.at > b.at:
			return 1
		}
		return 0
	})
	slope, sum := 0.0, 0.0
	for i, e := range ends {
		if i > 0 {
			sum += max(slope, 0) * float64(e.at-ends[i-1].at)
		}
		slope += e.slope
		k.numbers, k.sums = append(k.numbers, e.at), append(k.sums, sum)
	}
	return k
}

// number returns the first 8 bytes as a number; missing ones are zero.
func number(key []byte) uint64 {
	var b [8]byte
	copy(b[:], key)
	return binary.BigEndian.Uint64(b[:])
}

// at returns the key below which a share of the data is.
func (k *keyShares) at(share float64) []byte {
	switch {
	case share <= 0 || len(k.sums) == 0:
		return k.first
	case share >= 1:
		return k.last
	}
	sum := share * k.sums[len(k.sums)-1]
	i, _ := slices.BinarySearch(k.sums, sum)
	i = min(max(i, 1), len(k.sums)-1)
	n := float64(k.numbers[i] - k.numbers[i-1])
	if d := k.sums[i] - k.sums[i-1]; d > 0 {
		n *= (sum - k.sums[i-1]) / d
	}
	key := binary.BigEndian.AppendUint64(slices.Clone(k.prefix), k.numbers[i-1]+uint64(n))
	if len(k.last) < len(key) && len(k.first) < len(key) {
		key = key[:max(len(k.first), len(k.last))]
	}
	if bytes.Compare(key, k.first) < 0 {
		return k.first
	}
	if bytes.Compare(key, k.last) > 0 {
		return k.last
	}
	return key
}
