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
	must.Equal(t, src.ID(), 0, "number")
	must.Equal(t, src.Size(), 10, "bytes")
	p := make([]byte, 4)
	must.Equal(t, must.Get(src.ReadAt(p, 3))(t), 4)
	must.Equal(t, string(p), "3456")
	if n, err := src.ReadAt(p, 8); n != 2 || err != io.EOF {
		t.Errorf("past the end: %d, %v", n, err)
	}
}

func TestOpenFileRefusesDirectories(t *testing.T) {
	must.Refuse(t, must.Err(OpenFile(t.TempDir())), "a directory was opened")
	must.Fail(t, must.Err(OpenFile(filepath.Join(t.TempDir(), "none"))), fs.ErrNotExist, "missing file")
}
