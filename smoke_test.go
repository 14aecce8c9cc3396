package oribi_test

import (
	"context"
	"errors"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/schema"
)

func TestSmoke(t *testing.T) {
	dir := t.TempDir()
	ctx := context.Background()
	store, err := oribi.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	sc, err := schema.New([]schema.Column{{Name: "path", Type: schema.String}, {Name: "size", Type: schema.Int64, Nullable: true}, {Name: "d", Type: schema.Decimal64, Precision: 15, Scale: 2}}, 1)
	if err != nil {
		t.Fatal(err)
	}
	tree, err := store.CreateTable("tree", sc)
	if err != nil {
		t.Fatal(err)
	}
	b := store.NewBatch()
	b.Upsert(tree, oribi.Row{"path": "README", "size": 12, "d": oribi.NewDecimal(15, 1)})
	b.Insert(tree, oribi.Row{"path": "a", "d": 3})
	ts, err := b.Commit(ctx)
	if err != nil {
		t.Fatal(err)
	}
	row, err := tree.Get(ctx, "README", oribi.AsOf(ts))
	t.Log(row, err)
	check := func(what string) {
		for r, err := range tree.Scan(ctx).Rows() {
			t.Log(what, r, err)
		}
		for r, err := range tree.Scan(ctx, oribi.AsOf(ts)).Rows() {
			t.Log(what, "asof", r, err)
		}
		row, err := tree.Get(ctx, "README")
		t.Log(what, row, err)
	}
	if err := tree.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	check("flushed")
	b.Update(tree, oribi.Row{"path": "README", "size": nil})
	b.Delete(tree, oribi.Row{"path": "a"})
	b.Insert(tree, oribi.Row{"path": "a", "d": 4})
	if _, err := b.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	check("updated")
	if err := tree.Compact(ctx); err != nil {
		t.Fatal(err)
	}
	check("compacted")
	b.Insert(tree, oribi.Row{"path": "a", "d": 4})
	_, err = b.Commit(ctx)
	t.Log(err, errors.Is(err, oribi.ErrKeyExists))
	b.Update(tree, oribi.Row{"path": "a", "size": 77})
	b.Commit(ctx, oribi.NoSync)
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	store, err = oribi.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	tree, _ = store.Table("tree")
	check("reopened")
	if err := store.Verify(ctx, func(f oribi.Finding) { t.Error(f) }); err != nil {
		t.Fatal(err)
	}
	i, err := store.Info()
	t.Logf("%+v %v %+v", i, err, store.Recovery())
	store.Close()
}
