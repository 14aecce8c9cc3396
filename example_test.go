package oribi_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
)

// filesTable opens a store in memory and creates a table of files in it: path is the key, and size
// may be NULL. The clock counts 1, 2, 3, so the timestamps of the examples are always the same.
func filesTable() (*oribi.Store, *oribi.Table) {
	store, err := oribi.Open("/store", &oribi.Options{FS: vfs.NewMem(), Clock: mvcc.NewLogicalClock(1)})
	if err != nil {
		log.Fatal(err)
	}
	columns, err := schema.New([]schema.Column{
		{Name: "path", Type: schema.String},
		{Name: "size", Type: schema.Int64, Nullable: true},
	}, 1)
	if err != nil {
		log.Fatal(err)
	}
	table, err := store.CreateTable("files", columns)
	if err != nil {
		log.Fatal(err)
	}
	return store, table
}

// put commits one batch that sets the sizes of files.
func put(store *oribi.Store, table *oribi.Table, sizes map[string]int) mvcc.Timestamp {
	b := store.NewBatch()
	for path, size := range sizes {
		b.Upsert(table, oribi.Row{"path": path, "size": size})
	}
	ts, err := b.Commit(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	return ts
}

// A first program: it creates a store, writes rows, and reads an earlier state.
func Example() {
	ctx := context.Background()
	// FS keeps this example in memory. Without it the store is the directory "files.oribi".
	store, err := oribi.Open("/files.oribi", &oribi.Options{FS: vfs.NewMem()})
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

	b := store.NewBatch()
	b.Insert(files, oribi.Row{"path": "a.txt", "size": 10})
	b.Insert(files, oribi.Row{"path": "b.txt", "size": 20})
	before, err := b.Commit(ctx)
	if err != nil {
		log.Fatal(err)
	}
	b.Update(files, oribi.Row{"path": "a.txt", "size": 11})
	b.Delete(files, oribi.Row{"path": "b.txt"})
	if _, err := b.Commit(ctx); err != nil {
		log.Fatal(err)
	}

	for row, err := range files.Scan(ctx).Rows() {
		fmt.Println("now:", row["path"], row["size"], err)
	}
	for row, err := range files.Scan(ctx, oribi.AsOf(before)).Rows() {
		fmt.Println("before:", row["path"], row["size"], err)
	}
	// Output:
	// now: a.txt 11 <nil>
	// before: a.txt 10 <nil>
	// before: b.txt 20 <nil>
}

// Open creates a store in an empty or missing directory, unless an option forbids it.
func ExampleOpen() {
	fs := vfs.NewMem()
	_, err := oribi.Open("/store", &oribi.Options{FS: fs, ErrorIfMissing: true})
	fmt.Println("missing:", errors.Is(err, oribi.ErrNotStore))

	store, err := oribi.Open("/store", &oribi.Options{FS: fs})
	fmt.Println("created:", err)
	_, err = oribi.Open("/store", &oribi.Options{FS: fs})
	fmt.Println("a second writer:", errors.Is(err, oribi.ErrLocked))
	fmt.Println("closed:", store.Close())

	// Any number of openers may read at the same time, as long as no writer has the store open.
	reader, err := oribi.Open("/store", &oribi.Options{FS: fs, ReadOnly: true})
	fmt.Println("read-only:", err, reader.Recovery().Clean)
	_, err = reader.NewBatch().Commit(context.Background())
	fmt.Println("a write there:", errors.Is(err, oribi.ErrReadOnly))
	fmt.Println("closed:", reader.Close())
	// Output:
	// missing: true
	// created: <nil>
	// a second writer: true
	// closed: <nil>
	// read-only: <nil> true
	// a write there: true
	// closed: <nil>
}

// After Close every call is refused.
func ExampleStore_Close() {
	store, table := filesTable()
	put(store, table, map[string]int{"a.txt": 10})
	fmt.Println(store.Close())
	fmt.Println(store.Close())
	_, err := table.Get(context.Background(), "a.txt")
	fmt.Println(errors.Is(err, oribi.ErrClosed))
	// Output:
	// <nil>
	// <nil>
	// true
}

// A table has typed columns, the key columns first. How long it keeps history is stored with it.
func ExampleStore_CreateTable() {
	store, _ := filesTable()
	defer store.Close()
	columns, err := schema.New([]schema.Column{
		{Name: "account", Type: schema.Int64},
		{Name: "day", Type: schema.Date},
		{Name: "amount", Type: schema.DecimalType(15), Precision: 15, Scale: 2},
		{Name: "note", Type: schema.Varchar, Length: 80, Nullable: true},
	}, 2)
	if err != nil {
		log.Fatal(err)
	}
	table, err := store.CreateTable("payments", columns, oribi.History(30*24*time.Hour), oribi.Comment("one row a day"))
	if err != nil {
		log.Fatal(err)
	}
	for _, c := range table.Schema().Columns {
		fmt.Println(c.Name, c.TypeName())
	}
	fmt.Println(table.Properties().History, table.Properties().Comment)

	_, err = store.CreateTable("payments", columns)
	fmt.Println(errors.Is(err, oribi.ErrExists))
	for _, t := range store.Tables() {
		fmt.Println(t.Name())
	}
	fmt.Println(store.DropTable("payments"))
	// Output:
	// account int64
	// day date
	// amount decimal(15,2)
	// note varchar(80)
	// 720h0m0s one row a day
	// true
	// files
	// payments
	// <nil>
}

// Operations take effect in their order, all at one timestamp. The Ignore kinds do nothing where
// the others are errors.
func ExampleStore_NewBatch() {
	ctx := context.Background()
	store, files := filesTable()
	defer store.Close()

	b := store.NewBatch()
	b.Insert(files, oribi.Row{"path": "a.txt", "size": 10})
	b.Upsert(files, oribi.Row{"path": "a.txt", "size": 11}) // the line above has inserted it: sets size
	b.InsertIgnore(files, oribi.Row{"path": "a.txt", "size": 12})
	b.DeleteIgnore(files, oribi.Row{"path": "never.txt"})
	b.Insert(files, oribi.Row{"path": "b.txt"}) // size is not set: NULL
	fmt.Println(b.Len(), "operations")
	ts, err := b.Commit(ctx)
	fmt.Println(uint64(ts), err)

	for row, err := range files.Scan(ctx).Rows() {
		fmt.Println(row["path"], row["size"], err)
	}
	// Output:
	// 5 operations
	// 1 <nil>
	// a.txt 11 <nil>
	// b.txt <nil> <nil>
}

// If one row is refused, the whole batch is. The error names the row and the reason.
func ExampleBatch_Commit() {
	ctx := context.Background()
	store, files := filesTable()
	defer store.Close()
	put(store, files, map[string]int{"a.txt": 10})

	b := store.NewBatch()
	b.Insert(files, oribi.Row{"path": "b.txt", "size": 20})
	b.Insert(files, oribi.Row{"path": "a.txt", "size": 30})
	_, err := b.Commit(ctx)
	fmt.Println(err)
	fmt.Println(errors.Is(err, oribi.ErrKeyExists))
	if refused, ok := errors.AsType[*oribi.RowError](err); ok {
		fmt.Println("row", refused.Row, "of", refused.Table, "because of:", refused.Cause)
	}
	_, err = files.Get(ctx, "b.txt")
	fmt.Println(errors.Is(err, oribi.ErrNotFound))

	// A refused batch keeps its rows, for another attempt. Reset begins the next one.
	b.Reset()
	b.Insert(files, oribi.Row{"path": "c.txt", "size": "much"})
	_, err = b.Commit(ctx)
	fmt.Println(err)

	// NoSync does not wait for the disk: the batch survives a kill of the process, but not a power
	// failure.
	b.Reset()
	b.Insert(files, oribi.Row{"path": "d.txt", "size": 40})
	_, err = b.Commit(ctx, oribi.NoSync)
	fmt.Println(err)
	// Output:
	// oribi: row 1 of table "files" key "a.txt": key exists
	// true
	// row 1 of files because of: key exists
	// true
	// oribi: row 0 of table "files": column "size": a string does not fit type int64
	// <nil>
}

// Get reads one row, or some columns of it, now or as of a timestamp.
func ExampleTable_Get() {
	ctx := context.Background()
	store, files := filesTable()
	defer store.Close()
	first := put(store, files, map[string]int{"a.txt": 10})
	second := put(store, files, map[string]int{"a.txt": 20})

	row, err := files.Get(ctx, "a.txt")
	fmt.Println(row["size"], err)
	row, err = files.Get(ctx, "a.txt", oribi.AsOf(first), oribi.Columns("size"))
	fmt.Println(row, err)
	row, err = files.Get(ctx, "a.txt", oribi.AsOf(second)) // inclusive
	fmt.Println(row["size"], err)
	_, err = files.Get(ctx, "a.txt", oribi.AsOf(first-1))
	fmt.Println(errors.Is(err, oribi.ErrNotFound))
	// Output:
	// 20 <nil>
	// map[size:10] <nil>
	// 20 <nil>
	// true
}

// A compound key is a Key, or a Row of the key columns. A bound of a range may have only the first
// of them.
func ExampleKey() {
	ctx := context.Background()
	store, _ := filesTable()
	defer store.Close()
	columns, err := schema.New([]schema.Column{{Name: "host", Type: schema.String},
		{Name: "minute", Type: schema.Int32}, {Name: "load", Type: schema.Double}}, 2)
	if err != nil {
		log.Fatal(err)
	}
	loads, err := store.CreateTable("loads", columns)
	if err != nil {
		log.Fatal(err)
	}
	b := store.NewBatch()
	for minute := range 3 {
		b.Insert(loads, oribi.Row{"host": "alpha", "minute": minute, "load": 0.5})
		b.Insert(loads, oribi.Row{"host": "beta", "minute": minute, "load": float64(minute)})
	}
	if _, err := b.Commit(ctx); err != nil {
		log.Fatal(err)
	}

	row, err := loads.Get(ctx, oribi.Key{"beta", 2})
	fmt.Println(row["load"], err)
	n, err := loads.Count(ctx, oribi.From(oribi.Key{"alpha", 1}), oribi.To(oribi.Key{"beta"}))
	fmt.Println(n, err)
	// Output:
	// 2 <nil>
	// 2 <nil>
}

// A scan returns rows in key order. Predicates are tested before rows are built.
func ExampleTable_Scan() {
	ctx := context.Background()
	store, files := filesTable()
	defer store.Close()
	put(store, files, map[string]int{"a.txt": 10, "b.txt": 200, "c.txt": 300, "d.txt": 400, "e.txt": 5})

	large := oribi.Ge("size", 100)
	for row, err := range files.Scan(ctx, oribi.Where(large), oribi.From("a.txt"), oribi.To("d.txt"),
		oribi.Limit(10)).Rows() {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(row["path"], row["size"])
	}
	n, err := files.Count(ctx, oribi.Where(large))
	fmt.Println(n, err)
	// Output:
	// b.txt 200
	// c.txt 300
	// 3 <nil>
}

// The last rows of a range, the last one first.
func ExampleDesc() {
	store, files := filesTable()
	defer store.Close()
	put(store, files, map[string]int{"a.txt": 10, "b.txt": 200, "c.txt": 300, "d.txt": 400})

	for row, err := range files.Scan(context.Background(), oribi.To("d.txt"), oribi.Desc(), oribi.Limit(2)).Rows() {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(row["path"], row["size"])
	}
	// Output:
	// c.txt 300
	// b.txt 200
}
