// Command bbolt is examples/limiter with bbolt.
package main

import (
	"bytes"
	"encoding/binary"
	"flag"
	"fmt"
	"log"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	bolt "go.etcd.io/bbolt"
)

const most = 10 // requests in a minute

var bucket = []byte("counters")

// key returns the key of a counter: the minute, then the client.
func key(minute time.Time, client string) []byte {
	return append(binary.BigEndian.AppendUint64(nil, uint64(minute.Unix())), client...)
}

// Limiter is safe for concurrent use.
type Limiter struct {
	db  *bolt.DB
	now func() time.Time
}

// Allow counts a request and reports whether the client may make it.
func (l *Limiter) Allow(client string) (bool, error) {
	var requests uint32
	counter := key(l.now().Truncate(time.Minute), client)
	err := l.db.Batch(func(tx *bolt.Tx) error { // the servers share a transaction
		b := tx.Bucket(bucket)
		requests = 1
		if value := b.Get(counter); value != nil {
			requests += binary.BigEndian.Uint32(value)
		}
		return b.Put(counter, binary.BigEndian.AppendUint32(nil, requests))
	})
	return requests <= most, err
}

// oldest returns the first key of a counter that has not expired.
func (l *Limiter) oldest() []byte { return key(l.now().Truncate(time.Minute).Add(-time.Minute), "") }

// Count returns the number of counters that have not expired.
func (l *Limiter) Count() (n int, err error) {
	err = l.db.View(func(tx *bolt.Tx) error {
		c := tx.Bucket(bucket).Cursor()
		for k, _ := c.Seek(l.oldest()); k != nil; k, _ = c.Next() {
			n++
		}
		return nil
	})
	return n, err
}

// Purge deletes the counters that have expired.
func (l *Limiter) Purge() error {
	return l.db.Update(func(tx *bolt.Tx) error {
		c := tx.Bucket(bucket).Cursor()
		for k, _ := c.First(); k != nil && bytes.Compare(k, l.oldest()) < 0; k, _ = c.Next() {
			if err := c.Delete(); err != nil {
				return err
			}
		}
		return nil
	})
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}

func main() {
	pairs := flag.Int("n", 1, "pairs of clients, one of which makes 24 requests in a minute, and one 8")
	if flag.Parse(); flag.NArg() != 1 {
		log.Fatal("usage: bbolt [-n N] FILE")
	}
	clock := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	now := func() time.Time { return clock }
	// A power failure may forget some requests, or break the file.
	db := must(bolt.Open(flag.Arg(0), 0o600, &bolt.Options{NoSync: true}))
	defer db.Close()
	db.MaxBatchSize, db.MaxBatchDelay = 16, time.Millisecond // the servers
	must(0, db.Update(func(tx *bolt.Tx) error {
		_, err := tx.CreateBucket(bucket)
		return err
	}))
	run(&Limiter{db, now}, &clock, *pairs)
}

// run plays three minutes of 16 goroutines that serve pairs of clients. It moves the clock, so that counters
// expire without waiting.
func run(l *Limiter, clock *time.Time, pairs int) {
	for range 3 {
		var ada, bob atomic.Int32
		var servers sync.WaitGroup
		for i := range 16 {
			servers.Go(func() {
				client, allowed := "ada", &ada
				if i%4 == 0 {
					client, allowed = "bob", &bob
				}
				for r := range 2 * pairs { // 24 of each ada, 8 of each bob
					if must(l.Allow(client + strconv.Itoa(r/2))) {
						allowed.Add(1)
					}
				}
			})
		}
		servers.Wait()
		live := must(l.Count())
		fmt.Printf("%s  ada: %d of %d, bob: %d of %d, %d counters\n", clock.Format("15:04"),
			ada.Load(), 24*pairs, bob.Load(), 8*pairs, live)
		*clock = clock.Add(time.Minute)
		must(0, l.Purge())
	}
}
