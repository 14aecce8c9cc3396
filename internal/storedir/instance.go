package storedir

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/oribi-db/oribi/blockmanager"
	"github.com/oribi-db/oribi/internal/coding"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/instore"
	"github.com/oribi-db/oribi/vfs"
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
	FormatNumber   = 1                     // file format
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

// Instance is the content of INSTANCE.
type Instance struct {
	ID        [16]byte
	BlockSize int64
	Created   int64 // microseconds since 1970
}

func (i *Instance) encode() []byte {
	b := make([]byte, instanceLen)
	copy(b, instanceMagic)
	binary.LittleEndian.PutUint32(b[formatOff:], FormatNumber)
	copy(b[instanceIDOff:], i.ID[:])
	binary.LittleEndian.PutUint32(b[blockSizeOff:], uint32(i.BlockSize))
	binary.LittleEndian.PutUint64(b[createdOff:], uint64(i.Created))
	binary.LittleEndian.PutUint32(b[instanceCRCOff:], coding.CRC32C(b[:instanceCRCOff]))
	return b
}

// Instance reads INSTANCE. Errors: ErrCorrupt; ErrUnsupported for a newer format; the errors of the
// file system.
func (d Dir) Instance() (*Instance, error) {
	b, err := d.read(InstanceName, 4096)
	if err != nil {
		return nil, err
	}
	return decodeInstance(b)
}

func decodeInstance(b []byte) (*Instance, error) {
	if len(b) < formatOff || string(b[:formatOff]) != instanceMagic {
		return nil, fault.Corruptf("%s: not an instance file", InstanceName)
	}
	// A newer format may be longer, and only what this program knows is checked. None is shorter: a
	// file that was cut is damaged, whatever its format says.
	if len(b) < instanceLen {
		return nil, fault.Corruptf("%s: %d bytes, want %d", InstanceName, len(b), instanceLen)
	}
	if got, want := coding.CRC32C(b[:instanceCRCOff]),
		binary.LittleEndian.Uint32(b[instanceCRCOff:]); len(b) == instanceLen && got != want {
		return nil, fault.Corruptf("%s: crc %08x, want %08x", InstanceName, got, want)
	}
	if format := binary.LittleEndian.Uint32(b[formatOff:]); format != FormatNumber {
		return nil, fault.Unsupportedf("%s: format %d, this program knows %d", InstanceName, format, FormatNumber)
	}
	if len(b) != instanceLen {
		return nil, fault.Corruptf("%s: %d bytes, want %d", InstanceName, len(b), instanceLen)
	}
	if flags := binary.LittleEndian.Uint32(b[mustFlagsOff:]); flags != 0 {
		return nil, fault.Unsupportedf("%s: flags %x", InstanceName, flags)
	}
	i := &Instance{BlockSize: int64(binary.LittleEndian.Uint32(b[blockSizeOff:])),
		Created: int64(binary.LittleEndian.Uint64(b[createdOff:]))}
	copy(i.ID[:], b[instanceIDOff:])
	if !IsBlockSize(i.BlockSize) {
		return nil, fault.Corruptf("%s: block size %d", InstanceName, i.BlockSize)
	}
	return i, nil
}

// IsBlockSize reports whether a store can have blocks that begin at multiples of n bytes.
func IsBlockSize(n int64) bool { return n >= minBlockSize && n <= maxBlockSize && n&(n-1) == 0 }

// State is the state of a directory, as the names in it show.
type State int

const (
	Empty      State = iota // nothing, or only LOCK, next to lost+found
	Unfinished              // formatting began and did not end
	Formatted               // INSTANCE is there
	Foreign                 // anything else
)

// State returns the state of the directory, and changes nothing. A missing directory is an error
// that satisfies fs.ErrNotExist.
func (d Dir) State() (State, error) {
	names, err := d.FS.List(d.Path)
	if err != nil {
		return Foreign, err
	}
	formatting, foreign, others := false, false, 0
	names = slices.DeleteFunc(names, func(name string) bool { return name == instore.LostFound })
	for _, name := range names {
		switch {
		case name == InstanceName:
			return Formatted, nil
		case name == FormattingName:
			formatting = true
		case !slices.Contains(Names, name):
			foreign = true
		case name != LockName:
			others++
		}
	}
	switch {
	case len(names) == 0 || len(names) == 1 && names[0] == LockName:
		return Empty, nil
	case formatting && !foreign:
		b, err := d.read(FormattingName, formattingLen+1)
		if errors.Is(err, vfs.ErrNotRegular) {
			return Foreign, nil
		}
		if err != nil {
			return Foreign, err
		}
		if unwritten(b) || wholeFormatting(b) || halfFormatting(b) && others == 0 {
			return Unfinished, nil
		}
	}
	return Foreign, nil
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

// Format makes an empty store in the directory, which is empty or an unfinished format, and locked
// by the caller. It sets i.ID, and create makes the log and the blocks. A kill at any moment leaves a
// directory that Format takes again:
//
//  1. the leftovers of an unfinished format are removed, FORMATTING last
//  2. FORMATTING, synced: from here on the directory is an unfinished format
//  3. wal/, meta/, data/, ANCHOR by create
//  4. INSTANCE.tmp, synced, renamed to INSTANCE, directory synced: from here on the directory is a
//     store
//  5. FORMATTING removed; next to INSTANCE, where a kill can leave it, it means nothing
//
// Errors: ErrNotStore if something is in the directory that Format does not make; the errors of the
// file system and of create.
func (d Dir) Format(i *Instance, create func() error) error {
	if err := d.onlyOurs(); err != nil {
		return err
	}
	for _, name := range []string{MetaName, DataName, LogName, PinsName, AnchorName, blockmanager.JournalName,
		blockmanager.JournalNewName, ReserveName, InstanceTmpName, FormattingName} {
		if err := d.remove(name); err != nil {
			return fmt.Errorf("format: %w", err)
		}
	}
	if _, err := rand.Read(i.ID[:]); err != nil {
		return fmt.Errorf("format: %w", err)
	}
	steps := []func() error{
		func() error { return d.write(FormattingName, encodeFormatting(i.ID)) },
		func() error { return d.FS.SyncDir(d.Path) },
		create,
		func() error { return d.WriteInstance(i) },
		func() error { return d.FS.Remove(d.File(FormattingName)) },
		func() error { return d.FS.SyncDir(d.Path) },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return fmt.Errorf("format: %w", err)
		}
	}
	return nil
}

// remove removes a file, or a directory with all that is in it.
func (d Dir) remove(name string) error { return vfs.RemoveAll(d.FS, d.File(name)) }

// EndFormat removes the FORMATTING that a kill has left next to INSTANCE.
func (d Dir) EndFormat() error { return d.remove(FormattingName) }

// WriteInstance writes INSTANCE, durably, which makes the directory a store. After a kill, either
// all of it is there or none.
func (d Dir) WriteInstance(i *Instance) error {
	if err := d.write(InstanceTmpName, i.encode()); err != nil {
		return err
	}
	if err := d.FS.Rename(d.File(InstanceTmpName), d.File(InstanceName)); err != nil {
		return err
	}
	return d.FS.SyncDir(d.Path)
}

// Clear removes all files of a store, INSTANCE first: without it, files that a kill leaves are not a
// store.
func (d Dir) Clear() error {
	err := d.remove(InstanceName)
	for _, name := range Names {
		err = errors.Join(err, d.remove(name))
	}
	return err
}
