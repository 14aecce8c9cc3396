package oribi

import (
	"encoding/binary"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/meta"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/tablet"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
)

// The background may complete an index, which an earlier process has begun, during an ingest.
func TestIngestWhileAnIndexIsCompleted(t *testing.T) {
	ctx := t.Context()
	store := must.Get(Open("/store", &Options{FS: vfs.NewMem(), Manual: true}))(t)
	defer store.Close()
	columns := must.Get(
		schema.New([]schema.Column{{Name: "k", Type: schema.Int64}, {Name: "v", Type: schema.Int64}}, 1))(t)
	table := must.Get(store.CreateTable("t", columns, Unique("by_v", "v")))(t)
	step := func(first int64) []*batch.Vector {
		k, v := batch.NewVector(schema.Int64, 0), batch.NewVector(schema.Int64, 0)
		for i := range int64(100) {
			k.AppendCell(binary.LittleEndian.AppendUint64(nil, uint64(first+i)))
			v.AppendCell(binary.LittleEndian.AppendUint64(nil, uint64(-first-i)))
		}
		return []*batch.Vector{k, v}
	}
	_, n, err := table.Ingest(ctx, func(yield func([]*batch.Vector, error) bool) {
		if yield(step(0), nil) {
			must.Do(t, table.entry.Indexes()[0].Alter(ctx, func(row *meta.Table) ([]tablet.Retype, error) {
				x := *row.Index
				x.Since = store.core.Visible()
				row.Index = &x
				return nil, nil
			}))
			yield(step(100), nil)
		}
	})
	must.Do(t, err)
	must.Equal(t, n, 200)
	for _, k := range []int64{0, 99, 100, 199} {
		must.Equal(t, must.Get(table.GetBy(ctx, "by_v", -k))(t)["k"], any(k))
	}
	must.Do(t, table.Flush(ctx))
	must.Equal(t, must.Get(table.GetBy(ctx, "by_v", -150))(t)["k"], any(int64(150)))
}
