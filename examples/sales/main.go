// Command sales is an analytics job: it loads a million sales, filters them, and adds them up.
//
// The load goes straight to column files, the filters are tested on encoded columns, and a sum
// reads nothing but the columns that it adds.
//
//	go run ./examples/sales sales.oribi
package main

import (
	"context"
	"fmt"
	"io"
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

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// sales returns n sales of ten shops, one every five seconds.
func sales(n int) iter.Seq[Sale] {
	countries := []string{"DE", "FR", "JP", "US"}
	items := []string{"apple", "bread", "cheese", "tea", "wine"}
	return func(yield func(Sale) bool) {
		for i := range n {
			sale := Sale{At: start.Add(time.Duration(i) * 5 * time.Second), Shop: int32(i % 10), Country: countries[i%10%4],
				Item: items[i%5], Count: int32(1 + i%3), Cents: int64(100 + i*37%900)}
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
	if err := run(context.Background(), os.Stdout, os.Args[1], 1_000_000); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer, dir string, n int) error {
	store, err := oribi.Open(dir, nil)
	if err != nil {
		return err
	}
	defer store.Close()
	table, err := load(ctx, out, store, n)
	if err != nil {
		return err
	}
	if err := byCountry(ctx, out, table); err != nil {
		return err
	}
	return revenue(ctx, out, table)
}

// load brings the sales into the table, all of them or none, unless an earlier run did.
func load(ctx context.Context, out io.Writer, store *oribi.Store, n int) (*oribi.Table, error) {
	table, err := oribi.OpenTable[Sale](store, "sales")
	if err != nil {
		return nil, err
	}
	if rows, err := table.Table.Count(ctx); rows > 0 || err != nil {
		return table.Table, err
	}
	_, rows, err := table.Ingest(ctx, sales(n))
	if err == nil {
		fmt.Fprintf(out, "%d sales loaded\n", rows)
	}
	return table.Table, err
}

// byCountry prints the sales of wine and cheese of the first day by country. The struct names the
// columns that are read; the predicates and the range skip most of the table.
func byCountry(ctx context.Context, out io.Writer, table *oribi.Table) error {
	type sale struct {
		Country string
		Count   int32
		Cents   int64
	}
	type total struct{ sales, pieces, cents int64 }
	totals := map[string]total{}
	for s, err := range oribi.ScanAs[sale](ctx, table, oribi.To(start.AddDate(0, 0, 1)), oribi.Where(oribi.In("item", "wine", "cheese"))) {
		if err != nil {
			return err
		}
		t := totals[s.Country]
		totals[s.Country] = total{t.sales + 1, t.pieces + int64(s.Count), t.cents + int64(s.Count)*s.Cents}
	}
	fmt.Fprintln(out, "wine and cheese on January 1:")
	for _, country := range slices.Sorted(maps.Keys(totals)) {
		t := totals[country]
		fmt.Fprintf(out, "  %s  %5d sales  %5d pieces  %8.2f\n", country, t.sales, t.pieces, float64(t.cents)/100)
	}
	return nil
}

// revenue adds up a whole column, vector by vector: no row is made.
func revenue(ctx context.Context, out io.Writer, table *oribi.Table) error {
	var count, cents int64
	for b, err := range table.Scan(ctx, oribi.Columns("count", "cents"), oribi.Where(oribi.Gt("count", 1)), oribi.AnyOrder()).Batches() {
		if err != nil {
			return err
		}
		counts, prices := batch.Values[int32](b.Columns[0]), batch.Values[int64](b.Columns[1])
		for i := b.Selection.Next(0); i >= 0; i = b.Selection.Next(i + 1) {
			count++
			cents += int64(counts[i]) * prices[i]
		}
	}
	fmt.Fprintf(out, "sales of several pieces: %d, for %.2f\n", count, float64(cents)/100)
	return nil
}
