package vfs_test

import (
	"testing"

	"github.com/oribi-db/oribi/vfs"
	"github.com/oribi-db/oribi/vfs/vfstest"
)

func TestFileSystemsConform(t *testing.T) {
	t.Run("fs=os", func(t *testing.T) {
		vfstest.Conform(t, func(t *testing.T) (vfs.FS, string) { return vfs.OS, t.TempDir() })
	})
	t.Run("fs=mem", func(t *testing.T) {
		vfstest.Conform(t, func(*testing.T) (vfs.FS, string) { return vfs.NewMem(), "/" })
	})
}
