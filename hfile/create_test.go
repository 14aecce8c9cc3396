package hfile

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/must"
)

func names(t *testing.T, dir string) (names []string) {
	entries := must.Get(os.ReadDir(dir))(t)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestCreateNamesTheFileAtFinish(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "f.hfile")
	w := must.Get(Create(name, WriterOptions{}))(t)
	defer w.Abort()
	must.Do(t, w.AppendKeyValue([]byte("k"), []byte("v")))
	if _, err := os.Stat(name); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("before Finish: %v", err)
	}
	must.Do(t, w.Finish())
	if got := names(t, dir); len(got) != 1 || got[0] != "f.hfile" {
		t.Errorf("files %q", got)
	}
	src := must.Get(block.OpenFile(name))(t)
	defer src.Close()
	if r, err := Open(src, ReaderOptions{}); err != nil || r.Trailer().EntryCount != 1 {
		t.Errorf("%v", err)
	}
	if err := w.Abort(); err != nil || len(names(t, dir)) != 1 {
		t.Errorf("Abort after Finish: %v, files %q", err, names(t, dir))
	}
	if err := w.Finish(); !errors.Is(err, ErrClosed) {
		t.Errorf("second Finish: %v", err)
	}
}

func TestCreateRefusesExistingFile(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "f.hfile")
	late := must.Get(Create(name, WriterOptions{}))(t)
	must.Do(t, os.WriteFile(name, []byte("mine"), 0o600))
	if _, err := Create(name, WriterOptions{}); !errors.Is(err, fs.ErrExist) {
		t.Errorf("Create: %v", err)
	}
	if err := late.Finish(); !errors.Is(err, fs.ErrExist) {
		t.Errorf("Finish: %v", err)
	}
	if got := names(t, dir); len(got) != 1 {
		t.Errorf("files %q", got)
	}
	if b, _ := os.ReadFile(name); string(b) != "mine" {
		t.Errorf("the file was replaced by %d bytes", len(b))
	}
}

func TestAbortedAndFailedWritesLeaveNoFile(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "f.hfile")
	fail := func(do func(w *FileWriter) error) error {
		t.Helper()
		w := must.Get(Create(name, WriterOptions{BlockBytes: 100}))(t)
		for _, key := range []string{"a", "b", "c"} {
			must.Do(t, w.AppendKeyValue([]byte(key), bytes.Repeat([]byte("v"), 200<<10)))
		}
		err := do(w)
		if got := names(t, dir); len(got) != 0 {
			t.Errorf("files %q", got)
		}
		if err := w.AppendKeyValue([]byte("d"), nil); err == nil {
			t.Error("an entry after the end was accepted")
		}
		return err
	}
	if err := fail((*FileWriter).Abort); err != nil {
		t.Error(err)
	}
	if err := fail(func(w *FileWriter) error {
		w.buf.Reset(&limitedSink{})
		return w.Finish()
	}); !errors.Is(err, errFull) {
		t.Errorf("Finish on a full disk: %v", err)
	}
	if _, err := Create(name, WriterOptions{BlockBytes: -1}); err == nil || len(names(t, dir)) != 0 {
		t.Errorf("wrong options: %v, files %q", err, names(t, dir))
	}
	if _, err := Create(filepath.Join(dir, "none", "f"), WriterOptions{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing directory: %v", err)
	}
}
