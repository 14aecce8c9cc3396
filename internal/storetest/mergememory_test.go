package storetest

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/prooftest/memory"
	"github.com/oribi-db/oribi/internal/prooftest/values"
	"github.com/oribi-db/oribi/schema"
)

// BenchmarkMergeMemory merges 64 rowsets of 300 columns over the same keys, and reports the memory
// that is in use at the peak, in MiB, and how far it is above the memory limit. Run it with
// -benchtime 1x and GODEBUG=gcstoptheworld=1; see memory.Store.Env.
func BenchmarkMergeMemory(b *testing.B) {
	for _, limit := range []int64{32 << 20, 64 << 20, 256 << 20} {
		b.Run(fmt.Sprintf("limit=%dMiB", limit>>20), func(b *testing.B) { mergeMemory(b, limit, schema.Int64, 8) })
	}
	b.Run("type=string/limit=64MiB", func(b *testing.B) { mergeMemory(b, 64<<20, schema.Binary, 20) })
}

// mergeMemory merges rowsets whose columns, except the key, have a type and random cells of some
// bytes.
func mergeMemory(b *testing.B, limit int64, cell schema.Type, bytes int) {
	const sets, rows, columns = 64, 1000, 300
	store := must.Get(
		oribi.Open(b.TempDir(), &oribi.Options{Manual: true, MemoryLimit: limit, Policy: compaction.None{}}))(b)
	defer store.Close()
	list := []schema.Column{{Name: "k", Type: schema.Int64}}
	for i := range columns - 1 {
		list = append(list, schema.Column{Name: fmt.Sprint("c", i), Type: cell})
	}
	table := must.Get(store.CreateTable("t", mustSchema(b, list...)))(b)
	r := values.NewRand(1)
	cells := make([][]byte, columns)
	for set := range sets {
		w := store.NewBatch()
		for row := range rows {
			for i := range cells {
				cells[i] = nil
				for range (bytes + 7) / 8 {
					cells[i] = binary.LittleEndian.AppendUint64(cells[i], r.Uint64())
				}
				cells[i] = cells[i][:bytes]
			}
			cells[0] = binary.LittleEndian.AppendUint64(nil, uint64(row*sets+set))
			w.Cells(oribi.OpInsert, table, cells, nil)
		}
		must.Get(w.Commit(b.Context(), oribi.NoSync))(b)
		must.Do(b, table.Flush(b.Context()))
	}
	must.Equal(b, table.Layout().MaxHeight(), sets, "rowsets over a key")
	peak := memory.WatchLivePeak()
	b.ResetTimer()
	must.Do(b, table.Merge(b.Context(), everything(table.Layout())))
	used := peak.Stop()
	b.ReportMetric(float64(used)/(1<<20), "MiB")
	b.ReportMetric(float64(used-limit)/(1<<20), "MiB-above-limit")
}
