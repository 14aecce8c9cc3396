package kudurow

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/kudupb"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/schema"
)

func ids(s *schema.Schema, columns ...int) (out []*kudupb.PartitionSchemaPB_ColumnIdentifierPB) {
	for _, i := range columns {
		out = append(out, &kudupb.PartitionSchemaPB_ColumnIdentifierPB{
			Identifier: &kudupb.PartitionSchemaPB_ColumnIdentifierPB_Id{Id: int32(s.Columns[i].ID)}})
	}
	return out
}

func hashOf(s *schema.Schema, buckets int32, seed uint32, columns ...int) *kudupb.PartitionSchemaPB_HashBucketSchemaPB {
	return &kudupb.PartitionSchemaPB_HashBucketSchemaPB{Columns: ids(s, columns...), NumBuckets: &buckets, Seed: &seed}
}

func customOf(
	t testing.TB, s *schema.Schema, lower, upper [][]byte, hash ...*kudupb.PartitionSchemaPB_HashBucketSchemaPB,
) *kudupb.PartitionSchemaPB_RangeWithHashSchemaPB {
	var r Rows
	e := NewEncoder(s)
	must.Do(t, e.AppendBound(&r, kudupb.RowOperationType_RANGE_LOWER_BOUND, lower))
	must.Do(t, e.AppendBound(&r, kudupb.RowOperationType_RANGE_UPPER_BOUND, upper))
	return &kudupb.PartitionSchemaPB_RangeWithHashSchemaPB{RangeBounds: must.Get(proto.Marshal(r.Message()))(t),
		HashSchema: hash}
}

// somePartitions returns a random way to divide the rows of a table.
func somePartitions(t testing.TB, r *rand.Rand, s *schema.Schema) *kudupb.PartitionSchemaPB {
	m := &kudupb.PartitionSchemaPB{RangeSchema: &kudupb.PartitionSchemaPB_RangeSchemaPB{}}
	split := r.IntN(s.Keys + 1) // the columns before it are hashed together
	if split > 0 {
		m.HashSchema = append(m.HashSchema, hashOf(s, 2+r.Int32N(9), r.Uint32(), upTo(split)...))
	}
	if split < s.Keys && r.IntN(2) == 0 {
		m.HashSchema = append(m.HashSchema, hashOf(s, 2+r.Int32N(9), 0, split))
	}
	if r.IntN(2) == 0 {
		return m
	}
	m.RangeSchema.Columns = ids(s, r.IntN(s.Keys))
	if r.IntN(2) == 0 {
		m.RangeSchema = nil // the primary key
	}
	if r.IntN(2) == 0 {
		bound := make([][]byte, len(s.Columns))
		for i := range s.Keys {
			bound[i] = randomCell(r, &s.Columns[i])
		}
		m.CustomHashSchemaRanges = append(m.CustomHashSchemaRanges,
			customOf(t, s, make([][]byte, len(bound)), bound, hashOf(s, 3, 7, 0)))
	}
	return m
}

func upTo(n int) (out []int) {
	for i := range n {
		out = append(out, i)
	}
	return out
}

// The keys of all rows of a batch are the keys of each row.
func TestKeysOfBatches(t *testing.T) {
	r := seedtest.Rand(t)
	custom := 0
	for range seedtest.Rounds(300, 100) {
		s := randomSchema(t, r)
		m := somePartitions(t, r, s)
		p := must.Get(NewPartitioner(m, s))(t)
		var rows [][][]byte
		for range 1 + r.IntN(50) {
			rows = append(rows, randomRow(r, s.Columns))
		}
		b := batchOf(s.Columns, rows)
		keys := p.AppendKeys(nil, b.Columns[:s.Keys], b.Len)
		for i, key := range keys {
			must.Equal(t, key, p.AppendKey(nil, rows[i]), i)
			if len(p.custom) > 0 {
				custom++
			}
		}
	}
	if custom == 0 {
		t.Error("no keys of ranges with their own hashes")
	}
}

// Values computed by another implementation, in Python, from the description of the algorithm.
func TestMurmur(t *testing.T) {
	for _, c := range []struct {
		in   string
		seed uint64
		want uint64
	}{
		{"", 0, 0x0},
		{"", 7, 0x6e80950782bdbe12},
		{"a", 0, 0x71717d2d36b6b11},
		{"ab cdef", 1, 0xdadc07f418656d4e},
		{"abcdefgh", 4294967295, 0x50c7af2f8e583a82},
		{"abcdefghijklmnopq", 42, 0xe78c9d765373d8c8},
	} {
		must.Equal(t, murmur([]byte(c.in), c.seed), c.want, c.in)
	}
}

// A row's key has the buckets of its range. Two columns are hashed in the order of their ids, the last
// one as it is.
func TestPartitionKeysByHand(t *testing.T) {
	s := must.Get(schema.New([]schema.Column{{Name: "a", Type: schema.Int32}, {Name: "b", Type: schema.String},
		{Name: "c", Type: schema.String}}, 3))(t)
	bound := func(x byte) [][]byte { return [][]byte{{x, 0, 0, 0}, nil, nil} }
	m := &kudupb.PartitionSchemaPB{HashSchema: []*kudupb.PartitionSchemaPB_HashBucketSchemaPB{hashOf(s, 64, 5, 0, 1)},
		RangeSchema: &kudupb.PartitionSchemaPB_RangeSchemaPB{Columns: ids(s, 0)}}
	m.CustomHashSchemaRanges = append(m.CustomHashSchemaRanges, customOf(t, s, bound(10), bound(20), hashOf(s, 200, 9, 2)))
	p := must.Get(NewPartitioner(m, s))(t)
	key := func(a byte) []byte { return p.AppendKey(nil, [][]byte{{a, 0, 0, 0}, []byte("x\x00y"), []byte("z")}) }
	general := func(a byte) []byte {
		return []byte{0, 0, 0, byte(murmur([]byte{0x80, 0, 0, a, 'x', 0, 'y'}, 5) % 64), 0x80, 0, 0, a}
	}
	must.Equal(t, key(9), general(9))
	must.Equal(t, key(20), general(20))
	for _, a := range []byte{10, 19} {
		must.Equal(t, key(a), []byte{0, 0, 0, byte(murmur([]byte("z"), 9) % 200), 0x80, 0, 0, a})
	}
	must.Equal(t, must.Get(p.Levels([]byte{0, 0, 0, 3, 0x80, 0, 0, 10}, 1))(t), []int32{200})
	must.Equal(t, must.Get(p.Levels([]byte{0, 0, 0, 3, 0x80, 0, 0, 20}, 1))(t), []int32{64})
	must.Fail(t, must.Err(p.Levels([]byte{0, 0, 0, 3, 0x80, 0, 0, 11}, 1)), fault.ErrCorrupt)
	must.Fail(t, must.Err(p.Levels(nil, 2)), fault.ErrCorrupt)
	must.Equal(t, []bool{p.Uses(0), p.Uses(1), p.Uses(2)}, []bool{true, true, true})
	m.CustomHashSchemaRanges = nil
	must.Equal(t, must.Get(NewPartitioner(m, s))(t).Uses(2), false)
}

func TestPartitionSchemasThatAreRefused(t *testing.T) {
	s := exampleSchema(t)
	unbounded := make([][]byte, 3)
	ranges := &kudupb.PartitionSchemaPB_RangeSchemaPB{Columns: ids(s, 0)}
	other := hashOf(s, 2, 0, 0)
	other.HashAlgorithm = proto.Int32(9)
	all := customOf(t, s, unbounded, unbounded, hashOf(s, 2, 0, 0))
	for name, c := range map[string]struct {
		m    *kudupb.PartitionSchemaPB
		want error
	}{
		"other hash":   {&kudupb.PartitionSchemaPB{HashSchema: list(other)}, fault.ErrUnsupported},
		"no buckets":   {&kudupb.PartitionSchemaPB{HashSchema: list(hashOf(s, 0, 0, 0))}, fault.ErrCorrupt},
		"no columns":   {&kudupb.PartitionSchemaPB{HashSchema: list(hashOf(s, 2, 0))}, fault.ErrCorrupt},
		"column twice": {&kudupb.PartitionSchemaPB{HashSchema: list(hashOf(s, 2, 0, 1))}, fault.ErrCorrupt},
		"not in the key": {&kudupb.PartitionSchemaPB{RangeSchema: &kudupb.PartitionSchemaPB_RangeSchemaPB{
			Columns: ids(s, 2)}}, fault.ErrCorrupt},
		"overlap": {&kudupb.PartitionSchemaPB{RangeSchema: ranges,
			CustomHashSchemaRanges: list(all, all)}, fault.ErrCorrupt},
		"without ranges": {&kudupb.PartitionSchemaPB{RangeSchema: &kudupb.PartitionSchemaPB_RangeSchemaPB{},
			CustomHashSchemaRanges: list(all)}, fault.ErrCorrupt},
		"bad bounds": {&kudupb.PartitionSchemaPB{RangeSchema: ranges,
			CustomHashSchemaRanges: list(&kudupb.PartitionSchemaPB_RangeWithHashSchemaPB{RangeBounds: []byte{0x12}})},
			fault.ErrCorrupt},
	} {
		must.Fail(t, must.Err(NewPartitioner(c.m, s)), c.want, name)
	}
	if !bytes.Equal(must.Get(NewPartitioner(nil, s))(t).AppendKey(nil, [][]byte{{1, 0, 0, 0}}), []byte{0x80, 0, 0, 1}) {
		t.Error("a partition schema that says nothing is not by the range of the key")
	}
}

func list[T any](v ...T) []T { return v }
