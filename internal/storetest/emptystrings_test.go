package storetest

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/prooftest/history"
	"github.com/oribi-db/oribi/internal/rowpage"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
)

// Row files refer to pieces of a column's byte strings. A piece of which all byte strings are empty has no
// bytes, and they are empty, not NULL.
func TestEmptyStringsOfRowFiles(t *testing.T) {
	ctx := context.Background()
	store := must.Get(oribi.Open("/store", &oribi.Options{FS: vfs.NewMem(), Manual: true}))(t)
	defer store.Close()
	columns := must.Get(schema.New([]schema.Column{{Name: "k", Type: schema.Int64},
		{Name: "text", Type: schema.String, Encoding: schema.Plain},
		{Name: "note", Type: schema.String, Encoding: schema.Plain, Nullable: true}}, 1))(t)
	history.Usual()
	rowpage.Eager.Store(true)
	defer history.Usual()
	table := must.Get(store.CreateTable("t", columns))(t)
	b := store.NewBatch()
	rows := map[int64]oribi.Row{}
	rng := newText(3)
	for k := range int64(1000) {
		row := oribi.Row{"k": k, "text": "", "note": ""}
		if k%300 < 100 {
			row["text"], row["note"] = rng(100), nil
		}
		rows[k] = row
		b.Insert(table, row)
	}
	must.Get(b.Commit(ctx))(t)
	must.Do(t, table.Flush(ctx))
	runtime.GC()
	runtime.GC() // buffers of earlier reads are gone
	for k := range int64(1000) {
		k = (k + 150) % 1000
		must.Equal(t, must.Get(table.Get(ctx, k))(t), rows[k])
	}
	for k := range int64(1000) {
		for row := range must.All(t, table.Scan(ctx, oribi.From(k), oribi.Limit(3)).Rows()) {
			must.Equal(t, row, rows[row["k"].(int64)])
		}
	}
	b.Reset()
	for k := range rows {
		b.Upsert(table, oribi.Row{"k": k, "note": fmt.Sprint(k)})
		rows[k]["note"] = fmt.Sprint(k)
	}
	must.Get(b.Commit(ctx))(t)
	for row := range must.All(t, table.Scan(ctx).Rows()) {
		must.Equal(t, row, rows[row["k"].(int64)])
	}
}

// newText returns a function that returns texts of n letters, which do not compress.
func newText(seed uint64) func(n int) string {
	return func(n int) string {
		var s strings.Builder
		for range n {
			seed = seed*6364136223846793005 + 1442695040888963407
			s.WriteByte(byte('0' + seed>>58))
		}
		return s.String()
	}
}
