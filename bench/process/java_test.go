package process

import (
	"fmt"
	"github.com/oribi-db/oribi/internal/must"
	"os"
	"testing"
)

func TestInstallJavaNamesMissingProgram(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	must.Contain(t, fmt.Sprint(InstallJava(t.TempDir(), os.DirFS(t.TempDir()))), "mvn")
}
