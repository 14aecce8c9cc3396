package kudufs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/kudupb"
	"github.com/oribi-db/oribi/vfs"
)

// Names in a root. Source: blockmanager spec §1.2.
const (
	instanceName      = "instance"               // file format: never change
	dataName          = "data"                   // file format: never change
	blockInstanceName = "block_manager_instance" // file format: never change
	logsName          = "wals"                   // file format: never change
	superblocksName   = "tablet-meta"            // file format: never change
	consensusName     = "consensus-meta"         // file format: never change
	recoverySuffix    = ".recovery"              // file format: never change
)

// Types of block managers, as instance files name them.
const (
	logBlocks  = "log"  // file format: never change
	fileBlocks = "file" // file format: never change
	rdbBlocks  = "logr" // file format: never change
)

// maxInstanceBytes bounds an instance file's message: maxDirectories fit.
const (
	maxInstanceBytes = 4 << 20
	maxDirectories   = 1<<16 - 1 // a block's ID has 16 bits for the number of its directory
)

// Directory is a server's directories, open for reading.
type Directory struct {
	UUID    string // of the server
	Manager string // how blocks are stored: "log" or "file"
	Roots   []Root // sorted by path

	fs          vfs.FS
	files       *openFiles // with blocks
	logs        string     // path of wals
	superblocks string     // path of tablet-meta
	consensus   string     // path of consensus-meta
	missing     []string
	problems    []Problem
	// Data directories in the order of the instance files. An entry is nil if its directory is
	// missing: a block's ID has the index of its directory in this list.
	byDirectory []*Root
	blocks      map[block.ID]*extent // of the log block manager
	bad         map[block.ID]error   // blocks that are listed but cannot be read
	highest     block.ID             // of the blocks that the log block manager has, or has deleted
	locks       map[string]*os.File  // by name; see OpenExclusive
}

// Root is one root of a server.
type Root struct {
	Dir      string
	Instance *kudupb.InstanceMetadataPB
	Data     *kudupb.DirInstanceMetadataPB // nil: it has no blocks
}

// Problem is damage that was found while a directory was opened.
type Problem struct {
	File   string
	Offset int64    // −1: the whole file
	Block  block.ID // 0: none, or several
	Err    error    // its text names the file
}

// Open reads the instance files, and the metadata of all containers, so that tablets and blocks can
// be found. dir is the only root of a server, or all its roots are directories in it. Errors:
// ErrNotStore if dir is neither; ErrUnsupported for encrypted directories and block managers that
// are not known; ErrCorrupt for damaged instance files and missing directories; errors of the file
// system.
func Open(fsys vfs.FS, dir string) (*Directory, error) {
	d := newDirectory(fsys)
	if err := d.findRoots(dir); err != nil {
		return nil, err
	}
	if err := d.load(dir); err != nil {
		return nil, err
	}
	return d, nil
}

func newDirectory(fsys vfs.FS) *Directory {
	return &Directory{fs: fsys, files: &openFiles{fs: fsys, most: maxOpenFiles}, blocks: map[block.ID]*extent{},
		bad: map[block.ID]error{}}
}

// load reads the instance files of the roots, then the metadata of their blocks.
func (d *Directory) load(dir string) error {
	if err := d.readInstances(dir); err != nil {
		return err
	}
	if err := d.findData(); err != nil {
		return err
	}
	if d.Manager != logBlocks {
		return nil
	}
	for i := range d.Roots {
		if d.Roots[i].Data != nil {
			if err := d.loadContainers(filepath.Join(d.Roots[i].Dir, dataName)); err != nil {
				return err
			}
		}
	}
	return nil
}

// findRoots lists the roots, without their contents.
func (d *Directory) findRoots(dir string) error {
	names, err := d.fs.List(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w: there is no such directory", dir, fault.ErrNotStore)
	}
	if err != nil {
		return err
	}
	if isRoot(names) {
		d.Roots = []Root{{Dir: dir}}
		return nil
	}
	var refused error
	for _, name := range names {
		sub := filepath.Join(dir, name)
		ok, err := d.isDir(sub)
		var below []string
		if ok {
			below, err = d.fs.List(sub)
		}
		switch {
		case errors.Is(err, fs.ErrPermission): // as lost+found; a root that is not read is missed later
			refused = err
		case errors.Is(err, fs.ErrNotExist): // it was removed
		case err != nil:
			return err
		case isRoot(below):
			d.Roots = append(d.Roots, Root{Dir: sub})
		}
	}
	if len(d.Roots) == 0 && refused != nil {
		return refused
	}
	if len(d.Roots) == 0 {
		return fmt.Errorf("%s: %w: neither a root of a Kudu server nor a directory of roots", dir, fault.ErrNotStore)
	}
	return nil
}

// isRoot reports whether a directory with these names is a root. A root that has lost its instance
// file still is one.
func isRoot(names []string) bool {
	for _, name := range []string{instanceName, logsName, superblocksName} {
		if _, ok := slices.BinarySearch(names, name); ok {
			return true
		}
	}
	return false
}

// readInstances reads the instance files of all roots and finds the directories of logs and
// superblocks.
func (d *Directory) readInstances(dir string) error {
	for i := range d.Roots {
		r := &d.Roots[i]
		r.Instance = new(kudupb.InstanceMetadataPB)
		err := d.readInstance(filepath.Join(r.Dir, instanceName), r.Instance)
		if err != nil {
			return err
		}
		m := r.Instance
		if m.GetServerKey() != "" || len(m.Tenants) > 0 {
			return fault.Unsupportedf("%s: the server's files are encrypted", r.Dir)
		}
		switch uuid := string(m.Uuid); {
		case i == 0:
			d.UUID = uuid
		case uuid != d.UUID:
			return fault.Corruptf("%s belongs to server %s, %s to %s", r.Dir, uuid, d.Roots[0].Dir, d.UUID)
		}
	}
	for _, part := range []struct {
		name string
		path *string
	}{{logsName, &d.logs}, {superblocksName, &d.superblocks}, {consensusName, &d.consensus}} {
		path := part.path
		for i := range d.Roots {
			sub := filepath.Join(d.Roots[i].Dir, part.name)
			switch ok, err := d.isDir(sub); {
			case err != nil:
				return err
			case ok && *path != "":
				return fault.Corruptf("both %s and %s exist", *path, sub)
			case ok:
				*path = sub
			}
		}
		if *path == "" {
			return fault.Corruptf("%s: no root has a directory %s", dir, part.name)
		}
	}
	return nil
}

// readInstance reads an instance file. A missing one is damage: the directory that has it is there.
func (d *Directory) readInstance(name string, m proto.Message) error {
	return missing(name, readMessage(d.fs, name, maxInstanceBytes, m))
}

// missing returns err, or ErrCorrupt if err is that a file does not exist.
func missing(name string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fault.Corruptf("%s is missing", name)
	}
	return err
}

func (d *Directory) isDir(name string) (bool, error) {
	info, err := d.fs.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && info.IsDir(), err
}

// findData reads the instance files of the data directories. Directories that they name and that
// are absent are listed in d.missing: only reads of their blocks fail.
func (d *Directory) findData() error {
	var all []string
	index := map[string]int{} // of a UUID in all
	for i := range d.Roots {
		r := &d.Roots[i]
		data := filepath.Join(r.Dir, dataName)
		if ok, err := d.isDir(data); err != nil {
			return err
		} else if !ok {
			continue
		}
		m := new(kudupb.DirInstanceMetadataPB)
		if err := d.readLocked(filepath.Join(data, blockInstanceName), m); err != nil {
			return err
		}
		switch kind := m.GetDirType(); {
		case kind == rdbBlocks:
			return fault.Unsupportedf("%s: blocks of the block manager %q are listed in RocksDB", data, kind)
		case kind != logBlocks && kind != fileBlocks:
			return fault.Unsupportedf("%s: block manager %q", data, kind)
		case d.Manager != "" && kind != d.Manager:
			return fault.Corruptf("%s: block manager %q next to directories of %q", data, kind, d.Manager)
		default:
			d.Manager = kind
		}
		r.Data = m
		for _, uuid := range m.DirSet.AllUuids {
			if _, ok := index[string(uuid)]; !ok {
				index[string(uuid)] = len(all)
				all = append(all, string(uuid))
			}
		}
		if len(all) > maxDirectories {
			return fault.Corruptf("%s: more than %d data directories", data, maxDirectories)
		}
	}
	if d.Manager == "" {
		return fault.Corruptf("%s: no root has a directory %s", d.Roots[0].Dir, dataName)
	}
	d.byDirectory = make([]*Root, len(all))
	for i := range d.Roots {
		r := &d.Roots[i]
		if r.Data == nil {
			continue
		}
		uuid := string(r.Data.DirSet.Uuid)
		at, ok := index[uuid]
		if !ok {
			continue
		}
		if other := d.byDirectory[at]; other != nil {
			return fault.Corruptf("%s and %s are both data directory %s", other.Dir, r.Dir, uuid)
		}
		d.byDirectory[at] = r
	}
	for i, uuid := range all {
		if d.byDirectory[i] == nil {
			d.missing = append(d.missing, uuid)
		}
	}
	return nil
}

// Problems returns the damage that Open found. It is empty for a directory that a server opens
// without repairs that lose blocks.
func (d *Directory) Problems() []Problem { return d.problems }

// MissingDirectories returns the UUIDs of data directories that the instance files name and that
// are absent.
func (d *Directory) MissingDirectories() []string { return d.missing }

// FS returns the file system of the directory.
func (d *Directory) FS() vfs.FS { return d.fs }

// LogDirs returns the directory of a tablet's log segments, and the directory of the segments that
// a server was replaying when it ended. While recovery exists, it has the whole log, and dir has a
// copy of a part of it. Either may be absent.
func (d *Directory) LogDirs(tablet string) (dir, recovery string) {
	dir = filepath.Join(d.logs, tablet)
	return dir, dir + recoverySuffix
}

// InUse reports whether another process, which must be a server, has locked one of the data
// directories. It is false where the system does not say. It must not be called while this process
// has the lock.
func (d *Directory) InUse() bool {
	if d.fs != vfs.OS {
		return false
	}
	for i := range d.Roots {
		if d.Roots[i].Data != nil && locked(filepath.Join(d.Roots[i].Dir, dataName, blockInstanceName)) {
			return true
		}
	}
	return false
}
