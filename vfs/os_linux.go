package vfs

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"github.com/oribi-db/oribi/internal/fault"
)

func syncData(f *os.File) error {
	return control(f, "fdatasync", func(fd uintptr) error {
		return retry(func() error { return unix.Fdatasync(int(fd)) })
	})
}

func preallocate(f *os.File, off, n int64) error {
	err := fallocate(f, unix.FALLOC_FL_KEEP_SIZE, off, n)
	if cannot(err) {
		return nil
	}
	return err
}

func punchHole(f *os.File, off, n int64) error {
	err := fallocate(f, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, off, n)
	if cannot(err) {
		return fault.Unsupportedf("punch hole: %v", err)
	}
	return err
}

func fallocate(f *os.File, mode uint32, off, n int64) error {
	return control(f, "fallocate", func(fd uintptr) error {
		return retry(func() error { return unix.Fallocate(int(fd), mode, off, n) })
	})
}

// cannot reports whether the file system or the kernel lacks the operation.
func cannot(err error) bool {
	return errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS)
}
