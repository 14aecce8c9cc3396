package storedir

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io/fs"
	"log/slog"
	"math"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/oribi-db/oribi/internal/coding"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/vfs"
)

// readers/<16 hex digits>.pin has the epoch and the LSN from which on a follower reads. The
// follower holds an exclusive lock on the file as long as it is open, so a pin without a lock
// belongs to a process that was killed. The writer removes such pins.
//
//	offset  width  field   meaning
//	0       8      magic   "oribipin"
//	8       4      must    flags that a reader must know or refuse: none yet
//	12      8      epoch   of the oldest metadata that the follower reads; 0 = any
//	20      8      log     lowest LSN that the follower reads; 0 = any
//	28      4      crc     CRC-32C of all before
//
// A follower pins before it reads:
//
//	follower   pin of everything   anchor, metadata of epoch e, log     pin of e
//	writer                     looks                                                 looks
//
// A look that comes before the pin allows what the anchor at that time has confirmed. The metadata
// that the follower reads afterwards is at least as new, so nothing of it goes.
//
// Epoch 5, LSN 9:
//
//	6f 72 69 62 69 70 69 6e  00 00 00 00  05 00 00 00 00 00 00 00  09 00 00 00 00 00 00 00  CRC
const (
	pinMagic    = "oribipin" // file format: never change
	pinMustOff  = 8          // file format: never change
	pinEpochOff = 12         // file format: never change
	pinLogOff   = 20         // file format: never change
	pinCRCOff   = 28         // file format: never change
	pinLen      = 32         // file format: never change
	pinSuffix   = ".pin"
)

// Pin is the pin of this process, a follower. A nil Pin could not be written.
type Pin struct {
	fs        vfs.FS
	dir, path string
	lock      vfs.Lock

	epoch uint64 // that the file says
	log   lsn.LSN
}

// Pin pins everything. If the pin cannot be written, for example in a directory that is read-only,
// Pin returns nil.
func (d Dir) Pin() *Pin {
	for try := 1; ; try++ {
		p, err := d.newPin()
		if err == nil {
			return p
		}
		if try == pinTries || !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fault.ErrLocked) {
			d.Logger.Debug("following without a pin", slog.Any("err", err))
			return nil
		}
	}
}

// pinTries is how often Pin tries to write a pin: another follower may remove the directory, and a
// writer may take the file for the pin of a process that has ended.
const pinTries = 10

func (d Dir) newPin() (*Pin, error) {
	dir := d.File(PinsName)
	if err := d.FS.Mkdir(dir); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	var id [8]byte
	rand.Read(id[:])
	p := &Pin{fs: d.FS, dir: dir, path: filepath.Join(dir, hex.EncodeToString(id[:])+pinSuffix)}
	var err error
	if p.lock, err = d.FS.Lock(p.path, vfs.LockCreate); err != nil {
		return nil, err
	}
	return p, nil // an empty file pins everything
}

// Set replaces what is pinned. If that fails, as on a full disk, the pin is as before, or pins
// everything.
func (p *Pin) Set(epoch uint64, log lsn.LSN) {
	if p == nil || epoch == p.epoch && log == p.log {
		return
	}
	if p.lock.Write(encodePin(epoch, log)) == nil {
		p.epoch, p.log = epoch, log
	}
}

// Owns reports whether a path leads to the pin's file.
func (p *Pin) Owns(path string) bool { return p != nil && p.path == path }

// Close unpins everything.
func (p *Pin) Close() {
	if p == nil {
		return
	}
	p.fs.Remove(p.path) // if it stays, a writer removes it
	p.lock.Close()
	p.fs.Remove(p.dir) // unless there are others
}

func encodePin(epoch uint64, log lsn.LSN) []byte {
	b := make([]byte, pinLen)
	copy(b, pinMagic)
	binary.LittleEndian.PutUint64(b[pinEpochOff:], epoch)
	binary.LittleEndian.PutUint64(b[pinLogOff:], uint64(log))
	binary.LittleEndian.PutUint32(b[pinCRCOff:], coding.CRC32C(b[:pinCRCOff]))
	return b
}

// decodePin returns the epoch and the LSN that a pin protects. A pin that is being written, or
// whose format this program does not know, pins everything.
func decodePin(b []byte) (epoch uint64, log lsn.LSN) {
	if len(b) != pinLen || string(b[:len(pinMagic)]) != pinMagic || binary.LittleEndian.Uint32(b[pinMustOff:]) != 0 ||
		coding.CRC32C(b[:pinCRCOff]) != binary.LittleEndian.Uint32(b[pinCRCOff:]) {
		return 0, 0
	}
	return binary.LittleEndian.Uint64(b[pinEpochOff:]), lsn.LSN(binary.LittleEndian.Uint64(b[pinLogOff:]))
}

// HasFollowers reports whether there may be followers.
func (d Dir) HasFollowers() bool {
	_, err := d.FS.Stat(d.File(PinsName))
	return err == nil
}

// Pinned returns the lowest epoch and LSN that followers pin, or the highest possible if there are
// no pins. It removes pins of processes that have ended.
func (d Dir) Pinned() (epoch uint64, log lsn.LSN) {
	epoch, log = math.MaxUint64, lsn.Max
	dir := d.File(PinsName)
	names, err := d.FS.List(dir)
	if err != nil { // there are no followers
		return epoch, log
	}
	for _, name := range names {
		if !strings.HasSuffix(name, pinSuffix) {
			continue
		}
		path := filepath.Join(dir, name)
		lock, err := d.FS.Lock(path, vfs.LockShared)
		switch {
		case err == nil:
			// A follower that has created the file, and not locked it yet, finds it locked, or
			// gone, and takes another one.
			if err := d.FS.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				d.Logger.Warn("the pin of a reader that has ended stays", slog.String("file", name),
					slog.Any("err", err))
			}
			lock.Close()
		case errors.Is(err, fault.ErrLocked):
			b, _ := d.read(filepath.Join(PinsName, name), pinLen+1)
			e, l := decodePin(b)
			epoch, log = min(epoch, e), min(log, l)
		}
	}
	return epoch, log
}

// Followers decides for a writer which dropped blocks and which part of the log are kept because
// followers may still read them. It is safe for concurrent use.
type Followers struct {
	dir Dir
	lag time.Duration

	mu      sync.Mutex
	starts  []logStart // that were confirmed, oldest first, from the newest on whose log may be removed
	removed lsn.LSN    // the log below was removed, or is about to be
	again   time.Time  // until then, followers are taken to pin the log from removed on
}

// NewFollowers returns the rules for a directory. lag is how long dropped blocks and log are kept for
// followers; if it is negative, nothing is kept.
func NewFollowers(d Dir, lag time.Duration) *Followers { return &Followers{dir: d, lag: lag} }

// pinLook is how long a writer takes the log to be pinned after it has found a pin.
const pinLook = time.Second

// logStart is a confirmed log_start, with the time at which it was first seen.
type logStart struct {
	lsn lsn.LSN
	at  time.Time
}

// Below noSpareBytes of free space, no space is kept for followers, and below scarceBytes for a
// shorter time.
const (
	scarceBytes  = 1 << 30
	noSpareBytes = 64 << 20
)

// lagNow returns how long space is kept for followers now, negative if it is not kept at all.
func (f *Followers) lagNow() time.Duration {
	free := f.dir.FreeBytes()
	switch {
	case free < 0 || free >= scarceBytes:
		return f.lag
	case free < noSpareBytes:
		return -1
	}
	return time.Duration(float64(f.lag) * float64(free) / scarceBytes)
}

// Kept is blockmanager.Options.Kept.
func (f *Followers) Kept() (epoch uint64, old time.Time) {
	lag := f.lagNow()
	if lag < 0 {
		return math.MaxUint64, time.Time{}
	}
	epoch, _ = f.dir.Pinned()
	return epoch, time.Now().Add(-lag)
}

// LogBegin returns the LSN below which the log may be removed: start, the confirmed log_start, or
// less for followers. If full is set, the log has reached its largest size, and nothing is kept for
// followers.
func (f *Followers) LogBegin(start lsn.LSN, full bool) lsn.LSN {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	if start <= f.removed || now.Before(f.again) {
		return f.removed
	}
	if n := len(f.starts); n == 0 || f.starts[n-1].lsn < start {
		f.starts = append(f.starts, logStart{start, now})
	}
	lag := f.lagNow()
	begin := start
	if lag >= 0 && !full {
		_, pin := f.dir.Pinned()
		begin = min(start, pin)
		for len(f.starts) > 0 && now.Sub(f.starts[0].at) > lag {
			begin = max(begin, f.starts[0].lsn)
			f.starts = f.starts[1:]
		}
	}
	f.removed = max(f.removed, begin)
	if f.removed < start {
		f.again = now.Add(pinLook)
	}
	return f.removed
}

// Removable returns the LSN below which LogBegin would allow the removal of the log if start were
// confirmed, without a look at the pins.
func (f *Followers) Removable(start lsn.LSN) lsn.LSN {
	f.mu.Lock()
	defer f.mu.Unlock()
	if time.Now().Before(f.again) {
		return f.removed
	}
	return start
}
