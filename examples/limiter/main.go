// Command limiter is a rate limiter: each client may make ten requests in a minute.
//
// A counter is a row for a client and a minute. Requests at the same time add to it without waiting for, or
// conflicting with, one another. Counters expire by themselves.
//
//	go run ./examples/limiter limits.oribi
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/mvcc"
)

// Counter is a row of the table.
type Counter struct {
	Client   string    `oribi:"client,key"`
	Minute   time.Time `oribi:"minute,key"`
	Requests int       `oribi:"requests,int32,default=0"`
	Until    time.Time `oribi:"until,expires"`
}

const most = 10 // requests in a minute

// Limiter is safe for concurrent use.
type Limiter struct {
	store    *oribi.Store
	counters *oribi.TableOf[Counter]
	now      func() time.Time
}

// Allow counts a request and reports whether the client may make it.
func (l *Limiter) Allow(ctx context.Context, client string) (bool, error) {
	minute := l.now().Truncate(time.Minute)
	b := l.store.NewBatch()
	b.Upsert(l.counters.Table, oribi.Row{"client": client, "minute": minute, "requests": oribi.Add(1),
		"until": minute.Add(2 * time.Minute)})
	if _, err := b.Commit(ctx, oribi.NoSync); err != nil { // a power failure may forget some requests
		return false, err
	}
	return b.Results()[0].Value.(int32) <= most, nil
}

func main() {
	pairs := flag.Int("n", 1, "pairs of clients, one of which makes 24 requests in a minute, and one 8")
	if flag.Parse(); flag.NArg() != 1 {
		log.Fatal("usage: limiter [-n N] DIR")
	}
	run(context.Background(), flag.Arg(0), *pairs)
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}

// run plays three minutes of 16 goroutines that serve pairs of clients. It moves the store's clock, so
// that counters expire without waiting.
func run(ctx context.Context, dir string, pairs int) {
	clock := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	now := func() time.Time { return clock }
	store := must(oribi.Open(dir, &oribi.Options{History: time.Minute, Clock: mvcc.NewHybridClock(now)}))
	defer store.Close()
	l := &Limiter{store, must(oribi.OpenTable[Counter](store, "counters")), now}
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
					if must(l.Allow(ctx, client+strconv.Itoa(r/2))) {
						allowed.Add(1)
					}
				}
			})
		}
		servers.Wait()
		live := must(l.counters.Table.Count(ctx))
		fmt.Printf("%s  ada: %d of %d, bob: %d of %d, %d counters\n", clock.Format("15:04"),
			ada.Load(), 24*pairs, bob.Load(), 8*pairs, live)
		clock = clock.Add(time.Minute)
	}
}
