package carbondata

import (
	"errors"
	"github.com/oribi-db/oribi/internal/must"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestOpenDoesNotWaitForPipes opens a folder with pipes that have no other end.
func TestOpenDoesNotWaitForPipes(t *testing.T) {
	dir := copyFolder(t, "iud-delete")
	rows, err := readTable(dir)
	if rows == 0 || err != nil {
		t.Fatalf("%d rows, %v", rows, err)
	}
	for _, suffix := range []string{dataSuffix, indexSuffix, mergeSuffix, deleteSuffix} {
		if err := syscall.Mkfifo(filepath.Join(dir, "part-0-0_batchno0-0-null-1"+suffix), 0o600); err != nil {
			t.Skip(err)
		}
	}
	must.Equal(t, must.Get(readTable(dir))(t), rows)
	must.Refuse(t, must.Err(Open(filepath.Join(dir, "part-0-0_batchno0-0-null-1"+dataSuffix))), "a pipe was opened")
}

// TestHugeFilesAreNotReadAtOnce makes files that are read at once into sparse ones of a terabyte,
// and into pipes.
func TestHugeFilesAreNotReadAtOnce(t *testing.T) {
	for _, c := range []struct{ folder, file string }{
		{"table", "db/t/Metadata/tablestatus"},
		{"table", "db/t/Metadata/schema"},
		{"table", "db/t/Metadata/segments/0_1700000100000.segment"},
		{"table", "db/t/Fact/Part0/Segment_0/0_*.carbonindex"},
		{"table", "db/t/Fact/Part0/Segment_1/*.carbonindexmerge"},
		{"iud-delete", "*.deletedelta"},
	} {
		dir := copyFolder(t, c.folder)
		paths, err := filepath.Glob(filepath.Join(dir, c.file))
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s: %v", c.file, err)
		}
		if err := os.Truncate(paths[0], 1<<40); err != nil {
			t.Skip(err)
		}
		must.Fail(t, must.Err(readTable(dir)), ErrCorrupt, c.file)
		if c.folder != "table" {
			continue // a folder may hold pipes
		}
		if err := errors.Join(os.Remove(paths[0]), syscall.Mkfifo(paths[0], 0o600)); err != nil {
			t.Skip(err)
		}
		if n, err := readTable(dir); err == nil {
			t.Errorf("%s is a pipe: %d rows", c.file, n)
		}
	}
}
