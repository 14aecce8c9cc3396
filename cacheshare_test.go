package oribi

import (
	"testing"

	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
)

// Rows in memory make the cache of a store smaller, and a flush gives the memory back.
func TestRowsInMemoryShrinkTheCache(t *testing.T) {
	const limit = 64 << 20
	ctx := t.Context()
	store := must.Get(Open("/store", &Options{FS: vfs.NewMem(), MemoryLimit: limit, Manual: true}))(t)
	defer store.Close()
	columns := must.Get(
		schema.New([]schema.Column{{Name: "k", Type: schema.Int64}, {Name: "v", Type: schema.Binary}}, 1))(t)
	table := must.Get(store.CreateTable("t", columns))(t)
	metrics := func() Metrics {
		return must.Get(store.Metrics())(t)
	}
	before := metrics().Cache.Limit
	for i := range 160 {
		b := store.NewBatch()
		b.Insert(table, Row{"k": i, "v": make([]byte, 60<<10)})
		must.Get(b.Commit(ctx, NoSync))(t)
	}
	m := metrics()
	if m.Memory.Rows < 8<<20 || m.Cache.Limit > before-m.Memory.Rows {
		t.Errorf("the cache may have %d bytes with %d of rows in memory, %d before", m.Cache.Limit, m.Memory.Rows,
			before)
	}
	must.Do(t, table.Flush(ctx))
	if m = metrics(); m.Cache.Limit < before-8<<20 {
		t.Errorf("the cache may have %d bytes after the flush, %d before", m.Cache.Limit, before)
	}
}
