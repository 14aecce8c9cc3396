package handover

import (
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"testing"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/kudutest"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/kudu"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/rowset"
	"github.com/oribi-db/oribi/vfs"
)

// Files that do not fit together are refused, and nothing of the table remains.
func TestAdoptRefuses(t *testing.T) {
	from := small(t)
	each := func(change func(f *rowset.Files)) iter.Seq2[rowset.Files, error] {
		return func(yield func(rowset.Files, error) bool) {
			for f, err := range from.RowSets(t.Context()) {
				if err == nil {
					m := *f.Metadata
					f.Metadata = &m
					change(&f)
				}
				if !yield(f, err) {
					return
				}
			}
		}
	}
	failure := errors.New("no more")
	for _, test := range []struct {
		name string
		sets iter.Seq2[rowset.Files, error]
		err  error
		text string
	}{
		{"a row too many", each(func(f *rowset.Files) { f.Metadata.LiveRows-- }), oribi.ErrCorrupt, "live rows"},
		{"another lower bound", each(func(f *rowset.Files) {
			f.Metadata.MinKey = []byte{}
		}), oribi.ErrCorrupt, "bound"},
		{"another number of rows", each(func(f *rowset.Files) { f.Metadata.Rows++ }), oribi.ErrCorrupt, "rows, want"},
		{"a missing column", each(func(f *rowset.Files) {
			f.Metadata.Columns = f.Metadata.Columns[1:]
		}), oribi.ErrCorrupt, "no file for column"},
		{"a column twice", each(func(f *rowset.Files) {
			f.Metadata.Columns = append(f.Metadata.Columns[:1:1], f.Metadata.Columns...)
		}), oribi.ErrCorrupt, "twice"},
		{"a column in place of the filter", each(func(f *rowset.Files) {
			f.Metadata.Columns = append(f.Metadata.Columns[:0:0], f.Metadata.Columns...)
			f.Metadata.Bloom, f.Metadata.Columns[0].Block = f.Metadata.Columns[0].Block, f.Metadata.Bloom
		}), oribi.ErrCorrupt, ""},
		{"undos as redos", each(func(f *rowset.Files) {
			f.Metadata.Undo, f.Metadata.Redo = f.Metadata.Redo, f.Metadata.Undo
		}), oribi.ErrCorrupt, ""},
		{"no blocks", each(func(f *rowset.Files) { f.Blocks = nil }), oribi.ErrCorrupt, "without blocks"},
		{"every row twice", func(yield func(rowset.Files, error) bool) {
			for range 2 {
				for f, err := range from.RowSets(t.Context()) {
					if !yield(f, err) {
						return
					}
				}
			}
		}, oribi.ErrCorrupt, "comes after key"},
		{"an error", func(yield func(rowset.Files, error) bool) { yield(rowset.Files{}, failure) }, failure, "no more"},
	} {
		fsys := vfs.NewMem()
		s := openStore(t, fsys)
		_, err := s.Adopt(t.Context(), oribi.Adoption{Name: "t", Schema: from.Schema, RowSets: test.sets})
		must.Fail(t, err, test.err, test.name)
		must.Contain(t, fmt.Sprint(err), test.text, test.name)
		must.Do(t, s.Close())
		must.Equal(t, must.Get(wholeOrAbsent(t, fsys, "t", nil))(t), false, test.name)
	}
}

// A table with operations that are more than 10 s ahead of the clock is refused before any of it is
// written. Operations less far ahead are imported, and the store's clock passes their times.
func TestImportOfTheFuture(t *testing.T) {
	from := small(t)
	open := func(now time.Time) *oribi.Store {
		s, err := oribi.Open("/store", &oribi.Options{FS: vfs.NewMem(), Clock: mvcc.NewHybridClock(func() time.Time {
			return now
		})})
		must.Do(t, err)
		t.Cleanup(func() { s.Close() })
		return s
	}
	newest := from.Newest()
	if _, err := Import(t.Context(), open(newest.Time().Add(-11*time.Second)), from,
		ImportOptions{}); !errors.Is(err, oribi.ErrFuture) {
		t.Errorf("11 s ahead: %v, want ErrFuture", err)
	}
	s := open(newest.Time().Add(-9 * time.Second))
	table := must.Get(Import(t.Context(), s, from, ImportOptions{}))(t)
	b := s.NewBatch()
	for row, err := range table.Scan(t.Context(), oribi.Limit(1)).Rows() {
		must.Do(t, err)
		b.Upsert(table, row)
	}
	if ts, err := b.Commit(t.Context()); ts <= newest || err != nil {
		t.Errorf("the next batch is at %d, the newest operation at %d, %v", ts, newest, err)
	}
}

// Damage of a block is found, wherever it is, and no table remains.
func TestImportOfDamage(t *testing.T) {
	c := kudutest.Read(t, "file-blocks")
	base := c.Unpack(t)
	about := must.Get(openDirectory(t, base).Describe(c.Tablets[0].Table))(t)
	set := about.Tablets[0].RowSets[0]
	files := []string{set.Columns[len(set.Columns)-1].File, set.Bloom.File}
	if len(set.Undo) > 0 {
		files = append(files, set.Undo[0].File)
	}
	for _, name := range files {
		fsys := base.Clone()
		f := must.Get(fsys.Open(name, true))(t)
		var b [1]byte
		const at = 40 // in the first cblock
		_, err := f.ReadAt(b[:], at)
		b[0] ^= 1
		if err == nil {
			_, err = f.WriteAt(b[:], at)
		}
		must.Do(t, errors.Join(err, f.Close()))
		d := must.Get(kudu.Open("/fs", kudu.Options{FS: fsys}))(t)
		defer d.Close()
		s := openStore(t, vfs.NewMem())
		_, err = Import(t.Context(), s, openKudu(t, d, c.Tablets[0].Table), ImportOptions{})
		if !errors.Is(err, oribi.ErrCorrupt) || len(s.Tables()) > 0 {
			t.Errorf("%s: %v, tables %v; want ErrCorrupt", filepath.Base(name), err, s.Tables())
		}
	}
}
