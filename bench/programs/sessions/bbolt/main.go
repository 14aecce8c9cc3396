// Command bbolt is examples/sessions with bbolt.
package main

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"log"
	"sync"
	"sync/atomic"
	"time"

	bolt "go.etcd.io/bbolt"
)

// Session is a value in the bucket of sessions: the time, and the name.
type Session struct {
	User    string
	Expires time.Time
}

const lifetime = 30 * time.Minute

func (s *Session) value() []byte {
	return append(binary.BigEndian.AppendUint64(nil, uint64(s.Expires.UnixMicro())), s.User...)
}

// Buckets.
var (
	byToken = []byte("sessions")
	byUser  = []byte("by_user") // name, 0, and token
)

func entry(user string, token []byte) []byte { return append(append([]byte(user), 0), token...) }

var errNone = errors.New("no session")

// Sessions is safe for concurrent use.
type Sessions struct {
	db  *bolt.DB
	now func() time.Time
}

// Begin starts a session and returns its token. When it returns, the session survives a crash.
func (s *Sessions) Begin(user string) (token [16]byte, err error) {
	rand.Read(token[:])
	session := Session{user, s.now().Add(lifetime)}
	err = s.db.Batch(func(tx *bolt.Tx) error { // many servers share a transaction
		return errors.Join(tx.Bucket(byToken).Put(token[:], session.value()),
			tx.Bucket(byUser).Put(entry(user, token[:]), nil))
	})
	return token, err
}

func (s *Sessions) find(tx *bolt.Tx, token []byte) (Session, error) {
	value := tx.Bucket(byToken).Get(token)
	if value == nil {
		return Session{}, errNone
	}
	expires := time.UnixMicro(int64(binary.BigEndian.Uint64(value)))
	if !s.now().Before(expires) {
		return Session{}, errNone
	}
	return Session{string(value[8:]), expires}, nil
}

// Find returns the session of a token. Errors: errNone, also if it has expired.
func (s *Sessions) Find(token [16]byte) (session Session, err error) {
	err = s.db.View(func(tx *bolt.Tx) error {
		session, err = s.find(tx, token[:])
		return err
	})
	return session, err
}

// Renew makes a session expire later, unless it has expired. Errors: as for Find.
func (s *Sessions) Renew(token [16]byte) error {
	return s.db.Batch(func(tx *bolt.Tx) error {
		session, err := s.find(tx, token[:])
		if err != nil {
			return err
		}
		session.Expires = s.now().Add(lifetime)
		return tx.Bucket(byToken).Put(token[:], session.value())
	})
}

// EndAll ends all sessions of a user.
func (s *Sessions) EndAll(user string) error {
	return s.db.Batch(func(tx *bolt.Tx) error {
		prefix, c := entry(user, nil), tx.Bucket(byUser).Cursor()
		for key, _ := c.Seek(prefix); bytes.HasPrefix(key, prefix); key, _ = c.Next() {
			if err := errors.Join(tx.Bucket(byToken).Delete(key[len(prefix):]), c.Delete()); err != nil {
				return err
			}
		}
		return nil
	})
}

// Purge deletes the sessions that have expired. A program calls it from time to time.
func (s *Sessions) Purge() error {
	return s.db.Update(func(tx *bolt.Tx) error {
		c := tx.Bucket(byToken).Cursor()
		for token, value := c.First(); token != nil; token, value = c.Next() {
			if _, err := s.find(tx, token); errors.Is(err, errNone) {
				if err := errors.Join(tx.Bucket(byUser).Delete(entry(string(value[8:]), token)), c.Delete()); err != nil {
					return err
				}
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

// main plays a morning of 16 servers. It moves the clock, so that sessions expire without waiting.
func main() {
	n := flag.Int("n", 3, "users, of whom a third stays, a third logs out, and a third goes away")
	if flag.Parse(); flag.NArg() != 1 {
		log.Fatal("usage: bbolt [-n N] FILE")
	}
	clock := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	now := func() time.Time { return clock }
	db := must(bolt.Open(flag.Arg(0), 0o600, nil))
	defer db.Close()
	db.MaxBatchSize, db.MaxBatchDelay = 16, time.Millisecond // the servers
	must(0, db.Update(func(tx *bolt.Tx) error {
		_, err := tx.CreateBucket(byToken)
		_, userErr := tx.CreateBucket(byUser)
		return errors.Join(err, userErr)
	}))
	s, tokens := &Sessions{db, now}, make([][16]byte, *n)
	each := func(what string, from, step int, serve func(user int) error) {
		var servers sync.WaitGroup
		var served atomic.Int32
		for server := range 16 {
			servers.Go(func() {
				for user := from + server*step; user < *n; user += 16 * step {
					if err := serve(user); err == nil {
						served.Add(1)
					} else if !errors.Is(err, errNone) {
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
			_, err = s.Find(tokens[user])
		}
		return err
	}
	renew := func(user int) error { return s.Renew(tokens[user]) }
	each("begin a session", 0, 1, func(user int) (err error) {
		tokens[user], err = s.Begin(fmt.Sprint("user ", user))
		return err
	})
	each("have a session", 0, 1, find)
	clock = clock.Add(20 * time.Minute)
	each("renew it", 0, 3, renew)
	each("log out", 1, 3, func(user int) error { return s.EndAll(fmt.Sprint("user ", user)) })
	clock = clock.Add(15 * time.Minute)
	each("have a session", 0, 1, find)
	each("renew it, too late", 2, 3, renew)
	must(0, s.Purge())
}
