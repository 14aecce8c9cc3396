package kv_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/kv"
	"github.com/oribi-db/oribi/vfs"
)

// openExample opens a store in memory with a bucket of fruit.
func openExample() (*kv.DB, *kv.Bucket) {
	db, err := kv.Open("/fruit", &oribi.Options{FS: vfs.NewMem()})
	if err != nil {
		log.Fatal(err)
	}
	fruit, err := db.CreateBucketIfNotExists("fruit")
	if err != nil {
		log.Fatal(err)
	}
	for _, name := range []string{"apple", "apricot", "banana", "cherry"} {
		if _, err := fruit.Put(context.Background(), []byte(name), []byte("fresh")); err != nil {
			log.Fatal(err)
		}
	}
	return db, fruit
}

func Example() {
	ctx := context.Background()
	db, err := kv.Open("/greetings", &oribi.Options{FS: vfs.NewMem()})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	greetings, err := db.CreateBucketIfNotExists("greetings")
	if err != nil {
		log.Fatal(err)
	}
	before, err := greetings.Put(ctx, []byte("en"), []byte("hello"))
	if err == nil {
		_, err = greetings.Put(ctx, []byte("en"), []byte("good morning"))
	}
	if err != nil {
		log.Fatal(err)
	}
	now, err := greetings.Get(ctx, []byte("en"))
	fmt.Println(string(now), err)
	earlier, err := greetings.Get(ctx, []byte("en"), oribi.AsOf(before))
	fmt.Println(string(earlier), err)
	_, err = greetings.Get(ctx, []byte("fr"))
	fmt.Println(errors.Is(err, kv.ErrNotFound))
	// Output:
	// good morning <nil>
	// hello <nil>
	// true
}

// Scans take the options of scans of tables.
func ExampleBucket_Scan() {
	db, fruit := openExample()
	defer db.Close()
	ctx := context.Background()
	for p, err := range fruit.Scan(ctx, oribi.Prefix("ap")) {
		fmt.Println(string(p.Key), string(p.Value), err)
	}
	for key, err := range fruit.Keys(ctx, oribi.To("cherry"), oribi.Desc(), oribi.Limit(2)) {
		fmt.Println(string(key), err)
	}
	// Output:
	// apple fresh <nil>
	// apricot fresh <nil>
	// banana <nil>
	// apricot <nil>
}

// Update moves a value. No reader sees the value under both keys, or under none, and if another
// writer changes one of the keys meanwhile, the function runs again.
func ExampleDB_Update() {
	db, fruit := openExample()
	defer db.Close()
	ctx := context.Background()
	move := func(from, to string) error {
		return db.Update(ctx, func(tx *kv.Tx) error {
			b := tx.Bucket("fruit")
			value, err := b.Get([]byte(from))
			if err != nil {
				return err
			}
			return errors.Join(b.Delete([]byte(from)), b.Put([]byte(to), value))
		})
	}
	fmt.Println(move("cherry", "plum"))
	fmt.Println(errors.Is(move("cherry", "plum"), kv.ErrNotFound))
	for key, err := range fruit.Keys(ctx, oribi.From("banana")) {
		fmt.Println(string(key), err)
	}
	// Output:
	// <nil>
	// true
	// banana <nil>
	// plum <nil>
}

func ExampleDB_NewBatch() {
	db, fruit := openExample()
	defer db.Close()
	ctx := context.Background()
	b := db.NewBatch()
	b.Delete(fruit, []byte("apple"))
	b.Put(fruit, []byte("grape"), []byte("dried"))
	ts, err := b.Commit(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, key := range []string{"apple", "grape"} {
		before, _ := fruit.Has(ctx, []byte(key), oribi.AsOf(ts-1))
		after, _ := fruit.Has(ctx, []byte(key), oribi.AsOf(ts))
		fmt.Println(key, before, after)
	}
	// Output:
	// apple true false
	// grape false true
}

func ExampleBucket_History() {
	db, fruit := openExample()
	defer db.Close()
	ctx := context.Background()
	_, err := fruit.Put(ctx, []byte("apple"), []byte("dried"))
	if err == nil {
		_, err = fruit.Delete(ctx, []byte("apple"))
	}
	if err != nil {
		log.Fatal(err)
	}
	for v, err := range fruit.History(ctx, []byte("apple")) {
		fmt.Println(v.Deleted, string(v.Value), err)
	}
	// Output:
	// true  <nil>
	// false dried <nil>
	// false fresh <nil>
}

// Load takes any number of keys, in order.
func ExampleBucket_Load() {
	db, _ := openExample()
	defer db.Close()
	ctx := context.Background()
	squares, err := db.CreateBucket("squares")
	if err != nil {
		log.Fatal(err)
	}
	_, n, err := squares.Load(ctx, func(yield func(kv.Pair, error) bool) {
		for i := range 10_000 {
			if !yield(kv.Pair{Key: fmt.Appendf(nil, "%05d", i), Value: fmt.Append(nil, i*i)}, nil) {
				return
			}
		}
	})
	fmt.Println(n, err)
	value, err := squares.Get(ctx, []byte("00012"))
	fmt.Println(string(value), err)
	// Output:
	// 10000 <nil>
	// 144 <nil>
}

// A queue has keys that ascend. NextSequence gives each job its key, so that goroutines that push do not
// conflict. The first job is taken in a transaction: two workers never take the same one, and no job is
// lost. A queue that lives for long stays as fast, since scans pass over the deleted keys; a short history
// makes them go away soon.
func Example_queue() {
	ctx := context.Background()
	db, err := kv.Open("/queue", &oribi.Options{FS: vfs.NewMem()})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	jobs, err := db.CreateBucketIfNotExists("jobs", oribi.History(time.Minute))
	if err != nil {
		log.Fatal(err)
	}
	push := func(job string) error {
		n, err := jobs.NextSequence(ctx)
		if err == nil {
			_, err = jobs.Put(ctx, binary.BigEndian.AppendUint64(nil, n), []byte(job)) // big-endian numbers sort as bytes
		}
		return err
	}
	pop := func() (job string, err error) {
		err = db.Update(ctx, func(tx *kv.Tx) error {
			jobs := tx.Bucket("jobs")
			for p, err := range jobs.Scan(oribi.Limit(1)) {
				if err != nil {
					return err
				}
				job = string(p.Value)
				return jobs.Delete(p.Key)
			}
			return kv.ErrNotFound // the queue is empty
		})
		return job, err
	}
	fmt.Println(push("resize a.png"), push("send mail"))
	for range 3 {
		job, err := pop()
		fmt.Printf("%q %t\n", job, errors.Is(err, kv.ErrNotFound))
	}
	// Output:
	// <nil> <nil>
	// "resize a.png" false
	// "send mail" false
	// "" true
}

// In opens buckets next to tables. A transaction may change both.
func ExampleIn() {
	ctx := context.Background()
	store, err := oribi.Open("/mail", &oribi.Options{FS: vfs.NewMem()})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	type mail struct {
		ID      int64 `oribi:"id,key"`
		Subject string
	}
	mails, err := oribi.OpenTable[mail](store, "mails")
	if err != nil {
		log.Fatal(err)
	}
	db := kv.In(store)
	bodies, err := db.CreateBucketIfNotExists("bodies")
	if err != nil {
		log.Fatal(err)
	}
	err = db.Update(ctx, func(tx *kv.Tx) error {
		if err := mails.In(tx.Tables()).Insert(mail{1, "hello"}); err != nil {
			return err
		}
		return tx.Bucket("bodies").Put([]byte("1"), []byte("How are you?"))
	})
	if err != nil {
		log.Fatal(err)
	}
	row, err := mails.Get(ctx, 1)
	fmt.Println(row, err)
	body, err := bodies.Get(ctx, []byte("1"))
	fmt.Println(string(body), err)
	// Output:
	// {1 hello} <nil>
	// How are you? <nil>
}
