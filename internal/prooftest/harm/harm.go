// Package harm runs the trials of copies between stores and a running Kudu cluster, see
// TestCopiesSurviveHarm in package kudu/live: only tests start servers, so a trial is a test.
package harm

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
)

// Count is how often something was done in a trial.
type Count struct {
	N    int64
	Unit string // in the plural, without a comma
}

var summary = regexp.MustCompile(`harm: (\d[^(]*)\(`)

// Run runs the trial of a seed, whose files are in dir. The working directory is inside the module. Kudu's
// programs must be installed.
func Run(seed uint64, dir string) ([]Count, error) {
	cmd := exec.Command("go", "test", "-count=1", "-v", "-timeout=30m", "-run=^TestCopiesSurviveHarm$",
		"github.com/oribi-db/oribi/kudu/live", "-seed", strconv.FormatUint(seed, 10))
	cmd.Env = append(os.Environ(), "ORIBI_KUDU=all", "ORIBI_FULL=1", "TMPDIR="+dir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, out)
	}
	m := summary.FindSubmatch(out)
	if m == nil {
		return nil, fmt.Errorf("the trial has not run:\n%s", out)
	}
	return parse(string(m[1]))
}

// parse parses "3 cuts, 1 kills".
func parse(text string) (counts []Count, err error) {
	for part := range strings.SplitSeq(strings.TrimSpace(text), ", ") {
		number, unit, ok := strings.Cut(part, " ")
		n, bad := strconv.ParseInt(number, 10, 64)
		if !ok || bad != nil {
			err = errors.Join(err, fmt.Errorf("count %q", part))
		}
		counts = append(counts, Count{n, unit})
	}
	return counts, err
}
