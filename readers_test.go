package oribi

import (
	"errors"
	"io/fs"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
	"github.com/oribi-db/oribi/vfs/faultfs"
)

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
	p, err := newReaderPin(disk, "/readers")
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
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
		p.set(5, 9)
		b, err := readFile(mem, p.path, pinLen+1)
		if err != nil {
			t.Fatal(err)
		}
		if epoch, log := decodePin(b); epoch != want.epoch || log != want.log {
			t.Errorf("the pin is of epoch %d, LSN %d; want %d, %d", epoch, log, want.epoch, want.log)
		}
	}
}

// While a follower makes its pin, another may remove the directory, and the writer may take the file
// for that of a process that has ended. It makes another one.
func TestPinIsMadeAgain(t *testing.T) {
	for name, err := range map[string]error{"directory is gone": fs.ErrNotExist, "file is locked": fault.ErrLocked} {
		t.Run(name, func(t *testing.T) {
			mem := vfs.NewMem()
			store, _ := pinnedStore(t, mem)
			disk := faultfs.New(mem)
			left := pinTries - 1
			disk.Watch(func(c faultfs.Call) error {
				if c.Op == faultfs.Lock && strings.HasSuffix(c.Name, pinSuffix) && left > 0 {
					left--
					return err
				}
				return nil
			})
			follow(t, disk)
			if epoch, _ := store.pinned(); epoch != store.blocks.Epoch() {
				t.Errorf("the follower pins epoch %d, the store is at %d", epoch, store.blocks.Epoch())
			}
		})
	}
}

// pinnedStore opens a store with a table, which it creates if need be.
func pinnedStore(t *testing.T, fsys vfs.FS) (*Store, *Table) {
	t.Helper()
	store, err := Open("/store", &Options{FS: fsys, Manual: true, LogSegmentBytes: 4096})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	if table, err := store.Table("t"); err == nil {
		return store, table
	}
	columns, err := schema.New([]schema.Column{{Name: "k", Type: schema.Int64}, {Name: "v", Type: schema.String}}, 1)
	if err != nil {
		t.Fatal(err)
	}
	table, err := store.CreateTable("t", columns)
	if err != nil {
		t.Fatal(err)
	}
	return store, table
}

// writeLog writes as many rows as fill a segment of the log of a pinnedStore.
func writeLog(t *testing.T, store *Store, table *Table) {
	t.Helper()
	b := store.NewBatch()
	b.Upsert(table, Row{"k": int64(1), "v": strings.Repeat("v", 5000)})
	if _, err := b.Commit(t.Context()); err != nil {
		t.Fatal(err)
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
	store, _ := pinnedStore(t, disk)
	follower := follow(t, disk)
	for _, test := range []struct {
		free int64
		lag  time.Duration
	}{{-1, defaultFollowerLag}, {scarceBytes, defaultFollowerLag}, {scarceBytes / 4, defaultFollowerLag / 4}, {noSpareBytes, defaultFollowerLag / 16}} {
		disk.free = test.free
		before := time.Now()
		epoch, old := store.keptBlocks()
		if earliest, latest := before.Add(-test.lag), time.Now().Add(-test.lag); epoch != follower.blocks.Epoch() || old.Before(earliest) || old.After(latest) {
			t.Errorf("with %d bytes free, blocks dropped after epoch %d and %v are kept; want %d, %v", test.free, epoch, old, follower.blocks.Epoch(), earliest)
		}
	}
	disk.free = noSpareBytes - 1
	if epoch, old := store.keptBlocks(); epoch != math.MaxUint64 || !old.IsZero() {
		t.Errorf("with %d bytes free, blocks dropped after epoch %d and %v are kept", disk.free, epoch, old)
	}
}

// The log that a follower reads is kept while it is open, for so long, and up to a size.
func TestLogIsKeptForFollower(t *testing.T) {
	mem := vfs.NewMem()
	store, table := pinnedStore(t, mem)
	flush := func() {
		t.Helper()
		writeLog(t, store, table)
		err := table.Flush(t.Context())
		if err == nil {
			err = store.blocks.Confirm()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	lookAfter := func(at time.Time) {
		store.followers.mu.Lock()
		defer store.followers.mu.Unlock()
		store.followers.again = at
	}
	begin := func() lsn.LSN {
		lookAfter(time.Time{})
		return store.logBegin()
	}
	flush()
	if at, want := begin(), store.blocks.ConfirmedLogStart(); at != want {
		t.Errorf("without followers the log begins at %d, want %d", at, want)
	}
	follower := follow(t, mem)
	pin := follower.blocks.LogStart()
	var starts []lsn.LSN
	for range 3 {
		flush()
		starts = append(starts, store.blocks.ConfirmedLogStart())
		if at := begin(); at != pin || starts[len(starts)-1] <= pin {
			t.Errorf("the log begins at %d, want %d, which is below %d", at, pin, starts)
		}
	}
	if err := store.log.Release(store.logBegin()); err != nil {
		t.Fatal(err)
	}
	if n := store.uselessLog(); n != 0 {
		t.Errorf("a job would remove %d bytes of the log, which it may not", n)
	}
	lag := store.opts.FollowerLag
	store.followers.mu.Lock()
	for i := range store.followers.starts {
		if s := &store.followers.starts[i]; s.lsn <= starts[1] {
			s.at = s.at.Add(-lag)
		}
	}
	store.followers.mu.Unlock()
	lookAfter(time.Now().Add(time.Hour))
	if at := store.logBegin(); at != pin {
		t.Errorf("before the next look at the pins the log begins at %d, want %d", at, pin)
	}
	if at := begin(); at != starts[1] {
		t.Errorf("after %v the log begins at %d, want %d", lag, at, starts[1])
	}
	store.background.mu.Lock() // the scheduler reads it
	store.maxLog = 1
	store.background.mu.Unlock()
	for store.log.Bytes() < store.logTarget() {
		writeLog(t, store, table)
	}
	if at := begin(); at != starts[2] {
		t.Errorf("when the log is longer than it should be, it begins at %d, want %d", at, starts[2])
	}
}
