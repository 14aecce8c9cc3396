package storetest

import (
	"testing"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/backup"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/prooftest/model"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/salvage"
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
	must.Do(t, err)
	table := tableOf(t, store, "t", "k*:int64 v:int64")
	put := func(from, to, v int) mvcc.Timestamp {
		b := store.NewBatch()
		for k := from; k < to; k++ {
			b.Upsert(table, oribi.Row{"k": k, "v": v})
		}
		return must.Get(b.Commit(ctx))(t)
	}
	first := put(0, 1000, 1)
	must.Do(t, table.Flush(ctx))
	now = now.Add(20 * 24 * time.Hour)
	old := put(500, 800, 2)
	must.Do(t, table.Compact(ctx)) // drops what is older than the history
	now = now.Add(30 * time.Minute)
	last := put(700, 1200, 3)

	check := func(name string, s *oribi.Store) {
		t.Helper()
		copied, err := s.Table("t")
		must.Do(t, err, name)
		must.Do(t, sameAsOf(store, s, old, last), name)
		must.Equal(t, must.Get(copied.Count(ctx))(t), 1200, name, "rows")
		must.Fail(t, must.Err(copied.Count(ctx, oribi.AsOf(first))), oribi.ErrTooOld, name, "read before the history")
		must.Do(t, model.Verified(s), name)
	}
	check("the store", store)
	_, err = store.Checkpoint(ctx, "/checkpoint")
	must.Do(t, err)
	must.Do(t, store.Close())
	store, err = oribi.Open("/store", options())
	must.Do(t, err)
	_, err = salvage.Run(ctx, "/checkpoint", "/salvaged", options(), func(l salvage.Loss) { t.Errorf("lost: %+v", l) })
	must.Do(t, err)
	repository := backup.Open(backup.Dir("/repository", mem))
	b, err := repository.Backup(ctx, store)
	must.Do(t, err)
	_, err = repository.Restore(ctx, b.Number, "/restored", options())
	must.Do(t, err)
	for _, dir := range []string{"/checkpoint", "/salvaged", "/restored"} {
		s, err := oribi.Open(dir, options())
		must.Do(t, err, dir)
		check(dir, s)
		// A restoration to a time that the copy still has brings back the old rows.
		of, err := s.Table("t")
		must.Do(t, err)
		must.Fail(t, must.Err(of.RestoreTo(ctx, first)), oribi.ErrTooOld, dir, "restored to before the history")
		must.Equal(t, must.Get(of.RestoreTo(ctx, old))(t).Rows, 500, dir, "restored rows")
		must.Equal(t, must.Get(of.Count(ctx))(t), 1000, dir, "rows after the restoration")
		must.Do(t, s.Close())
	}
	must.Do(t, store.Close())
}
