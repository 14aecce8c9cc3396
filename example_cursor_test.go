package oribi_test

import (
	"context"
	"fmt"
	"log"

	"github.com/oribi-db/oribi"
)

// A cursor begins anywhere and moves in both directions.
func ExampleTableOf_Cursor() {
	store, files := openFiles(file{Path: "a.txt", Size: 10}, file{Path: "docs/a.md", Size: 20},
		file{Path: "docs/b.md", Size: 30}, file{Path: "e.txt", Size: 40})
	defer store.Close()
	c := files.Cursor(context.Background())
	defer c.Close()
	for ok := c.Seek("docs/"); ok; ok = c.Next() {
		fmt.Println(c.Row().Path, c.Row().Size)
	}
	for c.Prev() { // from the end, where Next has left the cursor
		fmt.Println("back at", c.Row().Path)
	}
	if c.SeekBefore("docs/") {
		fmt.Println("before docs/:", c.Row().Path)
	}
	if err := c.Err(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// docs/a.md 20
	// docs/b.md 30
	// e.txt 40
	// back at e.txt
	// back at docs/b.md
	// back at docs/a.md
	// back at a.txt
	// before docs/: a.txt
}

// A cursor on untyped rows takes the options of a scan.
func ExampleTable_Cursor() {
	store, table := filesTable()
	defer store.Close()
	before := put(store, table, map[string]int{"a.txt": 10, "b.txt": 20, "c.txt": 30})
	put(store, table, map[string]int{"b.txt": 21})
	c := table.Cursor(context.Background(), oribi.AsOf(before), oribi.Where(oribi.Gt("size", 10)))
	defer c.Close()
	for ok := c.Last(); ok; ok = c.Prev() {
		fmt.Println(c.Key(), c.Row()["size"])
	}
	if err := c.Err(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// [c.txt] 30
	// [b.txt] 20
}
