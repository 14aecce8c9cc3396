package oribi_test

import (
	"context"
	"fmt"
	"log"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
)

// atMost is a compaction policy: it keeps a table at so many rowsets, by merging the two neighbors
// that are cheapest to rewrite.
type atMost int

func (n atMost) Validate() error {
	if n < 1 {
		return fmt.Errorf("at most %d rowsets, want at least 1", int(n))
	}
	return nil
}

func (n atMost) Pick(layout compaction.Layout, budget int64) compaction.Choice {
	sets := layout.RowSets
	best, cheapest := -1, budget
	for i := range len(sets) - 1 {
		if cost := sets[i].Bytes + sets[i+1].Bytes; cost <= cheapest {
			best, cheapest = i, cost
		}
	}
	if len(sets) <= int(n) || best < 0 {
		return compaction.Choice{}
	}
	return compaction.Choice{
		RowSets: []uint64{sets[best].ID, sets[best+1].ID},
		Why:     fmt.Sprintf("%d rowsets, want %d", len(sets), int(n)),
	}
}

// A compaction policy of one's own. It is tried on a layout without a store, and on a table whose
// flushes and merges the program starts itself.
func ExampleTable_MergeBy() {
	key := func(k byte) []byte { return []byte{k} }
	layout := compaction.Layout{Table: "a sketch", RowSets: []compaction.RowSetInfo{
		{ID: 1, MinKey: key('a'), MaxKey: key('g'), Bytes: 30 << 20},
		{ID: 2, MinKey: key('d'), MaxKey: key('m'), Bytes: 9 << 20},
		{ID: 3, MinKey: key('f'), MaxKey: key('z'), Bytes: 12 << 20},
	}}
	fmt.Println(atMost(2).Pick(layout, 64<<20).RowSets, atMost(2).Pick(layout, 16<<20).RowSets)

	ctx := context.Background()
	store, err := oribi.Open("/store", &oribi.Options{FS: vfs.NewMem(), Manual: true}) // or Policy: atMost(2)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	columns, err := schema.New([]schema.Column{{Name: "path", Type: schema.String},
		{Name: "size", Type: schema.Int64}}, 1)
	if err != nil {
		log.Fatal(err)
	}
	files, err := store.CreateTable("files", columns)
	if err != nil {
		log.Fatal(err)
	}
	for i := range 5 {
		put(store, files, map[string]int{fmt.Sprintf("%d.txt", i): i})
		if err := files.Flush(ctx); err != nil {
			log.Fatal(err)
		}
	}
	result, err := files.MergeBy(ctx, atMost(2), 64<<20)
	fmt.Println(result.RowSetsBefore, "rowsets before,", result.RowSetsAfter, "after;", err)
	// Output:
	// [2 3] []
	// 5 rowsets before, 2 after; <nil>
}
