package oribi

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/oribi-db/oribi/blockmanager"
	"github.com/oribi-db/oribi/internal/instore"
	"github.com/oribi-db/oribi/internal/storedir"
	"github.com/oribi-db/oribi/vfs"
)

// DiskUsage explains how much disk space a store uses, in bytes allocated by the file system: holes
// use nothing, and space reserved after the end of a file counts. Total is the sum of all other
// fields, and also of FileUsage.Allocated over Files.
type DiskUsage struct {
	Total int64

	Live      int64 // blocks that the metadata names
	Alignment int64 // zeros between the end of a block and the next multiple of the file system's block size
	Dead      int64 // dropped blocks whose space is not reclaimed yet
	Reserved  int64 // preallocated for blocks and for the log until Close, or of blocks being written
	Headers   int64 // header pages of containers
	Log       int64
	Torn      int64 // torn ends of the log, kept for inspection; you may remove them
	// Pebble's files, JOURNAL, ANCHOR, INSTANCE, LOCK, pins of followers, and RESERVE, which is
	// kept for a full disk.
	Metadata    int64
	Directories int64
	Leftovers   int64 // files that a crash left and that the next writer removes
	Foreign     int64 // files that do not belong to the store
	Other       int64 // overhead of the file system in containers; negative if it compresses

	Files []FileUsage // each file and directory, by name
}

// FileUsage is the disk space that one file or directory uses.
type FileUsage struct {
	Name      string // within the store's directory, with slashes; "." is the directory itself
	Kind      string // container, log, torn, metadata, directory, leftover, foreign
	Length    int64  // of its content
	Allocated int64  // by the file system
	Live      int64  // of a container: blocks that the metadata names
	Dead      int64  // of a container: dropped, not reclaimed yet
}

// DiskUsage explains how much disk space the store uses, by purpose and by file. It reads only
// metadata and the records of the file system, no files. With concurrent writers, its figures may
// be from different times.
func (s *Store) DiskUsage() (DiskUsage, error) {
	if err := s.enter(); err != nil {
		return DiskUsage{}, err
	}
	defer s.leave()
	containers, err := s.core.Blocks.Usage()
	if err != nil {
		return DiskUsage{}, fmt.Errorf("oribi: %w", err)
	}
	w := usageWalk{s: s, containers: map[string]blockmanager.Usage{}}
	w.newest, w.spare = s.logSpare()
	for _, c := range containers {
		w.containers[storedir.DataName+"/"+c.Name] = c
	}
	if err := w.visit("."); err != nil {
		return DiskUsage{}, fmt.Errorf("oribi: disk usage: %w", err)
	}
	return w.sum, nil
}

// usageWalk visits the files of a store.
type usageWalk struct {
	s          *Store
	containers map[string]blockmanager.Usage
	newest     string // log segment
	spare      int64  // bytes of it that are zeros for later records
	sum        DiskUsage
}

// logSpare returns the name of the newest log segment and how many of its bytes are zeros for later
// records.
func (s *Store) logSpare() (name string, bytes int64) {
	if s.writer == nil {
		name, bytes = s.core.Tail.Load().Spare()
	} else {
		name, bytes = s.writer.Log.Spare()
	}
	return storedir.LogName + "/" + name, bytes
}

// visit counts name and, if it is a directory, the files in it. It skips files that were removed
// since they were listed, and the pin of this follower.
func (w *usageWalk) visit(name string) error {
	path := w.s.core.Dir.File(filepath.FromSlash(name))
	info, err := w.s.opts.FS.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	if w.s.reader.Owns(path) {
		return nil
	}
	if !info.IsDir() {
		w.count(name, info)
		return nil
	}
	names, err := w.s.opts.FS.List(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if len(names) == 1 && w.s.reader.Owns(filepath.Join(path, names[0])) {
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

func (w *usageWalk) count(name string, info fs.FileInfo) {
	f := FileUsage{Name: name, Length: info.Size(), Allocated: vfs.Allocated(info)}
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
		if name == w.newest {
			spare := min(w.spare, f.Allocated)
			*to -= spare
			sum.Reserved += spare
		}
	}
	sum.Total += f.Allocated
	sum.Files = append(sum.Files, f)
}

// kind returns the purpose of a file that is not a container in the metadata, and the sum to which
// its bytes belong.
func (w *usageWalk) kind(name string, dir, stray bool) (kind string, to *int64) {
	sum := &w.sum
	top, rest, _ := strings.Cut(name, "/")
	switch {
	case dir && (name == "." || rest == "" && (top == storedir.LogName || top == storedir.MetaName ||
		top == storedir.DataName || top == storedir.PinsName)):
		return "directory", &sum.Directories
	case stray, name == storedir.FormattingName, name == storedir.InstanceTmpName, name == blockmanager.JournalNewName:
		return "leftover", &sum.Leftovers
	case name == storedir.LockName, name == storedir.InstanceName, name == storedir.AnchorName,
		name == blockmanager.JournalName, name == storedir.ReserveName, top == storedir.MetaName && !dir,
		top == storedir.PinsName && !dir:
		return "metadata", &sum.Metadata
	case top == storedir.LogName && !dir && strings.HasSuffix(rest, ".wal"):
		return "log", &sum.Log
	case top == storedir.LogName && !dir && strings.HasSuffix(rest, ".torn"):
		return "torn", &sum.Torn
	default:
		return "foreign", &sum.Foreign
	}
}
