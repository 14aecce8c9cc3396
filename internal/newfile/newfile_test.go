package newfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
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
	if !slices.Equal(names, want) {
		t.Errorf("files %q, want %q", names, want)
	}
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
	if _, err := os.Stat(name); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("before Commit: %v", err)
	}
	must.Do(t, f.Commit())
	check(t, dir, "rows.csv")
	if text, err := os.ReadFile(name); string(text) != "a,b\n" {
		t.Errorf("the file has %q: %v", text, err)
	}
	if err := f.Abort(); err != nil {
		t.Error(err)
	}
	check(t, dir, "rows.csv")
	if err := f.Commit(); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("second Commit: %v", err)
	}
	if _, err := f.Write(nil); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("Write after Commit: %v", err)
	}
}

func TestExistingNamesAreRefused(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "rows.csv")
	late := create(t, name, "new")
	must.Do(t, os.WriteFile(name, []byte("mine"), 0o600))
	if _, err := Create(name); !errors.Is(err, fs.ErrExist) {
		t.Errorf("Create: %v", err)
	}
	if err := late.Commit(); !errors.Is(err, fs.ErrExist) {
		t.Errorf("Commit: %v", err)
	}
	check(t, dir, "rows.csv")
	if text, _ := os.ReadFile(name); string(text) != "mine" {
		t.Errorf("the file was replaced: %q", text)
	}
	if err := os.Symlink("nowhere", filepath.Join(dir, "link")); err == nil {
		if _, err := Create(filepath.Join(dir, "link")); !errors.Is(err, fs.ErrExist) {
			t.Errorf("a symbolic link: %v", err)
		}
	}
}

func TestFailedAndAbortedFilesAreRemoved(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "rows.csv")
	if err := create(t, name, "new").Abort(); err != nil {
		t.Error(err)
	}
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
