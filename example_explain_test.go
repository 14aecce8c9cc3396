package oribi_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/oribi-db/oribi"
)

// Explain fills an Explanation when the read ends. Its text is for people; programs use its fields.
func ExampleExplain() {
	ctx := context.Background()
	store, files := filesTable()
	defer store.Close()
	put(store, files, map[string]int{"a.txt": 10, "b.txt": 200, "c.txt": 300, "d.txt": 40})
	if err := files.Flush(ctx); err != nil {
		log.Fatal(err)
	}
	put(store, files, map[string]int{"b.txt": 20, "e.txt": 500})

	var e oribi.Explanation
	for row, err := range files.Scan(ctx, oribi.From("b.txt"), oribi.Where(oribi.Gt("size", 100)),
		oribi.Explain(&e)).Rows() {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(row["path"], row["size"])
	}
	e.Time = 120 * time.Microsecond // it differs from run to run
	fmt.Print(&e)
	// Output:
	// c.txt 300
	// e.txt 500
	// table "files": 2 rows returned in 120 µs
	// where size > 100
	//
	// rowsets: 2
	//   1  on disk, read
	//   1  in memory
	//
	// rows: 5, 1 of them in memory
	//   1  skipped: outside of the key range
	//   2  excluded by predicates
	//   2  returned
	//
	// predicate 1 of 1: size > 100
	//   4  rows were left to test; it is true for 2 (50.0 %)
	//   2  decoded, then tested
	//   1  changed since the flush, tested with the new value
	//   1  tested in memory
	//
	// columns: their cblocks in the rowsets that were read, by the most that was done with each
	//   column  cblocks  outside  skipped  zone map  as stored  decoded  cells decoded
	//   path          1        0        0         0          0        1              3
	//   size          1        0        0         0          0        1              3
}
