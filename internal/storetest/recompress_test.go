package storetest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
)

type letter struct {
	ID   int64 `oribi:"id,key"`
	From string
	Text string `oribi:"text,dense"`
	Size int64  `oribi:"size,lz4hc"`
}

// Tags say how columns are stored at rest, and an open store rewrites a rowset a day after it was
// written, unless that is disabled.
func TestBackgroundRecompressesRowSetsAtRest(t *testing.T) {
	ctx := context.Background()
	now := time.Date(2026, 11, 23, 9, 0, 0, 0, time.UTC)
	fs := vfs.NewMem()
	open := func(after time.Duration) *oribi.Store {
		t.Helper()
		store := must.Get(oribi.Open("/store", &oribi.Options{FS: fs, Manual: true, RecompressAfter: after,
			Clock: mvcc.NewHybridClock(func() time.Time { return now })}))(t)
		return store
	}
	store := open(0)
	s := must.Get(oribi.SchemaOf[letter]())(t)
	table := must.Get(store.CreateTable("letters", s))(t)
	b := store.NewBatch()
	for i := range 2000 {
		b.Insert(table, oribi.Row{"id": i, "from": fmt.Sprint("someone", i%37), "size": i * i % 4096,
			"text": fmt.Sprint("dear ", i*7919%1009, ", as of ", i*31%97, " we have no letters of yours")})
	}
	must.Get(b.Commit(ctx))(t)
	must.Do(t, table.Flush(ctx))
	stored := func() (bytes int64, codecs [][]schema.Compression) {
		t.Helper()
		stats := must.Get(table.Stats(true))(t)
		for _, c := range stats.Columns {
			codecs = append(codecs, c.Compressions)
		}
		return stats.Bytes, codecs
	}
	flushed, codecs := stored()
	must.Equal(t, codecs[2], []schema.Compression{schema.LZ4}, "flushed with")
	steps := func(after time.Duration, wait time.Duration, want int) {
		t.Helper()
		must.Do(t, store.Close())
		now = now.Add(wait)
		store = open(after)
		table = must.Get(store.Table("letters"))(t)
		got := 0
		for _, kind := range backgroundSteps(t, store, 9, nil) {
			if kind == "recompress" {
				got++
			}
		}
		must.Equal(t, got, want, "recompressions at", now)
	}
	steps(0, 23*time.Hour, 0)
	steps(-1, 2*time.Hour, 0)
	steps(30*time.Hour, 0, 0)
	steps(0, 0, 1)
	steps(0, 100*time.Hour, 0)
	defer store.Close()
	small, codecs := stored()
	if want := [][]schema.Compression{{schema.NoCompression}, {schema.LZ4}, {schema.Zlib},
		{schema.LZ4}}; small >= flushed || !slices.EqualFunc(codecs, want, slices.Equal) {
		t.Errorf("%d bytes, %v; %d bytes when flushed", small, codecs, flushed)
	}
	// An altered compression is carried out by hand at once, a weaker one too.
	must.Do(t, table.Alter(ctx, oribi.SetCompression("from", schema.Dense),
		oribi.SetCompression("text", schema.NoCompression)))
	must.Get(table.Recompress(ctx))(t)
	want := [][]schema.Compression{{schema.NoCompression}, {schema.Zlib}, {schema.NoCompression}, {schema.LZ4}}
	if _, codecs := stored(); !slices.EqualFunc(codecs, want, slices.Equal) {
		t.Errorf("altered, %v", codecs)
	}
	must.Do(t, store.Verify(ctx, nil))
}
