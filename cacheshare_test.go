package oribi

import (
	"testing"

	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
)

// Rows in memory make the cache of a store smaller, and a flush gives the memory back.
func TestRowsInMemoryShrinkTheCache(t *testing.T) {
	const limit = 64 << 20
	ctx := t.Context()
	store, err := Open("/store", &Options{FS: vfs.NewMem(), MemoryLimit: limit, Manual: true})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	columns, err := schema.New([]schema.Column{{Name: "k", Type: schema.Int64}, {Name: "v", Type: schema.Binary}}, 1)
	if err != nil {
		t.Fatal(err)
	}
	table, err := store.CreateTable("t", columns)
	if err != nil {
		t.Fatal(err)
	}
	metrics := func() Metrics {
		m, err := store.Metrics()
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	before := metrics().Cache.Limit
	for i := range 160 {
		b := store.NewBatch()
		b.Insert(table, Row{"k": i, "v": make([]byte, 60<<10)})
		if _, err := b.Commit(ctx, NoSync); err != nil {
			t.Fatal(err)
		}
	}
	m := metrics()
	if m.Memory.Rows < 8<<20 || m.Cache.Limit > before-m.Memory.Rows {
		t.Errorf("the cache may have %d bytes with %d of rows in memory, %d before", m.Cache.Limit, m.Memory.Rows,
			before)
	}
	if err := table.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	if m = metrics(); m.Cache.Limit < before-8<<20 {
		t.Errorf("the cache may have %d bytes after the flush, %d before", m.Cache.Limit, before)
	}
}
