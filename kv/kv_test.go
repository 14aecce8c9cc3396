package kv_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/kv"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
)

var ctx = context.Background()

// openMem opens a store in memory and closes it at the end of the test.
func openMem(t testing.TB, o oribi.Options) *kv.DB {
	t.Helper()
	if o.FS == nil {
		o.FS = vfs.NewMem()
	}
	o.Manual = true
	db := must.Get(kv.Open("/kv", &o))(t)
	t.Cleanup(func() { db.Close() })
	return db
}

func bucket(t testing.TB, db *kv.DB, name string) *kv.Bucket {
	t.Helper()
	return must.Get(db.CreateBucketIfNotExists(name))(t)
}

// put sets the values of keys, each in a commit of its own, and returns the last timestamp.
func put(t testing.TB, b *kv.Bucket, pairs ...string) (ts mvcc.Timestamp) {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		var err error
		ts, err = b.Put(ctx, []byte(pairs[i]), []byte(pairs[i+1]), oribi.NoSync)
		must.Do(t, err)
	}
	return ts
}

// texts returns pairs as "key=value".
func texts(t testing.TB, pairs iter.Seq2[kv.Pair, error]) (list []string) {
	t.Helper()
	for p := range must.All(t, pairs) {
		list = append(list, string(p.Key)+"="+string(p.Value))
	}
	return list
}

func equal(t testing.TB, what string, got, want any) {
	t.Helper()
	must.Equal(t, fmt.Sprint(got), fmt.Sprint(want), what)
}

func wantError(t testing.TB, what string, err, want error) {
	t.Helper()
	must.Fail(t, err, want, what)
}

func TestReadsOfEarlierStates(t *testing.T) {
	db := openMem(t, oribi.Options{})
	b := bucket(t, db, "b")
	first := put(t, b, "a", "1", "b", "1", "c", "1")
	second := put(t, b, "b", "2", "d", "2")
	must.Get(b.Delete(ctx, []byte("a"), oribi.NoSync))(t)
	equal(t, "now", texts(t, b.Scan(ctx)), "[b=2 c=1 d=2]")
	equal(t, "first, backward", texts(t, b.Scan(ctx, oribi.AsOf(first), oribi.Desc())), "[c=1 b=1 a=1]")
	equal(t, "second, the last two",
		texts(t, b.Scan(ctx, oribi.AsOf(second), oribi.Desc(), oribi.Limit(2))), "[d=2 c=1]")
	value, err := b.Get(ctx, []byte("a"), oribi.AsOf(second))
	equal(t, "a key that was deleted later", fmt.Sprint(string(value), err), "1<nil>")
	_, err = b.Get(ctx, []byte("a"))
	wantError(t, "the deleted key", err, kv.ErrNotFound)
	_, err = b.Get(ctx, []byte("d"), oribi.AsOf(first))
	wantError(t, "a key that was put later", err, kv.ErrNotFound)

	must.Do(t, db.ViewAt(ctx, first, func(tx *kv.Tx) error {
		equal(t, "ViewAt", texts(t, tx.Bucket("b").Scan(oribi.Limit(2))), "[a=1 b=1]")
		equal(t, "its timestamp", tx.Timestamp(), first)
		wantError(t, "its put", tx.Bucket("b").Put([]byte("x"), nil), kv.ErrTxNotWritable)
		return nil
	}))
}

func TestHistory(t *testing.T) {
	b := bucket(t, openMem(t, oribi.Options{}), "b")
	var want []string
	note := func(ts mvcc.Timestamp, what string) { want = append([]string{fmt.Sprint(ts, what)}, want...) }
	note(put(t, b, "k", "1"), "put 1")
	must.Do(t, b.Table().Flush(ctx))
	note(put(t, b, "k", ""), "put ")
	put(t, b, "other", "1")
	ts := must.Get(b.Delete(ctx, []byte("k"), oribi.NoSync))(t)
	note(ts, "delete")
	note(put(t, b, "k", "3"), "put 3")
	var got []string
	for v, err := range b.History(ctx, []byte("k")) {
		switch {
		case err != nil:
			t.Fatal(err)
		case v.Deleted:
			equal(t, "the value of a deleted key", v.Value == nil, true)
			got = append(got, fmt.Sprint(v.Timestamp, "delete"))
		default:
			got = append(got, fmt.Sprint(v.Timestamp, "put "+string(v.Value)))
		}
	}
	equal(t, "history", got, want)
	for _, err := range b.History(ctx, []byte("unknown")) {
		wantError(t, "the history of no key", err, kv.ErrNotFound)
	}
}

func TestBuckets(t *testing.T) {
	db := openMem(t, oribi.Options{})
	numbers, err := schema.New([]schema.Column{{Name: "key", Type: schema.Binary}, {Name: "value", Type: schema.Int64},
		{Name: "expires", Type: schema.Timestamp, Nullable: true}}, 1)
	must.Do(t, err)
	must.Do(t, must.Err(db.Store().CreateTable("numbers", numbers)))
	put(t, bucket(t, db, "b"), "k", "in b")
	a, err := db.CreateBucket("a", oribi.History(oribi.HistoryForever))
	must.Do(t, err)
	put(t, a, "k", "in a")
	value, err := bucket(t, db, "b").Get(ctx, []byte("k"))
	equal(t, "a key in two buckets", fmt.Sprint(string(value), err), "in b<nil>")
	equal(t, "an option", a.Table().Properties().History, oribi.HistoryForever)

	_, err = db.Bucket("c")
	wantError(t, "no bucket", err, kv.ErrBucketNotFound)
	_, err = db.CreateBucket("b")
	wantError(t, "a second bucket", err, kv.ErrBucketExists)
	equal(t, "its text", err.Error(), `kv: create bucket "b": exists already`)
	if _, err := db.CreateBucket(""); !errors.Is(err, oribi.ErrSchema) ||
		!strings.HasPrefix(err.Error(), `kv: create bucket "": a name is empty`) {
		t.Errorf("a bucket without a name: %v", err)
	}
	_, err = db.Bucket("numbers")
	wantError(t, "another table", err, kv.ErrNotBucket)
	equal(t, "its text", err,
		`kv: table "numbers" with the columns key binary, value int64, expires timestamp: not a bucket`)
	_, err = db.CreateBucketIfNotExists("numbers")
	wantError(t, "the name of another table", err, kv.ErrNotBucket)
	wantError(t, "the removal of another table", db.DeleteBucket("numbers"), kv.ErrNotBucket)
	err = db.Update(ctx, func(tx *kv.Tx) error { return tx.Bucket("c").Put([]byte("k"), nil) })
	wantError(t, "a write to no bucket", err, kv.ErrBucketNotFound)
	names := func() (names []string) {
		for _, b := range db.Buckets() {
			names = append(names, b.Name())
		}
		return names
	}
	equal(t, "buckets", names(), "[a b]")
	must.Do(t, db.DeleteBucket("b"))
	equal(t, "buckets after a removal", names(), "[a]")
	must.Do(t, must.Err(db.Store().Table("numbers")))
}

func TestBucketsNextToTables(t *testing.T) {
	store, err := oribi.Open("/kv", &oribi.Options{FS: vfs.NewMem(), Manual: true})
	must.Do(t, err)
	defer store.Close()
	type count struct {
		Name string `oribi:"name,key"`
		N    int64
	}
	counts, err := oribi.OpenTable[count](store, "counts")
	must.Do(t, err)
	db := kv.In(store)
	b := bucket(t, db, "b")
	batch := db.NewBatch()
	batch.Put(b, []byte("k"), []byte("v"))
	batch.Put(b, []byte("gone"), []byte("v"))
	batch.Delete(b, []byte("gone"))
	counts.InBatch(batch.Tables()).Insert(count{"b", 1})
	equal(t, "operations", batch.Len(), 4)
	ts, err := batch.Commit(ctx, oribi.NoSync)
	must.Do(t, err)
	for _, at := range []oribi.ReadOption{oribi.AsOf(ts), nil} {
		row, err := counts.Get(ctx, "b", at)
		equal(t, "the row", fmt.Sprint(row, err), "{b 1} <nil>")
		equal(t, "the bucket", texts(t, b.Scan(ctx, at)), "[k=v]")
	}
	err = db.Update(ctx, func(tx *kv.Tx) error {
		row, err := counts.In(tx.Tables()).Get("b")
		if err != nil {
			return err
		}
		row.N++
		return errors.Join(tx.Bucket("b").Put([]byte("l"), []byte("w")), counts.In(tx.Tables()).Update(row))
	}, oribi.NoSync)
	must.Do(t, err)
	row, err := counts.Get(ctx, "b")
	equal(t, "the row after the transaction", fmt.Sprint(row, err), "{b 2} <nil>")
	equal(t, "the bucket after the transaction", texts(t, b.Scan(ctx)), "[k=v l=w]")

	must.Do(t, db.Close())
	put(t, b, "m", "the store is still open")
}

func TestLoad(t *testing.T) {
	b := bucket(t, openMem(t, oribi.Options{}), "b")
	put(t, b, "k00500x", "before")
	const n = 3000
	load := func(n int, key func(int) string) (mvcc.Timestamp, int64, error) {
		var p kv.Pair // reused
		return b.Load(ctx, func(yield func(kv.Pair, error) bool) {
			for i := range n {
				p.Key, p.Value = append(p.Key[:0], key(i)...), append(p.Value[:0], fmt.Sprint(i)...)
				if !yield(p, nil) {
					return
				}
			}
		})
	}
	name := func(i int) string { return fmt.Sprintf("k%05d", i) }
	ts, loaded, err := load(n, name)
	must.Do(t, err)
	must.Equal(t, loaded, n, "loaded")
	equal(t, "a range", texts(t, b.Scan(ctx, oribi.Prefix("k0050"), oribi.Limit(3))),
		"[k00500=500 k00500x=before k00501=501]")
	equal(t, "before the load", texts(t, b.Scan(ctx, oribi.AsOf(ts-1))), "[k00500x=before]")
	count, err := b.Table().Count(ctx)
	equal(t, "keys", fmt.Sprint(count, err), fmt.Sprint(n+1, nil))

	_, _, err = load(3, name)
	wantError(t, "keys that exist", err, oribi.ErrKeyExists)
	_, _, err = load(2, func(i int) string { return "z" })
	wantError(t, "a key twice", err, oribi.ErrRow)
	_, _, err = load(1, func(i int) string { return strings.Repeat("z", kv.MaxKeyBytes+1) })
	wantError(t, "a long key", err, oribi.ErrRow)
	stop := errors.New("stop")
	_, _, err = b.Load(ctx, func(yield func(kv.Pair, error) bool) { yield(kv.Pair{}, stop) })
	wantError(t, "an error of the pairs", err, stop)
	_, _, err = b.Load(ctx, nil)
	wantError(t, "no pairs", err, oribi.ErrRow)
	count, err = b.Table().Count(ctx)
	equal(t, "keys after failed loads", fmt.Sprint(count, err), fmt.Sprint(n+1, nil))
}

// Keys that are text are named as text, others in hex, in all errors.
func TestErrorsNameKeys(t *testing.T) {
	db := openMem(t, oribi.Options{})
	b := bucket(t, db, "b")
	for key, want := range map[string]string{"user/1": `"user/1"`, "a\"b": `"a\"b"`, "\xff\x00": `"0xff00"`,
		"0xff": `"0x30786666"`, "": `""`} {
		put(t, b, key, "v")
		_, _, err := b.Load(ctx, func(yield func(kv.Pair, error) bool) { yield(kv.Pair{Key: []byte(key)}, nil) })
		if err == nil || !strings.Contains(err.Error(), "key "+want+":") {
			t.Errorf("a load: %v, want key %s", err, want)
		}
		must.Get(b.Delete(ctx, []byte(key), oribi.NoSync))(t)
		_, err = b.Get(ctx, []byte(key))
		if err == nil || !strings.Contains(err.Error(), "key "+want+":") {
			t.Errorf("a read: %v, want key %s", err, want)
		}
	}
}

func TestLimits(t *testing.T) {
	db := openMem(t, oribi.Options{})
	b := bucket(t, db, "b")
	key, value := bytes.Repeat([]byte("k"), kv.MaxKeyBytes), bytes.Repeat([]byte("v"), kv.MaxValueBytes)
	must.Get(b.Put(ctx, key, value, oribi.NoSync))(t)
	got, err := b.Get(ctx, key)
	must.Do(t, err)
	must.Equal(t, got, value, "the longest value")
	_, err = b.Put(ctx, append(key, 'k'), nil)
	wantError(t, "a long key", err, oribi.ErrRow)
	_, err = b.Get(ctx, append(key, 'k'))
	wantError(t, "a long key", err, kv.ErrNotFound)
	_, err = b.Put(ctx, []byte("k"), append(value, 'v'))
	wantError(t, "a long value", err, oribi.ErrRow)
	if err != nil && !strings.Contains(err.Error(), "4194305 bytes, limit 4194304") {
		t.Errorf("a long value: %v", err)
	}
	err = db.Update(ctx, func(tx *kv.Tx) error {
		wantError(t, "a long value in a transaction", tx.Bucket("b").Put([]byte("k"), append(value, 'v')), oribi.ErrRow)
		return tx.Bucket("b").Put([]byte("k"), []byte("v"))
	})
	equal(t, "the transaction goes on", err, nil)
}

func TestReadOnlyStore(t *testing.T) {
	fs := vfs.NewMem()
	db := openMem(t, oribi.Options{FS: fs})
	put(t, bucket(t, db, "b"), "k", "v")
	must.Do(t, db.Close())
	db = openMem(t, oribi.Options{FS: fs, ReadOnly: true})
	b, err := db.CreateBucketIfNotExists("b")
	must.Do(t, err)
	equal(t, "a scan", texts(t, b.Scan(ctx)), "[k=v]")
	must.Do(t, db.View(ctx, func(tx *kv.Tx) error {
		equal(t, "a view", texts(t, tx.Bucket("b").Scan()), "[k=v]")
		return nil
	}))
	_, err = b.Put(ctx, []byte("k"), nil)
	wantError(t, "a put", err, oribi.ErrReadOnly)
	_, err = db.CreateBucketIfNotExists("c")
	wantError(t, "a new bucket", err, oribi.ErrReadOnly)
	err = db.Update(ctx, func(tx *kv.Tx) error { return tx.Bucket("b").Put([]byte("k"), nil) })
	wantError(t, "an update", err, oribi.ErrReadOnly)
}

// TestScansMatchAMap writes at random, with flushes and compactions, and compares scans at random
// timestamps with maps of these states.
func TestScansMatchAMap(t *testing.T) {
	b := bucket(t, openMem(t, oribi.Options{RowSetBytes: 1 << 12}), "b")
	rng := seedtest.Rand(t)
	key := func() string { return fmt.Sprintf("%02d", rng.IntN(60)) }
	states := map[mvcc.Timestamp]map[string]string{}
	state := map[string]string{}
	for round := range 60 {
		k, v := key(), fmt.Sprint(round)
		var ts mvcc.Timestamp
		if rng.IntN(4) == 0 {
			var err error
			ts, err = b.Delete(ctx, []byte(k), oribi.NoSync)
			must.Do(t, err)
			delete(state, k)
		} else {
			ts = put(t, b, k, v)
			state[k] = v
		}
		states[ts] = maps.Clone(state)
		var err error
		switch rng.IntN(12) {
		case 0:
			err = b.Table().Flush(ctx)
		case 1:
			err = b.Table().Compact(ctx)
		}
		must.Do(t, err)
	}
	for ts, state := range states {
		checkScan(t, rng, b, key, ts, state)
	}
}

func checkScan(
	t *testing.T, rng *rand.Rand, b *kv.Bucket, key func() string, ts mvcc.Timestamp, state map[string]string,
) {
	t.Helper()
	from, to, limit := key(), key(), rng.Int64N(70)
	opts := []oribi.ScanOption{oribi.AsOf(ts), oribi.From(from), oribi.To([]byte(to)), oribi.Limit(limit)}
	var want, wantKeys []string
	list := slices.Sorted(maps.Keys(state))
	if rng.IntN(2) == 0 {
		slices.Reverse(list)
		opts = append(opts, oribi.Desc())
	}
	for _, k := range list {
		if from <= k && k < to && int64(len(want)) < limit {
			want, wantKeys = append(want, k+"="+state[k]), append(wantKeys, k)
		}
	}
	var keys []string
	for k := range must.All(t, b.Keys(ctx, opts...)) {
		keys = append(keys, string(k))
	}
	what := fmt.Sprintf("[%s, %s), limit %d", from, to, limit)
	equal(t, what, texts(t, b.Scan(ctx, opts...)), want)
	equal(t, what+", keys", keys, wantKeys)
}

func TestPairsCanBeKept(t *testing.T) {
	b := bucket(t, openMem(t, oribi.Options{}), "b")
	for i := range 5000 {
		put(t, b, fmt.Sprintf("%05d", i), fmt.Sprint("value ", i))
	}
	for _, flush := range []bool{false, true} {
		if flush {
			must.Do(t, b.Table().Flush(ctx))
		}
		var kept []kv.Pair
		for p := range must.All(t, b.Scan(ctx)) {
			kept = append(kept, p)
		}
		texts(t, b.Scan(ctx, oribi.Desc())) // reuses the memory of the first
		for i, p := range kept {
			must.Equal(t, string(p.Key)+"="+string(p.Value), fmt.Sprintf("%05d=value %d", i, i), "pair", i)
		}
	}
}

func TestCallersMayReuseKeysAndValues(t *testing.T) {
	db := openMem(t, oribi.Options{})
	b := bucket(t, db, "b")
	buf := make([]byte, 1)
	batch := db.NewBatch()
	err := db.Update(ctx, func(tx *kv.Tx) error {
		for i := range byte(3) {
			buf[0] = 'a' + i
			if err := tx.Bucket("b").Put(buf, buf); err != nil {
				return err
			}
			buf[0] = 'x' + i
			batch.Put(b, buf, buf)
		}
		buf[0] = '-'
		return nil
	}, oribi.NoSync)
	if err == nil {
		_, err = batch.Commit(ctx, oribi.NoSync)
	}
	must.Do(t, err)
	equal(t, "scan", texts(t, b.Scan(ctx)), "[a=a b=b c=c x=x y=y z=z]")
}

// TestScanOfATransactionReadsOnlyWhatItYields leaves a scan early: a change behind the last pair is
// no conflict, a change before it is.
func TestScanOfATransactionReadsOnlyWhatItYields(t *testing.T) {
	db := openMem(t, oribi.Options{})
	b := bucket(t, db, "b")
	put(t, b, "a", "1", "b", "1", "c", "1")
	for changed, want := range map[string]error{"a": kv.ErrConflict, "c": nil} {
		tx, err := db.Begin(ctx, true)
		must.Do(t, err)
		for p := range must.All(t, tx.Bucket("b").Scan()) {
			if string(p.Key) == "b" {
				break
			}
		}
		must.Do(t, tx.Bucket("b").Put([]byte("d"), nil))
		put(t, b, changed, "2")
		_, err = tx.Commit(oribi.NoSync)
		wantError(t, "a change of "+changed, err, want)
	}
}

func TestEndedTransactions(t *testing.T) {
	db := openMem(t, oribi.Options{})
	put(t, bucket(t, db, "b"), "k", "v")
	for _, writable := range []bool{true, false} {
		tx, err := db.Begin(ctx, writable)
		must.Do(t, err)
		b := tx.Bucket("b")
		equal(t, "writable", tx.Writable(), writable)
		must.Equal(t, must.Get(tx.Commit())(t), tx.Timestamp(), "commit of no writes")
		_, err = b.Get([]byte("k"))
		wantError(t, "Get", err, kv.ErrTxEnded)
		for _, err := range b.Scan() {
			wantError(t, "Scan", err, kv.ErrTxEnded)
		}
		for _, err := range b.Keys() {
			wantError(t, "Keys", err, kv.ErrTxEnded)
		}
		wantError(t, "Put", b.Put([]byte("k"), nil), kv.ErrTxEnded)
		_, err = tx.Commit()
		wantError(t, "Commit", err, kv.ErrTxEnded)
		tx.Rollback()
	}
}

// The error for a bucket that does not exist speaks of buckets, and names some that do.
func TestTextOfMissingBucket(t *testing.T) {
	db := openMem(t, oribi.Options{})
	for n, there := range []string{``, `; there is "0"`, `; there is "0", "1"`, 5: `; there is "0", "1", "2", "3", "4"`,
		7: `; there is "0", "1", "2", "3", "4", …`} {
		if n > 0 {
			must.Get(db.CreateBucket(strconv.Itoa(n - 1)))(t)
		}
		if there == "" && n > 0 {
			continue
		}
		_, err := db.Bucket("none")
		wantError(t, "a missing bucket", err, kv.ErrBucketNotFound)
		equal(t, "its text", err.Error(), `kv: bucket "none": no such bucket`+there)
	}
}

// Deletes of ranges and prefixes, and counts, agree with a map.
func TestRangesAreDeletedAsInAMap(t *testing.T) {
	rng := seedtest.Rand(t)
	key := func() []byte {
		k := make([]byte, rng.IntN(4))
		for i := range k {
			k[i] = "ab\xff"[rng.IntN(3)]
		}
		return k
	}
	for _, ttl := range []bool{false, true} {
		db := openMem(t, oribi.Options{})
		b := bucket(t, db, "b")
		if ttl { // keys of the bucket may expire
			must.Get(b.PutTTL(ctx, []byte("gone"), nil, time.Microsecond))(t)
		}
		model := map[string]bool{}
		for range 400 {
			deleted := func(res oribi.BulkResult, err error, in func(k string) bool) {
				must.Do(t, err)
				n := len(model)
				maps.DeleteFunc(model, func(k string, _ bool) bool { return in(k) })
				equal(t, "keys deleted", res.Rows, n-len(model))
			}
			switch rng.IntN(30) {
			case 0:
				from, to := key(), key()
				res, err := b.DeleteRange(ctx, from, to, oribi.NoSync)
				deleted(res, err, func(k string) bool { return k >= string(from) && k < string(to) })
			case 1:
				from := key()
				res, err := b.DeleteRange(ctx, from, nil, oribi.NoSync)
				deleted(res, err, func(k string) bool { return k >= string(from) })
			case 2:
				prefix := key()
				res, err := b.DeletePrefix(ctx, prefix, oribi.NoSync)
				deleted(res, err, func(k string) bool { return strings.HasPrefix(k, string(prefix)) })
			case 3:
				must.Do(t, b.Table().Flush(ctx))
			default:
				k := key()
				put(t, b, string(k), "v")
				model[string(k)] = true
			}
			var got []string
			for k := range must.All(t, b.Keys(ctx)) {
				got = append(got, string(k))
			}
			equal(t, "keys", fmt.Sprintf("%q", got), fmt.Sprintf("%q", slices.Sorted(maps.Keys(model))))
			equal(t, "count", must.Get(b.Count(ctx))(t), len(model))
		}
	}
}

func TestRangesAreDeletedInTransactions(t *testing.T) {
	db := openMem(t, oribi.Options{})
	b := bucket(t, db, "b")
	put(t, b, "a", "1", "b", "2", "c", "3")
	must.Do(t, db.Update(ctx, func(tx *kv.Tx) error {
		in := tx.Bucket("b")
		must.Do(t, in.DeleteRange([]byte("b"), nil))
		must.Do(t, in.Put([]byte("d"), []byte("4")))
		equal(t, "pairs in the transaction", texts(t, in.Scan()), "[a=1 d=4]")
		return nil
	}))
	equal(t, "pairs", texts(t, b.Scan(ctx)), "[a=1 d=4]")
	must.Do(t, db.View(ctx, func(tx *kv.Tx) error {
		wantError(t, "in a view", tx.Bucket("b").DeleteRange(nil, nil), kv.ErrTxNotWritable)
		return nil
	}))
}

func TestManyBucketsAreMadeAndDeletedTogether(t *testing.T) {
	db := openMem(t, oribi.Options{})
	made := must.Get(db.CreateBuckets([]string{"c", "a", "b"}))(t)
	equal(t, "buckets", made[0].Name()+made[1].Name()+made[2].Name(), "cab")
	wantError(t, "an existing one", must.Err(db.CreateBuckets([]string{"d", "a"})), kv.ErrBucketExists)
	wantError(t, "one twice", must.Err(db.CreateBuckets([]string{"d", "d"})), kv.ErrBucketExists)
	wantError(t, "none of all", must.Err(db.Bucket("d")), kv.ErrBucketNotFound)
	put(t, made[0], "k", "v")
	must.Do(t, made[0].Rename(ctx, "e"))
	equal(t, "a renamed bucket", texts(t, must.Get(db.Bucket("e"))(t).Scan(ctx)), "[k=v]")
	wantError(t, "the name of another", made[0].Rename(ctx, "a"), kv.ErrBucketExists)
	wantError(t, "one that is not there", db.DeleteBuckets("a", "c"), kv.ErrBucketNotFound)
	equal(t, "buckets", len(db.Buckets()), 3)
	must.Do(t, db.DeleteBuckets("a", "b"))
	equal(t, "buckets", len(db.Buckets()), 1)
}
