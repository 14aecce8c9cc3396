package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/oribi-db/oribi/bench/harness"
	"github.com/oribi-db/oribi/bench/inputs"
	"github.com/oribi-db/oribi/bench/peer"
	"github.com/oribi-db/oribi/bench/peer/peertest"
	"github.com/oribi-db/oribi/bench/work"
	"github.com/oribi-db/oribi/internal/must"
)

// holderVariable makes the test program open a store and wait. It contains the home and the
// directory, separated by a newline.
const holderVariable = "ORIBI_BENCH_KUDU_HOLDER"

func TestMain(m *testing.M) {
	if text := os.Getenv(holderVariable); text != "" {
		home, dir, _ := strings.Cut(text, "\n")
		hold(home, dir)
	}
	code := m.Run()
	if homeDir != "" {
		os.RemoveAll(homeDir)
	}
	os.Exit(code)
}

// hold opens a store, prints its server processes, and waits to be killed.
func hold(home, dir string) {
	l, err := open(home, dir)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	p, err := l.java()
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(l.master.Process.Pid, l.tablet.Process.Pid, p.Cmd.Process.Pid)
	select {}
}

var (
	homeDir    string
	homeOnce   sync.Once
	errInstall error
)

// home returns what ready makes. It is made once; the test is skipped if that fails.
func home(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a Kudu server")
	}
	root := must.Get(filepath.Abs(filepath.Join("..", "..")))(t)
	homeOnce.Do(func() {
		if homeDir, errInstall = os.MkdirTemp("", "oribi-bench-kudu-home-"); errInstall == nil {
			errInstall = install(inputs.Corpus(root), homeDir)
		}
	})
	if errInstall != nil {
		t.Skipf("Kudu cannot be installed: %v", errInstall)
	}
	return homeDir
}

func TestKuduAnswersMatchItsRows(t *testing.T) {
	h := home(t)
	d := driver(func() (string, error) { return h, nil })
	d.Can = peer.Sorted | peer.Write | peer.Point | peer.Query
	peertest.Answers(t, d)
}

// The server and Oribi read the same rows, of lineitem of the corpus and of a generated table.
func TestScansOfServerMatchItsDirectory(t *testing.T) {
	h := home(t)
	where := func() (string, error) { return h, nil }
	root := must.Get(filepath.Abs(filepath.Join("..", "..")))(t)
	dirs := map[bool]string{false: t.TempDir(), true: t.TempDir()}
	prepared := map[bool]bool{}
	for _, c := range work.KuduScans {
		env := harness.Env{Scale: harness.Scales["small"], Corpus: inputs.Corpus(root),
			Dir: dirs[c.Large], Inputs: t.TempDir()}
		if !prepared[c.Large] {
			must.Do(t, prepareScan(&env, where, &c))
			prepared[c.Large] = true
		}
		ours := must.Get(c.Measure(&env))(t)
		for _, p := range work.KuduScanners {
			theirs := must.Get(measureScan(&env, where, &c, p.Format))(t)
			if ours.Checksum == "" || ours.Checksum != theirs.Checksum || theirs.Value <= 0 {
				t.Errorf("%s: %s: %+v, Oribi %+v", c.Workload, p.Name, theirs, ours)
			}
		}
	}
}

// All clients write and read the same rows, and a copy has those of its store.
func TestClientsGiveEqualAnswers(t *testing.T) {
	h := home(t)
	root := must.Get(filepath.Abs(filepath.Join("..", "..")))(t)
	env := harness.Env{Scale: harness.Scales["small"], Corpus: inputs.Corpus(root), Inputs: t.TempDir()}
	all := work.All(nil, peers(func() (string, error) { return h, nil })...)
	for _, w := range must.Get(harness.Find(all, []string{"kudu-write", "kudu-read-*", "kudu-sync-lag"}))(t) {
		must.Do(t, w.Inputs(&env))
		sum := ""
		for i, p := range w.Peers {
			if p.Store == "" || i == 0 {
				env.Dir = t.TempDir()
				if p.Prepare != nil {
					must.Do(t, p.Prepare(&env))
				}
			}
			m := must.Get(p.Measure(&env))(t)
			if sum == "" {
				sum = m.Checksum
			}
			if m.Value <= 0 || m.Checksum == "" || m.Checksum != sum {
				t.Errorf("%s: %s: %+v, want checksum %q", w.Name, p.Name, m, sum)
			}
			env.Watch(nil)
		}
	}
}

func TestServersEndWithTheirParentProcess(t *testing.T) {
	h := home(t)
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		c := exec.Command(os.Args[0])
		c.Env = append(os.Environ(), holderVariable+"="+h+"\n"+t.TempDir())
		out := must.Get(c.StdoutPipe())(t)
		must.Do(t, c.Start())
		line, err := bufio.NewReader(out).ReadString('\n')
		var pids [3]int
		if _, scanned := fmt.Sscan(line, &pids[0], &pids[1], &pids[2]); err != nil || scanned != nil {
			c.Process.Kill()
			c.Wait()
			t.Fatalf("the holder printed %q, %v", line, err)
		}
		c.Process.Signal(signal)
		c.Wait()
		for _, pid := range pids {
			for running(pid) { // the system ends it soon, or the test times out
			}
		}
	}
}

// running reports whether a process runs. A process that has ended but was not waited for does not.
func running(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, state, _ := strings.Cut(string(text), ") ")
	return !strings.HasPrefix(state, "Z") && !strings.HasPrefix(state, "X")
}

func TestInstallNamesWhatIsMissing(t *testing.T) {
	err := install("", t.TempDir())
	if err == nil || !strings.Contains(err.Error(), inputs.Variable) && !strings.Contains(err.Error(), "linux/amd64") {
		t.Errorf("without a corpus: %v", err)
	}
	corpus := t.TempDir()
	tool := filepath.Join(corpus, "tools", "kudu", "install")
	must.Do(t, errors.Join(os.MkdirAll(filepath.Dir(tool), 0o755),
		os.WriteFile(tool, []byte("#!/bin/sh\necho install: mvn is missing >&2; exit 1\n"), 0o755)))
	if err := install(corpus, t.TempDir()); err == nil ||
		!strings.Contains(err.Error(), "mvn is missing") && !strings.Contains(err.Error(), "linux/amd64") {
		t.Errorf("a tool that fails: %v", err)
	}
}
