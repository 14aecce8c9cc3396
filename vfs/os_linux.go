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

// cloneRange is FICLONERANGE. Btrfs and xfs have it; the kernel says in various ways that it
// cannot: another file system, one without shared extents, or with larger blocks.
func cloneRange(dst, src *os.File, srcOff, off, n int64) error {
	var err error
	held := control(src, "clone", func(from uintptr) error {
		err = control(dst, "clone", func(to uintptr) error {
			return retry(func() error {
				return unix.IoctlFileCloneRange(int(to),
					&unix.FileCloneRange{Src_fd: int64(from), Src_offset: uint64(srcOff), Src_length: uint64(n),
						Dest_offset: uint64(off)})
			})
		})
		return nil
	})
	for _, reason := range []error{unix.EOPNOTSUPP, unix.ENOSYS, unix.ENOTTY, unix.EXDEV, unix.EINVAL, unix.EPERM} {
		if errors.Is(err, reason) {
			return fault.Unsupportedf("clone: %v", err)
		}
	}
	return errors.Join(held, err)
}

// cannot reports whether the file system or the kernel lacks the operation.
func cannot(err error) bool {
	return errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS)
}
