package layouttest

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
)

// TestAnotherModuleWritesAndReadsEveryFormat builds and runs testdata/outside as a separate module,
// which can import only the public packages. Its go.mod, which exists only in an overlay, is ours
// with another module path, so that it needs no further downloads. In its fixed directory the
// program stays in the build cache.
func TestAnotherModuleWritesAndReadsEveryFormat(t *testing.T) {
	goCommand, err := exec.LookPath("go")
	if err != nil {
		t.Skip("no go command to build with")
	}
	root, dir := moduleRoot(t), t.TempDir()
	outside := filepath.Join(root, "internal", "layouttest", "testdata", "outside")
	replace := map[string]string{}
	for _, name := range []string{"go.mod", "go.sum"} {
		data := must.Get(os.ReadFile(filepath.Join(root, name)))(t)
		text := string(data)
		if name == "go.mod" {
			text = strings.Replace(text, "module "+modulePath, "module example.com/outside", 1) +
				"\nrequire " + modulePath + " v0.0.0\n\nreplace " + modulePath + " => " + root + "\n"
		}
		replace[filepath.Join(outside, name)] = filepath.Join(dir, name)
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600)
	}
	must.Do(t, err)
	cmd := exec.Command(goCommand, "run", "-overlay", filepath.Join(dir, "overlay.json"), ".")
	cmd.Dir = outside
	cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0", "GOFLAGS="+os.Getenv("GOFLAGS")+" -mod=mod", "GOPROXY=off",
		"GOWORK=off")
	out, err := cmd.CombinedOutput()
	must.Do(t, err, out)
	for _, kind := range []string{"cfile", "bloom", "delta", "rowset and block store", "memrowset", "compaction"} {
		must.Contain(t, string(out), kind+" ok\n", kind)
	}
}
