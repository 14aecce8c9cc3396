package handover

import (
	"bytes"
	"context"
	"fmt"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/kudupb"
	"github.com/oribi-db/oribi/internal/kudurow"
	"github.com/oribi-db/oribi/internal/kuduschema"
	"github.com/oribi-db/oribi/keyenc"
	"github.com/oribi-db/oribi/rowset"
)

// partition decides which rows belong to a tablet: the rows of its buckets with partition keys in
// [start, end).
type partition struct {
	keys       *keyenc.Encoder // of the primary key
	of         *kudurow.Partitioner
	buckets    []byte // as partition keys begin
	start, end []byte // empty: no bound

	cells      [][]byte // memory
	buf, bytes []byte   // memory
}

// newPartition returns the partition of a tablet. Errors: ErrCorrupt; ErrUnsupported.
func newPartition(m *kudupb.TabletSuperBlockPB) (*partition, error) {
	s, err := kuduschema.FromMessage(m.Schema)
	if err != nil {
		return nil, err
	}
	p := &partition{keys: keyenc.NewEncoder(s), start: m.Partition.PartitionKeyStart, end: m.Partition.PartitionKeyEnd}
	if p.of, err = kudurow.NewPartitioner(m.PartitionSchema, s); err != nil {
		return nil, err
	}
	counts, err := p.of.Levels(p.start, len(m.Partition.HashBuckets))
	if err != nil {
		return nil, err
	}
	for i, b := range m.Partition.HashBuckets {
		if b < 0 || b >= counts[i] {
			return nil, fault.Corruptf("bucket %d of %d", b, counts[i])
		}
	}
	p.buckets = kudurow.BucketPrefix(m.Partition.HashBuckets)
	return p, nil
}

// isAll reports whether all rows belong to the tablet.
func (p *partition) isAll() bool { return len(p.buckets) == 0 && len(p.start) == 0 && len(p.end) == 0 }

// has reports whether the row with an encoded primary key belongs to the tablet.
func (p *partition) has(key []byte) (ok bool, err error) {
	if p.isAll() {
		return true, nil
	}
	if p.cells, p.buf, err = p.keys.AppendCells(p.cells[:0], p.buf[:0], key); err != nil {
		return false, err
	}
	at := p.of.AppendKey(p.bytes[:0], p.cells)
	p.bytes = at
	return bytes.HasPrefix(at, p.buckets) && bytes.Compare(at, p.start) >= 0 &&
		(len(p.end) == 0 || bytes.Compare(at, p.end) < 0), nil
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
