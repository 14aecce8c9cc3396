package carbondata

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"

	"github.com/oribi-db/oribi/carbondata/internal/thrift"
	"github.com/oribi-db/oribi/internal/instore"
	"github.com/oribi-db/oribi/vfs"
)

// folderFS has the methods of a file system that a Writer needs.
type folderFS interface {
	Create(name string) (folderFile, error)
	Mkdir(name string) error
	Remove(name string) error
	Rename(oldName, newName string) error
	Stat(name string) (fs.FileInfo, error)
	SyncDir(dir string) error
}

type folderFile interface {
	WriteAt(b []byte, off int64) (int, error)
	Sync() error
	Close() error
}

// sharedFS is the real file system. Files and folders are readable as the process's umask says:
// other programs read them.
type sharedFS struct{}

func (sharedFS) Create(name string) (folderFile, error) {
	return os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
}

func (sharedFS) Mkdir(name string) error               { return os.Mkdir(name, 0o777) }
func (sharedFS) Remove(name string) error              { return os.Remove(name) }
func (sharedFS) Rename(oldName, newName string) error  { return os.Rename(oldName, newName) }
func (sharedFS) Stat(name string) (fs.FileInfo, error) { return os.Lstat(name) }
func (sharedFS) SyncDir(dir string) error              { return vfs.OS.SyncDir(dir) }

// outFolder is a folder that appears under its name, complete and durable, or not at all.
//
//  1. Files are written and synced in a folder with a temporary name, in the same directory. A
//     crash here leaves only that.
//  2. The temporary folder is synced, and gets its name.
//  3. The directory is synced.
type outFolder struct {
	fs    folderFS
	dir   string // the final name
	tmp   string // "" after publish and remove
	names map[string]bool
}

func newOutFolder(fsys folderFS, dir string) (*outFolder, error) {
	f := &outFolder{fs: fsys, dir: filepath.Clean(dir), names: map[string]bool{}}
	if err := instore.Check(vfs.OS, dir); err != nil {
		return nil, err
	}
	if err := f.mustNotExist(); err != nil {
		return nil, err
	}
	var err error
	for range 100 {
		f.tmp = filepath.Join(filepath.Dir(f.dir), fmt.Sprintf(".carbondata-%08x.tmp", rand.Uint32()))
		if err = fsys.Mkdir(f.tmp); !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	if err != nil {
		fsys.Remove(f.tmp) // a Mkdir that failed after it had done its work
		return nil, err
	}
	return f, nil
}

func (f *outFolder) mustNotExist() error {
	_, err := f.fs.Stat(f.dir)
	if err == nil {
		return &fs.PathError{Op: "create", Path: f.dir, Err: fs.ErrExist}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (f *outFolder) create(name string) (*outFile, error) {
	f.names[name] = true
	file, err := f.fs.Create(filepath.Join(f.tmp, name))
	if err != nil {
		return nil, err
	}
	return &outFile{f: file}, nil
}

func (f *outFolder) publish() error {
	if err := f.fs.SyncDir(f.tmp); err != nil {
		return err
	}
	if err := f.mustNotExist(); err != nil {
		return err
	}
	parent := filepath.Dir(f.dir)
	err := f.fs.Rename(f.tmp, f.dir)
	if err == nil {
		err = f.fs.SyncDir(parent)
	}
	if err != nil {
		// The name may be there already: a failed call may have done its work.
		if _, e := f.fs.Stat(f.tmp); e != nil {
			f.tmp = f.dir
		}
		return err
	}
	f.tmp = ""
	return nil
}

// empty removes the files. A second call removes what the first could not.
func (f *outFolder) empty() error {
	var first error
	for _, name := range slices.Sorted(maps.Keys(f.names)) {
		err := f.fs.Remove(filepath.Join(f.tmp, name))
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			delete(f.names, name)
		} else if first == nil {
			first = err
		}
	}
	return first
}

// remove removes the folder, unless it is published. After an error it may be called again.
func (f *outFolder) remove() error {
	if f.tmp == "" {
		return nil
	}
	err := f.empty()
	if err == nil {
		err = f.fs.Remove(f.tmp)
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		f.tmp = ""
		return nil
	}
	return err
}

// outFile is a file that is written from its start.
type outFile struct {
	f    folderFile
	buf  []byte
	size int64 // with buf
}

const outBufferBytes = 256 << 10

func (o *outFile) write(b []byte) error {
	o.buf = append(o.buf, b...)
	o.size += int64(len(b))
	if len(o.buf) < outBufferBytes {
		return nil
	}
	return o.flush()
}

func (o *outFile) flush() error {
	_, err := o.f.WriteAt(o.buf, o.size-int64(len(o.buf)))
	o.buf = o.buf[:0]
	return err
}

// finish makes the file durable and closes it.
func (o *outFile) finish() error {
	err := o.flush()
	if err == nil {
		err = o.f.Sync()
	}
	return errors.Join(err, o.f.Close())
}

// dataFile is a data file that is written.
type dataFile struct {
	*outFile
	name      string
	rows      int64
	sdkBytes  int64 // as the SDK counts
	blocklets []writtenBlocklet
}

// writtenBlocklet has the description of a blocklet for the footer and the index file.
type writtenBlocklet struct {
	blocklet
	min, max [][]byte
	present  []bool
}

// bTreeKey is the start and the end key of each blocklet, which nobody reads.
var bTreeKey = make([]byte, 8)

// appendIndex writes a BlockletIndex into the open message.
func (b *writtenBlocklet) appendIndex(w *thrift.Writer) {
	w.Begin(indexBounds)
	w.Binaries(boundsMin, b.min)
	w.Binaries(boundsMax, b.max)
	w.Bools(boundsPresent, b.present)
	w.End()
	w.Begin(indexTree)
	w.Bytes(treeStart, bTreeKey)
	w.Bytes(treeEnd, bTreeKey)
	w.End()
}

// appendInfo writes a BlockletInfo3 into the open message.
func (b *writtenBlocklet) appendInfo(w *thrift.Writer) {
	w.I32(blockletRows, b.rows)
	w.I64s(blockletOffsets, b.offsets)
	w.I32s(blockletLengths, b.lengths)
	w.I64(blockletDimensions, b.dimensions)
	w.I64(blockletMeasures, b.measures)
	w.I32(blockletPages, b.pages)
	w.I32s(blockletPageRows, b.pageRows)
}

func (s *fileSchema) appendSegment(w *thrift.Writer, id int) {
	w.Begin(id)
	w.I32(segmentColumns, len(s.chunks))
	w.I32s(segmentCardinalities, nil)
	w.End()
}

// formatVersion is the version of the SDK whose files these are.
const formatVersion = "2.3.0"
