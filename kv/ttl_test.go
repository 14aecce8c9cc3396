package kv_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/kv"
	"github.com/oribi-db/oribi/mvcc"
)

// clocked opens a store whose clock stands still until the test moves it.
func clocked(t *testing.T) (db *kv.DB, now *time.Time) {
	now = new(time.Time)
	*now = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	return openMem(t, oribi.Options{Clock: mvcc.NewHybridClock(func() time.Time {
		return *now
	}), History: oribi.HistoryForever}), now
}

func TestKeysExpire(t *testing.T) {
	for _, flush := range []bool{false, true} {
		t.Run(fmt.Sprint("flush=", flush), func(t *testing.T) {
			db, now := clocked(t)
			b := bucket(t, db, "b")
			before := put(t, b, "kept", "1", "renewed", "1", "made lasting", "1")
			must.Equal(t, b.Table().Properties().Expiry.Column, "", "the bucket expires keys before the first PutTTL")
			putTTL := func(key, value string, ttl time.Duration) mvcc.Timestamp {
				return must.Get(b.PutTTL(ctx, []byte(key), []byte(value), ttl, oribi.NoSync))(t)
			}
			*now = now.Add(time.Second)
			for _, key := range []string{"gone", "renewed", "made lasting", "made again"} {
				putTTL(key, "2", time.Minute)
			}
			if flush {
				must.Do(t, b.Table().Flush(ctx))
			}
			*now = now.Add(30 * time.Second)
			alive := putTTL("renewed", "3", time.Minute)
			put(t, b, "made lasting", "3")

			*now = now.Add(30*time.Second - time.Microsecond)
			equal(t, "just before the time", texts(t, b.Scan(ctx)),
				"[gone=2 kept=1 made again=2 made lasting=3 renewed=3]")
			*now = now.Add(time.Microsecond)
			want := "[kept=1 made lasting=3 renewed=3]"
			equal(t, "at the time", texts(t, b.Scan(ctx)), want)
			equal(t, "backward", texts(t, b.Scan(ctx, oribi.Desc(), oribi.Limit(2))), "[renewed=3 made lasting=3]")
			equal(t, "before the time", texts(t, b.Scan(ctx, oribi.AsOf(alive))),
				"[gone=2 kept=1 made again=2 made lasting=2 renewed=3]")
			equal(t, "before all", texts(t, b.Scan(ctx, oribi.AsOf(before))), "[kept=1 made lasting=1 renewed=1]")
			_, err := b.Get(ctx, []byte("gone"))
			wantError(t, "an expired key", err, kv.ErrNotFound)
			has, err := b.Has(ctx, []byte("gone"))
			equal(t, "Has", fmt.Sprint(has, err), "false <nil>")
			n, err := b.Table().Count(ctx)
			equal(t, "Count", fmt.Sprint(n, err), "3 <nil>")
			for _, view := range []func(func(*kv.Tx) error) error{
				func(fn func(*kv.Tx) error) error { return db.View(ctx, fn) },
				func(fn func(*kv.Tx) error) error { return db.Update(ctx, fn) },
			} {
				must.Do(t, view(func(tx *kv.Tx) error {
					equal(t, "in a transaction", texts(t, tx.Bucket("b").Scan()), want)
					return nil
				}))
			}
			put(t, b, "made again", "4")
			*now = now.Add(time.Hour)
			equal(t, "an hour later", texts(t, b.Scan(ctx)), "[kept=1 made again=4 made lasting=3]")
			equal(t, "history", versions(t, b, "made again"), "[put 4 put 2]")
			equal(t, "history of an expired key", versions(t, b, "gone"), "[put 2]")
			must.Get(b.Delete(ctx, []byte("made again")))(t)
			equal(t, "history of a deleted key", versions(t, b, "made again"), "[delete put 4 put 2]")
		})
	}
}

// versions returns the versions of a key as text.
func versions(t *testing.T, b *kv.Bucket, key string) (list []string) {
	t.Helper()
	for v, err := range b.History(ctx, []byte(key)) {
		switch {
		case err != nil:
			t.Fatal(err)
		case v.Deleted:
			list = append(list, "delete")
		default:
			list = append(list, "put "+string(v.Value))
		}
	}
	return list
}

func TestTTLInTransactionsAndBatches(t *testing.T) {
	db, now := clocked(t)
	b, other := bucket(t, db, "b"), bucket(t, db, "other")
	batch := db.NewBatch()
	batch.Put(b, []byte("kept"), nil)
	batch.PutTTL(b, []byte("batch"), []byte("1"), time.Minute)
	must.Do(t, must.Err(batch.Commit(ctx, oribi.NoSync)))
	err := db.Update(ctx, func(tx *kv.Tx) error {
		return errors.Join(tx.Bucket("other").PutTTL([]byte("tx"), []byte("2"), time.Minute),
			tx.Bucket("other").Put([]byte("kept"), nil))
	}, oribi.NoSync)
	must.Do(t, err)
	equal(t, "before the time", fmt.Sprint(texts(t, b.Scan(ctx)), texts(t, other.Scan(ctx))),
		"[batch=1 kept=] [kept= tx=2]")
	*now = now.Add(time.Minute + time.Millisecond)
	equal(t, "after the time", fmt.Sprint(texts(t, b.Scan(ctx)), texts(t, other.Scan(ctx))), "[kept=] [kept=]")

	batch.PutTTL(b, []byte("k"), nil, 0)
	_, err = batch.Commit(ctx)
	equal(t, "no TTL in a batch", err, "kv: a TTL of 0s: want at least a microsecond")
	batch.Reset()
	batch.Put(b, []byte("k"), nil)
	_, err = batch.Commit(ctx, oribi.NoSync)
	equal(t, "the batch after Reset", err, nil)
	_, err = b.PutTTL(ctx, []byte("k"), nil, -time.Second)
	equal(t, "a negative TTL", err, "kv: a TTL of -1s: want at least a microsecond")
	err = db.Update(ctx, func(tx *kv.Tx) error { return tx.Bucket("b").PutTTL([]byte("k"), nil, time.Nanosecond) })
	equal(t, "a short TTL", err, "kv: a TTL of 1ns: want at least a microsecond")
	err = db.View(ctx, func(tx *kv.Tx) error { return tx.Bucket("b").PutTTL([]byte("k"), nil, time.Hour) })
	wantError(t, "a transaction that only reads", err, kv.ErrTxNotWritable)
}

func TestTimesOfExpiry(t *testing.T) {
	db, now := clocked(t)
	b := bucket(t, db, "b")
	put(t, b, "lasting", "1")
	key, value := []byte("k"), []byte("v")
	wantError(t, "Touch of no key", must.Err(b.Touch(ctx, key, time.Minute)), kv.ErrNotFound)
	must.Refuse(t, must.Err(b.PutExpires(ctx, key, value, time.Time{})), "the zero time")
	at := now.Add(time.Hour)
	must.Get(b.PutExpires(ctx, key, value, at))(t)
	check := func(what, key string, want time.Time) {
		t.Helper()
		got := []time.Time{must.Get(b.ExpiresAt(ctx, []byte(key)))(t)}
		for _, run := range []func(func(*kv.Tx) error) error{
			func(f func(*kv.Tx) error) error { return db.View(ctx, f) },
			func(f func(*kv.Tx) error) error { return db.Update(ctx, f) },
		} {
			must.Do(t, run(func(tx *kv.Tx) error {
				got = append(got, must.Get(tx.Bucket("b").ExpiresAt([]byte(key)))(t))
				return nil
			}))
		}
		for _, g := range got {
			if !g.Equal(want) {
				t.Errorf("%s: key %s expires at %v, want %v", what, key, got, want)
			}
		}
	}
	check("PutExpires", "k", at)
	check("Put", "lasting", time.Time{})
	must.Get(b.Touch(ctx, key, time.Minute))(t)
	check("Touch", "k", now.Add(time.Minute))
	equal(t, "the value", string(must.Get(b.Get(ctx, key))(t)), "v")
	must.Do(t, db.Update(ctx, func(tx *kv.Tx) error {
		rows := tx.Bucket("b")
		must.Do(t, rows.PutExpires([]byte("other"), value, at))
		wantError(t, "Touch of no key", rows.Touch([]byte("none"), time.Minute), kv.ErrNotFound)
		return rows.Touch([]byte("lasting"), 2*time.Minute)
	}))
	check("PutExpires in a transaction", "other", at)
	check("Touch in a transaction", "lasting", now.Add(2*time.Minute))
	*now = now.Add(time.Minute)
	wantError(t, "an expired key", must.Err(b.ExpiresAt(ctx, key)), kv.ErrNotFound)
	wantError(t, "Touch of an expired key", must.Err(b.Touch(ctx, key, time.Minute)), kv.ErrNotFound)
	must.Get(b.PutExpires(ctx, key, value, *now))(t)
	equal(t, "a time that has passed", must.Get(b.Has(ctx, key))(t), false)
}

// A TTL is one of the store's clock: it lasts longer if the machine's clock is set back.
func TestTTLWhileTheMachinesClockIsBehind(t *testing.T) {
	db, now := clocked(t)
	b := bucket(t, db, "b")
	put(t, b, "before", "1")
	*now = now.Add(-2 * time.Hour)
	must.Get(b.PutTTL(ctx, []byte("k"), []byte("v"), time.Minute))(t)
	*now = now.Add(2*time.Hour - time.Second)
	equal(t, "before the store's clock moves", must.Get(b.Has(ctx, []byte("k")))(t), true)
	*now = now.Add(2 * time.Minute)
	equal(t, "a minute later", must.Get(b.Has(ctx, []byte("k")))(t), false)
}
