package storetest

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/vfs"
)

// readTree returns the bytes of all files below dir by name, and directories as nil. It omits LOCK,
// to which a writer writes.
func readTree(t *testing.T, fsys vfs.FS, dir string) map[string][]byte {
	t.Helper()
	tree := map[string][]byte{}
	var visit func(name string)
	visit = func(name string) {
		names := must.Get(fsys.List(filepath.Join(dir, name)))(t)
		for _, n := range names {
			n = filepath.Join(name, n)
			info, err := fsys.Stat(filepath.Join(dir, n))
			switch {
			case err != nil:
				t.Fatal(err)
			case info.IsDir():
				tree[n] = nil
				visit(n)
			case n != "LOCK":
				tree[n] = readAll(t, fsys, filepath.Join(dir, n))
			}
		}
	}
	visit("")
	return tree
}

func readAll(t *testing.T, fsys vfs.FS, name string) []byte {
	t.Helper()
	f := must.Get(fsys.Open(name, false))(t)
	defer f.Close()
	size, err := f.Size()
	b := make([]byte, size)
	if err == nil && size > 0 {
		_, err = f.ReadAt(b, 0)
	}
	must.Do(t, err)
	return b
}

// writeTree writes the result of readTree to an empty directory.
func writeTree(t *testing.T, fsys vfs.FS, dir string, tree map[string][]byte) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(tree)) {
		path := filepath.Join(dir, name)
		if tree[name] == nil {
			must.Do(t, fsys.Mkdir(path))
			continue
		}
		f := must.Get(fsys.Create(path))(t)
		must.Do(t, must.Err(f.WriteAt(tree[name], 0)))
		f.Close()
	}
}

// storeTree returns a closed store with a flushed rowset and records in its log, and the same store
// as a kill before Close leaves it.
func storeTree(t *testing.T) (closed, killed map[string][]byte) {
	t.Helper()
	mem := vfs.NewMem()
	store := must.Get(oribi.Open("/store", &oribi.Options{FS: mem, Manual: true}))(t)
	table := numbersTable(t, store, "numbers")
	fillNumbers(t, store, table, 0, 100)
	must.Do(t, table.Flush(context.Background()))
	fillNumbers(t, store, table, 100, 110)
	killed = readTree(t, mem, "/store")
	must.Do(t, store.Close())
	return readTree(t, mem, "/store"), killed
}

// For every defect of a directory the error has the documented kind, and a failed Open leaves every
// byte unchanged.
func TestFailedOpenChangesNothing(t *testing.T) {
	good, _ := storeTree(t)
	other, _ := storeTree(t)
	one := func(tree map[string][]byte, pattern string) string {
		for name := range tree {
			if ok, _ := filepath.Match(pattern, name); ok {
				return name
			}
		}
		t.Fatalf("no %s", pattern)
		return ""
	}
	without := func(tree map[string][]byte, patterns ...string) {
		for name := range tree {
			for _, p := range patterns {
				if ok, _ := filepath.Match(p, name); ok {
					delete(tree, name)
				}
			}
		}
	}
	from := func(tree map[string][]byte, patterns ...string) {
		without(tree, patterns...)
		for name, b := range other {
			for _, p := range patterns {
				if ok, _ := filepath.Match(p, name); ok {
					tree[name] = b
				}
			}
		}
	}
	const container = "data/*.data"
	for _, c := range []struct {
		name   string
		change func(tree map[string][]byte)
		want   error
	}{
		{"not a store", func(tree map[string][]byte) {
			clear(tree)
			tree["letter.txt"] = []byte("dear")
		}, oribi.ErrNotStore},
		{"half a store, INSTANCE missing", func(tree map[string][]byte) {
			without(tree, "INSTANCE")
		}, oribi.ErrNotStore},
		{"INSTANCE empty", func(tree map[string][]byte) { tree["INSTANCE"] = []byte{} }, oribi.ErrCorrupt},
		{"INSTANCE of another store", func(tree map[string][]byte) { from(tree, "INSTANCE") }, oribi.ErrCorrupt},
		{"newer format", func(tree map[string][]byte) {
			b := append(slices.Clone(tree["INSTANCE"]), 0)
			b[8] = 2
			tree["INSTANCE"] = b
		}, oribi.ErrUnsupported},
		{"damage that looks like a newer format, INSTANCE cut", func(tree map[string][]byte) {
			b := slices.Clone(tree["INSTANCE"])[:37]
			b[8] = 2
			tree["INSTANCE"] = b
		}, oribi.ErrCorrupt},
		{"ANCHOR missing", func(tree map[string][]byte) { without(tree, "ANCHOR") }, oribi.ErrCorrupt},
		{"ANCHOR empty", func(tree map[string][]byte) { tree["ANCHOR"] = []byte{} }, oribi.ErrCorrupt},
		{"ANCHOR of another store", func(tree map[string][]byte) { from(tree, "ANCHOR") }, oribi.ErrCorrupt},
		{"meta missing", func(tree map[string][]byte) { without(tree, "meta", "meta/*") }, oribi.ErrCorrupt},
		{"meta empty", func(tree map[string][]byte) { without(tree, "meta/*") }, oribi.ErrCorrupt},
		{"meta of another store", func(tree map[string][]byte) { from(tree, "meta/*") }, oribi.ErrCorrupt},
		{"data missing", func(tree map[string][]byte) { without(tree, "data", container) }, oribi.ErrCorrupt},
		{"container missing", func(tree map[string][]byte) { without(tree, container) }, oribi.ErrCorrupt},
		{"container empty", func(tree map[string][]byte) { tree[one(tree, container)] = []byte{} }, oribi.ErrCorrupt},
		{"container of another store", func(tree map[string][]byte) {
			tree[one(tree, container)] = other[one(other, container)]
		}, oribi.ErrCorrupt},
		{"wal missing", func(tree map[string][]byte) { without(tree, "wal", "wal/*") }, oribi.ErrCorrupt},
		{"wal empty", func(tree map[string][]byte) { without(tree, "wal/*") }, oribi.ErrCorrupt},
		{"log of another store", func(tree map[string][]byte) { from(tree, "wal/*") }, oribi.ErrCorrupt},
	} {
		t.Run(c.name, func(t *testing.T) {
			tree := maps.Clone(good)
			c.change(tree)
			mem := vfs.NewMem()
			must.Do(t, mem.Mkdir("/store"))
			writeTree(t, mem, "/store", tree)
			for _, readOnly := range []bool{true, false} {
				s, err := oribi.Open("/store", &oribi.Options{FS: mem, ReadOnly: readOnly, Manual: true})
				if err == nil {
					s.Close()
				}
				must.Fail(t, err, c.want, "readOnly", readOnly)
				if got := readTree(t, mem, "/store"); !maps.EqualFunc(got, tree, slices.Equal) {
					t.Errorf("readOnly=%v: the directory contains %v, before %v", readOnly,
						slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(tree)))
				}
			}
		})
	}
}

// A store is locked for every path that leads to it.
func TestStoreIsLockedThroughASymbolicLink(t *testing.T) {
	dir := t.TempDir()
	real, link := filepath.Join(dir, "real"), filepath.Join(dir, "link")
	if err := os.Symlink(real, link); err != nil {
		t.Skip(err)
	}
	store := must.Get(oribi.Open(real, &oribi.Options{Manual: true}))(t)
	defer store.Close()
	for _, readOnly := range []bool{true, false} {
		if s, err := oribi.Open(link, &oribi.Options{Manual: true, ReadOnly: readOnly}); !errors.Is(err,
			oribi.ErrLocked) {
			t.Errorf("readOnly=%v: %v, want ErrLocked", readOnly, err)
			if err == nil {
				s.Close()
			}
		}
	}
}

// A symbolic link to a directory can be used like its name: a store is created, written, measured
// and read through it.
func TestStoreIsUsedThroughASymbolicLink(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	real, link := filepath.Join(dir, "real"), filepath.Join(dir, "link")
	must.Do(t, os.Mkdir(real, 0o700))
	if err := os.Symlink(real, link); err != nil {
		t.Skip(err)
	}
	for i, name := range []string{link, real, link} {
		store := must.Get(oribi.Open(name, &oribi.Options{Manual: true}))(t)
		table := numbersTable(t, store, "numbers")
		fillNumbers(t, store, table, 100*i, 100*(i+1))
		must.Do(t, table.Flush(ctx))
		checkUsage(t, name, real, store)
		must.Do(t, store.Close())
	}
	store := must.Get(oribi.Open(link, &oribi.Options{ReadOnly: true}))(t)
	defer store.Close()
	must.Equal(t, countNumbers(t, store), 300, "rows")
	must.Do(t, store.Verify(ctx, func(f oribi.Finding) { t.Error(f) }))
}

// A log that ends before a durable batch is reported, although no byte of it is wrong: an older
// version of the file, or the file truncated between two records. For a killed store this is known
// only up to the last metadata commit.
func TestLogThatEndsTooEarlyIsCorrupt(t *testing.T) {
	mem := vfs.NewMem()
	const segment = "/store/wal/000000000001.wal"
	open := func() *oribi.Store {
		return must.Get(oribi.Open("/store", &oribi.Options{FS: mem, Manual: true}))(t)
	}
	store := open()
	table := numbersTable(t, store, "numbers")
	fillNumbers(t, store, table, 0, 10)
	must.Do(t, store.Close())
	before := readAll(t, mem, segment)
	store = open()
	table = must.Get(store.Table("numbers"))(t)
	fillNumbers(t, store, table, 10, 11)
	killed := mem.Clone()
	must.Do(t, store.Close())
	for name, c := range map[string]struct {
		mem  *vfs.Mem
		rows int64 // −1 = refused
	}{"closed": {mem, -1}, "killed": {killed, 10}} {
		f := must.Get(c.mem.Open(segment, true))(t)
		must.Do(t, f.Truncate(0))
		must.Get(f.WriteAt(before, 0))(t)
		for _, readOnly := range []bool{true, false} {
			s, err := oribi.Open("/store", &oribi.Options{FS: c.mem, ReadOnly: readOnly, Manual: true})
			switch {
			case c.rows < 0 && !errors.Is(err, oribi.ErrCorrupt):
				t.Errorf("%s, readOnly=%v: %v", name, readOnly, err)
			case c.rows >= 0 && err != nil:
				t.Errorf("%s, readOnly=%v: %v", name, readOnly, err)
			case c.rows >= 0:
				must.Equal(t, countNumbers(t, s), c.rows, name, "readOnly", readOnly, "rows")
				s.Close()
			}
		}
	}
}
