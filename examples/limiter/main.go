// Command limiter is a rate limiter: each client may make ten requests in a minute.
//
// A counter is a row for a client and a minute. Requests at the same time add to it without waiting for, or
// conflicting with, one another. Counters expire by themselves.
//
//	go run ./examples/limiter limits.oribi
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
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
	if len(os.Args) != 2 {
		log.Fatal("usage: limiter DIR")
	}
	if err := run(context.Background(), os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

// run plays three minutes of 16 goroutines that serve two clients. It moves the store's clock, so that
// counters expire without waiting.
func run(ctx context.Context, dir string) error {
	clock := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	now := func() time.Time { return clock }
	store, err := oribi.Open(dir, &oribi.Options{History: time.Minute, Clock: mvcc.NewHybridClock(now)})
	if err != nil {
		return err
	}
	defer store.Close()
	counters, err := oribi.OpenTable[Counter](store, "counters")
	if err != nil {
		return err
	}
	l := &Limiter{store, counters, now}
	for range 3 {
		var ada, bob atomic.Int32
		var servers sync.WaitGroup
		var errs [16]error
		for i := range errs {
			servers.Go(func() {
				client, allowed := "ada", &ada
				if i%4 == 0 {
					client, allowed = "bob", &bob
				}
				for range 2 { // 24 requests of ada, 8 of bob
					ok, err := l.Allow(ctx, client)
					if errs[i] = errors.Join(errs[i], err); ok {
						allowed.Add(1)
					}
				}
			})
		}
		servers.Wait()
		live, err := counters.Table.Count(ctx)
		if err := errors.Join(errors.Join(errs[:]...), err); err != nil {
			return err
		}
		fmt.Printf("%s  ada: %d of 24, bob: %d of 8, %d counters\n", clock.Format("15:04"), ada.Load(), bob.Load(), live)
		clock = clock.Add(time.Minute)
	}
	return nil
}
