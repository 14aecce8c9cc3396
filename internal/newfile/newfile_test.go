package newfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
)

// check checks which files are in a directory.
func check(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries := must.Get(os.ReadDir(dir))(t)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	must.Equal(t, names, want, "files")
}

func create(t *testing.T, name, text string) *File {
	t.Helper()
	f := must.Get(Create(name))(t)
	t.Cleanup(func() { f.Abort() })
	must.Get(f.Write([]byte(text)))(t)
	return f
}

func TestCommitNamesTheFile(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "rows.csv")
	f := create(t, name, "a,b\n")
	must.Fail(t, must.Err(os.Stat(name)), fs.ErrNotExist, "before Commit")
	must.Do(t, f.Commit())
	check(t, dir, "rows.csv")
	if text, err := os.ReadFile(name); string(text) != "a,b\n" {
		t.Errorf("the file has %q: %v", text, err)
	}
	must.Do(t, f.Abort())
	check(t, dir, "rows.csv")
	must.Fail(t, f.Commit(), fs.ErrClosed, "second Commit")
	must.Fail(t, must.Err(f.Write(nil)), fs.ErrClosed, "Write after Commit")
}

func TestExistingNamesAreRefused(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "rows.csv")
	late := create(t, name, "new")
	must.Do(t, os.WriteFile(name, []byte("mine"), 0o600))
	must.Fail(t, must.Err(Create(name)), fs.ErrExist, "Create")
	must.Fail(t, late.Commit(), fs.ErrExist, "Commit")
	check(t, dir, "rows.csv")
	if text, _ := os.ReadFile(name); string(text) != "mine" {
		t.Errorf("the file was replaced: %q", text)
	}
	if err := os.Symlink("nowhere", filepath.Join(dir, "link")); err == nil {
		must.Fail(t, must.Err(Create(filepath.Join(dir, "link"))), fs.ErrExist, "a symbolic link")
	}
}

func TestFailedAndAbortedFilesAreRemoved(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "rows.csv")
	must.Do(t, create(t, name, "new").Abort())
	check(t, dir)
	// A closed file fails as one on a full disk does. Errors have the final name.
	for i, fail := range []func(f *File) error{func(f *File) error {
		_,
			err := f.Write([]byte("x"))
		return err
	}, (*File).Commit} {
		f := create(t, name, "new")
		f.f.Close()
		if p, ok := errors.AsType[*fs.PathError](fail(f)); !ok || p.Path != name {
			t.Errorf("failure %d: %v", i, p)
		}
		f.Abort()
		check(t, dir)
	}
	_, err := Create(filepath.Join(dir, "none", "f"))
	if p, ok := errors.AsType[*fs.PathError](err); !ok || p.Path != filepath.Join(dir, "none", "f") ||
		!errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing directory: %v", err)
	}
}
