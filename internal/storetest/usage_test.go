package storetest

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/vfs"
)

// statSum returns the disk space and the number of the files and directories below dir, according
// to stat.
func statSum(t *testing.T, dir string) (bytes int64, files int) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // removed concurrently
		}
		if err != nil {
			return err
		}
		info, err := os.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		bytes += vfs.Allocated(info)
		files++
		return nil
	})
	must.Do(t, err)
	return bytes, files
}

// checkUsage compares DiskUsage with the results of stat before and after the call. A writer's
// metadata store removes unneeded files in the background, so checkUsage repeats the comparison if
// the two results differ.
func checkUsage(t *testing.T, what, dir string, store *oribi.Store) (u oribi.DiskUsage) {
	t.Helper()
	var want int64
	var files int
	for stood := false; !stood; {
		before, filesBefore := statSum(t, dir)
		var err error
		u, err = store.DiskUsage()
		must.Do(t, err)
		want, files = statSum(t, dir)
		stood = want == before && files == filesBefore
	}
	must.Equal(t, u.Total, want, what, "bytes")
	must.Equal(t, len(u.Files), files, what, "files")
	parts := u.Live + u.Alignment + u.Dead + u.Reserved + u.Headers + u.Log + u.Torn + u.Metadata + u.Directories +
		u.Leftovers + u.Foreign + u.Other
	must.Equal(t, parts, want, what, "bytes of the parts", u)
	return u
}

// DiskUsage accounts for every byte of the directory: while a writer has reserved space, with
// dropped blocks, after Close, and next to files that do not belong to the store.
func TestDiskUsageEqualsStat(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	open := func(readOnly bool) *oribi.Store {
		return must.Get(oribi.Open(dir, &oribi.Options{Manual: true, ReadOnly: readOnly}))(t)
	}
	store := open(false)
	checkUsage(t, "an empty store", dir, store)
	table := numbersTable(t, store, "numbers")
	for n := range 3 {
		b := store.NewBatch()
		for k := range 2000 {
			b.Insert(table, oribi.Row{"k": 3*k + n, "v": k}) // the rowsets overlap
		}
		must.Get(b.Commit(context.Background()))(t)
		must.Do(t, table.Flush(context.Background()))
	}
	flushed := checkUsage(t, "a writer", dir, store)
	if flushed.Live == 0 || flushed.Headers == 0 || flushed.Alignment == 0 {
		t.Errorf("after flushes: %+v", flushed)
	}
	must.Do(t, table.Compact(context.Background()))
	compacted := checkUsage(t, "a compacted store", dir, store)
	info := must.Get(store.Info())(t)
	must.Equal(t, info.Bytes.Live, compacted.Live, "live bytes")
	must.Do(t, store.Close())
	must.Do(t, os.WriteFile(filepath.Join(dir, "letter.txt"), make([]byte, 5000), 0o600))
	store = open(true)
	defer store.Close()
	closed := checkUsage(t, "a reader of a closed store", dir, store)
	if closed.Reserved != 0 || closed.Dead != 0 || closed.Foreign < 5000 {
		t.Errorf("after Close: reserved %d, dead %d, foreign %d", closed.Reserved, closed.Dead, closed.Foreign)
	}
}

// A killed writer leaves the space that it reserved after the blocks, which the length of a file
// does not show. The next writer frees it.
func TestReservedSpaceOfKilledWriterIsFreed(t *testing.T) {
	dir, copied := filepath.Join(t.TempDir(), "store"), filepath.Join(t.TempDir(), "copy")
	store := must.Get(oribi.Open(dir, &oribi.Options{Manual: true}))(t)
	defer store.Close()
	table := numbersTable(t, store, "numbers")
	fillNumbers(t, store, table, 0, 1000)
	must.Do(t, table.Flush(context.Background()))
	must.Do(t, os.CopyFS(copied, os.DirFS(dir)))
	reserve(t, copied, 1<<20)
	for _, readOnly := range []bool{true, false} {
		store := must.Get(oribi.Open(copied, &oribi.Options{Manual: true, ReadOnly: readOnly}))(t)
		u := checkUsage(t, "what a killed writer left", copied, store)
		if readOnly && u.Reserved < 1<<20 {
			t.Skipf("%d bytes are reserved: the file system does not support it", u.Reserved)
		}
		if !readOnly && u.Reserved > 0 {
			t.Errorf("%d bytes are still reserved", u.Reserved)
		}
		must.Do(t, store.Close())
	}
}

// While records are synced one by one, space for the log is allocated in advance. DiskUsage reports
// that space. Close frees it; after a kill, the next writer does.
func TestPreallocatedLogCountsAsReservedSpace(t *testing.T) {
	dir, copied := filepath.Join(t.TempDir(), "store"), filepath.Join(t.TempDir(), "copy")
	store := must.Get(oribi.Open(dir, &oribi.Options{Manual: true}))(t)
	table := numbersTable(t, store, "numbers")
	b := store.NewBatch()
	for k := range 20 {
		b.Insert(table, oribi.Row{"k": k, "v": k})
		must.Get(b.Commit(context.Background()))(t)
	}
	const least = 32 << 10
	if u := checkUsage(t, "a writer", dir, store); u.Reserved < least || u.Log > least {
		t.Errorf("a writer: %d bytes are reserved, %d are log", u.Reserved, u.Log)
	}
	must.Do(t, os.CopyFS(copied, os.DirFS(dir)))
	must.Do(t, store.Close())
	for _, c := range []struct {
		what, dir string
		readOnly  bool
		reserved  bool
	}{
		{"closed", dir, true, false},
		{"killed", copied, true, true},
		{"killed, opened for writing", copied, false, false},
	} {
		store := must.Get(oribi.Open(c.dir, &oribi.Options{Manual: true, ReadOnly: c.readOnly}))(t)
		if u := checkUsage(t, c.what, c.dir, store); c.reserved != (u.Reserved >= least) || u.Log > least {
			t.Errorf("%s: %d bytes are reserved, %d are log", c.what, u.Reserved, u.Log)
		}
		if r := store.Recovery(); r.TornBytes != 0 || r.Batches != 20 {
			t.Errorf("%s: %+v", c.what, r)
		}
		must.Do(t, store.Close())
	}
}

// reserve reserves space after the end of each container, as a writer does.
func reserve(t *testing.T, dir string, n int64) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "data", "*.data"))
	if err != nil || len(names) == 0 {
		t.Fatalf("containers: %v, %v", names, err)
	}
	for _, name := range names {
		f := must.Get(vfs.OS.Open(name, true))(t)
		size := must.Get(f.Size())(t)
		must.Do(t, f.Preallocate(size, n))
		f.Close()
	}
}

// punches reports whether the file system of dir can free space inside a file.
func punches(t *testing.T, dir string) bool {
	t.Helper()
	f := must.Get(vfs.OS.Create(filepath.Join(filepath.Dir(dir), "punched")))(t)
	must.Do(t, must.Err(f.WriteAt(make([]byte, 8192), 0)))
	defer f.Close()
	return f.PunchHole(0, 4096) == nil
}

// DiskUsage accounts for every byte in a directory with everything that can occur in one: holes,
// reserved space, torn ends of the log, containers without a row, files of an unfinished format,
// and foreign files of all kinds.
func TestDiskUsageCountsEveryKindOfFile(t *testing.T) {
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "store")
	store := must.Get(oribi.Open(dir, &oribi.Options{Manual: true}))(t)
	defer store.Close()
	for _, name := range []string{"going", "staying"} {
		table := numbersTable(t, store, name)
		fillNumbers(t, store, table, 0, 5000)
		must.Do(t, table.Flush(ctx))
	}
	whole := checkUsage(t, "before the drop", dir, store)
	must.Do(t, store.DropTable("going"))
	holes := checkUsage(t, "holes", dir, store)
	if punches(t, dir) && holes.Total > whole.Total-whole.Live/3 {
		t.Errorf("%d bytes of the disk before the drop, of which %d live; %d after it",
			whole.Total, whole.Live, holes.Total)
	}
	if holes.Reserved == 0 {
		t.Log("this file system reserves nothing")
	}
	strangers := map[string]*int64{}
	var sum oribi.DiskUsage
	for name, to := range map[string]*int64{
		"data/00112233445566778899aabbccddeeff.data": &sum.Leftovers, "FORMATTING": &sum.Leftovers,
		"INSTANCE.tmp":              &sum.Leftovers,
		"wal/000000000007.wal.torn": &sum.Torn, "wal/000000000009.torn": &sum.Torn,
		"data/README": &sum.Foreign, "data/0011.data": &sum.Foreign, "wal/notes": &sum.Foreign,
		"letter": &sum.Foreign, "meta.bak": &sum.Foreign,
	} {
		strangers[name] = to
		must.Do(t, os.WriteFile(filepath.Join(dir, filepath.FromSlash(name)),
			make([]byte, 3000+5000*len(strangers)), 0o600))
	}
	sparse := filepath.Join(dir, "sparse")
	must.Do(t, os.WriteFile(sparse, []byte("x"), 0o600))
	if err := os.Truncate(sparse, 100<<20); err != nil { // a hole that the store did not punch
		t.Fatal(err)
	}
	strangers["sparse"] = &sum.Foreign
	must.Do(t, os.MkdirAll(filepath.Join(dir, "extra", "deep"), 0o700))
	if err := os.Symlink("letter", filepath.Join(dir, "link")); err != nil {
		t.Log(err)
	}
	all := checkUsage(t, "strangers", dir, store)
	for name, to := range strangers {
		info := must.Get(os.Lstat(filepath.Join(dir, filepath.FromSlash(name))))(t)
		*to += vfs.Allocated(info)
	}
	if all.Leftovers != sum.Leftovers || all.Torn != sum.Torn || all.Foreign < sum.Foreign {
		t.Errorf("leftovers %d, torn %d, foreign %d; want %d, %d, at least %d", all.Leftovers, all.Torn, all.Foreign,
			sum.Leftovers, sum.Torn, sum.Foreign)
	}
	if all.Live != holes.Live || all.Log != holes.Log || all.Headers != holes.Headers || all.Dead != holes.Dead ||
		all.Reserved != holes.Reserved {
		t.Errorf("foreign files are counted as the store's: %+v, without them %+v", all, holes)
	}
}
