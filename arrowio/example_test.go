package arrowio_test

import (
	"bytes"
	"context"
	"fmt"
	"log"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/arrowio"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
)

// citiesTable returns a table of cities with a few rows.
func citiesTable() (*oribi.Store, *oribi.Table) {
	store, err := oribi.Open("/store", &oribi.Options{FS: vfs.NewMem(), Clock: mvcc.NewLogicalClock(1)})
	if err != nil {
		log.Fatal(err)
	}
	columns, err := schema.New([]schema.Column{
		{Name: "name", Type: schema.String},
		{Name: "people", Type: schema.Int64, Nullable: true},
		{Name: "area", Type: schema.Decimal64, Precision: 12, Scale: 2, Nullable: true},
	}, 1)
	if err != nil {
		log.Fatal(err)
	}
	cities, err := store.CreateTable("cities", columns)
	if err != nil {
		log.Fatal(err)
	}
	b := store.NewBatch()
	b.Insert(cities, oribi.Row{"name": "Bern", "people": 134_591, "area": oribi.NewDecimal(5162, 2)})
	b.Insert(cities, oribi.Row{"name": "Chur", "people": 38_293, "area": oribi.NewDecimal(5434, 2)})
	b.Insert(cities, oribi.Row{"name": "Zug", "people": 31_345})
	if _, err := b.Commit(context.Background()); err != nil {
		log.Fatal(err)
	}
	return store, cities
}

// A scan becomes Arrow record batches. Numbers are the memory of the scan, not copies.
func ExampleNewReader() {
	store, cities := citiesTable()
	defer store.Close()
	r, err := arrowio.NewReader(cities.Scan(context.Background(), oribi.Where(oribi.Gt("people", 35_000))),
		arrowio.ReaderOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer r.Release()
	for r.Next() {
		rec := r.RecordBatch() // valid until the next step, or for as long as it is retained
		for i, f := range rec.Schema().Fields() {
			fmt.Println(f.Name, f.Type, rec.Column(i))
		}
	}
	fmt.Println(r.Err())
	// Output:
	// name utf8 ["Bern" "Chur"]
	// people int64 [134591 38293]
	// area decimal(12, 2) [51.62 54.34]
	// <nil>
}

// A Parquet file has the definition of the table in its metadata, so a table made of the file is
// the same one.
func Example_parquet() {
	ctx := context.Background()
	store, cities := citiesTable()
	defer store.Close()

	r, err := arrowio.NewReader(cities.Scan(ctx), arrowio.ReaderOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer r.Release()
	var out bytes.Buffer
	rows, err := arrowio.WriteParquet(&out, r, arrowio.ParquetOptions{})
	fmt.Println(rows, err)

	f, err := arrowio.OpenParquet(bytes.NewReader(out.Bytes()), int64(out.Len()), arrowio.OpenOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	columns, err := f.Definition().Table()
	if err != nil {
		log.Fatal(err)
	}
	large, err := store.CreateTable("large", columns, f.Definition().Options()...)
	if err != nil {
		log.Fatal(err)
	}
	in, err := f.Read(ctx, arrowio.ReadOptions{Where: []oribi.Predicate{oribi.Ge("people", 100_000)}})
	if err != nil {
		log.Fatal(err)
	}
	defer in.Release()
	_, rows, err = arrowio.Ingest(ctx, large, in)
	fmt.Println(rows, err)
	row, err := large.Get(ctx, "Bern")
	fmt.Println(row["area"], err)
	// Output:
	// 3 <nil>
	// 1 <nil>
	// 51.62 <nil>
}
