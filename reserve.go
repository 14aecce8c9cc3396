package oribi

import (
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/oribi-db/oribi/internal/coding"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/vfs"
)

// RESERVE occupies space on the disk, as part of what is kept free (see space.go). If others have
// filled the disk, a writer removes the file, and has the space that it needs to open, to drop
// tables and to delete rows. Close makes it again. It is missing where the free space is not known
// or too small, and in a store without tables.
//
//	offset  width  field     meaning
//	0       8      magic     "oribirsv"
//	8       16     instance  of the store
//	24      4      checksum  CRC-32C of all before
//
// The rest has no content. Instance 00…0f:
//
//	6f 72 69 62 69 72 73 76 00 01 02 03 04 05 06 07 08 09 0a 0b
//	0c 0d 0e 0f ab 8d 58 15
const (
	reserveName   = "RESERVE"
	reserveMagic  = "oribirsv" // file format: never change
	reserveIDOff  = 8          // file format: never change
	reserveCRCOff = 24         // file format: never change
	reserveLen    = 28         // file format: never change

	reserveBytes = 8 << 20
	reserveLeast = 5 << 20 // less is of no use
)

func encodeReserve(id [16]byte) []byte {
	b := make([]byte, reserveLen)
	copy(b, reserveMagic)
	copy(b[reserveIDOff:], id[:])
	binary.LittleEndian.PutUint32(b[reserveCRCOff:], coding.CRC32C(b[:reserveCRCOff]))
	return b
}

// reserve is the state of RESERVE in a writer.
type reserve struct {
	mu      sync.Mutex
	bytes   atomic.Int64 // that removing it frees; 0: it is not there
	claimed bool         // it was removed, in this session
}

// claimReserve removes RESERVE if the disk is nearly full. A writer calls it before anything that
// frees space.
func (s *Store) claimReserve() error {
	fsys, name := s.opts.FS, s.path(reserveName)
	free := fsys.FreeBytes(s.dir)
	if free < 0 || free >= reserveBytes {
		return nil
	}
	r := &s.reserve
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.bytes.Load() == 0 {
		return nil
	}
	s.opts.Logger.Warn("the disk is full: the space that was kept for this is used", slog.Int64("free_bytes", free))
	r.claimed = true
	r.bytes.Store(0)
	return fsys.Remove(name)
}

// findReserve notes whether there is a RESERVE, when a store is opened for writing.
func (s *Store) findReserve() error {
	b, err := readFile(s.opts.FS, s.path(instanceName), 4096)
	if err != nil {
		return err
	}
	i, err := decodeInstance(b)
	if err == nil && isReserve(s.opts.FS, s.path(reserveName), i.id) {
		s.noteReserve()
	}
	return err
}

func (s *Store) noteReserve() {
	if info, err := s.opts.FS.Stat(s.path(reserveName)); err == nil {
		s.reserve.bytes.Store(max(vfs.Allocated(info), 1))
	}
}

// isReserve reports whether a file is the RESERVE of the store, or one that a crash has left
// without content.
func isReserve(fsys vfs.FS, name string, id [16]byte) bool {
	f, err := fsys.Open(name, false)
	if err != nil {
		return false
	}
	defer f.Close()
	b, want := make([]byte, reserveLen), encodeReserve(id)
	n, err := f.ReadAt(b, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return false
	}
	for i := range b[:n] {
		if b[i] != 0 && b[i] != want[i] {
			return false
		}
	}
	return true
}

// keepReserve makes RESERVE, if it is missing and there is space for it. If it cannot be made, it
// is missing.
func (s *Store) keepReserve() {
	fsys, name, r := s.opts.FS, s.path(reserveName), &s.reserve
	r.mu.Lock()
	defer r.mu.Unlock()
	free, least := fsys.FreeBytes(s.dir), int64(2*reserveBytes)
	if r.claimed { // the space is still there
		least = reserveLeast
	}
	if free < least || r.bytes.Load() >= reserveLeast || len(s.sortedTables()) == 0 {
		return
	}
	if r.bytes.Load() > 0 && fsys.Remove(name) != nil { // a copy of a store has one without space
		return
	}
	r.bytes.Store(0)
	f, err := fsys.Create(name)
	if err != nil {
		return // it is a file that is not ours
	}
	if err = f.Preallocate(0, min(free, reserveBytes)); err == nil {
		_, err = f.WriteAt(encodeReserve(s.instance.id), 0)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		err = errors.Join(err, fsys.Remove(name))
		if !errors.Is(err, fault.ErrUnsupported) {
			s.opts.Logger.Warn("no space is kept for a full disk", slog.Any("err", err))
		}
		return
	}
	s.noteReserve()
}
