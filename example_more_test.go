package oribi_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
)

// Batches yields whole columns. The rows of the result are those whose bit in Selection is 1.
func ExampleScan_Batches() {
	ctx := context.Background()
	store, files := filesTable()
	defer store.Close()
	put(store, files, map[string]int{"a.txt": 10, "b.txt": 200, "c.txt": 300})

	large := oribi.Gt("size", 10)
	var sum int64
	for b, err := range files.Scan(ctx, oribi.Columns("size", "path"), oribi.Where(large), oribi.AnyOrder()).Batches() {
		if err != nil {
			log.Fatal(err)
		}
		sizes := batch.Values[int64](b.Columns[0])
		for i := b.Selection.Next(0); i >= 0; i = b.Selection.Next(i + 1) {
			if !b.Columns[0].IsNull(i) {
				sum += sizes[i]
			}
		}
	}
	fmt.Println(sum)
	// Output:
	// 500
}

// Vectors writes whole columns: one for each column of the table, in schema order.
func ExampleBatch_Vectors() {
	ctx := context.Background()
	store, files := filesTable()
	defer store.Close()

	paths := batch.NewVector(schema.String, 3)
	sizes := batch.NewVector(schema.Int64, 3)
	for i, path := range []string{"a.txt", "b.txt", "c.txt"} {
		paths.SetCell(i, []byte(path))
	}
	copy(batch.Values[int64](sizes), []int64{10, 20, 30})
	sizes.SetCell(1, nil) // NULL

	b := store.NewBatch()
	b.Vectors(oribi.OpInsert, files, []*batch.Vector{paths, sizes})
	if _, err := b.Commit(ctx); err != nil {
		log.Fatal(err)
	}
	for row, err := range files.Scan(ctx).Rows() {
		fmt.Println(row["path"], row["size"], err)
	}
	// Output:
	// a.txt 10 <nil>
	// b.txt <nil> <nil>
	// c.txt 30 <nil>
}

// A TableOf reads and writes rows as structs. A pointer is for a column that can be NULL.
func ExampleTableOf() {
	type file struct {
		Path string `oribi:"path,key"`
		Size *int64 `oribi:"size"`
	}
	ctx := context.Background()
	store, _ := filesTable()
	defer store.Close()
	columns, err := oribi.SchemaOf[file]()
	if err != nil {
		log.Fatal(err)
	}
	table, err := store.CreateTable("typed", columns)
	if err != nil {
		log.Fatal(err)
	}
	files, err := oribi.Typed[file](table)
	if err != nil {
		log.Fatal(err)
	}

	size := int64(10)
	b := store.NewBatch()
	files.InBatch(b).Insert(file{"a.txt", &size}, file{"b.txt", nil})
	if _, err := b.Commit(ctx); err != nil {
		log.Fatal(err)
	}
	row, err := files.Get(ctx, "a.txt")
	fmt.Println(row.Path, *row.Size, err)
	for row, err := range files.Scan(ctx) {
		fmt.Println(row.Path, row.Size != nil, err)
	}
	// Output:
	// a.txt 10 <nil>
	// a.txt true <nil>
	// b.txt false <nil>
}

// Flush writes the rows in memory to files. The store also does this in the background, unless
// Options.Manual is set.
func ExampleTable_Flush() {
	ctx := context.Background()
	store, files := filesTable()
	defer store.Close()
	put(store, files, map[string]int{"a.txt": 10, "b.txt": 20})
	stats, err := files.Stats(false)
	fmt.Println(stats.LiveRows, stats.RowSets, stats.MemBytes > 0, err)

	fmt.Println(files.Flush(ctx))
	stats, err = files.Stats(false)
	fmt.Println(stats.LiveRows, stats.RowSets, stats.MemBytes > 0, err)
	// Output:
	// 2 0 true <nil>
	// <nil>
	// 2 1 false <nil>
}

// After Compact, no rowsets overlap, and earlier versions of rows are still readable.
func ExampleTable_Compact() {
	ctx := context.Background()
	store, files := filesTable()
	defer store.Close()
	first := put(store, files, map[string]int{"a.txt": 10, "z.txt": 20})
	files.Flush(ctx)
	put(store, files, map[string]int{"a.txt": 11, "m.txt": 30})
	files.Flush(ctx)
	fmt.Println(len(files.Layout().RowSets), "rowsets")

	fmt.Println(files.Compact(ctx))
	fmt.Println(len(files.Layout().RowSets), "rowset")
	row, err := files.Get(ctx, "a.txt", oribi.AsOf(first))
	fmt.Println(row["size"], err)
	// Output:
	// 2 rowsets
	// <nil>
	// 1 rowset
	// 10 <nil>
}

// everything is a policy that merges all rowsets if there are two or more.
type everything struct{}

func (everything) Pick(layout compaction.Layout, _ int64) compaction.Choice {
	if len(layout.RowSets) < 2 {
		return compaction.Choice{}
	}
	c := compaction.Choice{Why: "more than one rowset"}
	for _, r := range layout.RowSets {
		c.RowSets = append(c.RowSets, r.ID)
	}
	return c
}

// An experiment with compaction: Manual leaves flushes and compactions to the program, which calls
// a policy itself, and Listener is called after each step.
func ExampleTable_Merge() {
	ctx := context.Background()
	store, err := oribi.Open("/store", &oribi.Options{
		FS: vfs.NewMem(), Manual: true,
		Listener: func(e oribi.Event) {
			if e.Begin {
				return
			}
			fmt.Printf("%s: %d rowsets before, %d after: %s\n", e.Kind, len(e.Before.RowSets), len(e.After.RowSets),
				e.Why)
		},
	})
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
	for i := range 2 {
		put(store, files, map[string]int{fmt.Sprintf("%d.txt", i): i})
		if err := files.Flush(ctx); err != nil {
			log.Fatal(err)
		}
	}
	if err := files.Merge(ctx, everything{}.Pick(files.Layout(), 0)); err != nil {
		log.Fatal(err)
	}
	// Output:
	// flush: 0 rowsets before, 1 after: the MemRowSet is flushed
	// flush: 1 rowsets before, 2 after: the MemRowSet is flushed
	// merge: 2 rowsets before, 1 after: more than one rowset
}

// Options as a test may set them: a clock that the test moves, and an hour of history. A read of an
// older state returns ErrTooOld.
func ExampleOptions() {
	ctx := context.Background()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	store, err := oribi.Open("/store", &oribi.Options{
		FS:      vfs.NewMem(),
		Clock:   mvcc.NewHybridClock(func() time.Time { return now }),
		History: time.Hour,
	})
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
	fmt.Println(first.Time().Format(time.TimeOnly))

	now = now.Add(50 * time.Minute)
	put(store, files, map[string]int{"a.txt": 20})
	row, err := files.Get(ctx, "a.txt", oribi.AsOf(first))
	fmt.Println(row["size"], err)

	now = now.Add(50 * time.Minute)
	_, err = files.Get(ctx, "a.txt", oribi.AsOf(first))
	fmt.Println(errors.Is(err, oribi.ErrTooOld))
	// EndOf returns the timestamp that includes everything up to the end of that microsecond.
	row, err = files.Get(ctx, "a.txt", oribi.AsOf(mvcc.EndOf(now.Add(-45*time.Minute))))
	fmt.Println(row["size"], err)
	_, err = files.Get(ctx, "a.txt", oribi.AsOf(mvcc.FromTime(now.Add(time.Minute))))
	fmt.Println(errors.Is(err, oribi.ErrFuture))
	// Output:
	// 12:00:00
	// 10 <nil>
	// true
	// 20 <nil>
	// true
}

// VerifyDeep also checks what no checksum covers.
func ExampleStore_VerifyDeep() {
	store, files := filesTable()
	defer store.Close()
	put(store, files, map[string]int{"a.txt": 10})
	files.Flush(context.Background())
	findings := 0
	err := store.VerifyDeep(context.Background(), func(f oribi.Finding) {
		findings++
		fmt.Println(f.File, f.Offset, f.Problem)
	})
	fmt.Println(findings, err)
	// Output:
	// 0 <nil>
}

// Verify reads all files and checks them.
func ExampleStore_Verify() {
	store, files := filesTable()
	defer store.Close()
	put(store, files, map[string]int{"a.txt": 10})
	files.Flush(context.Background())
	findings := 0
	err := store.Verify(context.Background(), func(f oribi.Finding) {
		findings++
		fmt.Println(f.File, f.Offset, f.Problem)
	})
	fmt.Println(findings, err)
	// Output:
	// 0 <nil>
}
