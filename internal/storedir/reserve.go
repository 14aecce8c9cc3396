package storedir

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

// RESERVE occupies space on the disk, as part of the space that a writer keeps free. If others have
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

// Reserve is the RESERVE of a writer. It is safe for concurrent use.
type Reserve struct {
	dir   Dir
	bytes atomic.Int64 // that removing it frees; 0 if it is missing

	mu      sync.Mutex
	claimed bool // it was removed, in this session
}

// FindReserve looks for the RESERVE of a store, when the store is opened for writing.
func (d Dir) FindReserve(id [16]byte) *Reserve {
	r := &Reserve{dir: d}
	if d.isReserve(id) {
		r.note()
	}
	return r
}

// Bytes returns how much space the removal of RESERVE would free.
func (r *Reserve) Bytes() int64 { return r.bytes.Load() }

// Claim removes RESERVE if the disk is nearly full. A writer calls it before anything that frees
// space.
func (r *Reserve) Claim() error {
	free := r.dir.FreeBytes()
	if free < 0 || free >= reserveBytes {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.bytes.Load() == 0 {
		return nil
	}
	r.dir.Logger.Warn("the disk is full: the space that was kept for this is used", slog.Int64("free_bytes", free))
	r.claimed = true
	r.bytes.Store(0)
	return r.dir.FS.Remove(r.dir.File(ReserveName))
}

func (r *Reserve) note() {
	if info, err := r.dir.FS.Stat(r.dir.File(ReserveName)); err == nil {
		r.bytes.Store(max(vfs.Allocated(info), 1))
	}
}

// isReserve reports whether the file RESERVE is the store's, perhaps without content, as a crash
// leaves it.
func (d Dir) isReserve(id [16]byte) bool {
	f, err := d.FS.Open(d.File(ReserveName), false)
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

// Keep makes RESERVE, if it is missing and the disk has space for it. If it cannot be made, it is
// missing.
func (r *Reserve) Keep(id [16]byte) {
	fsys, name := r.dir.FS, r.dir.File(ReserveName)
	r.mu.Lock()
	defer r.mu.Unlock()
	free, least := r.dir.FreeBytes(), int64(2*reserveBytes)
	if r.claimed { // the space is still there
		least = reserveLeast
	}
	if free < least || r.bytes.Load() >= reserveLeast {
		return
	}
	if r.bytes.Load() > 0 && fsys.Remove(name) != nil { // in a copy of a store, RESERVE has no space
		return
	}
	r.bytes.Store(0)
	f, err := fsys.Create(name)
	if err != nil {
		return // it is a file that is not ours
	}
	if err = f.Preallocate(0, min(free, reserveBytes)); err == nil {
		_, err = f.WriteAt(encodeReserve(id), 0)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		err = errors.Join(err, fsys.Remove(name))
		if !errors.Is(err, fault.ErrUnsupported) {
			r.dir.Logger.Warn("no space is kept for a full disk", slog.Any("err", err))
		}
		return
	}
	r.note()
}
