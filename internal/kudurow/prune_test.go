package kudurow

import (
	"encoding/binary"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
)

// A row that passes predicates is in a tablet that may have such rows, whatever the bounds of tablets
// are; most tablets have none.
func TestPrunedTabletsHaveNoRows(t *testing.T) {
	r := seedtest.Rand(t)
	pruned, kept := 0, 0
	for range seedtest.Rounds(2000, 500) {
		s := randomSchema(t, r)
		p := must.Get(NewPartitioner(somePartitions(t, r, s), s))(t)
		var where []batch.Predicate
		row := randomRow(r, s.Columns)
		for i := range s.Keys {
			c := &s.Columns[i]
			where = append(where, batch.Predicate{Column: c.Name, Values: [][]byte{row[i]},
				Op: []batch.Operator{batch.Eq, batch.In, batch.Le, batch.Ge}[r.IntN(4)]})
			if last := &where[i]; last.Op == batch.In {
				last.Values = append(last.Values, randomCell(r, c), randomCell(r, c))
			} else if r.IntN(3) == 0 {
				where = where[:len(where)-1]
				break
			}
		}
		prune := p.Pruner(s, must.Get(Predicates(s, where))(t).Server)
		for i := range 20 {
			// A tablet between the key of the row, or of another one, and the key after it.
			other := row
			if i > 0 {
				other = randomRow(r, s.Columns)
			}
			key := p.AppendKey(nil, other)
			var ranges []byte
			if p.ranges != nil {
				ranges = p.ranges.append(nil, other)
			}
			var buckets []int32
			for b := key[:len(key)-len(ranges)]; len(b) > 0; b = b[BucketBytes:] {
				buckets = append(buckets, int32(binary.BigEndian.Uint32(b)))
			}
			passes := true
			for k := range where {
				where[k].Type = s.Columns[s.Index(where[k].Column)].Type
				passes = passes && where[k].EvalCell(other[s.Index(where[k].Column)])
			}
			may := prune.MayHave(key, append(key[:len(key):len(key)], 0), buckets)
			if may && p.custom == nil { // otherwise no tablet has all ranges
				may = prune.MayHave(key[:BucketBytes*len(buckets)], nil, buckets)
			}
			if passes && !may {
				t.Fatalf("row %x passes %v, and is in a tablet from %x on that was pruned", other, where, key)
			}
			if may {
				kept++
			} else {
				pruned++
			}
		}
	}
	if pruned < kept/4 {
		t.Errorf("%d tablets pruned, %d not", pruned, kept)
	}
}
