package storedir

import (
	"errors"
	"io/fs"
	"log/slog"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/vfs"
	"github.com/oribi-db/oribi/vfs/faultfs"
)

// testDir returns the directory /store, which it creates if it is missing.
func testDir(fsys vfs.FS) Dir {
	fsys.Mkdir("/store")
	return At(fsys, "/store", slog.New(slog.DiscardHandler))
}

// A pin that is not whole, or says something unknown, pins everything.
func TestPinIsReadWhole(t *testing.T) {
	text := encodePin(5, 9)
	if epoch, log := decodePin(text); epoch != 5 || log != 9 {
		t.Errorf("the pin is of epoch %d, LSN %d", epoch, log)
	}
	for n := range text {
		changed := append([]byte{}, text...)
		changed[n] ^= 1
		for _, b := range [][]byte{text[:n], changed, append(text, 0)} {
			if epoch, log := decodePin(b); epoch != 0 || log != 0 {
				t.Errorf("%x pins epoch %d, LSN %d", b, epoch, log)
			}
		}
	}
}

// A pin that could not be written is as before, and is written the next time.
func TestPinIsWrittenAgainAfterFailure(t *testing.T) {
	mem := vfs.NewMem()
	disk := faultfs.New(mem)
	p := must.Get(testDir(disk).newPin())(t)
	defer p.Close()
	failed := false
	disk.Watch(func(c faultfs.Call) error {
		if c.Op == faultfs.LockWrite && !failed {
			failed = true
			return vfs.NoSpaceError(errors.New("full"))
		}
		return nil
	})
	for _, want := range []struct {
		epoch uint64
		log   lsn.LSN
	}{{0, 0}, {5, 9}} {
		p.Set(5, 9)
		b := must.Get(testDir(mem).read(strings.TrimPrefix(p.path, "/store/"), pinLen+1))(t)
		if epoch, log := decodePin(b); epoch != want.epoch || log != want.log {
			t.Errorf("the pin is of epoch %d, LSN %d; want %d, %d", epoch, log, want.epoch, want.log)
		}
	}
}

// While a follower makes its pin, another may remove the directory, and the writer may take the file
// for the pin of a process that has ended. The follower makes another one.
func TestPinIsMadeAgain(t *testing.T) {
	for name, err := range map[string]error{"directory is gone": fs.ErrNotExist, "file is locked": fault.ErrLocked} {
		t.Run(name, func(t *testing.T) {
			mem := vfs.NewMem()
			disk := faultfs.New(mem)
			left := pinTries - 1
			disk.Watch(func(c faultfs.Call) error {
				if c.Op == faultfs.Lock && strings.HasSuffix(c.Name, pinSuffix) && left > 0 {
					left--
					return err
				}
				return nil
			})
			pin := testDir(disk).Pin()
			pin.Set(5, 9)
			if epoch, log := testDir(mem).Pinned(); epoch != 5 || log != 9 {
				t.Errorf("epoch %d and LSN %d are pinned", epoch, log)
			}
			pin.Close()
			if epoch, log := testDir(mem).Pinned(); epoch != math.MaxUint64 || log != lsn.Max {
				t.Errorf("after Close, epoch %d and LSN %d are pinned", epoch, log)
			}
		})
	}
}

// freeFS is a file system with so many free bytes.
type freeFS struct {
	vfs.FS
	free int64
}

func (f *freeFS) FreeBytes(string) int64 { return f.free }

// The less is free on the disk, the shorter is space kept for followers.
func TestSpaceIsKeptShorterOnFullDisk(t *testing.T) {
	disk := &freeFS{vfs.NewMem(), -1}
	dir := testDir(disk)
	pin := dir.Pin()
	defer pin.Close()
	pin.Set(5, 9)
	const lag = 10 * time.Minute
	f := NewFollowers(dir, lag)
	for _, test := range []struct {
		free int64
		lag  time.Duration
	}{{-1, lag}, {scarceBytes, lag}, {scarceBytes / 4, lag / 4}, {noSpareBytes, lag / 16}} {
		disk.free = test.free
		before := time.Now()
		epoch, old := f.Kept()
		if earliest, latest := before.Add(-test.lag), time.Now().Add(-test.lag); epoch != 5 ||
			old.Before(earliest) || old.After(latest) {
			t.Errorf("with %d bytes free, blocks dropped after epoch %d and %v are kept; want 5, %v", test.free,
				epoch, old, earliest)
		}
	}
	disk.free = noSpareBytes - 1
	if epoch, old := f.Kept(); epoch != math.MaxUint64 || !old.IsZero() {
		t.Errorf("with %d bytes free, blocks dropped after epoch %d and %v are kept", disk.free, epoch, old)
	}
}

// The log that a follower reads is kept while it is open, for so long, and up to a size.
func TestLogIsKeptForFollower(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const lag = 10 * time.Minute
		dir := testDir(vfs.NewMem())
		f := NewFollowers(dir, lag)
		begin := func(start lsn.LSN, full bool) lsn.LSN {
			t.Helper()
			removable := f.Removable(start)
			got := f.LogBegin(start, full)
			if removable < got {
				t.Errorf("log below %d is removable, and is removed below %d", removable, got)
			}
			return got
		}
		must.Equal(t, begin(10, false), 10, "start of the log without followers")
		pin := dir.Pin()
		pin.Set(1, 10)
		for start := lsn.LSN(20); start <= 40; start += 10 {
			time.Sleep(pinLook)
			must.Equal(t, begin(start, false), 10, "the log begins at the pin")
			must.Equal(t, f.Removable(start), 10, "a confirmation removes the log below")
		}
		pin.Close()
		must.Equal(t, begin(40, false), 10, "start of the log before the next look at the pins")
		pin = dir.Pin()
		pin.Set(1, 10)
		time.Sleep(lag - pinLook + 1) // the log start 30 is that old now, and 40 younger
		must.Equal(t, begin(40, false), 30, "start of the log after", lag)
		time.Sleep(pinLook)
		must.Equal(t, begin(50, true), 50, "start of a log that is longer than it should be")
	})
}
