package storedir

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/oribi-db/oribi/blockmanager"
	"github.com/oribi-db/oribi/internal/instore"
	"github.com/oribi-db/oribi/storeinfo"
	"github.com/oribi-db/oribi/vfs"
)

// UsageWalk visits the files of a store.
type UsageWalk struct {
	Dir        Dir
	Containers []blockmanager.Usage
	Newest     string // name of the newest log segment
	Spare      int64  // bytes of it that are zeros for later records
	Own        *Pin   // is not counted; nil in a writer

	containers map[string]blockmanager.Usage
	sum        storeinfo.DiskUsage
}

// Run returns the disk usage.
func (w *UsageWalk) Run() (storeinfo.DiskUsage, error) {
	w.Newest = LogName + "/" + w.Newest
	w.containers = map[string]blockmanager.Usage{}
	for _, c := range w.Containers {
		w.containers[DataName+"/"+c.Name] = c
	}
	if err := w.visit("."); err != nil {
		return storeinfo.DiskUsage{}, fmt.Errorf("disk usage: %w", err)
	}
	return w.sum, nil
}

// visit counts name and, if it is a directory, the files in it. It skips files that were removed
// since they were listed, and the pin of this follower.
func (w *UsageWalk) visit(name string) error {
	path := w.Dir.File(filepath.FromSlash(name))
	info, err := w.Dir.FS.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	if w.Own.Owns(path) {
		return nil
	}
	if !info.IsDir() {
		w.count(name, info)
		return nil
	}
	names, err := w.Dir.FS.List(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if len(names) == 1 && w.Own.Owns(filepath.Join(path, names[0])) {
		return nil // readers/
	}
	w.count(name, info)
	for _, inner := range names {
		switch {
		case name != ".":
			inner = name + "/" + inner
		case inner == instore.LostFound:
			continue // of the volume; often nobody may read it
		}
		if err := w.visit(inner); err != nil {
			return err
		}
	}
	return nil
}

func (w *UsageWalk) count(name string, info fs.FileInfo) {
	f := storeinfo.FileUsage{Name: name, Length: info.Size(), Allocated: vfs.Allocated(info)}
	sum := &w.sum
	if c, ok := w.containers[name]; ok && !c.Stray {
		f.Kind, f.Length, f.Allocated, f.Live, f.Dead = "container", c.Length, c.Allocated, c.Live, c.Dead
		sum.Live += c.Live
		sum.Alignment += c.Alignment
		sum.Dead += c.Dead
		sum.Reserved += c.Reserved
		sum.Headers += c.Header
		sum.Other += c.Other
	} else {
		var to *int64
		f.Kind, to = w.kind(name, info.IsDir(), ok)
		*to += f.Allocated
		if name == w.Newest {
			spare := min(w.Spare, f.Allocated)
			*to -= spare
			sum.Reserved += spare
		}
	}
	sum.Total += f.Allocated
	sum.Files = append(sum.Files, f)
}

// kind returns the purpose of a file that is not a container in the metadata, and the sum to which
// its bytes belong.
func (w *UsageWalk) kind(name string, dir, stray bool) (kind string, to *int64) {
	sum := &w.sum
	top, rest, _ := strings.Cut(name, "/")
	switch {
	case dir && (name == "." || rest == "" && (top == LogName || top == MetaName ||
		top == DataName || top == PinsName)):
		return "directory", &sum.Directories
	case stray, name == FormattingName, name == InstanceTmpName, name == blockmanager.JournalNewName:
		return "leftover", &sum.Leftovers
	case name == LockName, name == InstanceName, name == AnchorName,
		name == blockmanager.JournalName, name == ReserveName, top == MetaName && !dir,
		top == PinsName && !dir:
		return "metadata", &sum.Metadata
	case top == LogName && !dir && strings.HasSuffix(rest, ".wal"):
		return "log", &sum.Log
	case top == LogName && !dir && strings.HasSuffix(rest, ".torn"):
		return "torn", &sum.Torn
	default:
		return "foreign", &sum.Foreign
	}
}
