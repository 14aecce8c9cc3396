// Command badger is examples/limiter with Badger.
package main

import (
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"log"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dgraph-io/badger/v4"
)

const most = 10 // requests in a minute

// key returns the key of a counter: the minute, then the client.
func key(minute time.Time, client string) []byte {
	return append(binary.BigEndian.AppendUint64(nil, uint64(minute.Unix())), client...)
}

// Limiter is safe for concurrent use.
type Limiter struct {
	db  *badger.DB
	now func() time.Time
}

// Allow counts a request and reports whether the client may make it. A merge operator would add without
// conflicts, but does not return what each caller's addition makes.
func (l *Limiter) Allow(client string) (bool, error) {
	var requests uint32
	counter := key(l.now().Truncate(time.Minute), client)
	add := func(tx *badger.Txn) error {
		requests = 1
		item, err := tx.Get(counter)
		if err == nil {
			err = item.Value(func(value []byte) error {
				requests += binary.BigEndian.Uint32(value)
				return nil
			})
		} else if errors.Is(err, badger.ErrKeyNotFound) {
			err = nil
		}
		if err != nil {
			return err
		}
		value := binary.BigEndian.AppendUint32(nil, requests)
		return tx.SetEntry(badger.NewEntry(counter, value).WithTTL(2 * time.Minute))
	}
	for {
		if err := l.db.Update(add); !errors.Is(err, badger.ErrConflict) {
			return requests <= most, err
		}
	}
}

// Count returns the number of counters that have not expired. Badger drops others by the machine's clock.
func (l *Limiter) Count() (n int, err error) {
	err = l.db.View(func(tx *badger.Txn) error {
		it := tx.NewIterator(badger.IteratorOptions{})
		defer it.Close()
		for it.Seek(key(l.now().Truncate(time.Minute).Add(-time.Minute), "")); it.Valid(); it.Next() {
			n++
		}
		return nil
	})
	return n, err
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
		log.Fatal("usage: badger [-n N] DIR")
	}
	clock := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	now := func() time.Time { return clock }
	// A power failure may forget some requests.
	db := must(badger.Open(badger.DefaultOptions(flag.Arg(0)).WithLogger(nil)))
	defer db.Close()
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
	}
}
