package hfile_test

import (
	"fmt"
	"log"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/hfile"
)

// A file with three columns of two rows, read as HBase would read it.
func ExampleReader() {
	file := new(block.Memory)
	w, err := hfile.NewWriter(file, hfile.WriterOptions{Encoding: hfile.EncodingFastDiff})
	if err != nil {
		log.Fatal(err)
	}
	for _, c := range []struct{ row, qualifier, value string }{{"anna", "city", "Oslo"},
		{"anna", "zip", "0150"}, {"ben", "city", "Turku"}} {
		key := hfile.Key{Row: []byte(c.row), Family: []byte("f"), Qualifier: []byte(c.qualifier),
			Timestamp: 7, Type: hfile.Put}
		if err := w.Append(hfile.Cell{Key: key, Value: []byte(c.value)}); err != nil {
			log.Fatal(err)
		}
	}
	if err := w.Finish(); err != nil {
		log.Fatal(err)
	}

	r, err := hfile.Open(file, hfile.ReaderOptions{})
	if err != nil {
		log.Fatal(err)
	}
	cells, err := r.Get([]byte("anna"))
	if err != nil {
		log.Fatal(err)
	}
	for _, c := range cells {
		fmt.Printf("%s %s=%s %v\n", c.Row, c.Qualifier, c.Value, c.Type)
	}
	c := r.NewCursor(hfile.CursorOptions{})
	found, err := c.SeekGE(hfile.FirstOnRow([]byte("ben")))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(found, string(c.Cell().Value))
	// Output:
	// anna city=Oslo Put
	// anna zip=0150 Put
	// true Turku
}
