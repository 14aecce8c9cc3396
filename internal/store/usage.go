package store

import (
	"github.com/oribi-db/oribi/internal/storedir"
	"github.com/oribi-db/oribi/storeinfo"
)

// DiskUsage explains how much disk space the store uses, by purpose and by file.
func (s *Store) DiskUsage() (storeinfo.DiskUsage, error) {
	containers, err := s.Blocks.Usage()
	if err != nil {
		return storeinfo.DiskUsage{}, err
	}
	w := storedir.UsageWalk{Dir: s.Dir, Containers: containers, Own: s.reader}
	if s.Writer == nil {
		w.Newest, w.Spare = s.Tail.Load().Spare()
	} else {
		w.Newest, w.Spare = s.Writer.Log.Spare()
	}
	return w.Run()
}
