package storetest

import (
	"fmt"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
)

// Close flushes what takes longer to replay. Small tables keep their rows in the log if there are many
// of them, and are flushed with the large one otherwise, since they would keep its part of the log too.
func TestCloseFlushesWhatTakesLongerToReplay(t *testing.T) {
	for _, c := range []struct {
		small   int
		flushed bool // the small ones
	}{{5, true}, {60, false}} {
		t.Run(fmt.Sprintf("%d small tables", c.small), func(t *testing.T) {
			dir := t.TempDir()
			s := must.Get(oribi.Open(dir, &oribi.Options{Manual: true}))(t)
			b := s.NewBatch()
			for i := range c.small + 1 {
				table := tableOf(t, s, fmt.Sprint("t", i), "k*:int64 v:binary")
				rows := 1
				if i == c.small {
					rows = 600 // 18 MiB
				}
				for k := range rows {
					b.Insert(table, oribi.Row{"k": int64(k), "v": make([]byte, 30<<10)})
					if b.Bytes() < 1<<20 && k < rows-1 {
						continue
					}
					must.Do(t, must.Err(b.Commit(t.Context(), oribi.NoSync)))
					b.Reset()
				}
			}
			must.Do(t, s.Close())
			s = must.Get(oribi.Open(dir, &oribi.Options{Manual: true}))(t)
			defer s.Close()
			for i, table := range s.Tables() {
				large := table.Name() == fmt.Sprint("t", c.small)
				must.Equal(t, len(table.RowSets()) > 0, large || c.flushed, "table", table.Name(), "flushed")
				n, err := table.Count(t.Context())
				if want := int64(1); err != nil || n != want && !(large && n == 600) {
					t.Errorf("table %d: %d rows, %v", i, n, err)
				}
			}
		})
	}
}
