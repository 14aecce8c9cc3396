package storetest

import (
	"fmt"
	"strings"
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
	}{{5, true}, {300, true}, {1000, false}} {
		t.Run(fmt.Sprintf("%d small tables", c.small), func(t *testing.T) {
			dir := t.TempDir()
			s := must.Get(oribi.Open(dir, &oribi.Options{Manual: true}))(t)
			columns := must.Get(parseSchema(strings.Fields("k*:int64 v:binary")))(t)
			var list []oribi.NewTable
			for i := range c.small + 1 {
				list = append(list, oribi.NewTable{Name: fmt.Sprint("t", i), Columns: columns})
			}
			tables := must.Get(s.CreateTables(list...))(t)
			b := s.NewBatch()
			for _, table := range tables[:c.small] {
				b.Insert(table, oribi.Row{"k": 0, "v": "small"})
			}
			for k := range 600 { // 18 MiB
				b.Insert(tables[c.small], oribi.Row{"k": k, "v": make([]byte, 30<<10)})
				if b.Bytes() >= 1<<20 || k == 599 {
					must.Do(t, must.Err(b.Commit(t.Context(), oribi.NoSync)))
					b.Reset()
				}
			}
			must.Do(t, s.Close())
			s = must.Get(oribi.Open(dir, &oribi.Options{ReadOnly: true}))(t)
			defer s.Close()
			for i, n := range list {
				table, rows := must.Get(s.Table(n.Name))(t), int64(1)
				if i == c.small {
					rows = 600
				}
				must.Equal(t, len(table.RowSets()) > 0, i == c.small || c.flushed, "table", i, "flushed")
				must.Equal(t, must.Get(table.Count(t.Context()))(t), rows, "table", i)
			}
		})
	}
}
