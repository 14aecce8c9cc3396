package oribi_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/vfs"
)

// file is a row of the examples of typed calls.
type file struct {
	Path  string `oribi:"path,key"`
	Size  int64
	Owner *string // nil is NULL
}

// openFiles opens a store in memory with a table of the given files. The clock counts 1, 2, 3.
func openFiles(rows ...file) (*oribi.Store, *oribi.TableOf[file]) {
	store, err := oribi.Open("/store", &oribi.Options{FS: vfs.NewMem(), Clock: mvcc.NewLogicalClock(1)})
	if err != nil {
		log.Fatal(err)
	}
	files, err := oribi.OpenTable[file](store, "files")
	if err != nil {
		log.Fatal(err)
	}
	if _, err := files.Put(context.Background(), rows...); err != nil {
		log.Fatal(err)
	}
	return store, files
}

// OpenTable creates the table on the first run of a program, and finds it on later runs.
func ExampleOpenTable() {
	ctx := context.Background()
	fs := vfs.NewMem() // without FS, the store is a directory on disk
	for run := range 2 {
		store, err := oribi.Open("/files.oribi", &oribi.Options{FS: fs})
		if err != nil {
			log.Fatal(err)
		}
		files, err := oribi.OpenTable[file](store, "files")
		if err != nil {
			log.Fatal(err)
		}
		if _, err := files.Put(ctx, file{Path: fmt.Sprintf("%d.txt", run)}); err != nil {
			log.Fatal(err)
		}
		rows, err := files.Table.Count(ctx)
		fmt.Println(rows, err)
		store.Close()
	}
	// Output:
	// 1 <nil>
	// 2 <nil>
}

// Typed binds a struct to a table that exists. The struct needs a field for each column that every
// new row must set.
func ExampleTyped() {
	store, _ := openFiles()
	defer store.Close()
	table, err := store.Table("files")
	if err != nil {
		log.Fatal(err)
	}
	type sized struct {
		Path string `oribi:"path,key"`
		Size int64
	}
	_, err = oribi.Typed[sized](table) // an owner may be NULL
	fmt.Println(err)
	type named struct {
		Path string `oribi:"path,key"`
	}
	_, err = oribi.Typed[named](table)
	fmt.Println(errors.Is(err, oribi.ErrSchema))
	// Output:
	// <nil>
	// true
}

// Put inserts rows, or replaces those that exist: all of them at one timestamp, or none.
func ExampleTableOf_Put() {
	ctx := context.Background()
	store, files := openFiles()
	defer store.Close()
	first, err := files.Put(ctx, file{Path: "a.txt", Size: 10}, file{Path: "b.txt", Size: 20})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := files.Put(ctx, file{Path: "a.txt", Size: 11}); err != nil {
		log.Fatal(err)
	}
	now, err := files.Get(ctx, "a.txt")
	fmt.Println(now.Size, err)
	before, err := files.Get(ctx, "a.txt", oribi.AsOf(first))
	fmt.Println(before.Size, err)
	// Output:
	// 11 <nil>
	// 10 <nil>
}

// Patch sets the columns of a struct that has only some of them. Other columns keep their values.
func ExamplePatch() {
	ctx := context.Background()
	owner := "ada"
	store, files := openFiles(file{"a.txt", 10, &owner})
	defer store.Close()

	type resize struct {
		Path string `oribi:"path,key"`
		Size int64
	}
	_, err := oribi.Patch(ctx, files.Table, resize{"a.txt", 11})
	fmt.Println(err)
	row, err := files.Get(ctx, "a.txt")
	fmt.Println(row.Size, *row.Owner, err)

	_, err = oribi.Patch(ctx, files.Table, resize{"never.txt", 1})
	fmt.Println(errors.Is(err, oribi.ErrNotFound))
	// Output:
	// <nil>
	// 11 ada <nil>
	// true
}

// PatchIn adds a patch to a write batch, next to other operations.
func ExamplePatchIn() {
	ctx := context.Background()
	store, files := openFiles(file{Path: "a.txt", Size: 10}, file{Path: "b.txt", Size: 20})
	defer store.Close()

	type owned struct {
		Path  string `oribi:"path,key"`
		Owner *string
	}
	owner := "ada"
	b := store.NewBatch()
	if err := oribi.PatchIn(b, files.Table, owned{"a.txt", &owner}); err != nil {
		log.Fatal(err)
	}
	files.InBatch(b).Delete(file{Path: "b.txt"})
	_, err := b.Commit(ctx)
	fmt.Println(err)
	for row, err := range files.Scan(ctx) {
		fmt.Println(row.Path, row.Size, *row.Owner, err)
	}
	// Output:
	// <nil>
	// a.txt 10 ada <nil>
}

// Tags say what a Go type leaves open. After the program has got a new field, Evolve adds its column to
// the table, with NULL or the default in the rows that are there.
func ExampleEvolve() {
	type order struct {
		ID    int64         `oribi:",auto"`
		Price oribi.Decimal `oribi:"price,decimal(18,2)"`
		Due   time.Time     `oribi:"due,date,index"`
	}
	type orderNow struct {
		ID    int64         `oribi:",auto"`
		Price oribi.Decimal `oribi:"price,decimal(18,2)"`
		Due   time.Time     `oribi:"due,date,index"`
		State string        `oribi:"state,varchar(10),default=open,index"`
		Note  *string       `oribi:"note"`
	}
	ctx := context.Background()
	store, err := oribi.Open("/store", &oribi.Options{FS: vfs.NewMem()})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	orders, err := oribi.OpenTable[order](store, "orders")
	if err != nil {
		log.Fatal(err)
	}
	price := oribi.NewDecimal(1990, 2)
	_, err = orders.Insert(ctx, order{Price: price, Due: time.Date(2026, 12, 24, 18, 30, 0, 0, time.UTC)})
	fmt.Println(err)

	_, err = oribi.OpenTable[orderNow](store, "orders")
	fmt.Println(errors.Is(err, oribi.ErrSchema))
	now, err := oribi.OpenTable[orderNow](store, "orders", oribi.Evolve())
	if err != nil {
		log.Fatal(err)
	}
	for o, err := range now.Scan(ctx, oribi.Where(oribi.Eq("state", "open"))) {
		fmt.Println(o.ID, o.Price, o.Due.Format(time.DateOnly), o.State, o.Note, err)
	}
	// Output:
	// <nil>
	// true
	// 1 19.90 2026-12-24 open <nil> <nil>
}

// Insert, Update, and Delete each commit one or several rows. Put inserts or updates.
func ExampleTableOf_Insert() {
	ctx := context.Background()
	store, files := openFiles()
	defer store.Close()
	_, err := files.Insert(ctx, file{Path: "a.txt", Size: 10}, file{Path: "b.txt", Size: 20})
	fmt.Println(err)
	_, err = files.Insert(ctx, file{Path: "a.txt", Size: 99})
	fmt.Println(errors.Is(err, oribi.ErrKeyExists))
	_, err = files.Update(ctx, file{Path: "a.txt", Size: 11})
	fmt.Println(err)
	_, err = files.Delete(ctx, file{Path: "b.txt"})
	fmt.Println(err)
	for row, err := range files.Scan(ctx) {
		fmt.Println(row.Path, row.Size, err)
	}
	// Output:
	// <nil>
	// true
	// <nil>
	// <nil>
	// a.txt 11 <nil>
}

// InBatch adds operations to a write batch. Those with Ignore in their names do nothing where the others
// are refused.
func ExampleTableOf_InBatch() {
	ctx := context.Background()
	store, files := openFiles(file{Path: "a.txt", Size: 10})
	defer store.Close()

	b := store.NewBatch()
	files.InBatch(b).InsertIgnore(file{Path: "a.txt", Size: 99}, file{Path: "b.txt", Size: 20})
	files.InBatch(b).Insert(file{Path: "c.txt", Size: 30})
	files.InBatch(b).DeleteIgnore(file{Path: "never.txt"})
	_, err := b.Commit(ctx)
	fmt.Println(err)
	for row, err := range files.Scan(ctx) {
		fmt.Println(row.Path, row.Size, err)
	}

	files.InBatch(b).Insert(file{Path: "a.txt", Size: 99})
	_, err = b.Commit(ctx)
	fmt.Println(errors.Is(err, oribi.ErrKeyExists))
	// Output:
	// <nil>
	// a.txt 10 <nil>
	// b.txt 20 <nil>
	// c.txt 30 <nil>
	// true
}

// If makes a write batch depend on a row: with an update of the row it is a compare-and-set.
func ExampleBatchOf_If() {
	ctx := context.Background()
	store, files := openFiles(file{Path: "a.txt", Size: 10})
	defer store.Close()
	b := store.NewBatch()
	for _, size := range []int64{11, 12} {
		row := file{Path: "a.txt", Size: size}
		files.InBatch(b).If(row, oribi.Eq("size", 10))
		files.InBatch(b).Update(row)
		_, err := b.Commit(ctx)
		fmt.Println(size, "conflict:", errors.Is(err, oribi.ErrConflict))
	}
	// Output:
	// 11 conflict: false
	// 12 conflict: true
}

// IfAbsent makes a write batch depend on a row that does not exist, which may be of another table
// than the rows that the batch writes.
func ExampleBatchOf_IfAbsent() {
	ctx := context.Background()
	store, files := openFiles(file{Path: "a.txt", Size: 10})
	defer store.Close()
	locks, err := oribi.OpenTable[file](store, "locks")
	if err != nil {
		log.Fatal(err)
	}
	if _, err := locks.Put(ctx, file{Path: "b.txt"}); err != nil {
		log.Fatal(err)
	}
	for _, path := range []string{"a.txt", "b.txt"} {
		b := store.NewBatch()
		locks.InBatch(b).IfAbsent(file{Path: path})
		files.InBatch(b).Upsert(file{Path: path, Size: 20})
		_, err := b.Commit(ctx)
		fmt.Println(path, "conflict:", errors.Is(err, oribi.ErrConflict))
	}
	// Output:
	// a.txt conflict: false
	// b.txt conflict: true
}

// GetMany reads rows by keys, all of one state. The result is nil for a key without a row.
func ExampleTableOf_GetMany() {
	ctx := context.Background()
	store, files := openFiles(file{Path: "a.txt", Size: 10}, file{Path: "b.txt", Size: 20})
	defer store.Close()
	rows, err := files.GetMany(ctx, []any{"b.txt", "never.txt", "a.txt"})
	fmt.Println(rows[0].Size, rows[1], rows[2].Size, err)
	// Output:
	// 20 <nil> 10 <nil>
}

// Scan reads rows in key order.
func ExampleTableOf_Scan() {
	ctx := context.Background()
	store, files := openFiles(file{Path: "a.txt", Size: 10}, file{Path: "b.txt", Size: 200},
		file{Path: "c.txt", Size: 300})
	defer store.Close()
	for row, err := range files.Scan(ctx, oribi.Where(oribi.Ge("size", 100)), oribi.Limit(10)) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(row.Path, row.Size)
	}
	// Output:
	// b.txt 200
	// c.txt 300
}

// History reads the versions of a row, newest first.
func ExampleTableOf_History() {
	ctx := context.Background()
	store, files := openFiles(file{Path: "a.txt", Size: 10})
	defer store.Close()
	if _, err := files.Put(ctx, file{Path: "a.txt", Size: 20}); err != nil {
		log.Fatal(err)
	}
	b := store.NewBatch()
	files.InBatch(b).Delete(file{Path: "a.txt"})
	if _, err := b.Commit(ctx); err != nil {
		log.Fatal(err)
	}
	for v, err := range files.History(ctx, "a.txt") {
		switch {
		case err != nil:
			log.Fatal(err)
		case v.Row == nil:
			fmt.Println(uint64(v.Timestamp), v.Kind)
		default:
			fmt.Println(uint64(v.Timestamp), v.Kind, v.Row.Size)
		}
	}
	// Output:
	// 3 delete
	// 2 update 20
	// 1 insert 10
}

// Diff reads the rows that differ between two timestamps.
func ExampleTableOf_Diff() {
	ctx := context.Background()
	store, files := openFiles(file{Path: "a.txt", Size: 10}, file{Path: "b.txt", Size: 20})
	defer store.Close()
	before := store.Visible()
	after, err := files.Put(ctx, file{Path: "a.txt", Size: 11}, file{Path: "b.txt", Size: 20},
		file{Path: "c.txt", Size: 30})
	if err != nil {
		log.Fatal(err)
	}
	for d, err := range files.Diff(ctx, before, after) {
		switch {
		case err != nil:
			log.Fatal(err)
		case d.Before == nil:
			fmt.Println(d.Kind, d.After.Path, d.After.Size)
		case d.After == nil:
			fmt.Println(d.Kind, d.Before.Path)
		default:
			fmt.Println(d.Kind, d.After.Path, d.Before.Size, "to", d.After.Size)
		}
	}
	// Output:
	// update a.txt 10 to 11
	// insert c.txt 30
}

// GetAs reads the columns for which a struct has fields, and no others.
func ExampleGetAs() {
	ctx := context.Background()
	store, files := openFiles(file{Path: "a.txt", Size: 10})
	defer store.Close()
	type size struct{ Size int64 }
	row, err := oribi.GetAs[size](ctx, files.Table, "a.txt")
	fmt.Println(row.Size, err)
	// Output:
	// 10 <nil>
}

// ScanAs reads the columns for which a struct has fields, and no others. Predicates may name any
// column.
func ExampleScanAs() {
	ctx := context.Background()
	store, files := openFiles(file{Path: "a.txt", Size: 10}, file{Path: "b.md", Size: 20}, file{Path: "c.md", Size: 30})
	defer store.Close()
	type size struct{ Size int64 }
	sum := int64(0)
	for row, err := range oribi.ScanAs[size](ctx, files.Table, oribi.Where(oribi.Ge("path", "b"))) {
		if err != nil {
			log.Fatal(err)
		}
		sum += row.Size
	}
	fmt.Println(sum)
	// Output:
	// 50
}
