package oribi_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
)

// A session expires 30 minutes after it was last seen. Earlier states of the table do not change.
func ExampleExpires() {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	store, err := oribi.Open("/store", &oribi.Options{FS: vfs.NewMem(),
		Clock: mvcc.NewHybridClock(func() time.Time { return now })})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	columns, err := schema.New([]schema.Column{
		{Name: "id", Type: schema.String},
		{Name: "user", Type: schema.String},
		{Name: "seen", Type: schema.Timestamp},
	}, 1)
	if err != nil {
		log.Fatal(err)
	}
	sessions, err := store.CreateTable("sessions", columns, oribi.Expires("seen", 30*time.Minute))
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	b := store.NewBatch()
	b.Insert(sessions, oribi.Row{"id": "s1", "user": "alice", "seen": now})
	began, err := b.Commit(ctx)
	if err != nil {
		log.Fatal(err)
	}

	now = now.Add(time.Hour)
	_, err = sessions.Get(ctx, "s1")
	fmt.Println("an hour later: not found is", errors.Is(err, oribi.ErrNotFound))
	row, err := sessions.Get(ctx, "s1", oribi.AsOf(began))
	fmt.Println("at the beginning:", row["user"], err)

	b.Insert(sessions, oribi.Row{"id": "s1", "user": "bob", "seen": now})
	_, err = b.Commit(ctx)
	fmt.Println("its key can be inserted:", err)
	for v, err := range sessions.History(ctx, "s1", oribi.Columns("user")) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(v.Timestamp.Time().Format("15:04"), v.Kind, v.Row()["user"])
	}
	// Output:
	// an hour later: not found is true
	// at the beginning: alice <nil>
	// its key can be inserted: <nil>
	// 13:00 insert bob
	// 12:30 delete <nil>
	// 12:00 insert alice
}
