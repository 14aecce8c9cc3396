package oribi_test

import (
	"context"
	"fmt"
	"log"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/vfs"
)

// Arrays are slices in structs, and slices of pointers if elements may be NULL. A scan returns
// vectors of cells; AppendUnpacked appends their elements to one vector, to compute with them.
func ExampleSchemaOf_arrays() {
	ctx := context.Background()
	store, err := oribi.Open("/store", &oribi.Options{FS: vfs.NewMem()})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	type photo struct {
		ID   int64    `oribi:"id,key"`
		Tags []string `oribi:"tags"`
		Hits []*int32 `oribi:"hits"` // by day; nil for days without a count
	}
	columns, err := oribi.SchemaOf[photo]()
	if err != nil {
		log.Fatal(err)
	}
	table, err := store.CreateTable("photos", columns)
	if err != nil {
		log.Fatal(err)
	}
	photos, err := oribi.Typed[photo](table)
	if err != nil {
		log.Fatal(err)
	}
	three, five := int32(3), int32(5)
	b := store.NewBatch()
	photos.InBatch(b).Insert(photo{1, []string{"sea", "night"}, []*int32{&three, nil, &five}})
	b.Insert(table, oribi.Row{"id": 2, "tags": []string{}, "hits": []any{7, nil}})
	if _, err := b.Commit(ctx); err != nil {
		log.Fatal(err)
	}

	row, err := table.Get(ctx, 1)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(row["tags"], row["hits"])
	for rows, err := range table.Scan(ctx, oribi.Columns("hits")).Batches() {
		if err != nil {
			log.Fatal(err)
		}
		hits := batch.NewArrays(rows.Schema[0].Element)
		if err := hits.AppendUnpacked(rows.Columns[0], 0, rows.Len); err != nil {
			log.Fatal(err)
		}
		sum := int32(0)
		for i, n := range batch.Values[int32](hits.Elements) {
			if !hits.Elements.IsNull(i) {
				sum += n
			}
		}
		fmt.Println("hits in all:", sum)
	}
	// Output:
	// [sea night] [3 <nil> 5]
	// hits in all: 15
}
