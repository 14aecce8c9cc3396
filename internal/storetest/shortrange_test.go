package storetest

import (
	"fmt"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/invariant"
	"github.com/oribi-db/oribi/vfs"
)

// A range of 20 rows in a flushed table costs a number of allocations that depends neither on the
// rows nor on the columns. Rows as structs add their strings.
func TestShortRangesAllocateLittle(t *testing.T) {
	if invariant.Race {
		t.Skip("the race detector drops values of pools")
	}
	const rows, length = 2000, 20
	store, err := oribi.Open("/short", &oribi.Options{FS: vfs.NewMem(), Manual: true})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	table, err := oribi.OpenTable[measure](store, "measures")
	if err != nil {
		t.Fatal(err)
	}
	b := store.NewBatch()
	for i := range rows {
		table.Insert(b, measure{Key: int64(i), Number: int64(i), Word: fmt.Sprint("word ", i%100),
			Text: fmt.Sprint("text of row ", i)})
	}
	if _, err := b.Commit(t.Context(), oribi.NoSync); err != nil {
		t.Fatal(err)
	}
	if err := table.Table.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		most float64
		read func() (n int)
	}{
		{"batches", 20, func() (n int) {
			for b, err := range table.Table.Scan(t.Context(), oribi.From(int64(700)), oribi.Limit(length)).Batches() {
				if err != nil {
					t.Fatal(err)
				}
				n += b.Selected()
			}
			return n
		}},
		{"structs", 25 + 2*length, func() (n int) {
			for _, err := range table.Scan(t.Context(), oribi.From(int64(700)), oribi.Limit(length)) {
				if err != nil {
					t.Fatal(err)
				}
				n++
			}
			return n
		}},
	} {
		for range 10 { // until the cache has all blocks that the scan needs
			if n := c.read(); n != length {
				t.Fatalf("%s: %d rows, want %d", c.name, n, length)
			}
		}
		if n := testing.AllocsPerRun(50, func() { c.read() }); n > c.most {
			t.Errorf("%s: %v allocations, want at most %v", c.name, n, c.most)
		}
	}
}
