package storetest

import (
	"errors"
	"testing"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/backup"
	"github.com/oribi-db/oribi/internal/prooftest/model"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/salvage"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
)

// Rows that were written long before what the history reaches back to are in every copy, as are the
// states that the store still has and the times that it refuses.
func TestCopiesOfOldRowsAnswerAsTheStore(t *testing.T) {
	ctx, mem := t.Context(), vfs.NewMem()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	options := func() *oribi.Options {
		return &oribi.Options{FS: mem, Manual: true, History: time.Hour, Clock: mvcc.NewHybridClock(func() time.Time {
			return now
		})}
	}
	store, err := oribi.Open("/store", options())
	if err != nil {
		t.Fatal(err)
	}
	table, err := store.CreateTable("t",
		mustSchema(t, schema.Column{Name: "k", Type: schema.Int64}, schema.Column{Name: "v", Type: schema.Int64}))
	if err != nil {
		t.Fatal(err)
	}
	put := func(from, to, v int) mvcc.Timestamp {
		b := store.NewBatch()
		for k := from; k < to; k++ {
			b.Upsert(table, oribi.Row{"k": k, "v": v})
		}
		ts, err := b.Commit(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return ts
	}
	first := put(0, 1000, 1)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(table.Flush(ctx))
	now = now.Add(20 * 24 * time.Hour)
	old := put(500, 800, 2)
	must(table.Compact(ctx)) // drops what is older than the history
	now = now.Add(30 * time.Minute)
	last := put(700, 1200, 3)

	check := func(name string, s *oribi.Store) {
		t.Helper()
		copied, err := s.Table("t")
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := sameAsOf(store, s, old, last); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if n, err := copied.Count(ctx); n != 1200 || err != nil {
			t.Errorf("%s: %d rows, %v", name, n, err)
		}
		if _, err := copied.Count(ctx, oribi.AsOf(first)); !errors.Is(err, oribi.ErrTooOld) {
			t.Errorf("%s: read before the history: %v", name, err)
		}
		if err := model.Verified(s); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	check("the store", store)
	_, err = store.Checkpoint(ctx, "/checkpoint")
	must(err)
	must(store.Close())
	if store, err = oribi.Open("/store", options()); err != nil {
		t.Fatal(err)
	}
	_, err = salvage.Run(ctx, "/checkpoint", "/salvaged", options(), func(l salvage.Loss) { t.Errorf("lost: %+v", l) })
	must(err)
	repository := backup.Open(backup.Dir("/repository", mem))
	b, err := repository.Backup(ctx, store)
	must(err)
	_, err = repository.Restore(ctx, b.Number, "/restored", options())
	must(err)
	for _, dir := range []string{"/checkpoint", "/salvaged", "/restored"} {
		s, err := oribi.Open(dir, options())
		if err != nil {
			t.Fatalf("%s: %v", dir, err)
		}
		check(dir, s)
		// A restoration to a time that the copy still has brings back the old rows.
		of, err := s.Table("t")
		must(err)
		if _, err := of.RestoreTo(ctx, first); !errors.Is(err, oribi.ErrTooOld) {
			t.Errorf("%s: restored to before the history: %v", dir, err)
		}
		if r, err := of.RestoreTo(ctx, old); err != nil || r.Rows != 500 {
			t.Errorf("%s: restored %d rows, %v", dir, r.Rows, err)
		}
		if n, err := of.Count(ctx); n != 1000 || err != nil {
			t.Errorf("%s: %d rows after the restoration, %v", dir, n, err)
		}
		must(s.Close())
	}
	must(store.Close())
}
