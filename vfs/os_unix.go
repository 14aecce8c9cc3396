//go:build linux || darwin

package vfs

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// O_NONBLOCK keeps an open of a FIFO from waiting for its other end; it has no effect on regular
// files, and others are refused.
const openFlags = unix.O_NOFOLLOW | unix.O_NONBLOCK

func isNoSpace(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT)
}

func syncDir(dir string) error {
	f, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	err = f.Sync()
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	return err
}

// statBlock is the unit of st_blocks, whatever the file system's blocks are.
const statBlock = 512

func allocated(info fs.FileInfo) (int64, bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return st.Blocks * statBlock, true
}

func freeBytes(dir string) int64 {
	var st unix.Statfs_t
	if err := retry(func() error { return unix.Statfs(dir, &st) }); err != nil {
		return -1
	}
	return int64(st.Bavail) * int64(st.Bsize)
}

// flock locks f without waiting; held reports whether another open file has the lock.
func flock(f *os.File, exclusive bool) (held bool, err error) {
	how := unix.LOCK_SH
	if exclusive {
		how = unix.LOCK_EX
	}
	err = control(f, "flock", func(fd uintptr) error {
		return retry(func() error { return unix.Flock(int(fd), how|unix.LOCK_NB) })
	})
	return errors.Is(err, unix.EWOULDBLOCK), err
}

// unflock releases the lock. Closing the file would not release it at once: a child that was just
// forked has a copy of the descriptor until it executes its program.
func unflock(f *os.File) error {
	return control(f, "unlock", func(fd uintptr) error {
		return retry(func() error { return unix.Flock(int(fd), unix.LOCK_UN) })
	})
}

// retry repeats a system call that a signal interrupted.
func retry(fn func() error) error {
	for {
		if err := fn(); err != unix.EINTR {
			return err
		}
	}
}
