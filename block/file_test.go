package block

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
)

func TestFileReadAt(t *testing.T) {
	name := filepath.Join(t.TempDir(), "f")
	must.Do(t, os.WriteFile(name, []byte("0123456789"), 0o600))
	f := must.Get(OpenFile(name))(t)
	defer f.Close()
	var src Source = f
	if src.ID() != 0 || src.Size() != 10 {
		t.Errorf("number %v, %d bytes", src.ID(), src.Size())
	}
	p := make([]byte, 4)
	if n, err := src.ReadAt(p, 3); n != 4 || err != nil || string(p) != "3456" {
		t.Errorf("%q, %d, %v", p, n, err)
	}
	if n, err := src.ReadAt(p, 8); n != 2 || err != io.EOF {
		t.Errorf("past the end: %d, %v", n, err)
	}
}

func TestOpenFileRefusesDirectories(t *testing.T) {
	must.Refuse(t, must.Err(OpenFile(t.TempDir())), "a directory was opened")
	must.Fail(t, must.Err(OpenFile(filepath.Join(t.TempDir(), "none"))), fs.ErrNotExist, "missing file")
}
