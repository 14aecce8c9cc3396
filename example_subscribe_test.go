package oribi_test

import (
	"context"
	"fmt"
	"log"

	"github.com/oribi-db/oribi/mvcc"
)

// Subscribe yields the write batches after a timestamp. The loop goes on with those to come.
func ExampleStore_Subscribe() {
	ctx := context.Background()
	store, files := filesTable()
	defer store.Close()
	from := put(store, files, map[string]int{"a.txt": 10})
	put(store, files, map[string]int{"a.txt": 11, "b.txt": 20})
	put(store, files, map[string]int{"b.txt": 20}) // changes nothing

	writer := func() {
		b := store.NewBatch()
		b.Delete(files, map[string]any{"path": "a.txt"})
		if _, err := b.Commit(ctx); err != nil {
			log.Fatal(err)
		}
	}
	go writer()
	batches := 0
	for b, err := range store.Subscribe(ctx, from, mvcc.Max) {
		if err != nil {
			log.Fatal(err)
		}
		for _, c := range b.Changes {
			fmt.Println(c.Table.Name(), c.Kind, c.KeyRow()["path"], c.BeforeRow()["size"], c.AfterRow()["size"])
		}
		if batches++; batches == 2 {
			break
		}
	}
	// Output:
	// files update a.txt 10 11
	// files insert b.txt <nil> 20
	// files delete a.txt 11 <nil>
}
