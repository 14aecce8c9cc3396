// Command kvsessions is a store of web sessions, ported from bbolt to package kv.
//
// The functions of a program for bbolt keep their form; docs/guide.md shows what changed. Sessions
// expire by themselves, which bbolt leaves to the program.
//
//	go run ./examples/kvsessions sessions.oribi
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/kv"
	"github.com/oribi-db/oribi/mvcc"
)

const lifetime = 30 * time.Minute

// Begin starts a session of a user. When it returns, the session survives a crash.
func Begin(ctx context.Context, db *kv.DB, token, user string) error {
	return db.Update(ctx, func(tx *kv.Tx) error {
		b := tx.Bucket("sessions")
		return b.PutTTL([]byte(token), []byte(user), lifetime)
	})
}

// Find returns the user of a session.
func Find(ctx context.Context, db *kv.DB, token string) (user string, err error) {
	err = db.View(ctx, func(tx *kv.Tx) error {
		v, err := tx.Bucket("sessions").Get([]byte(token))
		user = string(v)
		return err
	})
	return user, err
}

// EndAll ends all sessions of a user.
func EndAll(ctx context.Context, db *kv.DB, user string) error {
	return db.Update(ctx, func(tx *kv.Tx) error {
		b := tx.Bucket("sessions")
		for p, err := range b.Scan(oribi.Where(oribi.Eq("value", user))) {
			if err != nil {
				return err
			}
			if err := b.Delete(p.Key); err != nil {
				return err
			}
		}
		return nil
	})
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: kvsessions DIR")
	}
	if err := run(context.Background(), os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

// run plays a morning of three users. It moves the clock of the store itself, so that sessions
// expire without waiting.
func run(ctx context.Context, dir string) error {
	clock := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	db, err := kv.Open(dir, &oribi.Options{Clock: mvcc.NewHybridClock(func() time.Time { return clock })})
	if err != nil {
		return err
	}
	defer db.Close()
	if _, err = db.CreateBucketIfNotExists("sessions"); err != nil {
		return err
	}
	for _, s := range [][2]string{{"t1", "ada"}, {"t2", "bob"}, {"t3", "bob"}, {"t4", "cyd"}} {
		if err := Begin(ctx, db, s[0], s[1]); err != nil {
			return err
		}
	}
	show := func() error {
		for _, token := range []string{"t1", "t2", "t3", "t4"} {
			user, err := Find(ctx, db, token)
			switch {
			case errors.Is(err, kv.ErrNotFound):
				user = "no session"
			case err != nil:
				return err
			}
			fmt.Printf("%s  %s: %s\n", clock.Format("15:04"), token, user)
		}
		return nil
	}
	if err := show(); err != nil {
		return err
	}
	clock = clock.Add(20 * time.Minute)
	err = EndAll(ctx, db, "bob")
	if err == nil {
		err = Begin(ctx, db, "t1", "ada") // which renews the session
	}
	if err != nil {
		return err
	}
	clock = clock.Add(15 * time.Minute)
	return show()
}
