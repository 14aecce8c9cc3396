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
	must.Fail(t, must.Err(os.Stat(name)), fs.ErrNotExist)
	must.Do(t, w.Finish())
	if got := names(t, dir); len(got) != 1 || got[0] != "f.hfile" {
		t.Errorf("files %q", got)
	}
	src := must.Get(block.OpenFile(name))(t)
	defer src.Close()
	must.Equal(t, must.Get(Open(src, ReaderOptions{}))(t).Trailer().EntryCount, 1)
	if err := w.Abort(); err != nil || len(names(t, dir)) != 1 {
		t.Errorf("Abort after Finish: %v, files %q", err, names(t, dir))
	}
	must.Fail(t, w.Finish(), ErrClosed)
}

func TestCreateRefusesExistingFile(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "f.hfile")
	late := must.Get(Create(name, WriterOptions{}))(t)
	must.Do(t, os.WriteFile(name, []byte("mine"), 0o600))
	must.Fail(t, must.Err(Create(name, WriterOptions{})), fs.ErrExist)
	must.Fail(t, late.Finish(), fs.ErrExist)
	must.Equal(t, len(names(t, dir)), 1)
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
		must.Equal(t, len(names(t, dir)), 0)
		must.Refuse(t, w.AppendKeyValue([]byte("d"), nil), "an entry after the end was accepted")
		return err
	}
	must.Do(t, fail((*FileWriter).Abort))
	if err := fail(func(w *FileWriter) error {
		w.buf.Reset(&limitedSink{})
		return w.Finish()
	}); !errors.Is(err, errFull) {
		t.Errorf("Finish on a full disk: %v", err)
	}
	if _, err := Create(name, WriterOptions{BlockBytes: -1}); err == nil || len(names(t, dir)) != 0 {
		t.Errorf("wrong options: %v, files %q", err, names(t, dir))
	}
	must.Fail(t, must.Err(Create(filepath.Join(dir, "none", "f"), WriterOptions{})), fs.ErrNotExist)
}
