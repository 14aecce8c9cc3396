package oribi

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/oribi-db/oribi/blockmanager"
	"github.com/oribi-db/oribi/internal/coding"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/instore"
	"github.com/oribi-db/oribi/internal/wal"
	"github.com/oribi-db/oribi/vfs"
)

// Names in a store's directory.
const (
	lockName        = "LOCK"
	formattingName  = "FORMATTING"
	instanceName    = instore.InstanceName
	instanceTmpName = "INSTANCE.tmp"
	anchorName      = "ANCHOR"
	walName         = "wal"
	metaName        = "meta"
	dataName        = "data"
	readersName     = "readers"
)

// INSTANCE names a store. It is written once, as the last step of formatting.
//
//	offset  width  field       meaning
//	0       8      magic       "oribinst"
//	8       4      format      format number of the store, 1
//	12      4      must flags  bits that a reader must know or refuse: none yet
//	16      4      may flags   bits that a reader may ignore: none yet
//	20      16     instance    random, also in every other file of the store
//	36      4      block size  blocks begin at multiples of it, bytes
//	40      8      created     microseconds since 1970
//	48      4      checksum    CRC-32C of all before
//
// INSTANCE of a newer format begins with the same two fields, and is not shorter.
//
// Instance 00…0f, blocks of 4096 bytes, created at 1700000000000000:
//
//	6f 72 69 62 69 6e 73 74 01 00 00 00 00 00 00 00 00 00 00 00
//	00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f 00 10 00 00
//	00 40 1e 18 24 0a 06 00 73 a8 5e c0
const (
	instanceMagic  = instore.InstanceMagic // file format: never change
	formatNumber   = 1                     // file format
	formatOff      = 8                     // file format: never change
	mustFlagsOff   = 12                    // file format: never change
	mayFlagsOff    = 16                    // file format: never change
	instanceIDOff  = 20                    // file format: never change
	blockSizeOff   = 36                    // file format: never change
	createdOff     = 40                    // file format: never change
	instanceCRCOff = 48                    // file format: never change
	instanceLen    = 52                    // file format: never change
)

// FORMATTING is in a directory while a store is being made there.
//
//	offset  width  field     meaning
//	0       8      magic     "oribifmt"
//	8       16     instance  of the store that is being made
//	24      4      checksum  CRC-32C of all before
//
// Instance 00…0f:
//
//	6f 72 69 62 69 66 6d 74 00 01 02 03 04 05 06 07 08 09 0a 0b
//	0c 0d 0e 0f 3b 24 c1 c3
const (
	formattingMagic  = "oribifmt" // file format: never change
	formattingIDOff  = 8          // file format: never change
	formattingCRCOff = 24         // file format: never change
	formattingLen    = 28         // file format: never change
)

// Bounds of the block size, a power of two.
const (
	minBlockSize = 512
	maxBlockSize = 1 << 20
)

// instance is the content of INSTANCE.
type instance struct {
	id        [16]byte
	blockSize int64
	created   int64 // microseconds since 1970
}

func (i *instance) encode() []byte {
	b := make([]byte, instanceLen)
	copy(b, instanceMagic)
	binary.LittleEndian.PutUint32(b[formatOff:], formatNumber)
	copy(b[instanceIDOff:], i.id[:])
	binary.LittleEndian.PutUint32(b[blockSizeOff:], uint32(i.blockSize))
	binary.LittleEndian.PutUint64(b[createdOff:], uint64(i.created))
	binary.LittleEndian.PutUint32(b[instanceCRCOff:], coding.CRC32C(b[:instanceCRCOff]))
	return b
}

func decodeInstance(b []byte) (*instance, error) {
	if len(b) < formatOff || string(b[:formatOff]) != instanceMagic {
		return nil, fault.Corruptf("%s: not an instance file", instanceName)
	}
	// A newer format may be longer, and only what this program knows is checked. None is shorter: a
	// file that was cut is damaged, whatever its format says.
	if len(b) < instanceLen {
		return nil, fault.Corruptf("%s: %d bytes, want %d", instanceName, len(b), instanceLen)
	}
	if got, want := coding.CRC32C(b[:instanceCRCOff]), binary.LittleEndian.Uint32(b[instanceCRCOff:]); len(b) == instanceLen && got != want {
		return nil, fault.Corruptf("%s: crc %08x, want %08x", instanceName, got, want)
	}
	if format := binary.LittleEndian.Uint32(b[formatOff:]); format != formatNumber {
		return nil, fault.Unsupportedf("%s: format %d, this program knows %d", instanceName, format, formatNumber)
	}
	if len(b) != instanceLen {
		return nil, fault.Corruptf("%s: %d bytes, want %d", instanceName, len(b), instanceLen)
	}
	if flags := binary.LittleEndian.Uint32(b[mustFlagsOff:]); flags != 0 {
		return nil, fault.Unsupportedf("%s: flags %x", instanceName, flags)
	}
	i := &instance{blockSize: int64(binary.LittleEndian.Uint32(b[blockSizeOff:])), created: int64(binary.LittleEndian.Uint64(b[createdOff:]))}
	copy(i.id[:], b[instanceIDOff:])
	if i.blockSize < minBlockSize || i.blockSize > maxBlockSize || i.blockSize&(i.blockSize-1) != 0 {
		return nil, fault.Corruptf("%s: block size %d", instanceName, i.blockSize)
	}
	return i, nil
}

// dirState is the state of a directory, as the names in it show.
type dirState int

const (
	dirEmpty      dirState = iota // nothing, or only LOCK, next to lost+found
	dirUnfinished                 // formatting began and did not end
	dirStore                      // INSTANCE is there
	dirForeign                    // anything else
)

// storeNames are the names in the directory of a store, next to INSTANCE.
var storeNames = []string{lockName, formattingName, instanceTmpName, anchorName, walName, metaName, dataName, readersName,
	blockmanager.JournalName, blockmanager.JournalNewName, reserveName}

// inspect returns the state of dir. A missing directory is an error that satisfies fs.ErrNotExist.
// Nothing is changed.
func inspect(fsys vfs.FS, dir string) (dirState, error) {
	names, err := fsys.List(dir)
	if err != nil {
		return dirForeign, err
	}
	formatting, foreign, others := false, false, 0
	names = slices.DeleteFunc(names, func(name string) bool { return name == instore.LostFound })
	for _, name := range names {
		switch {
		case name == instanceName:
			return dirStore, nil
		case name == formattingName:
			formatting = true
		case !slices.Contains(storeNames, name):
			foreign = true
		case name != lockName:
			others++
		}
	}
	switch {
	case len(names) == 0 || len(names) == 1 && names[0] == lockName:
		return dirEmpty, nil
	case formatting && !foreign:
		b, err := readFile(fsys, filepath.Join(dir, formattingName), formattingLen+1)
		if errors.Is(err, vfs.ErrNotRegular) {
			return dirForeign, nil
		}
		if err != nil {
			return dirForeign, err
		}
		if unwritten(b) || wholeFormatting(b) || halfFormatting(b) && others == 0 {
			return dirUnfinished, nil
		}
	}
	return dirForeign, nil
}

// unwritten reports whether a FORMATTING file has no content yet: it is empty, or contains zeros,
// as after a power failure that came when its length was durable but its bytes were not.
func unwritten(b []byte) bool { return len(b) <= formattingLen && bytes.Count(b, []byte{0}) == len(b) }

// halfFormatting reports whether the disk was full during the write of FORMATTING, before other
// files were created.
func halfFormatting(b []byte) bool {
	return len(b) < formattingLen && strings.HasPrefix(formattingMagic, string(b[:min(len(b), formattingIDOff)]))
}

func wholeFormatting(b []byte) bool {
	return len(b) == formattingLen && string(b[:formattingIDOff]) == formattingMagic &&
		coding.CRC32C(b[:formattingCRCOff]) == binary.LittleEndian.Uint32(b[formattingCRCOff:])
}

func encodeFormatting(id [16]byte) []byte {
	b := make([]byte, formattingLen)
	copy(b, formattingMagic)
	copy(b[formattingIDOff:], id[:])
	binary.LittleEndian.PutUint32(b[formattingCRCOff:], coding.CRC32C(b[:formattingCRCOff]))
	return b
}

// readFile reads a small file, at most limit bytes of it.
func readFile(fsys vfs.FS, name string, limit int64) ([]byte, error) {
	f, err := fsys.Open(name, false)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	b := make([]byte, min(size, limit))
	if n, err := f.ReadAt(b, 0); n < len(b) {
		return nil, err
	}
	return b, nil
}

// writeFile creates a small file and syncs it.
func writeFile(fsys vfs.FS, name string, b []byte) error {
	f, err := fsys.Create(name)
	if err != nil {
		return err
	}
	if _, err := f.WriteAt(b, 0); err != nil {
		f.Close()
		return err
	}
	if err := f.Sync(); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// format makes an empty store in dir, which is empty or an unfinished format and locked by the
// caller. A kill at any moment leaves a directory that format takes again:
//
//  1. what an unfinished format left is removed, FORMATTING last
//  2. FORMATTING, synced: from here on the directory is an unfinished format
//  3. wal/, meta/, data/, ANCHOR by make
//  4. INSTANCE.tmp, synced, renamed to INSTANCE, directory synced: from here on the directory is a
//     store
//  5. FORMATTING removed; one that a kill leaves next to INSTANCE means nothing
//
// Errors: ErrNotStore if there is something in the directory that format does not make.
func format(fsys vfs.FS, dir string, i *instance, make func() error) error {
	if err := onlyOurs(fsys, dir); err != nil {
		return err
	}
	for _, name := range []string{metaName, dataName, walName, readersName, anchorName, blockmanager.JournalName, blockmanager.JournalNewName, reserveName,
		instanceTmpName, formattingName} {
		if err := vfs.RemoveAll(fsys, filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("format: %w", err)
		}
	}
	if _, err := rand.Read(i.id[:]); err != nil {
		return fmt.Errorf("format: %w", err)
	}
	path := func(name string) string { return filepath.Join(dir, name) }
	steps := []func() error{
		func() error { return writeFile(fsys, path(formattingName), encodeFormatting(i.id)) },
		func() error { return fsys.SyncDir(dir) },
		make,
		func() error { return writeInstance(fsys, dir, i) },
		func() error { return fsys.Remove(path(formattingName)) },
		func() error { return fsys.SyncDir(dir) },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return fmt.Errorf("format: %w", err)
		}
	}
	return nil
}

// onlyOurs returns an error if wal/ or data/ in an unfinished format is a symbolic link, or has
// files that a format does not make.
func onlyOurs(fsys vfs.FS, dir string) error {
	for _, sub := range []struct {
		name string
		ours func(name string) bool
	}{{walName, wal.IsName}, {dataName, blockmanager.IsName}, {metaName, func(string) bool { return true }}} {
		path := filepath.Join(dir, sub.name)
		info, err := fsys.Stat(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return err
		}
		if !info.IsDir() {
			return fmt.Errorf("%s is no directory: %w", sub.name, fault.ErrNotStore)
		}
		names, err := fsys.List(path)
		if err != nil {
			return err
		}
		for _, name := range names {
			if !sub.ours(name) {
				return fmt.Errorf("the store was not created completely, and %s in %s is not a file of a store: %w", name, sub.name, fault.ErrNotStore)
			}
		}
	}
	return nil
}

// writeInstance writes INSTANCE, durably: with it the directory is a store. A kill leaves either
// all of it or none.
func writeInstance(fsys vfs.FS, dir string, i *instance) error {
	tmp := filepath.Join(dir, instanceTmpName)
	if err := writeFile(fsys, tmp, i.encode()); err != nil {
		return err
	}
	if err := fsys.Rename(tmp, filepath.Join(dir, instanceName)); err != nil {
		return err
	}
	return fsys.SyncDir(dir)
}
