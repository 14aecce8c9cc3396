package vfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/must"
)

// lockEnv makes the test binary a second process that tries a lock, prints the result, and exits.
const lockEnv = "VFS_TEST_LOCK"

func TestMain(m *testing.M) {
	if name := os.Getenv(lockEnv); name != "" {
		mode := LockShared
		if os.Getenv(lockEnv+"_EXCLUSIVE") != "" {
			mode = LockCreate
		}
		_, err := OS.Lock(name, mode)
		switch {
		case err == nil:
			fmt.Print("taken")
		case errors.Is(err, fault.ErrLocked):
			fmt.Print("locked")
		default:
			fmt.Print(err)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func lockElsewhere(t *testing.T, name string, exclusive bool) string {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), lockEnv+"="+name)
	if exclusive {
		cmd.Env = append(cmd.Env, lockEnv+"_EXCLUSIVE=1")
	}
	out := must.Get(cmd.CombinedOutput())(t)
	return string(out)
}

func TestLockExcludesOtherProcesses(t *testing.T) {
	name := filepath.Join(t.TempDir(), "LOCK")
	want := func(what string, exclusive bool, want string) {
		t.Helper()
		must.Equal(t, lockElsewhere(t, name, exclusive), want, what)
	}
	l := must.Get(OS.Lock(name, LockCreate))(t)
	want("exclusive under exclusive", true, "locked")
	want("shared under exclusive", false, "locked")
	must.Do(t, l.Close())
	l = must.Get(OS.Lock(name, LockShared))(t)
	want("exclusive under shared", true, "locked")
	want("shared under shared", false, "taken")
	must.Do(t, l.Close())
	want("free", true, "taken")
}

func TestOSOpensRegularFilesOnly(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("symbolic links need a privilege on windows")
	}
	dir := t.TempDir()
	at := func(n string) string { return filepath.Join(dir, n) }
	must.Do(t, put(t, OS, at("a"), "a").Close())
	must.Do(t, os.Symlink(at("a"), at("link")))
	for _, name := range []string{"link", "."} {
		for _, write := range []bool{false, true} {
			if f, err := OS.Open(at(name), write); err == nil {
				f.Close()
				t.Errorf("%s was opened, write=%v", name, write)
			}
		}
	}
	if l, err := OS.Lock(at("link"), LockCreate); err == nil {
		l.Close()
		t.Error("a symbolic link was locked")
	}
	info := must.Get(OS.Stat(at("link")))(t)
	if info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("Stat followed the link: %v", info.Mode())
	}
}

func TestOSModesAreForTheOwnerOnly(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no such modes on windows")
	}
	dir := t.TempDir()
	must.Do(t, OS.Mkdir(filepath.Join(dir, "d")))
	must.Do(t, put(t, OS, filepath.Join(dir, "d/f"), "").Close())
	for name, want := range map[string]fs.FileMode{"d": 0o700, "d/f": 0o600} {
		info := must.Get(OS.Stat(filepath.Join(dir, name)))(t)
		must.Equal(t, info.Mode().Perm(), want, name)
	}
}

func TestFullDiskKeepsTheSystemError(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("windows has other codes for a full disk")
	}
	err := noSpace(&fs.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC})
	must.Fail(t, err, fault.ErrNoSpace, "sentinel")
	must.Fail(t, err, syscall.ENOSPC, "system's error")
	var pe *fs.PathError
	if !errors.As(err, &pe) || pe.Path != "x" {
		t.Errorf("the path is lost: %v", err)
	}
	if err := noSpace(syscall.EIO); errors.Is(err, fault.ErrNoSpace) {
		t.Error("another error counts as a full disk")
	}
}

func TestFreeBytesKnowsTheDirectory(t *testing.T) {
	if n := OS.FreeBytes(t.TempDir()); n <= 0 {
		t.Errorf("FreeBytes is %d", n)
	}
	must.Equal(t, OS.FreeBytes(filepath.Join(t.TempDir(), "none")), -1, "FreeBytes of no directory")
}
