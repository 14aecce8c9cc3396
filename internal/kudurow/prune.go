package kudurow

import (
	"bytes"
	"slices"

	pb "github.com/oribi-db/oribi/internal/kudurpcpb"
	"github.com/oribi-db/oribi/keyenc"
	"github.com/oribi-db/oribi/schema"
)

// Pruner says which tablets may have rows that pass predicates. Immutable.
type Pruner struct {
	p            *Partitioner
	equal        map[int][][]byte // by column of the key: the only values that pass
	lower, upper []byte           // of the first column of the range, encoded; nil for no bound
}

// maxCombinations bounds the values of columns that are hashed together.
const maxCombinations = 1024

// Pruner returns the pruner for predicates on columns of s, all of which a row must pass.
func (p *Partitioner) Pruner(s *schema.Schema, predicates []*pb.ColumnPredicatePB) *Pruner {
	r := &Pruner{p: p, equal: map[int][][]byte{}}
	for _, m := range predicates {
		i := s.Index(m.GetColumn())
		if i < 0 || i >= s.Keys {
			continue
		}
		var lower, upper []byte
		switch of := m.Predicate.(type) {
		case *pb.ColumnPredicatePB_Equality_:
			r.equal[i] = [][]byte{of.Equality.Value}
			lower, upper = of.Equality.Value, of.Equality.Value
		case *pb.ColumnPredicatePB_InList_: // sorted, see Predicates
			r.equal[i] = of.InList.Values
			lower, upper = of.InList.Values[0], of.InList.Values[len(of.InList.Values)-1]
		case *pb.ColumnPredicatePB_Range_:
			lower, upper = of.Range.Lower, of.Range.Upper
		}
		if p.ranges != nil && p.ranges.columns[0] == i {
			_, exclusive := m.Predicate.(*pb.ColumnPredicatePB_Range_)
			r.bound(lower, upper, exclusive)
		}
	}
	return r
}

// bound narrows the bounds of the first column of the range.
func (r *Pruner) bound(lower, upper []byte, exclusive bool) {
	first := r.p.ranges.encoder
	if lower != nil {
		if key := first.AppendCell(nil, 0, lower); r.lower == nil || bytes.Compare(key, r.lower) > 0 {
			r.lower = key
		}
	}
	if upper == nil {
		return
	}
	key := first.AppendCell(nil, 0, upper)
	if !exclusive {
		if len(r.p.ranges.columns) > 1 || !r.p.ranges.types[0].Variable() {
			key = keyenc.PrefixEnd(key) // nil: no bound
		} else {
			key = keyenc.Successor(key)
		}
	}
	if key != nil && (r.upper == nil || bytes.Compare(key, r.upper) < 0) {
		r.upper = key
	}
}

// MayHave reports whether a tablet with partition keys in [start, end) and in some buckets may have rows
// that pass.
func (r *Pruner) MayHave(start, end []byte, buckets []int32) bool {
	prefix := BucketPrefix(buckets)
	from := start[min(len(start), len(prefix)):]
	if r.upper != nil && bytes.Compare(from, r.upper) >= 0 {
		return false
	}
	if r.lower != nil && bytes.HasPrefix(end, prefix) { // otherwise the range has no end
		if to := end[len(prefix):]; len(to) > 0 && bytes.Compare(to, r.lower) <= 0 {
			return false
		}
	}
	if len(r.equal) == 0 {
		return true
	}
	levels := r.p.levelsOf(from)
	if len(levels) != len(buckets) {
		return true
	}
	for i := range levels {
		if !r.hashes(&levels[i], uint32(buckets[i])) {
			return false
		}
	}
	return true
}

// hashes reports whether a bucket of a level may have rows that pass.
func (r *Pruner) hashes(l *level, bucket uint32) bool {
	n := 1
	for _, c := range l.columns {
		n *= len(r.equal[c]) // 0 if any value passes
		if n == 0 || n > maxCombinations {
			return true
		}
	}
	cells := make([][]byte, slices.Max(l.columns)+1)
	var key []byte
	for k := range n {
		for _, c := range l.columns {
			values := r.equal[c]
			cells[c] = values[k%len(values)]
			k /= len(values)
		}
		if key = l.append(key[:0], cells); l.bucket(key) == bucket {
			return true
		}
	}
	return false
}
