package oribi

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
)

// The records of a log of 3 MiB are replayed in order: the first MiB is applied at once, the rest in
// chunks of 256 KiB, and some records are longer than a chunk.
func TestReplayOfLongLogs(t *testing.T) {
	r := seedtest.Rand(t)
	ctx := context.Background()
	o := &Options{FS: vfs.NewMem(), Manual: true}
	store := must.Get(Open("/store", o))(t)
	s := must.Get(schema.New([]schema.Column{{Name: "k", Type: schema.Int64}, {Name: "v", Type: schema.Binary}}, 1))(t)
	var tables [2]*Table
	want := [2]map[int64][]byte{{}, {}}
	for i := range tables {
		tables[i] = must.Get(store.CreateTable(fmt.Sprint("t", i), s))(t)
	}
	b := store.NewBatch()
	batches := 0
	for size := 0; size < 3<<20; batches++ {
		value := make([]byte, 1+r.IntN(8<<10))
		ops := 1 + r.IntN(4)
		if r.IntN(40) == 0 {
			value, ops = make([]byte, 50<<10), 8
		}
		for range ops {
			i, k := r.IntN(2), int64(r.IntN(200))
			if value[0] = byte(r.Uint32()); r.IntN(5) == 0 {
				b.DeleteIgnore(tables[i], Row{"k": k})
				delete(want[i], k)
				continue
			}
			b.Upsert(tables[i], Row{"k": k, "v": value})
			want[i][k] = bytes.Clone(value)
			size += len(value)
		}
		must.Get(b.Commit(ctx, NoSync))(t)
	}
	must.Do(t, store.Close())
	store = must.Get(Open("/store", o))(t)
	defer store.Close()
	for i := range tables {
		table := must.Get(store.Table(fmt.Sprint("t", i)))(t)
		rows := 0
		for row := range must.All(t, table.Scan(ctx).Rows()) {
			if v, ok := want[i][row["k"].(int64)]; !ok || !bytes.Equal(v, row["v"].([]byte)) {
				t.Errorf("table %d: key %d has a value of %d bytes, want %d", i, row["k"], len(row["v"].([]byte)),
					len(v))
			}
			rows++
		}
		must.Equal(t, rows, len(want[i]), "table", i, "rows")
	}
}
