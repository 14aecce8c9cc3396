package rowset

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/bits-and-blooms/bloom/v3"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/scan"
	"github.com/oribi-db/oribi/schema"
)

// openRows opens a rowset of n rows with a key from 0 up and a second column.
func openRows(t *testing.T, second schema.Column, n int, cell func(i int) []byte,
	damage func(d *disk, row *Metadata)) *DiskRowSet {
	t.Helper()
	d, s := newDisk(), mustSchema([]schema.Column{{ID: 1, Name: "k", Type: schema.Int64}, second}, 1)
	w := must.Get(NewWriter(d, s, 17))(t)
	rows := &change.Rows{Batch: batch.New(s.Columns, n)}
	for i := range n {
		rows.Batch.Columns[0].SetCell(i, binary.LittleEndian.AppendUint64(nil, uint64(i)))
		rows.Batch.Columns[1].SetCell(i, cell(i))
		rows.Keys = append(rows.Keys, binary.BigEndian.AppendUint64(nil, uint64(i)|1<<63))
	}
	must.Do(t, w.Append(rows))
	row := must.Get(w.Finish())(t)
	if damage != nil {
		damage(d, row)
	}
	set := must.Get(Open(s, row, Options{Blocks: d}))(t)
	t.Cleanup(set.Unref)
	return set
}

// A filter that needs decoded cells decodes long rows in small windows, with a consumer too.
func TestLongRowsAreNotDecodedAhead(t *testing.T) {
	random := rand.NewChaCha8([32]byte{})
	set := openRows(t, schema.Column{ID: 2, Name: "s", Type: schema.Binary, Encoding: schema.Prefix}, 500,
		func(int) []byte {
			x := make([]byte, 16<<10)
			random.Read(x)
			return x
		}, nil)
	f := bloom.NewWithEstimates(1000, 0.01)
	f.Add([]byte("x"))
	p := batch.Predicate{ID: 2, Type: schema.Binary, Op: batch.InFilter, Filter: f}
	must.Do(t, p.Prepare())
	it := must.Get(newIterator(set, scan.Options{Schema: set.Schema, Columns: []int{0}, Filter: batch.Test(p),
		Snapshot: mvcc.Everything}))(t)
	it.Offer(func(scan.Window) (bool, error) { return true, nil })
	for it.Next() {
	}
	if n := cap(it.column(1).vector.Bytes); n > 100 {
		t.Errorf("%d rows of 16 KiB decoded at once", n)
	}
	must.Do(t, it.Close())
}

// Sums read only cblocks that have selected rows.
func TestSumsReadSelectedCblocks(t *testing.T) {
	set := openRows(t, schema.Column{ID: 2, Name: "v", Type: schema.Int64, BlockBytes: 16 << 10}, aheadRows,
		func(i int) []byte {
			return binary.LittleEndian.AppendUint64(nil, uint64(i)*0x9e3779b97f4a7c15>>8)
		}, func(d *disk, row *Metadata) {
			f := d.blocks[row.Columns[1].Block]
			f.Bytes[len(f.Bytes)*3/4] ^= 1 // in a cblock of the second half of the rows
		})
	for _, product := range []bool{false, true} {
		p := batch.Predicate{ID: 1, Type: schema.Int64, Op: batch.Lt,
			Values: [][]byte{binary.LittleEndian.AppendUint64(nil, 100)}}
		must.Do(t, p.Prepare())
		it := must.Get(newIterator(set, scan.Options{Schema: set.Schema, Columns: []int{1}, Filter: batch.Test(p),
			Snapshot: mvcc.Everything}))(t)
		offered := 0
		it.Offer(func(w scan.Window) (ok bool, err error) {
			offered++
			n := int64(0)
			if product {
				_, n, ok, err = w.SumProducts(0, 0, w.Selection())
			} else {
				_, n, ok, err = w.Sum(0, w.Selection())
			}
			if !ok || n != 100 {
				t.Errorf("%d cells, %t, %v", n, ok, err)
			}
			return ok, err
		})
		if it.Next() || offered != 1 {
			t.Errorf("%d windows offered, and a batch of rows", offered)
		}
		must.Do(t, it.Close(), "the damaged cblock has no selected row")
	}
}
