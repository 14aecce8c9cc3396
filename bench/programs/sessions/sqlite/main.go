// Command sqlite is examples/sessions with SQLite.
package main

import (
	"crypto/rand"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"log"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"
)

const tables = `
CREATE TABLE sessions (token BLOB PRIMARY KEY, user TEXT NOT NULL, expires INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX by_user ON sessions (user);
CREATE INDEX by_expires ON sessions (expires);`

// Session is a row of the table without its key.
type Session struct {
	User    string
	Expires time.Time
}

const lifetime = 30 * time.Minute

// Sessions is safe for concurrent use.
type Sessions struct {
	begin, find, renew, endAll, purge *sql.Stmt
	now                               func() time.Time
}

// Begin starts a session and returns its token. When it returns, the session survives a crash.
func (s *Sessions) Begin(user string) (token [16]byte, err error) {
	rand.Read(token[:])
	_, err = s.begin.Exec(token[:], user, s.now().Add(lifetime).UnixMicro())
	return token, err
}

// Find returns the session of a token. Errors: sql.ErrNoRows, also if it has expired.
func (s *Sessions) Find(token [16]byte) (session Session, err error) {
	var expires int64
	err = s.find.QueryRow(token[:], s.now().UnixMicro()).Scan(&session.User, &expires)
	session.Expires = time.UnixMicro(expires)
	return session, err
}

// Renew makes a session expire later, unless it has expired. Errors: as for Find.
func (s *Sessions) Renew(token [16]byte) error {
	res, err := s.renew.Exec(s.now().Add(lifetime).UnixMicro(), token[:], s.now().UnixMicro())
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); n == 1 || err != nil {
		return err
	}
	return sql.ErrNoRows
}

// EndAll ends all sessions of a user.
func (s *Sessions) EndAll(user string) error {
	_, err := s.endAll.Exec(user)
	return err
}

// Purge deletes the sessions that have expired. A program calls it from time to time.
func (s *Sessions) Purge() error {
	_, err := s.purge.Exec(s.now().UnixMicro())
	return err
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
		log.Fatal("usage: sqlite [-n N] FILE")
	}
	clock := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	now := func() time.Time { return clock }
	source := "file:" + flag.Arg(0) + "?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)"
	reads, writes := must(sql.Open("sqlite", source)), must(sql.Open("sqlite", source))
	defer reads.Close()
	defer writes.Close()
	reads.SetMaxOpenConns(runtime.NumCPU())
	reads.SetMaxIdleConns(runtime.NumCPU())
	writes.SetMaxOpenConns(1) // SQLite has one writer at a time
	must(writes.Exec(tables))
	s, tokens := &Sessions{
		begin:  must(writes.Prepare("INSERT INTO sessions VALUES (?, ?, ?)")),
		find:   must(reads.Prepare("SELECT user, expires FROM sessions WHERE token = ? AND expires > ?")),
		renew:  must(writes.Prepare("UPDATE sessions SET expires = ? WHERE token = ? AND expires > ?")),
		endAll: must(writes.Prepare("DELETE FROM sessions WHERE user = ?")),
		purge:  must(writes.Prepare("DELETE FROM sessions WHERE expires <= ?")),
		now:    now,
	}, make([][16]byte, *n)
	each := func(what string, from, step int, serve func(user int) error) {
		var servers sync.WaitGroup
		var served atomic.Int32
		for server := range 16 {
			servers.Go(func() {
				for user := from + server*step; user < *n; user += 16 * step {
					if err := serve(user); err == nil {
						served.Add(1)
					} else if !errors.Is(err, sql.ErrNoRows) {
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
