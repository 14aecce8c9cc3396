package vfs

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/windows"

	"github.com/oribi-db/oribi/internal/fault"
)

const openFlags = 0

func isNoSpace(err error) bool {
	return errors.Is(err, windows.ERROR_DISK_FULL) || errors.Is(err, windows.ERROR_HANDLE_DISK_FULL) ||
		errors.Is(err, windows.ERROR_DISK_QUOTA_EXCEEDED)
}

func syncData(f *os.File) error { return f.Sync() }

func preallocate(*os.File, int64, int64) error { return nil }

func cloneRange(dst, _ *os.File, _, _, _ int64) error {
	return fault.Unsupportedf("clone a range to %s", dst.Name())
}

func punchHole(f *os.File, _, _ int64) error {
	return fault.Unsupportedf("punch hole in %s", f.Name())
}

// syncDir only checks that dir exists: NTFS journals names and has no flush of a directory.
func syncDir(dir string) error {
	_, err := os.ReadDir(dir)
	return err
}

func allocated(fs.FileInfo) (int64, bool) { return 0, false }

func freeBytes(dir string) int64 {
	path, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return -1
	}
	var free uint64
	if err := windows.GetDiskFreeSpaceEx(path, &free, nil, nil); err != nil {
		return -1
	}
	return int64(free)
}

// flock locks one byte far after the content: other openers cannot read the locked range, but must
// be able to read the content.
func flock(f *os.File, exclusive bool) (held bool, err error) {
	flags := uint32(windows.LOCKFILE_FAIL_IMMEDIATELY)
	if exclusive {
		flags |= windows.LOCKFILE_EXCLUSIVE_LOCK
	}
	err = control(f, "lock", func(fd uintptr) error {
		at := windows.Overlapped{OffsetHigh: 0x4000_0000}
		return windows.LockFileEx(windows.Handle(fd), flags, 0, 1, 0, &at)
	})
	return errors.Is(err, windows.ERROR_LOCK_VIOLATION), err
}

// unflock releases the lock.
func unflock(f *os.File) error {
	return control(f, "unlock", func(fd uintptr) error {
		at := windows.Overlapped{OffsetHigh: 0x4000_0000}
		return windows.UnlockFileEx(windows.Handle(fd), 0, 1, 0, &at)
	})
}
