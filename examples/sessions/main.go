// Command sessions is a store of web sessions that expire.
//
// The rows are structs, and each request is one read or one small write. Sessions expire by themselves: a
// row is absent from the time in its column on. An index finds the sessions of a user.
//
//	go run ./examples/sessions sessions.oribi
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log"
	"os"
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

// Begin starts a session. When it returns, the session survives a crash.
func (s *Sessions) Begin(ctx context.Context, user string) (Session, error) {
	session := Session{User: user, Expires: s.now().Add(lifetime)}
	rand.Read(session.Token[:])
	_, err := s.rows.Insert(ctx, session)
	return session, err
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

// EndAll ends all sessions of a user and returns how many there were.
func (s *Sessions) EndAll(ctx context.Context, user string) (int64, error) {
	res, err := s.rows.Table.DeleteWhere(ctx, oribi.Where(oribi.Eq("user", user)))
	return res.Rows, err
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: sessions DIR")
	}
	if err := run(context.Background(), os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

// run plays a morning of three users. It moves the store's clock, so that sessions expire without waiting.
func run(ctx context.Context, dir string) error {
	clock := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	now := func() time.Time { return clock }
	// Sessions need no history: what was deleted may be dropped after a minute.
	store, err := oribi.Open(dir, &oribi.Options{History: time.Minute, Clock: mvcc.NewHybridClock(now)})
	if err != nil {
		return err
	}
	defer store.Close()
	rows, err := oribi.OpenTable[Session](store, "sessions")
	if err != nil {
		return err
	}
	sessions, tokens := &Sessions{rows, now}, map[string][16]byte{}
	users := []string{"ada", "bob", "cyd"}
	for _, user := range users {
		session, beginErr := sessions.Begin(ctx, user)
		tokens[user], err = session.Token, errors.Join(err, beginErr)
	}
	show := func() {
		for _, user := range users {
			session, err := sessions.Find(ctx, tokens[user])
			if err == nil {
				fmt.Printf("%s  %s: until %s\n", clock.Format("15:04"), user, session.Expires.Format("15:04"))
			} else {
				fmt.Printf("%s  %s: no session: %t\n", clock.Format("15:04"), user, errors.Is(err, oribi.ErrNotFound))
			}
		}
	}
	show()
	clock = clock.Add(20 * time.Minute)
	err = errors.Join(err, sessions.Renew(ctx, tokens["ada"]))
	ended, endErr := sessions.EndAll(ctx, "bob")
	fmt.Printf("%s  ada renews, bob logs out of %d session\n", clock.Format("15:04"), ended)
	clock = clock.Add(15 * time.Minute)
	show()
	late := sessions.Renew(ctx, tokens["cyd"])
	fmt.Printf("%s  cyd is too late: %t\n", clock.Format("15:04"), errors.Is(late, oribi.ErrNotFound))
	return errors.Join(err, endErr)
}
