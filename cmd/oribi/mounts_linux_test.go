package main

import (
	"fmt"
	"github.com/oribi-db/oribi/internal/must"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// mounted mounts a file system until the test ends, if permitted.
func mounted(t *testing.T, source, kind string, flags uintptr, data string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := syscall.Mount(source, dir, kind, flags, data); err != nil {
		t.Skip("no mounts here: ", err)
	}
	t.Cleanup(func() { syscall.Unmount(dir, syscall.MNT_DETACH) })
	return dir
}

// fails runs the command, which must exit with code 1 and one line that contains why.
func fails(t *testing.T, why string, stdin string, args ...string) {
	t.Helper()
	_, errs, code := run(t, strings.NewReader(stdin), args...)
	if code != 1 || strings.Count(errs, "\n") != 1 || !strings.Contains(errs, why) {
		t.Errorf("oribi %s: exit code %d, want 1 and %q: %s", strings.Join(args, " "), code, why, errs)
	}
}

const noSpace = "no space left"

// A disk of 24 MiB runs full, and another program uses the space that is kept free. Inserts are
// refused; reads succeed. Deletes and drops succeed with no space left at all, since RESERVE gives
// them some. Without it, every writer returns an error. Once there is room again everything works,
// and dropping the table frees the disk.
func TestSmallDiskRunsFull(t *testing.T) {
	disk := mounted(t, "tmpfs", "tmpfs", 0, "size=24m")
	dir := filepath.Join(disk, "store")
	succeed(t, nil, "store", "init", dir)
	create := func() {
		succeed(t, strings.NewReader(`{"columns":[{"name":"k","type":"int32","key":true},{"name":"v","type":"string"}]}`),
			"table", "create", dir, "t", "--schema", "-")
	}
	create()
	random := rand.New(rand.NewPCG(1, 1))
	insert := func(k int) string {
		text := make([]byte, 50_000)
		for i := range text {
			text[i] = byte('!' + 2 + random.IntN(56)) // neither a quote nor a backslash
		}
		return fmt.Sprintf(`{"ops":[{"op":"insert","table":"t","row":{"k":%d,"v":"%s"}}]}`+"\n", k, text)
	}
	remove := func(k int) string {
		return fmt.Sprintf(`{"ops":[{"op":"delete","table":"t","key":{"k":%d}}]}`+"\n", k)
	}
	var all strings.Builder
	for k := range 500 {
		all.WriteString(insert(k))
	}
	out, errs, code := run(t, strings.NewReader(all.String()), "apply", dir, "-", "--timestamps", "-")
	applied := strings.Count(out, "\n")
	if code != 1 || !strings.Contains(errs, noSpace) || applied < 50 || applied == 500 {
		t.Fatalf("%d batches of 500: exit code %d: %s", applied, code, errs)
	}
	rows := func(want int) {
		t.Helper()
		must.Equal(t, succeed(t, nil, "table", "count", dir, "t"), fmt.Sprintln(want), want)
		must.Equal(t, succeed(t, nil, "store", "verify", dir), "ok\n")
	}
	rows(applied)
	succeed(t, strings.NewReader(remove(0)), "apply", dir, "-")
	succeed(t, nil, "table", "compact", dir, "t")
	rows(applied - 1)

	// fill leaves free bytes on the disk.
	fill := func(free int) {
		t.Helper()
		name := filepath.Join(disk, "fill")
		os.Remove(name)
		var s syscall.Statfs_t
		must.Do(t, syscall.Statfs(disk, &s))
		must.Do(t, os.WriteFile(name, make([]byte, int(s.Bavail)*int(s.Bsize)-free), 0o600))
	}
	fill(8 << 20)
	fails(t, noSpace, insert(1000), "apply", dir, "-")
	succeed(t, strings.NewReader(remove(1)), "apply", dir, "-")
	succeed(t, nil, "table", "compact", dir, "t")
	rows(applied - 2)
	fill(2 << 20)
	fails(t, noSpace, insert(1000), "apply", dir, "-")
	succeed(t, strings.NewReader(remove(2)), "apply", dir, "-")
	rows(applied - 3)
	fill(0)
	fails(t, noSpace, insert(1000), "apply", dir, "-")
	succeed(t, strings.NewReader(remove(3)), "apply", dir, "-")
	rows(applied - 4)
	must.Do(t, os.Remove(filepath.Join(dir, "RESERVE")))
	fill(0)
	fails(t, "no space left", remove(4), "apply", dir, "-")
	fails(t, "no space left", "", "table", "drop", dir, "t", "--yes")
	rows(applied - 4)
	fill(1 << 20)
	succeed(t, nil, "table", "drop", dir, "t", "--yes")
	must.Do(t, os.Remove(filepath.Join(disk, "fill")))
	create()
	succeed(t, strings.NewReader(insert(7)), "apply", dir, "-")
	rows(1)
	fill(0)
	succeed(t, nil, "table", "drop", dir, "t", "--yes")
	must.Do(t, os.Remove(filepath.Join(disk, "fill")))
	var s syscall.Statfs_t
	const reserve = 8 << 20
	if err := syscall.Statfs(disk, &s); err != nil || int64(s.Bfree)*s.Bsize < 22<<20-reserve {
		t.Errorf("%d of 24 MiB are free after the drop, %v", int64(s.Bfree)*s.Bsize>>20, err)
	}
}

// On a read-only mount, a store that was not closed can be read and checked; writers report why
// they fail. A second path to the directory is the same store: it is locked for writers.
func TestReadOnlyMountCanBeRead(t *testing.T) {
	dir := numbers(t)
	a := startApply(t, dir)
	for n := range 3 {
		must.Get(a.in.Write([]byte(line(n))))(t)
	}
	if n := len(a.acknowledged(t, 3)); n != 3 {
		t.Fatalf("%d acknowledged, want 3; %s", n, a.errs.String())
	}
	second := mounted(t, dir, "", syscall.MS_BIND, "")
	if _, errs, code := run(t, nil, "table", "flush", second, "t"); code != 5 {
		t.Errorf("flush through another mount: exit code %d: %s", code, errs)
	}
	must.Equal(t, succeed(t, nil, "table", "count", second, "t"), "6\n", "next to the writer")
	must.Equal(t, succeed(t, nil, "store", "verify", second), "ok\n", "next to the writer: verify")
	must.Do(t, a.Process.Kill())
	a.Wait()
	if err := syscall.Mount("", second, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Skip("no read-only mounts here: ", err)
	}
	must.Equal(t, succeed(t, nil, "table", "count", second, "t"), "6\n")
	must.Equal(t, succeed(t, nil, "store", "verify", second), "ok\n")
	must.Contain(t, succeed(t, nil, "store", "info", second), `"clean":false,"frames":3,`)
	succeed(t, nil, "table", "scan", second, "t")
	succeed(t, nil, "store", "du", second)
	const why = "read-only file system"
	fails(t, why, line(9), "apply", second, "-")
	fails(t, why, "", "table", "flush", second, "t")
	fails(t, why, "", "table", "drop", second, "t", "--yes")
	fails(t, why, "", "store", "init", filepath.Join(second, "new"))
}

// An export that does not fit on the disk leaves nothing there.
func TestExportToAFullDiskLeavesNothing(t *testing.T) {
	disk := mounted(t, "tmpfs", "tmpfs", 0, "size=1m")
	dir := numbers(t)
	random := rand.New(rand.NewPCG(1, 1))
	var rows, pairs strings.Builder
	for k := range 100 {
		text := make([]byte, 20_000)
		for i := range text {
			text[i] = byte('A' + random.IntN(26))
		}
		fmt.Fprintf(&rows, `{"k":%d,"v":"%s"}`+"\n", k, text)
		fmt.Fprintf(&pairs, `{"key":"%03d","value":"%s"}`+"\n", k, text)
	}
	run(t, strings.NewReader(rows.String()), "table", "load", dir, "t", "-")
	run(t, strings.NewReader(pairs.String()), "kv", "load", dir, "-")
	for _, out := range []string{"t/out.csv", "t/out.jsonl.gz", "t/out.parquet", "t/out.arrow",
		"default/out.hfile", "t/out.carbondata"} {
		table, name := filepath.Split(out)
		args := []string{"table", "export", dir, strings.TrimSuffix(table, "/"), filepath.Join(disk, name)}
		if name == "out.carbondata" {
			args = append(args, "--format", "carbondata")
		}
		fails(t, noSpace, "", args...)
		if left, err := os.ReadDir(disk); err != nil || len(left) > 0 {
			t.Errorf("%s: %v is left, %v", name, left, err)
		}
	}
}
