package salvage_test

import (
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/salvage"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
)

// A store whose metadata is lost has a copy of it.
func ExampleRun() {
	ctx, fsys := context.Background(), vfs.NewMem()
	store, err := oribi.Open("/orders", &oribi.Options{FS: fsys})
	if err != nil {
		log.Fatal(err)
	}
	columns, err := schema.New([]schema.Column{{Name: "id", Type: schema.Int64}, {Name: "item", Type: schema.String}}, 1)
	if err != nil {
		log.Fatal(err)
	}
	orders, err := store.CreateTable("orders", columns)
	if err != nil {
		log.Fatal(err)
	}
	b := store.NewBatch()
	b.Insert(orders, oribi.Row{"id": 1, "item": "lamp"})
	if _, err := b.Commit(ctx); err != nil {
		log.Fatal(err)
	}
	if err := store.Close(); err != nil {
		log.Fatal(err)
	}
	if err := vfs.RemoveAll(fsys, "/orders/meta"); err != nil {
		log.Fatal(err)
	}
	_, err = oribi.Open("/orders", &oribi.Options{FS: fsys})
	fmt.Println(strings.Contains(err.Error(), "meta"))

	_, err = salvage.Run(ctx, "/orders", "/saved", &oribi.Options{FS: fsys}, func(l salvage.Loss) {
		fmt.Printf("lost: %+v\n", l)
	})
	if err != nil {
		log.Fatal(err)
	}
	saved, err := oribi.Open("/saved", &oribi.Options{FS: fsys})
	if err != nil {
		log.Fatal(err)
	}
	defer saved.Close()
	orders, err = saved.Table("orders")
	if err != nil {
		log.Fatal(err)
	}
	n, err := orders.Count(ctx)
	fmt.Println(n, err)
	// Output:
	// true
	// 1 <nil>
}
