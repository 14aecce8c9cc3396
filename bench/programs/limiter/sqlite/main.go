// Command sqlite is examples/limiter with SQLite.
package main

import (
	"database/sql"
	"flag"
	"fmt"
	"log"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"
)

const most = 10 // requests in a minute

// Limiter is safe for concurrent use.
type Limiter struct {
	add, count, purge *sql.Stmt
	now               func() time.Time
}

// Allow counts a request and reports whether the client may make it.
func (l *Limiter) Allow(client string) (bool, error) {
	var requests int
	err := l.add.QueryRow(l.now().Truncate(time.Minute).Unix(), client).Scan(&requests)
	return requests <= most, err
}

// oldest returns the oldest minute with counters that have not expired.
func (l *Limiter) oldest() int64 { return l.now().Truncate(time.Minute).Add(-time.Minute).Unix() }

// Count returns the number of counters that have not expired.
func (l *Limiter) Count() (n int, err error) {
	err = l.count.QueryRow(l.oldest()).Scan(&n)
	return n, err
}

// Purge deletes the counters that have expired.
func (l *Limiter) Purge() error {
	_, err := l.purge.Exec(l.oldest())
	return err
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
		log.Fatal("usage: sqlite [-n N] FILE")
	}
	clock := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	now := func() time.Time { return clock }
	// A power failure may forget some requests.
	db := must(sql.Open("sqlite", "file:"+flag.Arg(0)+"?_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)"))
	defer db.Close()
	db.SetMaxOpenConns(1) // SQLite has one writer at a time
	must(db.Exec(`CREATE TABLE counters (minute INTEGER, client TEXT, requests INTEGER NOT NULL,
		PRIMARY KEY (minute, client)) WITHOUT ROWID`))
	run(&Limiter{
		add: must(db.Prepare(`INSERT INTO counters VALUES (?, ?, 1)
			ON CONFLICT DO UPDATE SET requests = requests + 1 RETURNING requests`)),
		count: must(db.Prepare("SELECT count(*) FROM counters WHERE minute >= ?")),
		purge: must(db.Prepare("DELETE FROM counters WHERE minute < ?")),
		now:   now,
	}, &clock, *pairs)
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
