package layouttest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestAnotherModuleWritesAndReadsEveryFormat builds and runs testdata/outside as a separate module,
// which can import only the public packages. Its go.mod is ours with another module path, so that
// it needs no further downloads.
func TestAnotherModuleWritesAndReadsEveryFormat(t *testing.T) {
	goCommand, err := exec.LookPath("go")
	if err != nil {
		t.Skip("no go command to build with")
	}
	root, dir := moduleRoot(t), t.TempDir()
	copyFile := func(to, from string, edit func(string) string) {
		t.Helper()
		data, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, to), []byte(edit(string(data))), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	same := func(s string) string { return s }
	copyFile("main.go", filepath.Join("testdata", "outside", "main.go"), same)
	copyFile("go.sum", filepath.Join(root, "go.sum"), same)
	copyFile("go.mod", filepath.Join(root, "go.mod"), func(s string) string {
		return strings.Replace(s, "module "+modulePath, "module example.com/outside", 1) +
			"\nrequire " + modulePath + " v0.0.0\n\nreplace " + modulePath + " => " + root + "\n"
	})
	cmd := exec.Command(goCommand, "run", ".")
	cmd.Dir = dir
	cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0", "GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, kind := range []string{"cfile", "bloom", "delta", "rowset and block store", "memrowset", "compaction"} {
		if !strings.Contains(string(out), kind+" ok\n") {
			t.Errorf("%s did not run:\n%s", kind, out)
		}
	}
}
