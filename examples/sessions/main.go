// Command sessions is a store of web sessions that expire.
//
// Sessions expire by themselves: a row is absent from the time in its column on. An index finds a user's.
//
//	go run ./examples/sessions sessions.oribi
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"log"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/mvcc"
)

// Session is a row of the table.
type Session struct {
	Token   [16]byte  `oribi:"token,key"`
	User    string    `oribi:"user,index"`
	Expires time.Time `oribi:"expires,expires"`
}

const lifetime = 30 * time.Minute

// Sessions is safe for concurrent use.
type Sessions struct {
	rows *oribi.TableOf[Session]
	now  func() time.Time
}

// Begin starts a session and returns its token. When it returns, the session survives a crash.
func (s *Sessions) Begin(ctx context.Context, user string) (token [16]byte, err error) {
	rand.Read(token[:])
	_, err = s.rows.Insert(ctx, Session{token, user, s.now().Add(lifetime)})
	return token, err
}

// Find returns the session of a token. Errors: oribi.ErrNotFound, also if it has expired.
func (s *Sessions) Find(ctx context.Context, token [16]byte) (Session, error) {
	return s.rows.Get(ctx, token[:])
}

// Renew makes a session expire later. It does not bring back a session that has expired, or that another
// request ends at the same time. Errors: as for Find.
func (s *Sessions) Renew(ctx context.Context, token [16]byte) error {
	type renewal struct { // the column that changes, and the key
		Token   [16]byte
		Expires time.Time
	}
	_, err := oribi.Patch(ctx, s.rows.Table, renewal{token, s.now().Add(lifetime)})
	return err
}

// EndAll ends all sessions of a user.
func (s *Sessions) EndAll(ctx context.Context, user string) error {
	_, err := s.rows.Table.DeleteWhere(ctx, oribi.Where(oribi.Eq("user", user)))
	return err
}

// main plays a morning of 16 servers. It moves the store's clock, so that sessions expire without waiting.
func main() {
	n := flag.Int("n", 3, "users, of whom a third stays, a third logs out, and a third goes away")
	if flag.Parse(); flag.NArg() != 1 {
		log.Fatal("usage: sessions [-n N] DIR")
	}
	ctx, clock := context.Background(), time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	now := func() time.Time { return clock }
	store, err := oribi.Open(flag.Arg(0), &oribi.Options{History: time.Minute, Clock: mvcc.NewHybridClock(now)})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	rows, err := oribi.OpenTable[Session](store, "sessions")
	if err != nil {
		log.Fatal(err)
	}
	s, tokens := &Sessions{rows, now}, make([][16]byte, *n)
	each := func(what string, from, step int, serve func(user int) error) {
		var servers sync.WaitGroup
		var served atomic.Int32
		for server := range 16 {
			servers.Go(func() {
				for user := from + server*step; user < *n; user += 16 * step {
					if err := serve(user); err == nil {
						served.Add(1)
					} else if !errors.Is(err, oribi.ErrNotFound) {
						log.Fatal(err)
					}
				}
			})
		}
		servers.Wait()
		fmt.Printf("%s  %d %s\n", clock.Format("15:04"), served.Load(), what)
	}
	find := func(user int) (err error) {
		for range 10 { // requests
			_, err = s.Find(ctx, tokens[user])
		}
		return err
	}
	renew := func(user int) error { return s.Renew(ctx, tokens[user]) }
	each("begin a session", 0, 1, func(user int) (err error) {
		tokens[user], err = s.Begin(ctx, fmt.Sprint("user ", user))
		return err
	})
	each("have a session", 0, 1, find)
	clock = clock.Add(20 * time.Minute)
	each("renew it", 0, 3, renew)
	each("log out", 1, 3, func(user int) error { return s.EndAll(ctx, fmt.Sprint("user ", user)) })
	clock = clock.Add(15 * time.Minute)
	each("have a session", 0, 1, find)
	each("renew it, too late", 2, 3, renew)
}
