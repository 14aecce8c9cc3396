package block

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestOpenFileRefusesPipes opens a pipe without another end, which would wait for one.
func TestOpenFileRefusesPipes(t *testing.T) {
	name := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Skip(err)
	}
	if _, err := OpenFile(name); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a pipe: %v", err)
	}
}
