package storetest

import (
	"bytes"
	"context"
	"encoding/binary"
	"iter"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/internal/store"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
)

// Rows that are read by chunk marks are right, also after compactions have replaced the files that the
// marks were made of.
func TestMarksOfReplacedFilesAreNotUsed(t *testing.T) {
	r := seedtest.Rand(t)
	store.ScarceCache.Store(true)
	s := must.Get(oribi.Open(closedDir, &oribi.Options{FS: vfs.NewMem(), Manual: true}))(t)
	store.ScarceCache.Store(false)
	ctx := context.Background()
	columns := must.Get(schema.New([]schema.Column{{Name: "k", Type: schema.Int64}, {Name: "v", Type: schema.Int64},
		{Name: "w", Type: schema.Double}}, 1))(t)
	table := must.Get(s.CreateTable("t", columns, oribi.RowFile(schema.NoRowFile)))(t)
	const rows = 20000
	b := batch.New(columns.Columns, rows)
	for i := range rows {
		batch.Values[int64](b.Columns[0])[i] = int64(i) * 1000
		batch.Values[int64](b.Columns[1])[i], batch.Values[float64](b.Columns[2])[i] = r.Int64(), r.Float64()
	}
	must.Get2(table.Ingest(ctx, iter.Seq2[[]*batch.Vector, error](func(yield func([]*batch.Vector, error) bool) {
		yield(b.Columns, nil)
	})))(t)
	parts := int64(0)
	check := func() {
		t.Helper()
		for range 500 {
			i := r.IntN(rows)
			_, cells, err := table.GetCells(ctx, [][]byte{b.Columns[0].Cell(i)})
			must.Do(t, err)
			for c, v := range b.Columns {
				if !bytes.Equal(cells[c], v.Cell(i)) {
					t.Fatalf("row %d, column %d: %x, want %x", i, c, cells[c], v.Cell(i))
				}
			}
			absent := binary.LittleEndian.AppendUint64(nil, uint64(i*1000+1))
			must.Equal(t, must.Get(table.Has(ctx, [][]byte{absent}))(t), false)
		}
		m := must.Get(s.Metrics())(t)
		if m.Cache.Parts < parts+500 {
			t.Errorf("only %d parts are read", m.Cache.Parts-parts)
		}
		parts = m.Cache.Parts
	}
	for round := range 4 {
		check()
		write := s.NewBatch()
		for range 2000 {
			i := r.IntN(rows)
			v := r.Int64()
			write.Update(table, oribi.Row{"k": int64(i) * 1000, "v": v})
			batch.Values[int64](b.Columns[1])[i] = v
		}
		must.Get(write.Commit(ctx, oribi.NoSync))(t)
		if round%2 == 0 {
			must.Get(table.FlushDeltas(ctx))(t)
			must.Get(table.CompactMajor(ctx))(t)
		} else {
			must.Do(t, table.Compact(ctx))
		}
	}
	check()
	must.Do(t, s.Close())
}
