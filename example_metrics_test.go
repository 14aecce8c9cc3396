package oribi_test

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/vfs"
)

// Metrics are a struct, and a text that a Prometheus server reads.
func ExampleStore_Metrics() {
	ctx := context.Background()
	store, files := filesTable()
	defer store.Close()
	put(store, files, map[string]int{"a.txt": 1, "b.txt": 2})
	if err := files.Flush(ctx); err != nil {
		log.Fatal(err)
	}
	m, err := store.Metrics()
	if err != nil {
		log.Fatal(err)
	}
	for _, j := range m.Jobs {
		if j.Done > 0 {
			fmt.Println(j.Kind, j.RowsWritten, "rows")
		}
	}
	fmt.Println(m.Commits.Sync.Count, "commit, 99 % within a minute:", m.Commits.Sync.Quantile(0.99).Minutes() < 1)
	var text strings.Builder
	if _, err := m.WriteTo(&text); err != nil {
		log.Fatal(err)
	}
	for line := range strings.Lines(text.String()) {
		if strings.Contains(line, "oribi_table_rows") && !strings.Contains(line, "rowsets") {
			fmt.Print(line)
		}
	}
	// Output:
	// flush 2 rows
	// 1 commit, 99 % within a minute: true
	// # HELP oribi_table_rows Live rows.
	// # TYPE oribi_table_rows gauge
	// oribi_table_rows{table="files"} 2
}

// A log of flushes and compactions, which compaction.ReadEvents reads.
func ExampleOptions_listener() {
	ctx := context.Background()
	var file bytes.Buffer // or an *os.File
	events := compaction.NewEventLog(&file)
	store, err := oribi.Open("/store", &oribi.Options{FS: vfs.NewMem(), Listener: events.Record})
	if err != nil {
		log.Fatal(err)
	}
	type entry struct {
		Path string `oribi:"path,key"`
		Size int64  `oribi:"size"`
	}
	files, err := oribi.OpenTable[entry](store, "files")
	if err != nil {
		log.Fatal(err)
	}
	if _, err := files.Put(ctx, entry{"a.txt", 1}, entry{"b.txt", 2}); err != nil {
		log.Fatal(err)
	}
	if err := files.Table.Flush(ctx); err != nil {
		log.Fatal(err)
	}
	if err := store.Close(); err != nil {
		log.Fatal(err)
	}
	if err := events.Err(); err != nil {
		log.Fatal(err)
	}
	for e, err := range compaction.ReadEvents(&file) {
		if err != nil {
			log.Fatal(err)
		}
		if e.Begin {
			fmt.Println(e.Job, e.Kind, "of", e.Table, "begins:", e.Why)
		} else {
			fmt.Println(e.Job, e.Kind, "of", e.Table, "wrote", e.RowsWritten, "rows, error", e.Err)
		}
	}
	// Output:
	// 1 flush of files begins: the MemRowSet is flushed
	// 1 flush of files wrote 2 rows, error <nil>
}
