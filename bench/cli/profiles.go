package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/oribi-db/oribi/bench/harness"
)

// profileTop is the number of functions shown of each profile.
const profileTop = 6

// writeProfiles shows, for each workload in which we lose, where our best peer spends its time:
// functions by their own share of CPU time, of allocated bytes, and of waiting for locks and other
// goroutines.
func writeProfiles(ctx context.Context, w io.Writer, dir string, r *harness.Report) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "Profiles of the first round of each workload in which ours is slower than the best other peer or "+
		"misses a goal.\n")
	for _, lost := range r.Shortfalls() {
		fmt.Fprintf(w, "\n## %s: %s\n\n", lost.Workload, lost.Why)
		for _, kind := range []struct{ file, sample, name string }{{"cpu", "cpu", "processor"},
			{"allocs", "alloc_space", "allocated"},
			{"mutex", "delay", "locks"}, {"block", "delay", "waiting"}} {
			name := filepath.Join(dir, lost.Workload+"-"+lost.Peer+"."+kind.file+".prof")
			if _, err := os.Stat(name); err != nil {
				continue // commands are not profiled
			}
			out, err := exec.CommandContext(ctx, "go", "tool", "pprof", "-top", "-sample_index="+kind.sample,
				fmt.Sprintf("-nodecount=%d", profileTop), self, name).Output()
			if err != nil {
				return fmt.Errorf("profile %s: %w", name, err)
			}
			fmt.Fprintf(w, "- %s: %s\n", kind.name, topLine(out))
		}
	}
	return nil
}

// topLine formats the output of pprof -top as one line: share and name of each function.
func topLine(out []byte) string {
	_, table, found := bytes.Cut(out, []byte("cum%\n"))
	if !found {
		return "nothing"
	}
	var parts []string
	for line := range strings.Lines(string(table)) {
		f := strings.Fields(line)
		if len(f) < 6 || f[0] == "0" {
			continue
		}
		parts = append(parts, f[1]+" "+strings.TrimPrefix(strings.Join(f[5:], " "), "github.com/oribi-db/oribi/"))
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, ", ")
}
