package process

import (
	"os"
	"strings"
	"testing"
)

func TestInstallJavaNamesMissingProgram(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if err := InstallJava(t.TempDir(), os.DirFS(t.TempDir())); err == nil || !strings.Contains(err.Error(), "mvn") {
		t.Errorf("without Maven: %v", err)
	}
}
