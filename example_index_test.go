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

// A list of users by place is read in pages: each begins above the last row of the page before it.
func ExampleOrderBy() {
	type user struct {
		ID    int64  `oribi:"id,key"`
		Place string `oribi:"place,index=by_place"`
	}
	ctx := context.Background()
	store, err := oribi.Open("/store", &oribi.Options{FS: vfs.NewMem()})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	users, err := oribi.OpenTable[user](store, "users")
	if err != nil {
		log.Fatal(err)
	}
	_, err = users.Put(ctx, user{1, "Rome"}, user{2, "Oslo"}, user{3, "Lima"}, user{4, "Oslo"}, user{5, "Kyiv"})
	if err != nil {
		log.Fatal(err)
	}
	page := func(opts ...oribi.ScanOption) (first, last user) {
		opts = append(opts, oribi.OrderBy("by_place"), oribi.Limit(2))
		var rows []any
		for u, err := range users.Scan(ctx, opts...) {
			if err != nil {
				log.Fatal(err)
			}
			if first.ID == 0 {
				first = u
			}
			last = u
			rows = append(rows, u)
		}
		fmt.Println(rows...)
		return first, last
	}
	_, last := page()
	first, last := page(oribi.Above(oribi.Key{last.Place, last.ID}))
	page(oribi.Above(oribi.Key{last.Place, last.ID}))
	page(oribi.Below(oribi.Key{first.Place, first.ID}), oribi.Desc()) // back, from its last row to its first

	// Output:
	// {5 Kyiv} {3 Lima}
	// {2 Oslo} {4 Oslo}
	// {1 Rome}
	// {3 Lima} {5 Kyiv}
}
