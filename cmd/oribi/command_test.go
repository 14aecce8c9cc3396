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
	"github.com/oribi-db/oribi/internal/must"
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

// succeed runs the command and fails the test if it fails.
func succeed(t testing.TB, stdin io.Reader, args ...string) string {
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
	succeed(t, nil, "store", "init", dir)
	succeed(t, strings.NewReader(`{"columns":[{"name":"k","type":"int32","key":true},{"name":"v","type":"string"}]}`),
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
	a.in = must.Get(a.StdinPipe())(t)
	out := must.Get(a.StdoutPipe())(t)
	a.stamps = bufio.NewReader(out)
	must.Do(t, a.Start())
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
	must.Equal(t, succeed(t, nil, "store", "verify", dir), "ok\n")
	for _, n := range []int{0, len(stamps) / 2, len(stamps) - 1} {
		must.Equal(t, succeed(t, nil, "table", "count", dir, "t", "--as-of", stamps[n]), fmt.Sprintln(2*(n+1)), n)
	}
	rows, err := strconv.Atoi(strings.TrimSpace(succeed(t, nil, "table", "count", dir, "t")))
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
			must.Do(t, a.Process.Kill())
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
		must.Get(io.WriteString(a.in, line(n)))(t)
	}
	stamps := a.acknowledged(t, 10) // then it waits for input
	must.Do(t, a.Process.Signal(os.Interrupt))
	stamps = append(stamps, a.acknowledged(t, 1<<20)...)
	a.Wait()
	if code := a.ProcessState.ExitCode(); code != 130 || a.errs.String() != "oribi: interrupted\n" {
		t.Errorf("exit code %d: %s", code, a.errs.String())
	}
	must.Equal(t, len(stamps), 10)
	checkAcknowledged(t, dir, stamps)
}

// Each timestamp is printed when its batch is done, not when the run ends.
func TestApplyPrintsTimestampPerBatch(t *testing.T) {
	t.Parallel()
	dir := numbers(t)
	a := startApply(t, dir)
	last := uint64(0)
	for n := range 20 {
		must.Get(io.WriteString(a.in, line(n)))(t)
		stamps := a.acknowledged(t, 1)
		if len(stamps) != 1 {
			t.Fatalf("%d acknowledged, want 1; %s", len(stamps), a.errs.String())
		}
		ts, err := strconv.ParseUint(stamps[0], 10, 64)
		if err != nil || ts <= last {
			t.Fatalf("%q after %d, %v", stamps[0], last, err)
		}
		last = ts
	}
	a.in.Close()
	must.Do(t, a.Wait())
}

// Batches are applied even after the reader of the timestamps has closed its end.
func TestApplyContinuesWhenReaderOfTimestampsCloses(t *testing.T) {
	t.Parallel()
	dir := numbers(t)
	var lines strings.Builder
	for n := range 50 {
		lines.WriteString(line(n))
	}
	r, w := must.Get2(os.Pipe())(t)
	r.Close()
	cmd := exec.Command(binary, "apply", dir, "-", "--timestamps", "-", "--no-sync")
	cmd.Stdin, cmd.Stdout = strings.NewReader(lines.String()), w
	err := cmd.Run()
	w.Close()
	must.Do(t, err)
	must.Equal(t, succeed(t, nil, "table", "count", dir, "t"), "100\n")
}

// filled creates a store whose table prints more than a pipe buffers.
func filled(t testing.TB) string {
	t.Helper()
	dir := numbers(t)
	var lines strings.Builder
	for n := range 10_000 {
		lines.WriteString(line(n))
	}
	succeed(t, strings.NewReader(lines.String()), "apply", dir, "-", "--no-sync")
	return dir
}

func TestReaderOfOutputMayClose(t *testing.T) {
	t.Parallel()
	dir := filled(t)
	for _, format := range []string{"jsonl", "json", "csv", "table"} {
		var errs bytes.Buffer
		cmd := exec.Command(binary, "table", "scan", dir, "t", "--format", format)
		cmd.Stderr = &errs
		out := must.Get(cmd.StdoutPipe())(t)
		must.Do(t, cmd.Start())
		must.Get(bufio.NewReaderSize(out, 16).ReadString('\n'))(t)
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
	must.Equal(t, cmd.ProcessState.ExitCode(), 1)
}

// Not parallel: a process that another test starts has a copy of this one's descriptors, including
// the lock's, until it executes the command. The store would appear locked for a short time after
// Close.
func TestLockedStore(t *testing.T) {
	dir := numbers(t)
	rows := filepath.Join(t.TempDir(), "rows")
	must.Do(t, os.WriteFile(rows, []byte(line(0)), 0o600))
	for _, c := range []struct {
		holder  oribi.Options
		readers int // exit code of commands that read
		writers int
	}{
		{holder: oribi.Options{}, readers: 0, writers: 5},
		{holder: oribi.Options{ReadOnly: true}, readers: 0, writers: 5},
	} {
		store := must.Get(oribi.Open(dir, &c.holder))(t)
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
		must.Do(t, store.Close())
	}
	succeed(t, nil, "apply", dir, rows)
}

// Damage of any file that matters makes verify exit with code 3 and print findings as JSON that
// name a file.
func TestVerifyFindsDamage(t *testing.T) {
	t.Parallel()
	dir := filled(t)
	succeed(t, nil, "table", "flush", dir, "t")
	containers, err := filepath.Glob(filepath.Join(dir, "data", "*"))
	if err != nil || len(containers) == 0 {
		t.Fatalf("no containers: %v", err)
	}
	for _, name := range append(containers, filepath.Join(dir, "INSTANCE")) {
		whole := must.Get(os.ReadFile(name))(t)
		damaged := bytes.Clone(whole)
		at := 5000 % len(whole) // after a container's header: in its first block
		damaged[at] ^= 0x10
		must.Do(t, os.WriteFile(name, damaged, 0o600))
		out, errs, code := run(t, nil, "store", "verify", dir)
		if code != 3 || !strings.HasPrefix(out, `{"file":"`) || !strings.HasPrefix(errs, "oribi: ") ||
			strings.Count(errs, "\n") != 2 {
			t.Errorf("%s: exit code %d, stdout %s, stderr %s", filepath.Base(name), code, out, errs)
		}
		must.Do(t, os.WriteFile(name, whole, 0o600))
	}
	must.Equal(t, succeed(t, nil, "store", "verify", dir), "ok\n")
}
