package oribi

import "github.com/oribi-db/oribi/storeinfo"

// DiskUsage explains how much disk space a store uses, in bytes allocated by the file system.
type DiskUsage = storeinfo.DiskUsage

// FileUsage is the disk space that one file or directory uses.
type FileUsage = storeinfo.FileUsage

// DiskUsage explains how much disk space the store uses, by purpose and by file. It reads only
// metadata and the records of the file system, no files. With concurrent writers, its figures may
// be from different times.
func (s *Store) DiskUsage() (DiskUsage, error) {
	if err := s.enter(); err != nil {
		return DiskUsage{}, err
	}
	defer s.leave()
	u, err := s.core.DiskUsage()
	return u, callErr("", err)
}
