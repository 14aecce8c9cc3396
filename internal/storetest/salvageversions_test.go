package storetest

import (
	"context"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/blockmanager"
	"github.com/oribi-db/oribi/cfile"
	"github.com/oribi-db/oribi/internal/meta"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/prooftest/history"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/rowset"
	"github.com/oribi-db/oribi/vfs"
)

// A row has so many changes that its undos are in several cblocks, one of which is damaged. Rows
// that the damaged store returns as of times before those changes, and after, are in the new store:
// the file has no change of the other column.
func TestSalvageKeepsVersionsBeforeAndAfterDamagedChanges(t *testing.T) {
	ctx := context.Background()
	mem := vfs.NewMem()
	store := must.Get(oribi.Open("/store", &oribi.Options{FS: mem, Manual: true, History: oribi.HistoryForever}))(t)
	table := tableOf(t, store, "t", "k*:int64 a:binary b:int64")
	rng := seedtest.Rand(t)
	long := func() []byte {
		b := make([]byte, 1000)
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		return b
	}
	var times []mvcc.Timestamp
	commit := func(do func(b *oribi.Batch)) {
		t.Helper()
		b := store.NewBatch()
		do(b)
		ts := must.Get(b.Commit(ctx))(t)
		times = append(times, ts)
	}
	commit(func(b *oribi.Batch) { b.Insert(table, oribi.Row{"k": 1, "a": long(), "b": 7}) })
	for range 150 {
		commit(func(b *oribi.Batch) { b.Update(table, oribi.Row{"k": 1, "a": long()}) })
	}
	must.Do(t, table.Flush(ctx))
	must.Do(t, store.Close())
	undo := undoBlock(t, mem)
	if len(undo.cblocks) < 4 {
		t.Fatalf("%d cblocks of undos", len(undo.cblocks))
	}
	for i := range undo.cblocks {
		image := mem.Clone()
		flipByte(t, image, "/store/"+undo.at.File, undo.at.Offset+int64(undo.cblocks[i].Offset)+100)
		damaged := must.Get(oribi.Open("/store", &oribi.Options{FS: image, ReadOnly: true}))(t)
		old := must.Get(damaged.Table("t"))(t)
		out, losses := salvaged(t, image)
		saved := must.Get(out.Table("t"))(t)
		must.Equal(t, len(losses), 1, losses)
		readable, kept := 0, 0
		for _, ts := range times {
			_, cells, err := saved.GetCells(ctx, 1, oribi.AsOf(ts))
			if err == nil {
				kept++
			}
			_, want, damage := old.GetCells(ctx, 1, oribi.AsOf(ts))
			if damage != nil {
				continue
			}
			readable++
			if err != nil {
				t.Errorf("cblock %d: as of %d: %v", i, ts, err)
			} else if err := history.DifferentCells(cells, want); err != nil {
				t.Errorf("cblock %d: as of %d: %v", i, ts, err)
			}
		}
		if readable == 0 || readable == len(times) || kept == len(times) || kept < len(times)/2 {
			t.Errorf("cblock %d: of %d versions the damaged store returns %d, the new one %d",
				i, len(times), readable, kept)
		}
		damaged.Close()
		out.Close()
	}
}

// undoFile is a file of undos.
type undoFile struct {
	at      blockmanager.BlockLocation
	cblocks []cfile.BlockPointer
}

// undoBlock returns the only file of undos of a store.
func undoBlock(t *testing.T, mem *vfs.Mem) (f undoFile) {
	t.Helper()
	m := openBlocks(t, mem)
	defer m.Close()
	eachRowSet(t, m, func(_ *meta.Table, set *rowset.Metadata) {
		must.Equal(t, len(set.Undo), 1, "files of undos")
		for _, p := range m.BlockLocations() {
			if p.ID == set.Undo[0] {
				f.at = p
			}
		}
	})
	src := must.Get(m.OpenBlock(f.at.ID))(t)
	defer src.Close()
	r := must.Get(cfile.Open(src, cfile.ReaderOptions{NoHeader: true}))(t)
	f.cblocks = must.Get(r.BlockPointers())(t)
	return f
}

// eachRowSet calls use with the metadata of each rowset of the store at /store.
func eachRowSet(t *testing.T, m *blockmanager.Manager, use func(table *meta.Table, set *rowset.Metadata)) {
	t.Helper()
	must.Do(t, m.Rows(meta.TablePrefix(), func(_, value []byte) error {
		table, err := meta.DecodeTable(value)
		if err != nil {
			return err
		}
		return m.Rows(meta.RowSetPrefix(table.Number), func(_, value []byte) error {
			set, err := rowset.DecodeMetadata(value)
			if err == nil {
				use(table, set)
			}
			return err
		})
	}))
}
