package storetest

import (
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
)

// Vectors are the caller's again as soon as Batch.Vectors returns, also where a key is one of their
// cells: what is written into them before the commit changes nothing.
func TestVectorsAreCopiedBeforeTheCommit(t *testing.T) {
	store, err := oribi.Open("/vectors", &oribi.Options{FS: vfs.NewMem(), Clock: mvcc.NewLogicalClock(mvcc.First), Manual: true})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	columns, err := schema.New([]schema.Column{{Name: "k", Type: schema.String}, {Name: "v", Type: schema.String}}, 1)
	if err != nil {
		t.Fatal(err)
	}
	table, err := store.CreateTable("t", columns)
	if err != nil {
		t.Fatal(err)
	}
	b := store.NewBatch()
	keys, values := batch.New(columns.Columns, 0).Columns[0], batch.New(columns.Columns, 0).Columns[1]
	key, value := []byte("key"), []byte("value")
	keys.AppendCell(key)
	values.AppendCell(value)
	b.Vectors(oribi.OpInsert, table, []*batch.Vector{keys, values})
	copy(key, "xxx")
	copy(value, "yyyyy")
	if _, err := b.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	row, err := table.Get(t.Context(), "key")
	if err != nil || row["k"] != "key" || row["v"] != "value" {
		t.Errorf("%v, %v", row, err)
	}
}
