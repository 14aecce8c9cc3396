package vfs

import (
	"io"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
)

func put(t *testing.T, v FS, name, text string) File {
	t.Helper()
	f := must.Get(v.Create(name))(t)
	n := must.Get(f.WriteAt([]byte(text), 0))(t)
	must.Equal(t, n, len(text))
	return f
}

func text(t *testing.T, f File) string {
	t.Helper()
	size := must.Get(f.Size())(t)
	b := must.Get(io.ReadAll(io.NewSectionReader(f, 0, size+1)))(t)
	must.Equal(t, int64(len(b)), size)
	return string(b)
}

func textOf(t *testing.T, v FS, name string) string {
	t.Helper()
	f := must.Get(v.Open(name, false))(t)
	defer f.Close()
	return text(t, f)
}
