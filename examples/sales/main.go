// Command sales is an analytics job: it loads a million sales, filters them, and adds them up.
//
// The load writes column files directly, the filters are tested on encoded columns, and a sum reads
// only the columns that it adds.
//
//	go run ./examples/sales sales.oribi
package main

import (
	"context"
	"fmt"
	"iter"
	"log"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
)

// Sale is a row of the table, in the order of its key.
type Sale struct {
	At      time.Time `oribi:"at,key"`
	Shop    int32     `oribi:"shop,key"`
	Country string
	Item    string
	Count   int32
	Cents   int64
}

var firstDay = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// sales yields a million sales of ten shops, one every five seconds.
func sales() iter.Seq[Sale] {
	countries := []string{"DE", "FR", "JP", "US"}
	items := []string{"apple", "bread", "cheese", "tea", "wine"}
	return func(yield func(Sale) bool) {
		for i := range 1_000_000 {
			sale := Sale{
				At:      firstDay.Add(time.Duration(i) * 5 * time.Second),
				Shop:    int32(i % 10),
				Country: countries[i%10%4],
				Item:    items[i%5],
				Count:   int32(1 + i%3),
				Cents:   int64(100 + i*37%900),
			}
			if !yield(sale) {
				return
			}
		}
	}
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: sales DIR")
	}
	if err := run(context.Background(), os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, dir string) error {
	store, err := oribi.Open(dir, nil)
	if err != nil {
		return err
	}
	defer store.Close()
	table, err := oribi.OpenTable[Sale](store, "sales")
	if err != nil {
		return err
	}
	if err := load(ctx, table); err != nil {
		return err
	}
	if err := byCountry(ctx, table.Table); err != nil {
		return err
	}
	return revenue(ctx, table.Table)
}

// load adds all sales to the table, or none of them. It does nothing if an earlier run has added
// them.
func load(ctx context.Context, table *oribi.TableOf[Sale]) error {
	if rows, err := table.Table.Count(ctx); rows > 0 || err != nil {
		return err
	}
	_, rows, err := table.Ingest(ctx, sales())
	if err == nil {
		fmt.Printf("%d sales loaded\n", rows)
	}
	return err
}

// byCountry prints the first day's sales of wine and cheese by country. The fields of the struct
// are the columns to read. The range and the predicate exclude most of the table.
func byCountry(ctx context.Context, table *oribi.Table) error {
	type sale struct {
		Country string
		Count   int32
		Cents   int64
	}
	type total struct{ sales, pieces, cents int64 }
	totals := map[string]total{}
	day, items := oribi.To(firstDay.AddDate(0, 0, 1)), oribi.Where(oribi.In("item", "wine", "cheese"))
	for s, err := range oribi.ScanAs[sale](ctx, table, day, items) {
		if err != nil {
			return err
		}
		t := totals[s.Country]
		totals[s.Country] = total{t.sales + 1, t.pieces + int64(s.Count), t.cents + int64(s.Count)*s.Cents}
	}
	fmt.Println("wine and cheese on January 1:")
	for _, country := range slices.Sorted(maps.Keys(totals)) {
		t := totals[country]
		fmt.Printf("  %s  %5d sales  %5d pieces  %8.2f\n", country, t.sales, t.pieces, float64(t.cents)/100)
	}
	return nil
}

// revenue adds up whole columns, vector by vector, without building rows.
func revenue(ctx context.Context, table *oribi.Table) error {
	scan := table.Scan(ctx, oribi.Columns("count", "cents"), oribi.Where(oribi.Gt("count", 1)), oribi.AnyOrder())
	var count, cents int64
	for b, err := range scan.Batches() {
		if err != nil {
			return err
		}
		counts, prices := batch.Values[int32](b.Columns[0]), batch.Values[int64](b.Columns[1])
		for i := b.Selection.Next(0); i >= 0; i = b.Selection.Next(i + 1) {
			count++
			cents += int64(counts[i]) * prices[i]
		}
	}
	fmt.Printf("sales of several pieces: %d, for %.2f\n", count, float64(cents)/100)
	return nil
}
