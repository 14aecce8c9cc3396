package storetest

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/prooftest/files"
	"github.com/oribi-db/oribi/vfs"
	"github.com/oribi-db/oribi/vfs/crashfs"
	"github.com/oribi-db/oribi/vfs/faultfs"
)

// eachFS runs a test on the real file system and on the one in memory, with the name of a directory
// that does not exist yet.
func eachFS(t *testing.T, test func(t *testing.T, fsys vfs.FS, dir string)) {
	t.Run("fs=os", func(t *testing.T) { test(t, vfs.OS, filepath.Join(t.TempDir(), "store")) })
	t.Run("fs=mem", func(t *testing.T) { test(t, vfs.NewMem(), "/store") })
}

// fillNumbers writes rows k, v for k in [from, to), one per batch, without waiting for the disk.
func fillNumbers(t *testing.T, store *oribi.Store, table *oribi.Table, from, to int) {
	t.Helper()
	for k := from; k < to; k++ {
		b := store.NewBatch()
		b.Insert(table, oribi.Row{"k": k, "v": -k})
		must.Get(b.Commit(context.Background(), oribi.NoSync))(t)
	}
}

func countNumbers(t *testing.T, store *oribi.Store) int64 {
	t.Helper()
	table := must.Get(store.Table("numbers"))(t)
	var n int64
	for row := range must.All(t, table.Scan(context.Background()).Rows()) {
		if row["k"] != n || row["v"] != -n {
			t.Fatalf("row %d is %v", n, row)
		}
		n++
	}
	return n
}

func TestSecondOpenerIsLockedOut(t *testing.T) {
	eachFS(t, func(t *testing.T, fsys vfs.FS, dir string) {
		open := func(readOnly bool) (*oribi.Store, error) {
			return oribi.Open(dir, &oribi.Options{FS: fsys, ReadOnly: readOnly, Manual: true})
		}
		refused := func(what string, readOnly bool, holder string) {
			t.Helper()
			s, err := open(readOnly)
			must.Fail(t, err, oribi.ErrLocked, what)
			must.Contain(t, err.Error(), holder, what)
			if err == nil {
				s.Close()
			}
		}
		thisProcess := fmt.Sprintf("process %d has the store open for writing since 20", os.Getpid())
		const readers = "readers have the store open"
		writer := must.Get(open(false))(t)
		table := numbersTable(t, writer, "numbers")
		fillNumbers(t, writer, table, 0, 10)
		refused("writer next to a writer", false, thisProcess)
		refused("reader next to a writer", true, thisProcess)
		must.Equal(t, countNumbers(t, writer), 10, "rows of the writer")
		writer.Close()
		first, second := must.Get(open(true))(t), must.Get(open(true))(t)
		refused("writer next to two readers", false, readers)
		first.Close()
		refused("writer next to one reader", false, readers)
		must.Equal(t, countNumbers(t, second), 10, "rows of the second reader")
		second.Close()
		must.Get(open(false))(t).Close()
	})
}

// A reader of a killed store, with an unflushed log and a torn end, changes no file.
func TestReaderOfAKilledStoreWritesNothing(t *testing.T) {
	disk := crashfs.New(vfs.NewMem())
	disk.Halves = true
	opts := &oribi.Options{FS: disk, Manual: true}
	store := must.Get(oribi.Open("/store", opts))(t)
	table := numbersTable(t, store, "numbers")
	fillNumbers(t, store, table, 0, 500)
	must.Do(t, table.Flush(context.Background()))
	fillNumbers(t, store, table, 500, 800)
	var killed *vfs.Mem
	disk.OnOperation(func(c crashfs.Operation) error {
		if c.Half && killed == nil {
			killed = c.Point().Kill() // in the middle of a frame
		}
		return nil
	})
	fillNumbers(t, store, table, 800, 801)
	disk.OnOperation(nil)
	store.Close()

	before := must.Get(files.Fingerprint(killed, "/store"))(t)
	silent := faultfs.New(killed)
	silent.Watch(func(c faultfs.Call) error {
		if c.Changes() {
			t.Errorf("the reader changes the disk: %s %s", c.Op, c.Name)
		}
		return nil
	})
	reader := must.Get(oribi.Open("/store", &oribi.Options{FS: silent, ReadOnly: true}))(t)
	if r := reader.Recovery(); r.TornBytes == 0 || r.TornFile != "" || r.Batches != 300 {
		t.Errorf("recovery: %+v, want torn bytes, no file for them, and 300 batches", r)
	}
	must.Equal(t, countNumbers(t, reader), 800, "rows")
	must.Do(t, reader.Verify(context.Background(), func(f oribi.Finding) { t.Errorf("verify: %+v", f) }))
	must.Do(t, reader.Close())
	must.Equal(t, must.Get(files.Fingerprint(killed, "/store"))(t), before, "files have changed")

	writer := must.Get(oribi.Open("/store", &oribi.Options{FS: killed, Manual: true}))(t)
	if r := writer.Recovery(); r.TornBytes == 0 || r.TornFile == "" {
		t.Errorf("recovery: %+v, want the torn bytes kept", r)
	}
	must.Equal(t, countNumbers(t, writer), 800, "rows")
	writer.Close()
}

func TestVerifyReportsProgress(t *testing.T) {
	store := must.Get(oribi.Open("/store", &oribi.Options{FS: vfs.NewMem(), Manual: true}))(t)
	defer store.Close()
	table := numbersTable(t, store, "numbers")
	for n := range 3 {
		fillNumbers(t, store, table, 100*n, 100*n+100)
		must.Do(t, table.Flush(t.Context()))
	}
	info := must.Get(store.Info())(t)
	last, calls := int64(0), 0
	err := store.Verify(t.Context(), func(f oribi.Finding) {
		t.Errorf("%+v", f)
	}, func(done, total int64) {
		if done < last || done > total || total != 2*info.Bytes.Live {
			t.Errorf("%d of %d after %d; the store has %d", done, total, last, info.Bytes.Live)
		}
		last = done
		calls++
	})
	if err != nil || last != 2*info.Bytes.Live || calls < 6 {
		t.Errorf("%v; %d of %d bytes in %d calls", err, last, 2*info.Bytes.Live, calls)
	}
}

// A copy of a store may lack LOCK, and a reader does not create it. Writers are still locked out:
// the reader locks INSTANCE.
func TestReaderOfCopyWithoutLockFile(t *testing.T) {
	eachFS(t, func(t *testing.T, fsys vfs.FS, dir string) {
		store := must.Get(oribi.Open(dir, &oribi.Options{FS: fsys, Manual: true}))(t)
		fillNumbers(t, store, numbersTable(t, store, "numbers"), 0, 10)
		must.Do(t, store.Close())
		must.Do(t, fsys.Remove(filepath.Join(dir, "LOCK")))
		reader := must.Get(oribi.Open(dir, &oribi.Options{FS: fsys, ReadOnly: true}))(t)
		must.Equal(t, countNumbers(t, reader), 10, "rows")
		must.Fail(t, must.Err(fsys.Stat(filepath.Join(dir, "LOCK"))), fs.ErrNotExist, "LOCK")
		must.Fail(t, must.Err(oribi.Open(dir, &oribi.Options{FS: fsys})), oribi.ErrLocked,
			"writer next to the reader")
		must.Do(t, reader.Close())
		store = must.Get(oribi.Open(dir, &oribi.Options{FS: fsys, Manual: true}))(t)
		must.Do(t, store.Close())
	})
}

func TestReadOnlyOpenCreatesNoStore(t *testing.T) {
	eachFS(t, func(t *testing.T, fsys vfs.FS, dir string) {
		for _, opts := range []*oribi.Options{{FS: fsys, ReadOnly: true}, {FS: fsys, ErrorIfMissing: true}} {
			must.Fail(t, must.Err(oribi.Open(dir, opts)), oribi.ErrNotStore, "a missing directory")
			must.Fail(t, must.Err(fsys.Stat(dir)), fs.ErrNotExist, "the directory is there now")
		}
		must.Do(t, fsys.Mkdir(dir))
		for _, opts := range []*oribi.Options{{FS: fsys, ReadOnly: true}, {FS: fsys, ErrorIfMissing: true}} {
			must.Fail(t, must.Err(oribi.Open(dir, opts)), oribi.ErrNotStore, "an empty directory")
			if names, err := fsys.List(dir); err != nil || len(names) > 0 {
				t.Errorf("the directory contains %v, %v", names, err)
			}
		}
	})
}

func TestForeignDirectoryIsLeftAlone(t *testing.T) {
	dir := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(dir, "letter.txt"), []byte("dear"), 0o600))
	for _, readOnly := range []bool{false, true} {
		must.Fail(t, must.Err(oribi.Open(dir, &oribi.Options{ReadOnly: readOnly})), oribi.ErrNotStore,
			"readOnly", readOnly)
	}
	if names, _ := vfs.OS.List(dir); len(names) != 1 {
		t.Errorf("the directory contains %v", names)
	}
}
