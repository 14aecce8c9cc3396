// Command sessions is a store of web sessions that expire.
//
// The rows are structs, each request is one read or one small write batch, and one call deletes all
// expired sessions. Oribi does not expire rows, so the program decides when to call it.
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
)

// Session is a row of the table. A session is valid before Expires.
type Session struct {
	Token   [16]byte `oribi:"token,key"`
	User    string
	Expires time.Time
}

// ErrNoSession is returned for a token that is unknown or has expired.
var ErrNoSession = errors.New("no such session")

const lifetime = 30 * time.Minute

// Sessions is safe for concurrent use.
type Sessions struct {
	store *oribi.Store
	rows  *oribi.TableOf[Session]
	now   func() time.Time
}

// OpenSessions opens the store in dir, or creates it.
func OpenSessions(dir string, now func() time.Time) (*Sessions, error) {
	// Sessions need no history: what was deleted may be dropped after a minute.
	store, err := oribi.Open(dir, &oribi.Options{History: time.Minute})
	if err != nil {
		return nil, err
	}
	rows, err := oribi.OpenTable[Session](store, "sessions")
	if err != nil {
		store.Close()
		return nil, err
	}
	return &Sessions{store: store, rows: rows, now: now}, nil
}

// Begin starts a session. When it returns, the session survives a crash.
func (s *Sessions) Begin(ctx context.Context, user string) (Session, error) {
	session := Session{User: user, Expires: s.expiry()}
	rand.Read(session.Token[:])
	_, err := s.rows.Put(ctx, session)
	return session, err
}

// expiry returns the time at which a session that is used now expires. A timestamp column has
// microseconds.
func (s *Sessions) expiry() time.Time { return s.now().Add(lifetime) }

// Find returns the session of a token.
func (s *Sessions) Find(ctx context.Context, token [16]byte) (Session, error) {
	session, err := s.rows.Get(ctx, token[:])
	if errors.Is(err, oribi.ErrNotFound) || err == nil && !session.Expires.After(s.now()) {
		return Session{}, ErrNoSession
	}
	return session, err
}

// Renew makes a session expire later. It does not bring back a session that has expired or that
// another request ends at the same time: the condition and the update are one step.
func (s *Sessions) Renew(ctx context.Context, token [16]byte) error {
	type renewal struct { // the columns that change, and the key
		Token   [16]byte
		Expires time.Time
	}
	b := s.store.NewBatch()
	s.rows.InBatch(b).If(Session{Token: token}, oribi.Gt("expires", s.now()))
	if err := oribi.PatchIn(b, s.rows.Table, renewal{token, s.expiry()}); err != nil {
		return err
	}
	_, err := b.Commit(ctx)
	if errors.Is(err, oribi.ErrConflict) {
		return ErrNoSession
	}
	return err
}

// EndAll ends all sessions of a user and returns how many there were.
func (s *Sessions) EndAll(ctx context.Context, user string) (int64, error) {
	res, err := s.rows.Table.DeleteWhere(ctx, oribi.Where(oribi.Eq("user", user)))
	return res.Rows, err
}

// Sweep deletes expired sessions, however many. A session that is renewed while Sweep runs stays.
func (s *Sessions) Sweep(ctx context.Context) (int64, error) {
	res, err := s.rows.Table.DeleteWhere(ctx, oribi.InPieces(),
		oribi.Where(oribi.Le("expires", s.now())))
	return res.Rows, err
}

// Close closes the store.
func (s *Sessions) Close() error { return s.store.Close() }

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: sessions DIR")
	}
	if err := run(context.Background(), os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

// run plays a morning of three users.
func run(ctx context.Context, dir string) error {
	clock := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	sessions, err := OpenSessions(dir, func() time.Time { return clock })
	if err != nil {
		return err
	}
	defer sessions.Close()

	tokens := map[string][16]byte{}
	for _, user := range []string{"ada", "bob", "cyd"} {
		session, err := sessions.Begin(ctx, user)
		if err != nil {
			return err
		}
		tokens[user] = session.Token
	}
	show := func() error {
		for _, user := range []string{"ada", "bob", "cyd"} {
			session, err := sessions.Find(ctx, tokens[user])
			switch {
			case errors.Is(err, ErrNoSession):
				fmt.Printf("%s  %s: no session\n", clock.Format("15:04"), user)
			case err != nil:
				return err
			default:
				fmt.Printf("%s  %s: until %s\n", clock.Format("15:04"), session.User, session.Expires.Format("15:04"))
			}
		}
		return nil
	}
	if err := show(); err != nil {
		return err
	}

	clock = clock.Add(20 * time.Minute)
	if err := sessions.Renew(ctx, tokens["ada"]); err != nil {
		return err
	}
	ended, err := sessions.EndAll(ctx, "bob")
	if err != nil {
		return err
	}
	fmt.Printf("%s  ada renews, bob logs out of %d session\n", clock.Format("15:04"), ended)

	clock = clock.Add(15 * time.Minute)
	if err := show(); err != nil {
		return err
	}
	if err := sessions.Renew(ctx, tokens["cyd"]); !errors.Is(err, ErrNoSession) {
		return fmt.Errorf("an expired session was renewed: %v", err)
	}
	swept, err := sessions.Sweep(ctx)
	if err != nil {
		return err
	}
	left, err := sessions.rows.Table.Count(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("%s  %d expired session swept, %d left\n", clock.Format("15:04"), swept, left)
	return nil
}
