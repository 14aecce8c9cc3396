package oribi_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/oribi-db/oribi"
)

// UpdateWhere sets columns in all rows for which predicates are true, at one timestamp.
func ExampleTable_UpdateWhere() {
	ctx := context.Background()
	store, files := filesTable()
	defer store.Close()
	put(store, files, map[string]int{"a.txt": 10, "b.txt": 200, "c.txt": 300})

	res, err := files.UpdateWhere(ctx, oribi.Row{"size": 100}, oribi.Where(oribi.Gt("size", 100)))
	fmt.Println(res.Rows, err)
	for row, err := range files.Scan(ctx).Rows() {
		fmt.Println(row["path"], row["size"], err)
	}
	// Output:
	// 2 <nil>
	// a.txt 10 <nil>
	// b.txt 100 <nil>
	// c.txt 100 <nil>
}

// DeleteWhere deletes all rows for which predicates are true. The earlier state stays readable.
func ExampleTable_DeleteWhere() {
	ctx := context.Background()
	store, files := filesTable()
	defer store.Close()
	before := put(store, files, map[string]int{"a.txt": 10, "b.md": 20, "c.md": 30})

	res, err := files.DeleteWhere(ctx, oribi.Where(oribi.Le("size", 20)))
	fmt.Println(res.Rows, err)
	now, err := files.Count(ctx)
	fmt.Println(now, err)
	then, err := files.Count(ctx, oribi.AsOf(before))
	fmt.Println(then, err)
	// Output:
	// 2 <nil>
	// 1 <nil>
	// 3 <nil>
}

// DeleteRange deletes the rows from one key up to another, which stays.
func ExampleTable_DeleteRange() {
	ctx := context.Background()
	store, files := filesTable()
	defer store.Close()
	put(store, files, map[string]int{"a.txt": 10, "b.txt": 20, "c.txt": 30, "d.txt": 40})

	res, err := files.DeleteRange(ctx, "b.txt", "d.txt")
	fmt.Println(res.Rows, err)
	for row, err := range files.Scan(ctx).Rows() {
		fmt.Println(row["path"], err)
	}
	// Output:
	// 2 <nil>
	// a.txt <nil>
	// d.txt <nil>
}

// InPieces lets a bulk call commit several write batches, for tables of any size. A call that fails
// has done a part of the work; From(Next) does the rest.
func ExampleInPieces() {
	store, files := filesTable()
	defer store.Close()
	put(store, files, map[string]int{"a.txt": 10, "b.txt": 20})

	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	res, err := files.DeleteWhere(ctx, oribi.InPieces())
	fmt.Println(res.Rows, errors.Is(err, context.Canceled))

	opts := []oribi.BulkOption{oribi.InPieces()}
	if res.Next != nil {
		opts = append(opts, oribi.From(res.Next))
	}
	res, err = files.DeleteWhere(context.Background(), opts...)
	fmt.Println(res.Rows, err)
	// Output:
	// 0 true
	// 2 <nil>
}

// RestoreTo brings back the content of an earlier timestamp. The states in between stay readable.
func ExampleTable_RestoreTo() {
	ctx := context.Background()
	store, files := filesTable()
	defer store.Close()
	good := put(store, files, map[string]int{"a.txt": 10, "b.txt": 20})
	bad := put(store, files, map[string]int{"a.txt": 0, "c.txt": 30})

	res, err := files.RestoreTo(ctx, good)
	fmt.Println(res.Rows, err)
	for row, err := range files.Scan(ctx).Rows() {
		fmt.Println(row["path"], row["size"], err)
	}
	n, err := files.Count(ctx, oribi.AsOf(bad))
	fmt.Println(n, err)
	// Output:
	// 2 <nil>
	// a.txt 10 <nil>
	// b.txt 20 <nil>
	// 3 <nil>
}

// Rename gives a table another name. Handles and the table's history stay valid.
func ExampleTable_Rename() {
	ctx := context.Background()
	store, files := filesTable()
	defer store.Close()
	put(store, files, map[string]int{"a.txt": 10})

	fmt.Println(files.Rename(ctx, "documents"))
	n, err := files.Count(ctx)
	fmt.Println(files.Name(), n, err)
	_, err = store.Table("files")
	fmt.Println(errors.Is(err, oribi.ErrNoTable))
	// Output:
	// <nil>
	// documents 1 <nil>
	// true
}

// Truncate deletes all rows. The history stays, so RestoreTo can undo it.
func ExampleTable_Truncate() {
	ctx := context.Background()
	store, files := filesTable()
	defer store.Close()
	full := put(store, files, map[string]int{"a.txt": 10, "b.txt": 20})

	res, err := files.Truncate(ctx)
	fmt.Println(res.Rows, err)
	n, err := files.Count(ctx)
	fmt.Println(n, err)
	res, err = files.RestoreTo(ctx, full)
	fmt.Println(res.Rows, err)
	// Output:
	// 2 <nil>
	// 0 <nil>
	// 2 <nil>
}

// Prefix reads the rows whose keys begin with a key.
func ExamplePrefix() {
	type page struct {
		Host string `oribi:"host,key"`
		Path string `oribi:"path,key"`
	}
	ctx := context.Background()
	store, _ := filesTable()
	defer store.Close()
	pages, err := oribi.OpenTable[page](store, "pages")
	if err != nil {
		log.Fatal(err)
	}
	_, err = pages.Put(ctx, page{"example.org", "/"}, page{"example.org", "/docs/a"}, page{"example.org", "/docs/b"},
		page{"example.org.uk", "/docs/c"})
	if err != nil {
		log.Fatal(err)
	}
	host, err := pages.Table.Count(ctx, oribi.Prefix("example.org"))
	fmt.Println(host, err)
	for row, err := range pages.Scan(ctx, oribi.Prefix(oribi.Key{"example.org", "/docs/"})) {
		fmt.Println(row.Path, err)
	}
	// Output:
	// 3 <nil>
	// /docs/a <nil>
	// /docs/b <nil>
}

// Predicates are values: they can be kept, combined, and printed. As in SQL, a comparison with a
// NULL is neither true nor false.
func ExampleWhere() {
	ctx := context.Background()
	store, files := filesTable()
	defer store.Close()
	put(store, files, map[string]int{"a.txt": 10, "b.md": 20, "c.txt": 300})
	b := store.NewBatch()
	b.Insert(files, oribi.Row{"path": "d.txt"}) // its size is NULL
	if _, err := b.Commit(ctx); err != nil {
		log.Fatal(err)
	}

	small := oribi.Between("size", 1, 100)
	for _, p := range []oribi.Predicate{small, oribi.Not(small),
		oribi.Or(oribi.IsNull("size"), oribi.In("path", "a.txt", "b.md"))} {
		n, err := files.Count(ctx, oribi.Where(p, oribi.Ne("path", "b.md")))
		fmt.Println(p, n, err)
	}
	// Output:
	// size BETWEEN 1 AND 100 1 <nil>
	// NOT (size BETWEEN 1 AND 100) 1 <nil>
	// size IS NULL OR path IN ('a.txt', 'b.md') 2 <nil>
}

// UpdateIf and DeleteIf have a condition for their row alone. With CommitPartial, rows whose
// condition is not met are left out.
func ExampleBatch_UpdateIf() {
	ctx := context.Background()
	store, files := filesTable()
	defer store.Close()
	put(store, files, map[string]int{"a.txt": 10, "b.txt": 20})

	b := store.NewBatch()
	for _, path := range []string{"a.txt", "b.txt"} {
		b.UpdateIf(files, oribi.Row{"path": path, "size": 0}, oribi.Lt("size", 15))
	}
	_, err := b.CommitPartial(ctx)
	fmt.Println(err)
	for _, r := range b.Refused() {
		fmt.Println(r.Key, errors.Is(r, oribi.ErrConflict))
	}
	// Output:
	// <nil>
	// "b.txt" true
}
