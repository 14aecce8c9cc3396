package storetest

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/blockmanager"
	"github.com/oribi-db/oribi/cfile"
	"github.com/oribi-db/oribi/internal/meta"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/rowset"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
)

// Damaged footers cost no rows, whether of single files or of all together: files are read by their
// cblocks. The same holds for the roots of indexes.
func TestDamagedFootersAndIndexesCostNothing(t *testing.T) {
	ctx := context.Background()
	mem := vfs.NewMem()
	store := copiedStore(t, mem)
	table := must.Get(store.Table("numbers"))(t)
	var times []mvcc.Timestamp
	for from := int64(0); from < 40; from += 10 {
		b := store.NewBatch()
		for k := from; k < from+10; k++ {
			b.Delete(table, oribi.Row{"k": 3 * k})
			b.Upsert(table, oribi.Row{"k": 4 * k, "v": -k})
		}
		done := must.Get(b.Commit(ctx))(t)
		times = append(times, done)
		must.Do(t, table.Flush(ctx))
	}
	times = append(times, times[0]-1, times[0]-50, mvcc.Max)
	must.Do(t, store.Close())
	want := must.Get(oribi.Open("/store", &oribi.Options{FS: mem.Clone(), ReadOnly: true}))(t)
	defer want.Close()
	footers, roots := damagePlaces(t, mem)
	if len(footers) < 10 || len(roots) < 8 {
		t.Fatal(len(footers), len(roots))
	}
	check := func(what string, at ...blockmanager.BlockLocation) {
		t.Helper()
		image := mem.Clone()
		for _, p := range at {
			flipByte(t, image, "/store/"+p.File, p.Offset)
		}
		got, losses := salvaged(t, image)
		must.Equal(t, len(losses), 0, what, "lost", losses)
		must.Do(t, sameAsOf(want, got, times...), what)
		got.Close()
	}
	check("all footers", footers...)
	check("all indexes", roots...)
	for i := 0; i < len(footers); i += seedtest.Stride(5) {
		check(fmt.Sprintf("footer of block %d", footers[i].ID), footers[i])
	}
	for i := 0; i < len(roots); i += seedtest.Stride(5) {
		check(fmt.Sprintf("index of block %d", roots[i].ID), roots[i])
	}
}

// damagePlaces returns a byte of each footer, and one of each root of an index, of columns and
// changes.
func damagePlaces(t *testing.T, mem *vfs.Mem) (footers, roots []blockmanager.BlockLocation) {
	t.Helper()
	m := openBlocks(t, mem)
	defer m.Close()
	var ids []block.ID
	eachRowSet(t, m, func(_ *meta.Table, set *rowset.Metadata) { ids = append(ids, set.Blocks(nil)...) })
	for _, at := range m.BlockLocations() {
		must.Equal(t, slices.Contains(ids, at.ID), true, "no rowset has block", at.ID)
		src := must.Get(m.OpenBlock(at.ID))(t)
		r, err := cfile.Open(src, cfile.ReaderOptions{NoHeader: true})
		if err == nil {
			var list []cfile.BlockPointer
			if list, err = r.BlockPointers(); err == nil && r.Rows() > 0 {
				last := list[len(list)-1]
				root := at
				root.Offset += last.Offset + int64(last.Size) + 3 // the root follows the last cblock
				roots = append(roots, root)
			}
		}
		src.Close()
		if err == nil {
			at.Offset += at.Length - 3
			footers = append(footers, at)
		}
	}
	return footers, roots
}

// Verify reports damage of the journal with the next step for the user, and the next flush of a
// writer repairs it.
func TestVerifyReportsADamagedJournal(t *testing.T) {
	mem := vfs.NewMem()
	must.Do(t, copiedStore(t, mem).Close())
	flipByte(t, mem, "/store/"+blockmanager.JournalName, 200)
	findings := func(o *oribi.Options, before func(s *oribi.Store)) (found []oribi.Finding) {
		t.Helper()
		s := must.Get(oribi.Open("/store", o))(t)
		defer s.Close()
		before(s)
		must.Do(t, s.Verify(context.Background(), func(f oribi.Finding) { found = append(found, f) }))
		return found
	}
	found := findings(&oribi.Options{FS: mem, ReadOnly: true}, func(*oribi.Store) {})
	if len(found) != 1 || found[0].File != blockmanager.JournalName ||
		!bytes.Contains([]byte(found[0].Problem), []byte("writes it anew")) {
		t.Errorf("%+v", found)
	}
	found = findings(&oribi.Options{FS: mem, Manual: true}, func(s *oribi.Store) {
		table := must.Get(s.Table("numbers"))(t)
		must.Do(t, table.Flush(context.Background()))
	})
	must.Equal(t, len(found), 0, "after a flush", found)
}

// A container ends within a column. The cells before its end are in the new store.
func TestSalvageReadsTruncatedContainers(t *testing.T) {
	const rows = 20000
	ctx := context.Background()
	mem := vfs.NewMem()
	store := must.Get(oribi.Open("/store", &oribi.Options{FS: mem, Manual: true}))(t)
	small := int32(4096)
	columns := must.Get(schema.New([]schema.Column{{Name: "k", Type: schema.Int64, BlockBytes: small},
		{Name: "a", Type: schema.Int64, BlockBytes: small},
		{Name: "b", Type: schema.Int64, BlockBytes: small}}, 1))(t)
	table := must.Get(store.CreateTable("t", columns, oribi.RowFile(schema.NoRowFile)))(t)
	rng := seedtest.Rand(t)
	a := make([]int64, rows)
	b := store.NewBatch()
	for k := range int64(rows) {
		a[k] = int64(rng.Uint64())
		b.Insert(table, oribi.Row{"k": k, "a": a[k], "b": -a[k]})
	}
	must.Get(b.Commit(ctx))(t)
	must.Do(t, table.Flush(ctx))
	must.Do(t, store.Close())
	var last blockmanager.BlockLocation
	var cut, want int64
	for _, c := range []string{"k", "a", "b"} {
		at, cblocks, counts := columnBlock(t, mem, c)
		if at.Offset > last.Offset {
			last, cut, want = at, at.Offset+int64(cblocks[2].Offset)+int64(cblocks[2].Size)/2, counts[0]+counts[1]
		}
	}
	f := must.Get(mem.Open("/store/"+last.File, true))(t)
	must.Do(t, f.Truncate(cut))
	f.Close()
	out, losses := salvaged(t, mem)
	if len(losses) == 0 {
		t.Error("no loss")
	}
	saved := must.Get(out.Table("t"))(t)
	n := int64(0)
	for row := range must.All(t, saved.Scan(ctx).Rows()) {
		k := row["k"].(int64)
		if row["a"] != a[k] || row["b"] != -a[k] {
			t.Fatalf("row %v, want a=%d", row, a[k])
		}
		n++
	}
	must.Equal(t, n, want, "rows")
}
