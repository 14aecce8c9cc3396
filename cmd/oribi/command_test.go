package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/oribi-db/oribi"
)

// run runs the command and waits until it exits.
func run(t testing.TB, stdin io.Reader, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := exec.Command(binary, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &out, &errs
	if err := cmd.Run(); err != nil {
		if _, exited := errors.AsType[*exec.ExitError](err); !exited {
			t.Fatal(err)
		}
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// must runs the command and fails the test if it fails.
func must(t testing.TB, stdin io.Reader, args ...string) string {
	t.Helper()
	out, errs, code := run(t, stdin, args...)
	if code != 0 || errs != "" {
		t.Fatalf("oribi %s: exit code %d: %s", strings.Join(args, " "), code, errs)
	}
	return out
}

// numbers creates a store with a table of two columns.
func numbers(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "store")
	must(t, nil, "store", "init", dir)
	must(t, strings.NewReader(`{"columns":[{"name":"k","type":"int32","key":true},{"name":"v","type":"string"}]}`),
		"table", "create", dir, "t", "--schema", "-")
	return dir
}

// line is write batch n: it inserts rows 2n and 2n+1.
func line(n int) string {
	return fmt.Sprintf(`{"ops":[{"op":"insert","table":"t","row":{"k":%d,"v":"even"}},{"op":"insert","table":"t","row":{"k":%d,"v":"odd"}}]}`+"\n", 2*n, 2*n+1)
}

// applying is a running "apply - --timestamps -".
type applying struct {
	*exec.Cmd
	in     io.WriteCloser
	stamps *bufio.Reader
	errs   bytes.Buffer
}

func startApply(t testing.TB, dir string, flags ...string) *applying {
	t.Helper()
	a := &applying{Cmd: exec.Command(binary, append([]string{"apply", dir, "-", "--timestamps", "-"}, flags...)...)}
	a.Stderr = &a.errs
	var err error
	if a.in, err = a.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := a.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	a.stamps = bufio.NewReader(out)
	if err := a.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Process.Kill() })
	return a
}

// acknowledged reads n timestamps, or as many as there are.
func (a *applying) acknowledged(t testing.TB, n int) (stamps []string) {
	t.Helper()
	for len(stamps) < n {
		s, err := a.stamps.ReadString('\n')
		if err != nil {
			break // a killed process may leave an incomplete line
		}
		stamps = append(stamps, strings.TrimSuffix(s, "\n"))
	}
	return stamps
}

// checkAcknowledged checks that every batch with a timestamp is visible as of it, that other
// batches are applied as a whole or not at all, and that nothing is damaged.
func checkAcknowledged(t *testing.T, dir string, stamps []string) {
	t.Helper()
	if got := must(t, nil, "store", "verify", dir); got != "ok\n" {
		t.Errorf("verify: %s", got)
	}
	for _, n := range []int{0, len(stamps) / 2, len(stamps) - 1} {
		if got, want := must(t, nil, "table", "count", dir, "t", "--as-of", stamps[n]),
			fmt.Sprintln(2*(n+1)); got != want {
			t.Errorf("as of the timestamp of batch %d: %s rows, want %s", n, got, want)
		}
	}
	rows, err := strconv.Atoi(strings.TrimSpace(must(t, nil, "table", "count", dir, "t")))
	if err != nil || rows%2 != 0 || rows < 2*len(stamps) {
		t.Errorf("%d rows, %v; %d batches were acknowledged", rows, err, len(stamps))
	}
}

func TestKilledApplyKeepsAcknowledgedBatches(t *testing.T) {
	for _, flags := range [][]string{{}, {"--no-sync"}} {
		t.Run(strings.Join(append(flags, "flags"), " "), func(t *testing.T) {
			t.Parallel()
			dir := numbers(t)
			a := startApply(t, dir, flags...)
			go func() {
				for n := 0; ; n++ {
					if _, err := io.WriteString(a.in, line(n)); err != nil {
						return // killed
					}
				}
			}()
			stamps := a.acknowledged(t, 40)
			if err := a.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			stamps = append(stamps, a.acknowledged(t, 1<<20)...)
			a.Wait()
			if len(stamps) < 40 {
				t.Fatalf("%d timestamps: %s", len(stamps), a.errs.String())
			}
			checkAcknowledged(t, dir, stamps)
		})
	}
}

func TestInterruptedApplyEndsBetweenBatches(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("processes cannot be interrupted")
	}
	t.Parallel()
	dir := numbers(t)
	a := startApply(t, dir)
	for n := range 10 {
		if _, err := io.WriteString(a.in, line(n)); err != nil {
			t.Fatal(err)
		}
	}
	stamps := a.acknowledged(t, 10) // then it waits for input
	if err := a.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	stamps = append(stamps, a.acknowledged(t, 1<<20)...)
	a.Wait()
	if code := a.ProcessState.ExitCode(); code != 130 || a.errs.String() != "oribi: interrupted\n" {
		t.Errorf("exit code %d: %s", code, a.errs.String())
	}
	if len(stamps) != 10 {
		t.Fatalf("%d timestamps", len(stamps))
	}
	checkAcknowledged(t, dir, stamps)
}

// Each timestamp is printed when its batch is done, not when the run ends.
func TestApplyPrintsTimestampPerBatch(t *testing.T) {
	t.Parallel()
	dir := numbers(t)
	a := startApply(t, dir)
	last := uint64(0)
	for n := range 20 {
		if _, err := io.WriteString(a.in, line(n)); err != nil {
			t.Fatal(err)
		}
		stamps := a.acknowledged(t, 1)
		if len(stamps) != 1 {
			t.Fatal(a.errs.String())
		}
		ts, err := strconv.ParseUint(stamps[0], 10, 64)
		if err != nil || ts <= last {
			t.Fatalf("%q after %d, %v", stamps[0], last, err)
		}
		last = ts
	}
	a.in.Close()
	if err := a.Wait(); err != nil {
		t.Error(err)
	}
}

// Batches are applied even after the reader of the timestamps has closed its end.
func TestApplyContinuesWhenReaderOfTimestampsCloses(t *testing.T) {
	t.Parallel()
	dir := numbers(t)
	var lines strings.Builder
	for n := range 50 {
		lines.WriteString(line(n))
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	cmd := exec.Command(binary, "apply", dir, "-", "--timestamps", "-", "--no-sync")
	cmd.Stdin, cmd.Stdout = strings.NewReader(lines.String()), w
	err = cmd.Run()
	w.Close()
	if err != nil {
		t.Error(err)
	}
	if got := must(t, nil, "table", "count", dir, "t"); got != "100\n" {
		t.Errorf("%s rows", got)
	}
}

// filled creates a store whose table prints more than a pipe buffers.
func filled(t testing.TB) string {
	t.Helper()
	dir := numbers(t)
	var lines strings.Builder
	for n := range 10_000 {
		lines.WriteString(line(n))
	}
	must(t, strings.NewReader(lines.String()), "apply", dir, "-", "--no-sync")
	return dir
}

func TestReaderOfOutputMayClose(t *testing.T) {
	t.Parallel()
	dir := filled(t)
	for _, format := range []string{"jsonl", "json", "csv", "table"} {
		var errs bytes.Buffer
		cmd := exec.Command(binary, "table", "scan", dir, "t", "--format", format)
		cmd.Stderr = &errs
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := bufio.NewReaderSize(out, 16).ReadString('\n'); err != nil {
			t.Error(err)
		}
		out.Close()
		if err := cmd.Wait(); err != nil || errs.Len() > 0 {
			t.Errorf("%s: %v: %s", format, err, errs.String())
		}
	}
}

func TestFullDeviceIsError(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("no /dev/full here: ", err)
	}
	defer full.Close()
	t.Parallel()
	cmd := exec.Command(binary, "store", "info", numbers(t))
	cmd.Stdout = full
	cmd.Run()
	if code := cmd.ProcessState.ExitCode(); code != 1 {
		t.Errorf("exit code %d", code)
	}
}

// Not parallel: a process that another test starts has a copy of this one's descriptors, including
// the lock's, until it executes the command. The store would appear locked for a short time after
// Close.
func TestLockedStore(t *testing.T) {
	dir := numbers(t)
	rows := filepath.Join(t.TempDir(), "rows")
	if err := os.WriteFile(rows, []byte(line(0)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		holder  oribi.Options
		readers int // exit code of commands that read
		writers int
	}{
		{holder: oribi.Options{}, readers: 0, writers: 5},
		{holder: oribi.Options{ReadOnly: true}, readers: 0, writers: 5},
	} {
		store, err := oribi.Open(dir, &c.holder)
		if err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"store", "info", dir}, {"store", "verify", dir},
			{"table", "scan", dir, "t"}, {"table", "list", dir},
			{"table", "scan", dir, "t", "--as-of", "now"}, {"store", "du", dir}, {"store", "dump", dir},
			{"store", "checkpoint", dir, filepath.Join(t.TempDir(), "copy")}} {
			if _, errs, code := run(t, nil, args...); code != c.readers {
				t.Errorf("holder read-only %v: %v: exit code %d, want %d: %s",
					c.holder.ReadOnly, args, code, c.readers, errs)
			}
		}
		for _, args := range [][]string{{"apply", dir, rows}, {"table", "flush", dir, "t"},
			{"table", "drop", dir, "t", "--yes"}} {
			if _, errs, code := run(t, nil, args...); code != c.writers || strings.Count(errs, "\n") != 1 {
				t.Errorf("holder read-only %v: %v: exit code %d, want %d: %s",
					c.holder.ReadOnly, args, code, c.writers, errs)
			}
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	}
	must(t, nil, "apply", dir, rows)
}

// Damage of any file that matters makes verify exit with code 3 and print findings as JSON that
// name a file.
func TestVerifyFindsDamage(t *testing.T) {
	t.Parallel()
	dir := filled(t)
	must(t, nil, "table", "flush", dir, "t")
	containers, err := filepath.Glob(filepath.Join(dir, "data", "*"))
	if err != nil || len(containers) == 0 {
		t.Fatalf("no containers: %v", err)
	}
	for _, name := range append(containers, filepath.Join(dir, "INSTANCE")) {
		whole, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		damaged := bytes.Clone(whole)
		at := 5000 % len(whole) // after a container's header: in its first block
		damaged[at] ^= 0x10
		if err := os.WriteFile(name, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		out, errs, code := run(t, nil, "store", "verify", dir)
		if code != 3 || !strings.HasPrefix(out, `{"file":"`) || !strings.HasPrefix(errs, "oribi: ") ||
			strings.Count(errs, "\n") != 2 {
			t.Errorf("%s: exit code %d, stdout %s, stderr %s", filepath.Base(name), code, out, errs)
		}
		if err := os.WriteFile(name, whole, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := must(t, nil, "store", "verify", dir); got != "ok\n" {
		t.Errorf("after repair: %s", got)
	}
}
