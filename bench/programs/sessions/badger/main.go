// Command badger is examples/sessions with Badger.
package main

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"log"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dgraph-io/badger/v4"
)

// Session is a value by token: the time, and the name.
type Session struct {
	User    string
	Expires time.Time
}

const lifetime = 30 * time.Minute

func (s *Session) value() []byte {
	return append(binary.BigEndian.AppendUint64(nil, uint64(s.Expires.UnixMicro())), s.User...)
}

// Prefixes of keys.
const (
	byToken = "sessions/"
	byUser  = "by_user/" // name, 0, and token
)

func tokenKey(token []byte) []byte { return append([]byte(byToken), token...) }

func entry(user string, token []byte) []byte { return append([]byte(byUser+user+"\x00"), token...) }

// Sessions is safe for concurrent use.
type Sessions struct {
	db  *badger.DB
	now func() time.Time
}

// update runs a transaction, again if it has read what another one changed.
func (s *Sessions) update(f func(tx *badger.Txn) error) error {
	for {
		if err := s.db.Update(f); !errors.Is(err, badger.ErrConflict) {
			return err
		}
	}
}

// set writes a session and its entry. Badger drops them by the machine's clock; find uses the program's.
func set(tx *badger.Txn, token []byte, session Session) error {
	return errors.Join(tx.SetEntry(badger.NewEntry(tokenKey(token), session.value()).WithTTL(lifetime)),
		tx.SetEntry(badger.NewEntry(entry(session.User, token), nil).WithTTL(lifetime)))
}

// Begin starts a session and returns its token. When it returns, the session survives a crash.
func (s *Sessions) Begin(user string) (token [16]byte, err error) {
	rand.Read(token[:])
	session := Session{user, s.now().Add(lifetime)}
	err = s.update(func(tx *badger.Txn) error { return set(tx, token[:], session) })
	return token, err
}

func (s *Sessions) find(tx *badger.Txn, token []byte) (session Session, err error) {
	item, err := tx.Get(tokenKey(token))
	if err != nil {
		return session, err
	}
	err = item.Value(func(value []byte) error {
		session = Session{string(value[8:]), time.UnixMicro(int64(binary.BigEndian.Uint64(value)))}
		if !s.now().Before(session.Expires) {
			return badger.ErrKeyNotFound
		}
		return nil
	})
	return session, err
}

// Find returns the session of a token. Errors: badger.ErrKeyNotFound, also if it has expired.
func (s *Sessions) Find(token [16]byte) (session Session, err error) {
	err = s.db.View(func(tx *badger.Txn) error {
		session, err = s.find(tx, token[:])
		return err
	})
	return session, err
}

// Renew makes a session expire later, unless it has expired. Errors: as for Find.
func (s *Sessions) Renew(token [16]byte) error {
	return s.update(func(tx *badger.Txn) error {
		session, err := s.find(tx, token[:])
		if err != nil {
			return err
		}
		session.Expires = s.now().Add(lifetime)
		return set(tx, token[:], session)
	})
}

// EndAll ends all sessions of a user.
func (s *Sessions) EndAll(user string) error {
	return s.update(func(tx *badger.Txn) error {
		prefix := entry(user, nil)
		it := tx.NewIterator(badger.IteratorOptions{Prefix: prefix})
		defer it.Close()
		for it.Rewind(); it.Valid(); it.Next() {
			key := it.Item().KeyCopy(nil)
			if err := errors.Join(tx.Delete(tokenKey(key[len(prefix):])), tx.Delete(key)); err != nil {
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

// main plays a morning of 16 servers. It moves the clock, so that sessions expire without waiting.
func main() {
	n := flag.Int("n", 3, "users, of whom a third stays, a third logs out, and a third goes away")
	if flag.Parse(); flag.NArg() != 1 {
		log.Fatal("usage: badger [-n N] DIR")
	}
	clock := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	now := func() time.Time { return clock }
	db := must(badger.Open(badger.DefaultOptions(flag.Arg(0)).WithSyncWrites(true).WithLogger(nil)))
	defer db.Close()
	s, tokens := &Sessions{db, now}, make([][16]byte, *n)
	each := func(what string, from, step int, serve func(user int) error) {
		var servers sync.WaitGroup
		var served atomic.Int32
		for server := range 16 {
			servers.Go(func() {
				for user := from + server*step; user < *n; user += 16 * step {
					if err := serve(user); err == nil {
						served.Add(1)
					} else if !errors.Is(err, badger.ErrKeyNotFound) {
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
}
