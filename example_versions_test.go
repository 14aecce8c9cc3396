package oribi_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
)

// History reads the versions of a row, newest first.
func ExampleTable_History() {
	ctx := context.Background()
	store, files := filesTable()
	defer store.Close()
	put(store, files, map[string]int{"a.txt": 10})
	put(store, files, map[string]int{"a.txt": 20})
	b := store.NewBatch()
	b.Delete(files, oribi.Row{"path": "a.txt"})
	if _, err := b.Commit(ctx); err != nil {
		log.Fatal(err)
	}
	for v, err := range files.History(ctx, "a.txt") {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(uint64(v.Timestamp), v.Kind, v.Row()["size"])
	}
	// Output:
	// 3 delete <nil>
	// 2 update 20
	// 1 insert 10
}

// Checkpoint copies a store while it is used. The copy is a store of its own, with the history.
func ExampleStore_Checkpoint() {
	ctx := context.Background()
	fsys := vfs.NewMem() // by default the file system of the operating system
	store, err := oribi.Open("/store", &oribi.Options{FS: fsys, Clock: mvcc.NewLogicalClock(mvcc.First)})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	columns, err := schema.New([]schema.Column{{Name: "path", Type: schema.String},
		{Name: "size", Type: schema.Int64}}, 1)
	if err != nil {
		log.Fatal(err)
	}
	files, err := store.CreateTable("files", columns)
	if err != nil {
		log.Fatal(err)
	}
	first := put(store, files, map[string]int{"a.txt": 10})
	put(store, files, map[string]int{"a.txt": 20})
	if _, err := store.Checkpoint(ctx, "/copy"); err != nil {
		log.Fatal(err)
	}
	put(store, files, map[string]int{"a.txt": 30})

	copied, err := oribi.Open("/copy", &oribi.Options{FS: fsys, ReadOnly: true,
		Clock: mvcc.NewLogicalClock(mvcc.First)})
	if err != nil {
		log.Fatal(err)
	}
	defer copied.Close()
	if files, err = copied.Table("files"); err != nil {
		log.Fatal(err)
	}
	for _, at := range []oribi.ReadOption{oribi.AsOf(first), oribi.Latest()} {
		row, err := files.Get(ctx, "a.txt", at)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(row["size"])
	}
	// Output:
	// 10
	// 20
}

// Diff reads the rows that differ between two timestamps, in key order.
func ExampleTable_Diff() {
	ctx := context.Background()
	store, files := filesTable()
	defer store.Close()
	before := put(store, files, map[string]int{"a.txt": 10, "b.txt": 20})
	after := put(store, files, map[string]int{"a.txt": 11, "b.txt": 20, "c.txt": 30})
	for d, err := range files.Diff(ctx, before, after) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(d.KeyRow()["path"], d.Kind, d.BeforeRow()["size"], d.AfterRow()["size"])
	}
	// Output:
	// a.txt update 10 11
	// c.txt insert <nil> 30
}

// GetMany reads rows by keys, all of one state. The result is nil for a key without a row.
func ExampleTable_GetMany() {
	ctx := context.Background()
	store, files := filesTable()
	defer store.Close()
	put(store, files, map[string]int{"a.txt": 10, "b.txt": 20})
	rows, err := files.GetMany(ctx, []any{"b.txt", "never.txt", "a.txt"}, oribi.Columns("size"))
	fmt.Println(rows, err)
	// Output:
	// [map[size:20] map[] map[size:10]] <nil>
}

// A snapshot keeps a state readable until it is closed, regardless of writes and compactions in
// between.
func ExampleStore_Snapshot() {
	ctx := context.Background()
	store, files := filesTable()
	defer store.Close()
	put(store, files, map[string]int{"a.txt": 10})
	report, err := store.Snapshot(ctx)
	if err != nil {
		log.Fatal(err)
	}
	report.SetName("report")
	put(store, files, map[string]int{"a.txt": 20, "b.txt": 30})

	n, err := files.Count(ctx, oribi.At(report))
	fmt.Println(n, err)
	row, err := files.Get(ctx, "a.txt", oribi.At(report))
	fmt.Println(row["size"], err)
	fmt.Println(report.Close())
	_, err = files.Get(ctx, "a.txt", oribi.At(report))
	fmt.Println(errors.Is(err, oribi.ErrClosed))
	// Output:
	// 1 <nil>
	// 10 <nil>
	// <nil>
	// true
}

// Alter makes several changes of a table at once. No row is rewritten. Reads of the past find
// columns by their present names.
func ExampleTable_Alter() {
	ctx := context.Background()
	store, files := filesTable()
	defer store.Close()
	before := put(store, files, map[string]int{"a.txt": 10})
	err := files.Alter(ctx,
		oribi.RenameColumn("size", "bytes"),
		oribi.AddColumn(schema.Column{Name: "mode", Type: schema.String, Default: []byte("100644")}))
	fmt.Println(err)
	row, err := files.Get(ctx, "a.txt", oribi.AsOf(before))
	fmt.Println(row["bytes"], row["mode"], err)
	err = files.Alter(ctx, oribi.DropColumn("path"))
	fmt.Println(errors.Is(err, oribi.ErrSchema))
	// Output:
	// <nil>
	// 10 100644 <nil>
	// true
}

// If makes a batch depend on a row: with an update of the row it is a compare-and-set.
func ExampleBatch_If() {
	ctx := context.Background()
	store, files := filesTable()
	defer store.Close()
	put(store, files, map[string]int{"a.txt": 10})
	is10 := oribi.Eq("size", 10)
	b := store.NewBatch()
	for _, size := range []int{11, 12} {
		b.If(files, oribi.Row{"path": "a.txt"}, is10)
		b.Update(files, oribi.Row{"path": "a.txt", "size": size})
		_, err := b.Commit(ctx)
		fmt.Println(size, "conflict:", errors.Is(err, oribi.ErrConflict))
	}
	// Output:
	// 11 conflict: false
	// 12 conflict: true
}

// Get reads a row with the batch's operations so far applied.
func ExampleBatch_Get() {
	ctx := context.Background()
	store, files := filesTable()
	defer store.Close()
	put(store, files, map[string]int{"a.txt": 10})
	b := store.NewBatch()
	b.Update(files, oribi.Row{"path": "a.txt", "size": 11})
	row, err := b.Get(ctx, files, "a.txt")
	fmt.Println("in the batch:", row["size"], err)
	row, err = files.Get(ctx, "a.txt")
	fmt.Println("in the table:", row["size"], err)
	// Output:
	// in the batch: 11 <nil>
	// in the table: 10 <nil>
}

// CommitPartial leaves refused rows out of a batch, and Refused returns them.
func ExampleBatch_Refused() {
	ctx := context.Background()
	store, files := filesTable()
	defer store.Close()
	put(store, files, map[string]int{"a.txt": 10})
	b := store.NewBatch()
	b.Insert(files, oribi.Row{"path": "a.txt", "size": 11})
	b.Insert(files, oribi.Row{"path": "b.txt", "size": 20})
	_, err := b.CommitPartial(ctx)
	fmt.Println(err)
	for _, r := range b.Refused() {
		fmt.Println(r.Row, r.Cause)
	}
	n, err := files.Count(ctx)
	fmt.Println(n, err)
	// Output:
	// <nil>
	// 0 key exists
	// 2 <nil>
}

// CompactMajor applies the changes of the named columns to their base data, without rewriting the
// rest of the rowsets.
func ExampleTable_CompactMajor() {
	ctx := context.Background()
	store, files := filesTable()
	defer store.Close()
	first := put(store, files, map[string]int{"a.txt": 10, "b.txt": 20})
	if err := files.Flush(ctx); err != nil {
		log.Fatal(err)
	}
	put(store, files, map[string]int{"a.txt": 11})
	if err := files.Flush(ctx); err != nil {
		log.Fatal(err)
	}
	result, err := files.CompactMajor(ctx, "size")
	fmt.Println(result.RowSetsBefore, result.RowSetsAfter, result.BytesWritten > 0, err)
	row, err := files.Get(ctx, "a.txt", oribi.AsOf(first))
	fmt.Println(row["size"], err)
	// Output:
	// 1 1 true <nil>
	// 10 <nil>
}
