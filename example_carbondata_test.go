package oribi_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/carbondata"
	"github.com/oribi-db/oribi/vfs"
)

// copyTable writes all rows of a table to a new folder of CarbonData.
func copyTable(ctx context.Context, table *oribi.Table, folder string) error {
	var columns []carbondata.Column
	for _, c := range table.Schema().Columns {
		column, ok := carbondata.ColumnOf(c)
		if !ok {
			return fmt.Errorf("column %q: no type for %s", c.Name, c.TypeName())
		}
		columns = append(columns, column)
	}
	w, err := carbondata.Create(folder, columns, carbondata.WriterOptions{SortColumns: []string{"city"}})
	if err != nil {
		return err
	}
	defer w.Abort() // does nothing after Close
	for b, err := range table.Scan(ctx).Batches() {
		if err != nil {
			return err
		}
		if err := w.AppendBatch(b); err != nil {
			return err
		}
	}
	return w.Close()
}

// All rows of a table are written to a folder of CarbonData.
func Example_carbonData() {
	type city struct {
		Name   string `oribi:"city,key"`
		People int64  `oribi:"people"`
	}
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	store, err := oribi.Open("/store", &oribi.Options{FS: vfs.NewMem()})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	cities, err := oribi.OpenTable[city](store, "cities")
	if err != nil {
		log.Fatal(err)
	}
	if _, err := cities.Put(ctx, city{"Oslo", 700_000}, city{"Lima", 10_000_000}); err != nil {
		log.Fatal(err)
	}
	folder := filepath.Join(dir, "folder")
	table, err := store.Table("cities")
	if err != nil {
		log.Fatal(err)
	}
	if err := copyTable(ctx, table, folder); err != nil {
		log.Fatal(err)
	}

	t, err := carbondata.Open(folder)
	if err != nil {
		log.Fatal(err)
	}
	defer t.Close()
	for row, err := range t.Rows(ctx, carbondata.ScanOptions{}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(row...)
	}
	// Output:
	// Lima 10000000
	// Oslo 700000
}
