package rowset

import (
	"testing"

	"github.com/oribi-db/oribi/cache"
	"github.com/oribi-db/oribi/internal/invariant"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/scan"
	"github.com/oribi-db/oribi/schema"
)

// The memory that an iterator keeps at its end is bounded and refers to no cell, reader or batch.
func TestReleasedMemoryIsEmptyAndBounded(t *testing.T) {
	s := mustSchema([]schema.Column{{ID: 1, Name: "k", Type: schema.Int32},
		{ID: 2, Name: "v", Type: schema.Int64, Nullable: true},
		{ID: 3, Name: "s", Type: schema.String, Nullable: true}}, 1)
	w := newTestRowSet(t, seedtest.Rand(t), s, manyRows)
	for _, limit := range []int64{20, 0} {
		it := must.Get(newIterator(w.set,
			scan.Options{Schema: s, Columns: []int{0, 1, 2}, Snapshot: mvcc.Everything, Limit: limit}))(t)
		must.Equal(t, it.Next(), true, "no rows")
		m, rows := it.memory, it.Batch().Len
		must.Do(t, it.Close())
		if len(m.used) != 0 || len(m.spare) < 3 || m.keys != nil || m.out.Schema != nil || m.out.Len != 0 {
			t.Fatalf("limit %d: %d columns in use, %d spare", limit, len(m.used), len(m.spare))
		}
		kept := 0
		for _, c := range m.spare {
			v := &c.vector
			size := cap(v.Data) + 24*cap(v.Bytes) + 4*cap(v.Codes)
			if size > maxKeptVector {
				t.Errorf("limit %d: %d bytes of a column are kept", limit, size)
			}
			for _, cell := range v.Bytes[:cap(v.Bytes)] {
				if cell != nil {
					t.Errorf("limit %d: a byte string is kept", limit)
				}
			}
			if c.open || c.loaded || v.Dict != nil || v.Present != nil || v.Len != 0 {
				t.Errorf("limit %d: a column refers to cells that it read", limit)
			}
			if size > 0 {
				kept++
			}
		}
		must.Equal(t, kept > 0, rows < 1000, "a batch of", rows, "rows: the memory of", kept, "columns is kept")
	}
}

// A scan of a few rows of many columns allocates nothing for each column.
func TestShortScanAllocatesLittle(t *testing.T) {
	if invariant.Race {
		t.Skip("the race detector drops values of pools")
	}
	columns := []schema.Column{{ID: 1, Name: "k", Type: schema.Int32}}
	cols := []int{0}
	for i := range 20 {
		typ := []schema.Type{schema.Int64, schema.String, schema.Double, schema.Int16}[i%4]
		columns = append(columns, schema.Column{ID: schema.ColumnID(i + 2), Name: "c" + string(rune('a'+i)), Type: typ})
		cols = append(cols, i+1)
	}
	s := mustSchema(columns, 1)
	w := newTestRowSet(t, seedtest.Rand(t), s, 200)
	m := *w.set.Metadata()
	m.Undo, m.Redo = nil, nil
	m.RowFile = 0 // its cblocks are not cached
	set := must.Get(Open(s, &m, Options{Blocks: w.disk, Cache: cache.New(64 << 20)}))(t)
	defer set.Unref()
	req := must.Get(scan.NewRequest(scan.Options{Schema: s, Columns: cols, Snapshot: mvcc.Everything,
		Lower: w.rows[50].key, Limit: 20}))(t)
	scan := func() {
		it := must.Get(set.NewIterator(req))(t)
		must.Equal(t, it.Next(), true, "no row")
		it.Close()
	}
	for range 10 {
		scan() // until the cache has all cblocks that scan reads
	}
	if n := testing.AllocsPerRun(100, scan); n > 3 {
		t.Errorf("%v allocations for a scan of %d columns", n, len(cols))
	}
}
