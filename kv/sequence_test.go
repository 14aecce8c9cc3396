package kv_test

import (
	"sync"
	"testing"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/kv"
	"github.com/oribi-db/oribi/salvage"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
)

func next(t *testing.T, b *kv.Bucket) uint64 {
	t.Helper()
	return must.Get(b.NextSequence(ctx))(t)
}

// Numbers that goroutines, transactions, and several DBs of a store get differ, and are the first ones.
func TestSequencesDiffer(t *testing.T) {
	db := openMem(t, oribi.Options{})
	bucket(t, db, "other")
	a, b := bucket(t, db, "a"), bucket(t, db, "b")
	again := must.Get(kv.In(db.Store()).Bucket("a"))(t)
	for want := uint64(1); want <= 3; want++ {
		must.Equal(t, next(t, a), want)
	}
	must.Equal(t, next(t, b), 1, "another bucket")
	var mu sync.Mutex
	var all sync.WaitGroup
	seen := map[uint64]bool{1: true, 2: true, 3: true}
	options := []oribi.UpdateOption{oribi.NoSync, oribi.Exclusive()}
	for i := range 8 {
		all.Go(func() {
			last := uint64(0)
			for range 500 {
				var n uint64
				var err error
				switch i % 3 {
				case 0:
					n, err = a.NextSequence(ctx)
				case 1:
					n, err = again.NextSequence(ctx)
				default:
					err = db.Update(ctx, func(tx *kv.Tx) (err error) {
						n, err = tx.Bucket("a").NextSequence()
						return err
					}, options[i%2])
				}
				mu.Lock()
				if err != nil || seen[n] || n <= last {
					t.Errorf("%d after %d, %v", n, last, err)
				}
				seen[n], last = true, n
				mu.Unlock()
			}
		})
	}
	all.Wait()
	must.Equal(t, len(seen), 4003)
	must.Equal(t, len(db.Buckets()), 3, "buckets")
}

// A number that was returned is not returned again after a power failure at any moment, or after Close; few
// are skipped.
func TestSequencesSurviveCrashes(t *testing.T) {
	mem := vfs.NewMem()
	db := must.Get(kv.Open("/kv", &oribi.Options{FS: mem, Manual: true}))(t)
	defer func() { db.Close() }()
	b := bucket(t, db, "a")
	for i := range uint64(40) {
		n := next(t, b)
		if n > 3*i+1 {
			t.Fatalf("number %d is %d", i, n)
		}
		if i%10 == 9 {
			must.Do(t, db.Close())
			db = must.Get(kv.Open("/kv", &oribi.Options{FS: mem, Manual: true}))(t)
			b = must.Get(db.Bucket("a"))(t)
		}
		crashed := must.Get(kv.Open("/kv", &oribi.Options{FS: mem.Crash(), Manual: true}))(t)
		if after := next(t, must.Get(crashed.Bucket("a"))(t)); after <= n {
			t.Fatalf("%d after %d", after, n)
		}
		must.Do(t, crashed.Close())
	}
}

// A sequence follows its bucket, and ends with it.
func TestSequencesOfRenamedAndDeletedBuckets(t *testing.T) {
	db := openMem(t, oribi.Options{})
	a, b := bucket(t, db, "a"), bucket(t, db, "b")
	must.Equal(t, []uint64{next(t, a), next(t, a), next(t, b)}, []uint64{1, 2, 1})
	must.Do(t, a.Rename(ctx, "c"))
	must.Do(t, b.Rename(ctx, "a"))
	other := kv.In(db.Store()) // has no leases
	if n := next(t, must.Get(other.Bucket("c"))(t)); n < 3 {
		t.Error("c:", n)
	}
	must.Equal(t, next(t, must.Get(other.Bucket("a"))(t)), 2)
	rows := func() int64 {
		return must.Get(must.Get(db.Store().Table("kv.sequences"))(t).Count(ctx))(t)
	}
	must.Equal(t, rows(), 2)
	must.Do(t, db.DeleteBucket("c"))
	must.Do(t, db.DeleteBuckets("a"))
	must.Equal(t, rows(), 0)
	must.Equal(t, next(t, bucket(t, db, "c")), 1, "a new bucket")

	// Without DeleteBucket the row stays, and the next bucket of the name goes on.
	must.Do(t, db.Store().DropTable("c"))
	if n := next(t, bucket(t, db, "c")); n < 2 {
		t.Error("a table of the same name:", n)
	}
}

// Sequences go on in a store that was salvaged.
func TestSequencesGoOnAfterSalvage(t *testing.T) {
	mem := vfs.NewMem()
	db := must.Get(kv.Open("/kv", &oribi.Options{FS: mem, Manual: true}))(t)
	b := bucket(t, db, "a")
	last := uint64(0)
	for range 10 {
		last = next(t, b)
	}
	must.Do(t, db.Close())
	must.Get(salvage.Run(ctx, "/kv", "/saved", &oribi.Options{FS: mem}, func(l salvage.Loss) { t.Error(l) }))(t)
	saved := must.Get(kv.Open("/saved", &oribi.Options{FS: mem, Manual: true}))(t)
	defer saved.Close()
	if n := next(t, must.Get(saved.Bucket("a"))(t)); n <= last {
		t.Errorf("%d after %d", n, last)
	}
}

func TestSequencesThatFail(t *testing.T) {
	mem := vfs.NewMem()
	db := openMem(t, oribi.Options{FS: mem})
	b := bucket(t, db, "a")
	s := must.Get(schema.New([]schema.Column{{Name: "k", Type: schema.Int64, Key: true}}))(t)
	must.Get(db.Store().CreateTable("kv.sequences", s))(t)
	_, err := b.NextSequence(ctx)
	must.Fail(t, err, kv.ErrNotBucket)
	must.Do(t, db.Store().DropTable("kv.sequences"))
	must.Equal(t, next(t, b), 1)

	must.Do(t, db.View(ctx, func(tx *kv.Tx) error {
		_, err := tx.Bucket("a").NextSequence()
		must.Fail(t, err, kv.ErrTxNotWritable)
		return nil
	}))
	must.Do(t, db.DeleteBucket("a"))
	_, err = b.NextSequence(ctx)
	must.Fail(t, err, kv.ErrBucketNotFound)
	bucket(t, db, "a")
	_, err = b.NextSequence(ctx)
	must.Fail(t, err, kv.ErrBucketNotFound, "there is another bucket of that name")

	must.Do(t, db.Close())
	readOnly := must.Get(kv.Open("/kv", &oribi.Options{FS: mem, ReadOnly: true}))(t)
	defer readOnly.Close()
	_, err = must.Get(readOnly.Bucket("a"))(t).NextSequence(ctx)
	must.Fail(t, err, oribi.ErrReadOnly)
}

// A batch sets values with a time, and the time of keys that exist.
func TestBatchesOfKeysThatExpire(t *testing.T) {
	db, now := clocked(t)
	a, b := bucket(t, db, "a"), bucket(t, db, "b")
	put(t, a, "touched", "1", "left", "1")
	batch := db.NewBatch()
	batch.PutExpires(b, []byte("k"), []byte("v"), now.Add(2*time.Minute+1999*time.Nanosecond))
	batch.Touch(a, []byte("touched"), time.Minute)
	must.Get(batch.Commit(ctx))(t)
	must.Equal(t, must.Get(b.ExpiresAt(ctx, []byte("k")))(t), now.Add(2*time.Minute+time.Microsecond))
	must.Equal(t, must.Get(a.ExpiresAt(ctx, []byte("touched")))(t), now.Add(time.Minute))
	must.Equal(t, string(must.Get(a.Get(ctx, []byte("touched")))(t)), "1")
	*now = now.Add(time.Minute)
	equal(t, "a", texts(t, a.Scan(ctx)), "[left=1]")
	for name, fill := range map[string]func(){
		"zero time": func() { batch.PutExpires(b, []byte("x"), nil, time.Time{}) },
		"short ttl": func() { batch.Touch(b, []byte("k"), 999) },
		"no key":    func() { batch.Touch(a, []byte("touched"), time.Minute) },
	} {
		batch.Reset()
		batch.Put(a, []byte("new"), nil)
		fill()
		err := must.Err(batch.Commit(ctx))
		must.Refuse(t, err, name)
		if name == "no key" {
			must.Fail(t, err, kv.ErrNotFound)
		}
	}
	equal(t, "a", texts(t, a.Scan(ctx)), "[left=1]")
}
