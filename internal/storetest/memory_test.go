package storetest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/internal/prooftest"
)

// memoryDir is the environment variable that makes the test program a phase of the memory test, and
// says where the store is.
const memoryDir = "ORIBI_TEST_MEMORY"

func memoryTest(dir string) prooftest.Memory {
	return prooftest.Memory{Dir: dir, Limit: 16 << 20, Times: 10}
}

// A store takes ten times its memory limit, then changes of more than the limit; it is scanned, now
// and as it was, merged, and scanned again. Each is done by a process whose peak of resident memory
// stays below twice the limit and 96 MiB. Where cgroups can be made, the kernel holds the process
// to it too.
func TestMemoryStaysBelowItsBoundHoweverMuchTheStoreHolds(t *testing.T) {
	if runtime.GOOS != "linux" || testing.Short() {
		t.Skip("it takes ten seconds, and asks the kernel of Linux for peaks")
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	m := memoryTest(t.TempDir())
	group := memoryGroup(t, m.Bound())
	for _, phase := range prooftest.MemoryPhases {
		cmd := exec.Command(program, "-test.run=^TestMemoryPhase$", "-test.v")
		cmd.Env = append(os.Environ(), m.Env(), memoryDir+"="+m.Dir, "PHASE="+phase, "GROUP="+group)
		out, err := cmd.CombinedOutput()
		peak := peakOf(out)
		switch {
		case err != nil:
			t.Fatalf("%s: %v\n%s", phase, err, out)
		case peak == 0:
			t.Fatalf("%s: no peak:\n%s", phase, out)
		case peak > m.Bound():
			t.Errorf("%s: %d MiB at the peak, want at most %d MiB", phase, peak>>20, m.Bound()>>20)
		}
		t.Logf("%s: %d MiB at the peak, bound %d MiB; cgroup %q", phase, peak>>20, m.Bound()>>20, group)
	}
}

// TestMemoryPhase is what the processes of the memory test do.
func TestMemoryPhase(t *testing.T) {
	dir := os.Getenv(memoryDir)
	if dir == "" {
		t.Skip("it is a part of another test")
	}
	if group := os.Getenv("GROUP"); group != "" {
		if err := os.WriteFile(filepath.Join(group, "cgroup.procs"), []byte("0"), 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := memoryTest(dir).Run(os.Getenv("PHASE")); err != nil {
		t.Fatal(err)
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("%s\n", status)
}

// peakOf finds the peak of resident memory, bytes, in what a phase printed.
func peakOf(out []byte) int64 {
	_, rest, _ := bytes.Cut(out, []byte("VmHWM:"))
	fields := strings.Fields(string(rest))
	if len(fields) == 0 {
		return 0
	}
	kib, _ := strconv.ParseInt(fields[0], 10, 64)
	return kib << 10
}

// memoryGroup makes a cgroup that may hold so many bytes, and the pages of files for which the
// kernel finds room beside them; "" where that is not allowed.
func memoryGroup(t *testing.T, bytes int64) string {
	t.Helper()
	const pages = 32 << 20
	for _, at := range []struct{ parent, file string }{{"/sys/fs/cgroup/memory", "memory.limit_in_bytes"}, {"/sys/fs/cgroup", "memory.max"}} {
		group := filepath.Join(at.parent, fmt.Sprintf("oribi-test-%d", os.Getpid()))
		if os.Mkdir(group, 0o755) != nil {
			continue
		}
		t.Cleanup(func() { os.Remove(group) })
		limit, err := os.OpenFile(filepath.Join(group, at.file), os.O_WRONLY, 0)
		if err != nil { // that controller is not to be had here
			continue
		}
		_, err = fmt.Fprint(limit, bytes+pages)
		limit.Close()
		if err == nil {
			return group
		}
	}
	return ""
}
