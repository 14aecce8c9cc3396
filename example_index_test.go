package oribi_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/vfs"
)

// A unique index finds users by their email, and refuses a second user with the same one.
func ExampleUnique() {
	type user struct {
		ID    int64 `oribi:"id,key"`
		Email string
		Name  string
	}
	ctx := context.Background()
	store, err := oribi.Open("/store", &oribi.Options{FS: vfs.NewMem()})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	users, err := oribi.OpenTable[user](store, "users", oribi.Unique("by_email", "email"))
	if err != nil {
		log.Fatal(err)
	}
	if _, err := users.Put(ctx, user{1, "ada@example.org", "Ada"}); err != nil {
		log.Fatal(err)
	}
	ada, err := users.GetBy(ctx, "by_email", "ada@example.org")
	fmt.Println(ada.ID, ada.Name, err)

	_, err = users.Put(ctx, user{2, "ada@example.org", "Grace"})
	var twice *oribi.NotUnique
	if errors.As(err, &twice) {
		fmt.Printf("index %s: the same as user %s\n", twice.Index, twice.Other)
	}

	// Output:
	// 1 Ada <nil>
	// index by_email: the same as user 1
}
