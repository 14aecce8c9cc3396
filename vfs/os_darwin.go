package vfs

import (
	"os"

	"github.com/oribi-db/oribi/internal/fault"
)

// syncData is F_FULLFSYNC: package os does that on darwin, where fsync stops at the drive's cache.
func syncData(f *os.File) error { return f.Sync() }

func preallocate(*os.File, int64, int64) error { return nil }

func cloneRange(dst, _ *os.File, _, _, _ int64) error {
	return fault.Unsupportedf("clone a range to %s", dst.Name())
}

func punchHole(f *os.File, _, _ int64) error {
	return fault.Unsupportedf("punch hole in %s", f.Name())
}
