package storetest

import (
	"fmt"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/invariant"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/prooftest/history"
	"github.com/oribi-db/oribi/vfs"
)

// A range of 20 rows in a flushed table costs a number of allocations that depends neither on the
// rows nor on the columns. Rows as structs add their strings.
func TestShortRangesAllocateLittle(t *testing.T) {
	if invariant.Race {
		t.Skip("the race detector drops values of pools")
	}
	history.Usual()
	const rows, length = 2000, 20
	store := must.Get(oribi.Open("/short", &oribi.Options{FS: vfs.NewMem(), Manual: true}))(t)
	defer store.Close()
	table := must.Get(oribi.OpenTable[measure](store, "measures"))(t)
	b := store.NewBatch()
	for i := range rows {
		table.InBatch(b).Insert(measure{Key: int64(i), Number: int64(i), Word: fmt.Sprint("word ", i%100),
			Text: fmt.Sprint("text of row ", i)})
	}
	must.Do(t, must.Err(b.Commit(t.Context(), oribi.NoSync)))
	must.Do(t, table.Table.Flush(t.Context()))
	for _, c := range []struct {
		name string
		most float64
		read func() (n int)
	}{
		{"batches", 20, func() (n int) {
			for b, err := range table.Table.Scan(t.Context(), oribi.From(int64(700)), oribi.Limit(length)).Batches() {
				must.Do(t, err)
				n += b.Selected()
			}
			return n
		}},
		{"structs", 25 + 2*length, func() (n int) {
			for range must.All(t, table.Scan(t.Context(), oribi.From(int64(700)), oribi.Limit(length))) {
				n++
			}
			return n
		}},
	} {
		for range 10 { // until the cache has all blocks that the scan needs
			must.Equal(t, c.read(), length, c.name, "rows")
		}
		if n := testing.AllocsPerRun(50, func() { c.read() }); n > c.most {
			t.Errorf("%s: %v allocations, want at most %v", c.name, n, c.most)
		}
	}
}
