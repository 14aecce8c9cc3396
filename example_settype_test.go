package oribi_test

import (
	"context"
	"fmt"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/schema"
)

// SetType gives a column another type, if all of its values fit.
func ExampleSetType() {
	ctx := context.Background()
	store, files := filesTable()
	defer store.Close()
	before := put(store, files, map[string]int{"a.txt": 10, "b.txt": 70000})

	fmt.Println(files.Alter(ctx, oribi.SetType("size", schema.Column{Type: schema.Double})))
	row, err := files.Get(ctx, "b.txt", oribi.AsOf(before))
	fmt.Printf("%T %v %v\n", row["size"], row["size"], err)
	// Output:
	// <nil>
	// float64 70000 <nil>
}
