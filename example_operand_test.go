package oribi_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
)

// A page counts its visits and remembers the first and the last one, in one write that reads nothing and
// conflicts with no other.
func ExampleOperand() {
	ctx := context.Background()
	store, err := oribi.Open("/store", &oribi.Options{FS: vfs.NewMem()})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	columns, err := schema.New([]schema.Column{
		{Name: "url", Type: schema.String},
		{Name: "hits", Type: schema.Uint8},
		{Name: "first", Type: schema.Timestamp, Nullable: true},
		{Name: "last", Type: schema.Timestamp, Nullable: true},
	}, 1)
	if err != nil {
		log.Fatal(err)
	}
	pages, err := store.CreateTable("pages", columns)
	if err != nil {
		log.Fatal(err)
	}
	at := time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)
	b := store.NewBatch()
	for _, minute := range []int{0, 2, 1} { // visits arrive in any order
		now := at.Add(time.Duration(minute) * time.Minute)
		b.Upsert(pages, oribi.Row{"url": "/", "hits": oribi.Add(1), "first": oribi.Min(now), "last": oribi.Max(now)})
	}
	if _, err := b.Commit(ctx); err != nil {
		log.Fatal(err)
	}
	row, err := pages.Get(ctx, "/")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(row["hits"], row["first"].(time.Time).Format("15:04"), row["last"].(time.Time).Format("15:04"))

	b.Update(pages, oribi.Row{"url": "/", "hits": oribi.Add(100)})
	if _, err := b.Commit(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println(b.Results()[0].Value)

	b.Update(pages, oribi.Row{"url": "/", "hits": oribi.Add(200)})
	_, err = b.Commit(ctx)
	fmt.Println(err, errors.Is(err, oribi.ErrOverflow))

	// Output:
	// 3 08:00 08:02
	// 103
	// oribi: row 0 of table "pages" key "/": column "hits": 103 + 200 is out of range for uint8 true
}

// Each visitor gets the next number. The function passes on its transaction, which has the results once
// Update has committed it.
func ExampleTx_Results() {
	ctx := context.Background()
	store, err := oribi.Open("/visits", &oribi.Options{FS: vfs.NewMem()})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	type counter struct {
		Name string `oribi:"name,key"`
		N    int64
	}
	counters, err := oribi.OpenTable[counter](store, "counters")
	if err != nil {
		log.Fatal(err)
	}
	for range 3 {
		var last *oribi.Tx
		err := store.Update(ctx, func(tx *oribi.Tx) error {
			last = tx
			return tx.Upsert(counters.Table, oribi.Row{"name": "visitors", "n": oribi.Add(1)})
		})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(last.Results()[0].Value)
	}
	// Output:
	// 1
	// 2
	// 3
}
