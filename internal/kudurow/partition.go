package kudurow

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/kudupb"
	"github.com/oribi-db/oribi/internal/kuduwal"
	"github.com/oribi-db/oribi/schema"
)

// Partitioner computes partition keys, by which tablets are found: a tablet has the rows with keys in
// [start, end). Not the keys of all tables are in a tablet.
//
// A partition key is the number of the row's bucket at each hash level, in 4 bytes, big-endian, then
// the columns of the range, encoded like a primary key. A range may have hash levels of its own.
type Partitioner struct {
	keys   int
	levels []level       // of the ranges without their own
	ranges *keyColumns   // nil: there are none
	custom []customRange // ascending
}

// BucketBytes is the size of the number of a bucket in a partition key.
const BucketBytes = 4 // file format: never change

// BucketPrefix returns the beginning of all partition keys of the rows of some buckets.
func BucketPrefix(buckets []int32) (prefix []byte) {
	for _, b := range buckets {
		prefix = binary.BigEndian.AppendUint32(prefix, uint32(b))
	}
	return prefix
}

// murmur2 is Kudu's number of the only hash function that its servers use; 0 means the same.
const murmur2 = 1 // file format: never change

// level divides rows by a hash of some columns.
type level struct {
	*keyColumns
	buckets uint64
	seed    uint64
}

func (l *level) bucket(encoded []byte) uint32 { return uint32(murmur(encoded, l.seed) % l.buckets) }

// customRange is a range with hash levels of its own.
type customRange struct {
	from, to []byte // encoded; to is exclusive, and empty if there is no bound
	levels   []level
}

func (r *customRange) has(key []byte) bool {
	return bytes.Compare(key, r.from) >= 0 && (len(r.to) == 0 || bytes.Compare(key, r.to) < 0)
}

// NewPartitioner returns the partitioner of a table. s is its schema, with the ids of its columns.
// Errors: ErrCorrupt; ErrUnsupported.
func NewPartitioner(m *kudupb.PartitionSchemaPB, s *schema.Schema) (*Partitioner, error) {
	p := &Partitioner{keys: s.Keys}
	var err error
	if columns := rangeColumns(m, s); len(columns) > 0 {
		if p.ranges, err = newKeyColumns(s, columns); err != nil {
			return nil, err
		}
	}
	if p.levels, err = newLevels(m.GetHashSchema(), s); err != nil {
		return nil, err
	}
	if len(m.GetCustomHashSchemaRanges()) > 0 && p.ranges == nil {
		return nil, fault.Corruptf("ranges with hashes of their own, of a table without ranges")
	}
	for _, r := range m.GetCustomHashSchemaRanges() {
		c := customRange{}
		if c.levels, err = newLevels(r.HashSchema, s); err != nil {
			return nil, err
		}
		lower, upper, err := kuduwal.RangeBounds(r.RangeBounds, s)
		if err != nil {
			return nil, err
		}
		c.from, c.to = p.ranges.bound(lower), p.ranges.bound(upper)
		p.custom = append(p.custom, c)
	}
	slices.SortFunc(p.custom, func(a, b customRange) int { return bytes.Compare(a.from, b.from) })
	for i := range p.custom {
		if i > 0 && p.custom[i-1].has(p.custom[i].from) {
			return nil, fault.Corruptf("two ranges with hashes of their own overlap")
		}
	}
	return p, nil
}

// rangeColumns returns the indexes of the columns of the ranges. A message that does not say which
// means the primary key.
func rangeColumns(m *kudupb.PartitionSchemaPB, s *schema.Schema) (columns []int) {
	if m.GetRangeSchema() != nil {
		return Identified(m.GetRangeSchema().GetColumns(), s)
	}
	for i := range s.Keys {
		if !s.Columns[i].AutoIncrement {
			columns = append(columns, i)
		}
	}
	return columns
}

func newLevels(m []*kudupb.PartitionSchemaPB_HashBucketSchemaPB, s *schema.Schema) (levels []level, err error) {
	for _, h := range m {
		if a := h.GetHashAlgorithm(); a != 0 && a != murmur2 {
			return nil, fault.Unsupportedf("hash function %d", a)
		}
		if h.GetNumBuckets() < 1 || len(h.Columns) == 0 {
			return nil, fault.Corruptf("a hash of %d columns with %d buckets", len(h.Columns), h.GetNumBuckets())
		}
		k, err := newKeyColumns(s, Identified(h.Columns, s))
		if err != nil {
			return nil, err
		}
		levels = append(levels, level{k, uint64(h.GetNumBuckets()), uint64(h.GetSeed())})
	}
	return levels, nil
}

// Uses reports whether partition keys depend on column i of the schema.
func (p *Partitioner) Uses(i int) bool {
	has := func(levels []level) bool {
		return slices.ContainsFunc(levels, func(l level) bool { return slices.Contains(l.columns, i) })
	}
	return has(p.levels) || p.ranges != nil && slices.Contains(p.ranges.columns, i) ||
		slices.ContainsFunc(p.custom, func(r customRange) bool { return has(r.levels) })
}

// levelsOf returns the hash levels of rows with an encoded range key.
func (p *Partitioner) levelsOf(key []byte) []level {
	for i := range p.custom {
		if r := &p.custom[i]; r.has(key) {
			return r.levels
		}
	}
	return p.levels
}

// Levels returns the numbers of buckets of the hash levels of a tablet, of which start is the first
// partition key, and has so many levels. Errors: ErrCorrupt if the levels of its range are not as
// many.
func (p *Partitioner) Levels(start []byte, levels int) (buckets []int32, err error) {
	key := start[min(len(start), BucketBytes*levels):]
	for i := range p.custom {
		if r := &p.custom[i]; r.has(key) && !bytes.Equal(key, r.from) {
			return nil, fault.Corruptf("the tablet begins within a range that has hashes of its own")
		}
	}
	of := p.levelsOf(key)
	if len(of) != levels {
		return nil, fault.Corruptf("the tablet has %d buckets, its range %d levels of them", levels, len(of))
	}
	for _, l := range of {
		buckets = append(buckets, int32(l.buckets))
	}
	return buckets, nil
}

// AppendKey appends the partition key of a row, whose first cells are the primary key, none
// NULL.
func (p *Partitioner) AppendKey(dst []byte, key [][]byte) []byte {
	var buf [128]byte
	of := buf[:0]
	levels := p.levels
	if p.custom != nil {
		of = p.ranges.append(of, key)
		levels = p.levelsOf(of)
	}
	for i := range levels {
		l := &levels[i]
		of = l.append(of[:0], key)
		dst = binary.BigEndian.AppendUint32(dst, l.bucket(of))
	}
	if p.ranges != nil {
		dst = p.ranges.append(dst, key)
	}
	return dst
}

// AppendKeys appends the partition keys of n rows. columns are the columns of the primary key, with at least
// n cells, none of them NULL.
func (p *Partitioner) AppendKeys(dst [][]byte, columns []*batch.Vector, n int) [][]byte {
	if p.custom != nil {
		return p.appendEach(dst, columns, n)
	}
	var ranges, hashed [][]byte
	if p.ranges != nil {
		ranges = p.ranges.appendRows(nil, columns, n)
	}
	prefix := BucketBytes * len(p.levels)
	bytes := prefix * n
	for _, key := range ranges {
		bytes += len(key)
	}
	buf := make([]byte, bytes)
	at := len(dst)
	dst = slices.Grow(dst, n)
	for i := range n {
		size := prefix
		if ranges != nil {
			size += copy(buf[prefix:], ranges[i])
		}
		dst = append(dst, buf[:size:size])
		buf = buf[size:]
	}
	for i := range p.levels {
		l := &p.levels[i]
		hashed = l.appendRows(hashed[:0], columns, n)
		for row, encoded := range hashed {
			binary.BigEndian.PutUint32(dst[at+row][BucketBytes*i:], l.bucket(encoded))
		}
	}
	return dst
}

// appendEach is AppendKeys, row by row: rows have different hash levels.
func (p *Partitioner) appendEach(dst [][]byte, columns []*batch.Vector, n int) [][]byte {
	cells := make([][]byte, p.keys)
	var buf []byte
	for row := range n {
		if !keyOf(cells, columns, row) {
			dst = append(dst, nil)
			continue
		}
		if cap(buf)-len(buf) < 1<<10 {
			buf = make([]byte, 0, 32<<10)
		}
		at := len(buf)
		buf = p.AppendKey(buf, cells)
		dst = append(dst, buf[at:len(buf):len(buf)])
	}
	return dst
}

// keyOf sets cells to the key of a row; ok is false if it has a NULL.
func keyOf(cells [][]byte, columns []*batch.Vector, row int) (ok bool) {
	for i, v := range columns {
		if v == nil { // the auto-incrementing column
			continue
		}
		if cells[i] = v.Cell(row); cells[i] == nil {
			return false
		}
	}
	return true
}
