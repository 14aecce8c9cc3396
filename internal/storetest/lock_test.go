package storetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/vfs"
	"github.com/oribi-db/oribi/vfs/faultfs"
)

// openDir is the environment variable that makes the test program a second process, which opens the
// store in that directory for writing and prints the error.
const openDir = "ORIBI_TEST_OPEN"

// TestOpenInSecondProcess is the body of the second process.
func TestOpenInSecondProcess(t *testing.T) {
	dir := os.Getenv(openDir)
	if dir == "" {
		t.Skip("runs only as part of another test")
	}
	store, err := oribi.Open(dir, &oribi.Options{Manual: true})
	if err == nil {
		store.Close()
	}
	fmt.Printf("locked=%v err=%v\n", errors.Is(err, oribi.ErrLocked), err)
}

// Without LOCK a second writer is still refused, in this process and in another one, each time it
// tries.
func TestRemovedLockFileAllowsNoSecondWriter(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	store := must.Get(oribi.Open(dir, &oribi.Options{Manual: true}))(t)
	defer store.Close()
	table := numbersTable(t, store, "numbers")
	fillNumbers(t, store, table, 0, 10)
	program := must.Get(os.Executable())(t)
	for range 2 {
		must.Do(t, os.Remove(filepath.Join(dir, "LOCK")))
		cmd := exec.Command(program, "-test.run=^TestOpenInSecondProcess$", "-test.v")
		cmd.Env = append(os.Environ(), openDir+"="+dir)
		out := must.Get(cmd.CombinedOutput())(t)
		must.Contain(t, string(out), "locked=true", "second process")
		must.Fail(t, must.Err(oribi.Open(dir, &oribi.Options{Manual: true})), oribi.ErrLocked,
			"second writer in this process")
	}
}

// A writer whose LOCK is missing or another file makes no metadata commit. It continues to serve
// reads, and the next writer finds all acknowledged batches.
func TestWriterWithoutItsLockFileCommitsNoMetadata(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(fsys vfs.FS, lock string) error
	}{
		{"removed", func(fsys vfs.FS, lock string) error { return fsys.Remove(lock) }},
		{"replaced", func(fsys vfs.FS, lock string) error {
			if err := fsys.Remove(lock); err != nil {
				return err
			}
			f, err := fsys.Create(lock)
			if err != nil {
				return err
			}
			return f.Close()
		}},
	} {
		t.Run("lock="+c.name, func(t *testing.T) {
			eachFS(t, func(t *testing.T, fsys vfs.FS, dir string) {
				store := must.Get(oribi.Open(dir, &oribi.Options{FS: fsys, Manual: true}))(t)
				table := numbersTable(t, store, "numbers")
				fillNumbers(t, store, table, 0, 10)
				must.Do(t, c.change(fsys, filepath.Join(dir, "LOCK")))
				if err := table.Flush(context.Background()); !errors.Is(err, oribi.ErrPoisoned) ||
					!strings.Contains(err.Error(), "removed or replaced") {
					t.Errorf("flush: %v, want ErrPoisoned that says why", err)
				}
				b := store.NewBatch()
				b.Insert(table, oribi.Row{"k": 10, "v": -10})
				must.Fail(t, must.Err(b.Commit(context.Background())), oribi.ErrPoisoned, "commit")
				must.Equal(t, countNumbers(t, store), 10, "rows")
				store.Close()
				store = must.Get(oribi.Open(dir, &oribi.Options{FS: fsys, Manual: true}))(t)
				must.Equal(t, countNumbers(t, store), 10, "rows after the next open")
				must.Do(t, store.Close())
			})
		})
	}
}

// The writer checks LOCK once for each metadata commit, not for each write batch.
func TestLockIsCheckedOncePerMetadataCommit(t *testing.T) {
	disk := faultfs.New(vfs.NewMem())
	store := must.Get(oribi.Open("/store", &oribi.Options{FS: disk, Manual: true}))(t)
	defer store.Close()
	table := numbersTable(t, store, "numbers")
	before := disk.Count(faultfs.LockCheck)
	fillNumbers(t, store, table, 0, 100)
	must.Equal(t, disk.Count(faultfs.LockCheck)-before, 0, "checks for write batches")
	const commits = 5
	for i := range commits {
		must.Do(t, table.Alter(context.Background(), oribi.SetComment(strings.Repeat("x", i+1))))
	}
	must.Equal(t, disk.Count(faultfs.LockCheck)-before, commits, "checks")
}
