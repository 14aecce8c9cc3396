package handover

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/kudupb"
	"github.com/oribi-db/oribi/internal/kuduschema"
	"github.com/oribi-db/oribi/internal/kuduwal"
	"github.com/oribi-db/oribi/keyenc"
	"github.com/oribi-db/oribi/rowset"
	"github.com/oribi-db/oribi/schema"
)

// partition decides which rows belong to a tablet. The partition key of a row is the number of its
// bucket at each level, in 4 bytes, big-endian, then the columns of the range, encoded like a
// primary key. A tablet has the rows of its buckets with partition keys in [start, end).
type partition struct {
	keys       *keyenc.Encoder // of the primary key
	levels     []hashLevel
	buckets    []int32
	ranges     *keyColumns // nil: there are none
	start, end []byte      // empty: no bound

	cells      [][]byte // memory
	buf, bytes []byte   // memory
}

// hashLevel divides rows by a hash of some columns.
type hashLevel struct {
	keyColumns
	buckets uint64
	seed    uint64
}

// keyColumns are some columns of the primary key.
type keyColumns struct {
	columns []int // of the schema
	types   []schema.Type
	encoder *keyenc.Encoder
	cells   [][]byte // memory
}

// bucketBytes is the size of the number of a bucket in a partition key.
const bucketBytes = 4 // file format: never change

// murmur2 is Kudu's number of the only hash function that its servers use; 0 means the same.
const murmur2 = 1 // file format: never change

// newPartition returns the partition of a tablet of a table with the schema s. Errors: ErrCorrupt;
// ErrUnsupported.
func newPartition(m *kudupb.TabletSuperBlockPB, s *schema.Schema) (*partition, error) {
	p := &partition{keys: keyenc.NewEncoder(s), buckets: m.Partition.HashBuckets, start: m.Partition.PartitionKeyStart,
		end: m.Partition.PartitionKeyEnd}
	by := m.PartitionSchema
	if columns := by.GetRangeSchema().GetColumns(); len(columns) > 0 {
		var err error
		if p.ranges, err = newKeyColumns(columns, m.Schema, s); err != nil {
			return nil, err
		}
	}
	hashes, err := p.hashesOf(by, m.Schema)
	if err != nil {
		return nil, err
	}
	if len(hashes) != len(p.buckets) {
		return nil, fault.Corruptf("the tablet has %d buckets, its range %d levels of them",
			len(p.buckets), len(hashes))
	}
	for i, h := range hashes {
		if a := h.GetHashAlgorithm(); a != 0 && a != murmur2 {
			return nil, fault.Unsupportedf("hash function %d", a)
		}
		columns, err := newKeyColumns(h.Columns, m.Schema, s)
		if err != nil {
			return nil, err
		}
		if n := h.GetNumBuckets(); n < 1 || p.buckets[i] < 0 || p.buckets[i] >= n {
			return nil, fault.Corruptf("bucket %d of %d", p.buckets[i], n)
		}
		p.levels = append(p.levels, hashLevel{*columns, uint64(h.GetNumBuckets()), uint64(h.GetSeed())})
	}
	return p, nil
}

// hashesOf returns the hash levels of the tablet's range. A range may have its own levels; the
// tablet's range is then the custom range with the same start. All other ranges have the levels of
// the table.
func (p *partition) hashesOf(
	by *kudupb.PartitionSchemaPB, of *kudupb.SchemaPB,
) ([]*kudupb.PartitionSchemaPB_HashBucketSchemaPB, error) {
	if len(by.GetCustomHashSchemaRanges()) == 0 {
		return by.GetHashSchema(), nil
	}
	s, err := kuduschema.FromMessage(of)
	if err != nil {
		return nil, err
	}
	if p.ranges == nil {
		return nil, fault.Corruptf("ranges with hashes of their own, of a table without ranges")
	}
	start := p.start[min(len(p.start), bucketBytes*len(p.buckets)):]
	for _, r := range by.GetCustomHashSchemaRanges() {
		lower, upper, err := kuduwal.RangeBounds(r.RangeBounds, s)
		if err != nil {
			return nil, err
		}
		from, to := p.ranges.bound(lower), p.ranges.bound(upper)
		switch {
		case bytes.Equal(start, from):
			return r.HashSchema, nil
		case bytes.Compare(start, from) > 0 && (len(to) == 0 || bytes.Compare(start, to) < 0):
			return nil, fault.Corruptf("the tablet begins within a range that has hashes of its own")
		}
	}
	return by.GetHashSchema(), nil
}

// bound returns the encoded bound of a range, of which some columns are set: those that are not
// have their least values. It is empty, for no bound, if none is.
func (k *keyColumns) bound(cells [][]byte) (key []byte) {
	set := false
	for i, c := range k.columns {
		switch {
		case cells != nil && cells[c] != nil:
			set = true
			key = k.encoder.AppendCell(key, i, cells[c])
		case k.types[i].Variable():
			key = k.encoder.AppendCell(key, i, []byte{})
		default:
			key = append(key, make([]byte, k.types[i].Width())...)
		}
	}
	if !set {
		return nil
	}
	return key
}

// newKeyColumns finds columns that the tablet's schema of identifies in s, where they have other
// IDs.
func newKeyColumns(
	ids []*kudupb.PartitionSchemaPB_ColumnIdentifierPB, of *kudupb.SchemaPB, s *schema.Schema,
) (*keyColumns, error) {
	k := &keyColumns{}
	var columns []schema.Column
	for _, id := range ids {
		name := id.GetName()
		for _, c := range of.Columns {
			if name == "" && c.GetId() == uint32(id.GetId()) {
				name = c.GetName()
			}
		}
		i := s.Index(name)
		if i < 0 || i >= s.Keys {
			return nil, fault.Corruptf("the partition has a column that is not in the key")
		}
		k.columns, k.types = append(k.columns, i), append(k.types, s.Columns[i].Type)
		c := s.Columns[i]
		c.AutoIncrement = false // it need not be the last one here
		columns = append(columns, c)
	}
	keys, err := schema.New(columns, len(columns))
	if err != nil {
		return nil, fault.Corruptf("columns of the partition: %v", err)
	}
	k.encoder = keyenc.NewEncoder(keys)
	return k, nil
}

func (k *keyColumns) append(dst []byte, key [][]byte) []byte {
	k.cells = k.cells[:0]
	for _, i := range k.columns {
		k.cells = append(k.cells, key[i])
	}
	return k.encoder.AppendKey(dst, k.cells)
}

// isAll reports whether all rows belong to the tablet.
func (p *partition) isAll() bool { return len(p.levels) == 0 && len(p.start) == 0 && len(p.end) == 0 }

// has reports whether the row with an encoded primary key belongs to the tablet.
func (p *partition) has(key []byte) (ok bool, err error) {
	if p.isAll() {
		return true, nil
	}
	if p.cells, p.buf, err = p.keys.AppendCells(p.cells[:0], p.buf[:0], key); err != nil {
		return false, err
	}
	at := p.bytes[:0]
	for i := range p.levels {
		l := &p.levels[i]
		at = l.append(at[:0], p.cells)
		if murmur(at, l.seed)%l.buckets != uint64(p.buckets[i]) {
			return false, nil
		}
	}
	at = at[:0]
	for _, b := range p.buckets {
		at = binary.BigEndian.AppendUint32(at, uint32(b))
	}
	if p.ranges != nil {
		at = p.ranges.append(at, p.cells)
	}
	p.bytes = at
	return bytes.Compare(at, p.start) >= 0 && (len(p.end) == 0 || bytes.Compare(at, p.end) < 0), nil
}

// check returns an error if a row of a rowset, which may be deleted, is not in the partition.
func (p *partition) check(ctx context.Context, d *rowset.DiskRowSet) error {
	return eachKey(ctx, d, func(key []byte) error {
		ok, err := p.has(key)
		if err == nil && !ok {
			err = fmt.Errorf("the row with the encoded key %x is not in the tablet's partition", key)
		}
		return err
	})
}

// murmur returns the hash of b by MurmurHash64A.
func murmur(b []byte, seed uint64) uint64 {
	const m, r = 0xc6a4a7935bd1e995, 47 // file format: never change
	h := seed ^ uint64(len(b))*m
	for ; len(b) >= 8; b = b[8:] {
		k := binary.LittleEndian.Uint64(b) * m
		k ^= k >> r
		h = (h ^ k*m) * m
	}
	if len(b) > 0 {
		var tail [8]byte
		copy(tail[:], b)
		h = (h ^ binary.LittleEndian.Uint64(tail[:])) * m
	}
	h ^= h >> r
	h *= m
	return h ^ h>>r
}
