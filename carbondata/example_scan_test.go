package carbondata_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/carbondata"
)

func ExampleTable_Scan() {
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	folder := filepath.Join(dir, "folder")
	w, err := carbondata.Create(folder, []carbondata.Column{
		{Name: "city", Type: carbondata.String},
		{Name: "people", Type: carbondata.Long},
	}, carbondata.WriterOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer w.Abort()
	for _, row := range [][]any{{"Lima", int64(10_000_000)}, {"Oslo", int64(700_000)}, {"Atlantis", nil}} {
		if err := w.Append(row); err != nil {
			log.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		log.Fatal(err)
	}

	t, err := carbondata.Open(folder)
	if err != nil {
		log.Fatal(err)
	}
	defer t.Close()
	s, err := t.Scan(context.Background(), carbondata.ScanOptions{
		Columns: []string{"people", "city"},
		Filter:  carbondata.Or(carbondata.Lt("people", 1_000_000), carbondata.HasPrefix("city", "Li")),
	})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	for s.Next() {
		b := s.Batch()
		people := batch.Values[int64](b.Columns[0])
		for i := range b.Rows() {
			fmt.Printf("%s %d\n", b.Columns[1].Cell(i), people[i])
		}
	}
	if err := s.Err(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// Lima 10000000
	// Oslo 700000
}
