package vfs

import (
	"errors"
	"io"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
)

func wantIs(t *testing.T, what string, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Errorf("%s: got error %v, want %v", what, err, target)
	}
}

func put(t *testing.T, v FS, name, text string) File {
	t.Helper()
	f, err := v.Create(name)
	must.Do(t, err)
	n, err := f.WriteAt([]byte(text), 0)
	must.Do(t, err)
	if n != len(text) {
		t.Fatalf("wrote %d bytes of %d", n, len(text))
	}
	return f
}

func text(t *testing.T, f File) string {
	t.Helper()
	size, err := f.Size()
	must.Do(t, err)
	b, err := io.ReadAll(io.NewSectionReader(f, 0, size+1))
	must.Do(t, err)
	if int64(len(b)) != size {
		t.Fatalf("read %d bytes, Size says %d", len(b), size)
	}
	return string(b)
}

func textOf(t *testing.T, v FS, name string) string {
	t.Helper()
	f, err := v.Open(name, false)
	must.Do(t, err)
	defer f.Close()
	return text(t, f)
}

func second[T any](_ T, err error) error { return err }
