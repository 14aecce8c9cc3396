package storetest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/prooftest/memory"
	"github.com/oribi-db/oribi/internal/seedtest"
)

// These environment variables make the test program a phase of the memory test: the directory of
// the store and the result file, and the name of the phase.
const (
	memoryDir   = "ORIBI_TEST_MEMORY"
	memoryPhase = "ORIBI_TEST_MEMORY_PHASE"
	peakFile    = "peak"
)

// memoryTest describes the store of the test: a few times its memory limit, or ten times with
// -proof.for.
func memoryTest(dir string) memory.Store {
	m := memory.Store{Dir: dir, Limit: 16 << 20, Times: seedtest.Rounds[int64](4, 3)}
	if *forFlag > 0 {
		m.Times = 10
	}
	return m
}

// The test writes several times the store's memory limit of rows, then changes larger than the
// limit. It scans the store, at the newest timestamp and as of before the changes, merges it, and
// scans again. The memory use of the process is bounded by the limit, not by the size of the store.
func TestMemoryUseIsBoundedForLargeStores(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	program := must.Get(os.Executable())(t)
	m := memoryTest(t.TempDir())
	for i, phase := range memory.Phases {
		cmd := exec.Command(program, "-test.run=^TestMemoryPhase$", "-proof.for="+forFlag.String())
		cmd.Env = append(os.Environ(), m.Env(), memoryDir+"="+m.Dir, memoryPhase+"="+phase)
		out, err := cmd.CombinedOutput()
		must.Do(t, err, "phase", i, phase, string(out))
		peak := must.Get(os.ReadFile(filepath.Join(m.Dir, peakFile)))(t)
		bytes := must.Get(strconv.ParseInt(string(peak), 10, 64))(t)
		if bytes > m.Bound() {
			t.Errorf("phase %d, %s: %d bytes in use at the peak, want at most %d", i, phase, bytes, m.Bound())
		}
		t.Logf("phase %d, %s: %d KiB in use at the peak", i, phase, bytes>>10)
	}
}

// TestMemoryPhase runs in the processes of the memory test.
func TestMemoryPhase(t *testing.T) {
	dir := os.Getenv(memoryDir)
	if dir == "" {
		t.Skip("runs only as part of TestMemoryUseIsBoundedForLargeStores")
	}
	peak := memory.WatchLivePeak()
	must.Do(t, memoryTest(dir).Run(os.Getenv(memoryPhase)))
	bytes := peak.Stop()
	must.Do(t, os.WriteFile(filepath.Join(dir, peakFile), fmt.Append(nil, bytes), 0o600))
}
