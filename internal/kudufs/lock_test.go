//go:build unix

package kudufs

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/vfs"
)

// lockVariable is the environment variable of a process that locks the file it names, as a server
// does, until its stdin ends.
const lockVariable = "ORIBI_TEST_LOCK"

func TestMain(m *testing.M) {
	if name := os.Getenv(lockVariable); name != "" {
		holdLock(name)
	}
	os.Exit(m.Run())
}

// holdLock locks a file as Kudu's Env::LockFile does, prints a byte, and waits for the end of
// stdin.
func holdLock(name string) {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err == nil {
		err = syscall.FcntlFlock(f.Fd(), syscall.F_SETLK, &syscall.Flock_t{Type: syscall.F_WRLCK, Whence: io.SeekStart})
	}
	if err != nil {
		os.Stderr.WriteString(err.Error())
		os.Exit(1)
	}
	os.Stdout.WriteString("l")
	io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

// A directory is in use while another process has locked a data directory, and not longer.
func TestLockOfServerIsSeen(t *testing.T) {
	dir := t.TempDir()
	mem := server(t, must.Hex(t, metadataFile), 8192)
	for _, sub := range []string{"data", "wals", "tablet-meta", "consensus-meta"} {
		must.Do(t, os.Mkdir(filepath.Join(dir, sub), 0o700))
	}
	for _, name := range []string{"instance", "data/block_manager_instance"} {
		f := must.Get(mem.Open(filepath.Join("/ts", name), false))(t)
		size, _ := f.Size()
		content, err := io.ReadAll(io.NewSectionReader(f, 0, size))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), content, 0o600)
		}
		must.Do(t, err)
	}
	d := must.Get(Open(vfs.OS, dir))(t)
	must.Equal(t, d.InUse(), false, "in use without a server")
	program := must.Get(os.Executable())(t)
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), lockVariable+"="+filepath.Join(dir, "data", "block_manager_instance"))
	cmd.Stderr = os.Stderr
	in := must.Get(cmd.StdinPipe())(t)
	out := must.Get(cmd.StdoutPipe())(t)
	must.Do(t, cmd.Start())
	must.Get(io.ReadFull(out, make([]byte, 1)))(t)
	must.Equal(t, d.InUse(), true, "not in use although another process has the lock")
	in.Close()
	must.Do(t, cmd.Wait())
	must.Equal(t, d.InUse(), false, "in use after the process with the lock has ended")
}
