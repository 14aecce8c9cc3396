package oribi_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/schema"
)

// Aggregate computes sums, counts, and other values for all rows, or for groups of them.
func ExampleTable_Aggregate() {
	ctx := context.Background()
	store, files := filesTable()
	defer store.Close()
	before := put(store, files, map[string]int{"a.txt": 10, "b.txt": 200, "c.txt": 10})
	put(store, files, map[string]int{"c.txt": 300})

	aggregates := []oribi.Aggregate{oribi.CountRows(), oribi.SumOf("size"), oribi.MaxOf("path")}
	now, err := files.Aggregate(ctx, aggregates)
	if err != nil {
		log.Fatal(err)
	}
	total, err := now.Groups[0].Values[1].Int64()
	fmt.Println(now.Groups[0].Values, total/2, err)

	bySize, err := files.Aggregate(ctx, aggregates, oribi.GroupBy("size"), oribi.AsOf(before))
	if err != nil {
		log.Fatal(err)
	}
	for _, g := range bySize.Groups {
		fmt.Println(g.Key[0], g.Values)
	}
	// Output:
	// [3 510 c.txt] 255 <nil>
	// 10 [2 20 c.txt]
	// 200 [1 200 b.txt]
}

// Groups can be the periods of a time.
func ExampleGroupByPeriod() {
	ctx := context.Background()
	store, _ := filesTable()
	defer store.Close()
	columns, err := schema.New([]schema.Column{{Name: "id", Type: schema.Int64},
		{Name: "seen", Type: schema.Timestamp}}, 1)
	if err != nil {
		log.Fatal(err)
	}
	visits, err := store.CreateTable("visits", columns)
	if err != nil {
		log.Fatal(err)
	}
	b := store.NewBatch()
	for i, seen := range []string{"2026-10-31T23:59:59Z", "2026-11-01T00:00:00Z", "2026-11-30T12:00:00Z",
		"1969-12-31T23:00:00Z"} {
		at, err := time.Parse(time.RFC3339, seen)
		if err != nil {
			log.Fatal(err)
		}
		b.Insert(visits, oribi.Row{"id": i, "seen": at})
	}
	if _, err := b.Commit(ctx); err != nil {
		log.Fatal(err)
	}

	months, err := visits.Aggregate(ctx, []oribi.Aggregate{oribi.CountRows()}, oribi.GroupByPeriod("month", "seen"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(months.Columns[0].Name)
	for _, g := range months.Groups {
		fmt.Println(g.Key[0], g.Values)
	}
	// Output:
	// month(seen)
	// 1969-12 [1]
	// 2026-10 [1]
	// 2026-11 [2]
}

// Top finds the groups with the greatest values, and counts all of them.
func ExampleTop() {
	ctx := context.Background()
	store, files := filesTable()
	defer store.Close()
	put(store, files, map[string]int{"a.txt": 10, "b.txt": 200, "c.txt": 10, "d.txt": 5})

	sizes, err := files.Aggregate(ctx, []oribi.Aggregate{oribi.CountRows()}, oribi.GroupBy("size"), oribi.Top(1))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("most frequent:", sizes.Groups[0].Key[0], "of", sizes.Total)
	// Output:
	// most frequent: 10 of 3
}

// A term of a product is a column, or a constant plus or times a column. Products of decimals are
// exact.
func ExampleSumOfProduct() {
	ctx := context.Background()
	store, _ := filesTable()
	defer store.Close()
	columns, err := schema.New([]schema.Column{
		{Name: "id", Type: schema.Int64},
		{Name: "price", Type: schema.Decimal64, Precision: 15, Scale: 2},
		{Name: "discount", Type: schema.Decimal32, Precision: 3, Scale: 2},
	}, 1)
	if err != nil {
		log.Fatal(err)
	}
	sales, err := store.CreateTable("sales", columns)
	if err != nil {
		log.Fatal(err)
	}
	b := store.NewBatch()
	b.Insert(sales, oribi.Row{"id": 1, "price": 19.99, "discount": 0.1})
	b.Insert(sales, oribi.Row{"id": 2, "price": 5, "discount": 0})
	if _, err := b.Commit(ctx); err != nil {
		log.Fatal(err)
	}

	paid := oribi.SumOfProduct(oribi.Col("price"), oribi.Col("discount").Neg().Plus(1))
	result, err := sales.Aggregate(ctx, []oribi.Aggregate{paid, oribi.AvgOf("price")})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(paid)
	fmt.Println(result.Groups[0].Values)
	// Output:
	// sum(price * (1 - discount))
	// [22.9910 12.49500000]
}
