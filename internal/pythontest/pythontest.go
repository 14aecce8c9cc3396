// Package pythontest finds a Python with the programs that judge what is read and written here. It
// is for tests only.
package pythontest

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Variable is the environment variable that names the interpreter.
const Variable = "ORIBI_PYTHON"

// Find returns an interpreter with modules: $ORIBI_PYTHON or python3. Without one the test is
// skipped.
func Find(t testing.TB, modules ...string) string {
	t.Helper()
	name := os.Getenv(Variable)
	if name == "" {
		name = "python3"
	}
	program, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("no %s: set %s to a Python with %s", name, Variable, strings.Join(modules, ", "))
	}
	if out, err := exec.Command(program, "-c", "import "+strings.Join(modules, ", ")).CombinedOutput(); err != nil {
		t.Skipf("%s has not all of %s; set %s to a Python that has them: %s", program, strings.Join(modules, ", "),
			Variable, out[max(0, len(out)-200):])
	}
	return program
}
