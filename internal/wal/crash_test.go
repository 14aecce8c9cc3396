package wal

import (
	"errors"
	"flag"
	"fmt"
	"math/rand"
	"slices"
	"testing"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/vfs"
	"github.com/oribi-db/oribi/vfs/faultfs"
)

var seedsFlag = flag.Int64("seeds", 0, "how many random histories run, from -seed on; 0 takes the default")

// seeds returns the first seed and the number of seeds to run.
func seeds(t *testing.T, full, short int64) (first, count int64) {
	if *seedsFlag > 0 {
		full, short = *seedsFlag, *seedsFlag
	}
	return int64(seedtest.Seed(t)), seedtest.Rounds(full, short)
}

// TestRandomHistoriesSurviveCrashes appends, syncs, releases and reopens, sometimes on a full disk.
// At random operations of the file system, also during Repair, the process is killed or the power
// fails. Afterwards the log must open and contain a prefix of the appended records, with all that
// Sync acknowledged, and after a kill also all that Append acknowledged.
func TestRandomHistoriesSurviveCrashes(t *testing.T) {
	first, count := seeds(t, 250, 40)
	crashes := 0
	for seed := first; seed < first+count && !t.Failed(); seed++ {
		h := newHistory(t, seed)
		for range 120 {
			h.step()
			if t.Failed() {
				t.Logf("seed %d", seed)
				return
			}
		}
		crashes += h.crashes
	}
	t.Logf("seeds %d to %d: %d crashes", first, first+count-1, crashes)
}

// history is one run.
type history struct {
	t   *testing.T
	rng *rand.Rand
	mem *vfs.Mem
	fs  *faultfs.FS
	log *Log

	ahead   aheadRules
	windows windowRules

	payloads []string // by LSN, from 1; the last may be in flight
	appended lsn.LSN  // highest LSN that Append or AppendLater returned
	handed   lsn.LSN  // highest LSN written to the kernel
	acked    lsn.LSN  // highest LSN that Sync, or Repair, acknowledged
	// survives is the highest LSN that the next replay must find: the last appended record's after
	// a kill, the last acknowledged record's after a power cut.
	survives lsn.LSN
	logStart lsn.LSN
	serial   int
	crashes  int

	fuse int // operations until the crash; 0 after it
	left *vfs.Mem
	kill bool
	full bool // the disk was full since the log was opened
}

var errCrashed = errors.New("test: crashed")

func newHistory(t *testing.T, seed int64) *history {
	h := &history{t: t, rng: rand.New(rand.NewSource(seed)), mem: emptyMem(t), logStart: 1, windows: noWindows}
	if seed%2 == 0 {
		h.ahead = soonAhead
		h.ahead.large = 300
	}
	if seed%3 > 0 {
		h.windows = soonWindows
	}
	must.Do(t, Create(h.options(h.mem), 1))
	h.start()
	return h
}

func (h *history) options(v vfs.FS) Options {
	o := small(v)
	o.ahead, o.windows = h.ahead, h.windows
	return o
}

// start opens the log on h.mem. If a crash happens during the open, it opens the log again on the
// result.
func (h *history) start() {
	for {
		h.fuse, h.left, h.full = 1+h.rng.Intn(60), nil, false
		h.fs = faultfs.New(h.mem)
		hook(h.fs, h.burn)
		tail := h.check()
		if tail == nil {
			return
		}
		log, err := tail.Repair(nil)
		if err == nil {
			h.log, h.acked, h.handed = log, h.appended, h.appended
			return
		}
		switch {
		case h.left != nil:
			h.crash()
		case !errors.Is(err, fault.ErrNoSpace):
			h.t.Errorf("repair: %v", err)
			return
		}
	}
}

// burn is the hook: it triggers the crash and fails every later operation.
func (h *history) burn(op, name string) error {
	if h.left != nil {
		return errCrashed
	}
	if h.fuse--; h.fuse > 0 {
		if (op == "write" || op == "create") && h.rng.Intn(25) == 0 {
			h.full = true
			return fmt.Errorf("test: %w", fault.ErrNoSpace)
		}
		return nil
	}
	switch h.kill = false; h.rng.Intn(4) {
	case 0:
		h.left, h.kill = h.mem.Clone(), true
	case 1:
		h.left = h.mem.Crash()
	default:
		h.left = torn(h.t, h.rng, h.mem)
	}
	return errCrashed
}

// crash continues with the state after the crash.
func (h *history) crash() {
	h.crashes++
	if h.survives = h.acked; h.kill {
		h.survives = h.handed
	}
	h.mem = h.left
}

// check replays and compares with the model.
func (h *history) check() *Tail {
	next := h.logStart
	tail, err := Replay(h.options(h.fs), h.logStart, func(lsn lsn.LSN, payload []byte) error {
		if lsn != next || int(lsn) > len(h.payloads) || h.payloads[lsn-1] != string(payload) {
			return fmt.Errorf("test: LSN %d, want %d with the payload that was appended", lsn, next)
		}
		next++
		return nil
	})
	if err != nil {
		h.t.Errorf("replay from %d with %d appended, %d to survive: %v", h.logStart, h.appended, h.survives, err)
		return nil
	}
	if tail.Last() < h.survives || int(tail.Last()) > len(h.payloads) {
		h.t.Errorf("log ends with LSN %d: %d appended, %d to survive", tail.Last(), h.appended, h.survives)
		return nil
	}
	if f := verify(h.t, small(h.fs), h.logStart); f != nil {
		h.t.Errorf("Verify finds %q", f)
		return nil
	}
	h.payloads = h.payloads[:tail.Last()]
	h.appended, h.handed = tail.Last(), tail.Last()
	return tail
}

func (h *history) step() {
	var err error
	switch n := h.rng.Intn(20); {
	case n < 12:
		err = h.append()
	case n < 17:
		upTo := h.acked + lsn.LSN(h.rng.Intn(int(h.appended-h.acked)+1))
		if err = h.log.Sync(upTo); err == nil {
			h.acked = max(h.acked, upTo)
			h.handed = max(h.handed, upTo)
		}
	case n < 19:
		// Like a metadata commit: log_start rises, at most to the durable LSN; then segments are
		// removed.
		h.logStart += lsn.LSN(h.rng.Intn(int(h.log.Durable()+1-h.logStart) + 1))
		err = h.log.Release(h.logStart)
	default:
		if h.close() {
			h.start()
		}
		return
	}
	if err != nil {
		h.failed(err)
	}
}

// close closes the log and reports whether that succeeded; otherwise it has opened a log again.
func (h *history) close() bool {
	err := h.log.Close()
	if err == nil || h.left == nil && errors.Is(err, fault.ErrNoSpace) && h.log.Poisoned() == nil {
		h.acked, h.handed, h.survives = h.appended, h.appended, h.appended
		if err != nil { // only the footer is missing
			h.start()
		}
		return err == nil
	}
	h.failed(err)
	return false
}

// failed continues after an error of a full disk, or of the crash that is due.
func (h *history) failed(err error) {
	switch {
	case h.left == nil && errors.Is(err, fault.ErrNoSpace) && h.log.Poisoned() == nil:
		h.payloads = h.payloads[:h.appended]
		return
	case h.left == nil && h.full && errors.Is(err, fault.ErrPoisoned):
		// Acknowledged records, or a footer, found no space, although they overwrite zeros: the log
		// ends as if the process were killed.
		h.left, h.kill = h.mem.Clone(), true
		h.crash()
		h.start()
		return
	case h.left == nil:
		h.t.Error(err)
		return
	}
	if !errors.Is(err, errCrashed) {
		h.t.Errorf("the first cause is lost: %v", err)
	}
	h.crash()
	h.start()
}

func (h *history) append() error {
	h.serial++
	p := text(h.serial, []int{0, 8, h.rng.Intn(64), h.rng.Intn(300), h.rng.Intn(1500)}[h.rng.Intn(5)])
	h.payloads = append(slices.Clip(h.payloads), p)
	later := h.rng.Intn(2) == 0
	write := h.log.Append
	if later {
		write = h.log.AppendLater
	}
	lsn, err := write([]byte(p))
	if err != nil {
		return err
	}
	if lsn != h.appended+1 {
		h.t.Errorf("LSN %d given after %d", lsn, h.appended)
	}
	if h.appended = lsn; !later {
		h.handed = lsn
	}
	return nil
}

// After a kill the name of the newest segment may not be durable, and a power cut during the
// following repair may find some of its removals done. The segment that a power cut removes must
// never be the only one with the end of the log. Kill at each operation of an Append that begins a
// segment, power cut at each operation of Repair.
func TestPowerCutWhileRepairingAfterAKill(t *testing.T) {
	states := 0
	for kill := 0; ; kill++ {
		killed := killedWhileRolling(t, kill)
		if killed == nil {
			break
		}
		for step, done := 0, false; !done; step++ {
			v := killed.Clone()
			h := faultfs.New(v)
			tail, _, err := replay(small(h), 4) // everything but the end of the log is unused
			must.Do(t, err)
			hook(h, crashAt(step, nil))
			_, err = tail.Repair(nil)
			done = err == nil
			for i := range 4 {
				states++
				what := fmt.Sprintf("killed at operation %d, power cut at %d of repair, names %d", kill, step, i)
				checkGoesOn(t, what, tornNames(t, rand.New(rand.NewSource(int64(i))), v, share(i/2*2), share(i%2*2)))
			}
		}
	}
	if states < 100 {
		t.Errorf("only %d states", states)
	}
}

// crashAt returns a hook: the n-th operation, from 0, and all later ones fail; it calls then before
// the first.
func crashAt(n int, then func()) func(op, name string) error {
	return func(string, string) error {
		n--
		if n == -1 && then != nil {
			then()
		}
		if n < 0 {
			return errCrashed
		}
		return nil
	}
}

// killedWhileRolling returns a log of three durable records, killed at the n-th operation of an
// Append that begins a segment; nil if it has fewer operations.
func killedWhileRolling(t *testing.T, n int) (killed *vfs.Mem) {
	m := emptyMem(t)
	h := faultfs.New(m)
	l := create(t, small(h))
	appendAll(t, l, text(0, 50), text(1, 50))
	appendToNext(t, l, text(2, 50))
	must.Do(t, l.Sync(3))
	hook(h, crashAt(n, func() { killed = m.Clone() }))
	l.o.SegmentBytes = 1
	if _, err := l.Append([]byte("next")); err == nil {
		return nil
	}
	return killed
}

// checkGoesOn opens a log that ends with LSN 3, of which only the end is needed, and appends.
func checkGoesOn(t *testing.T, what string, v *vfs.Mem) {
	t.Helper()
	tail, _, err := replay(small(v), 4)
	if err != nil || tail.Last() != 3 {
		t.Errorf("%s: %v", what, err)
		return
	}
	l, err := tail.Repair(nil)
	must.Do(t, err)
	appendAll(t, l, "x")
	must.Do(t, l.Sync(4))
	if _, got, err := replay(small(v.Crash()), 4); err != nil || got[4] != "x" {
		t.Errorf("%s: then %d records, %v", what, len(got), err)
	}
}

// After a failed sync the kernel may show pages as clean that never reached the disk, so that the
// next sync succeeds but writes nothing. Bytes that replay found there must be written again.
func TestRepairWritesTheNewestSegmentAgainBeforeItSyncs(t *testing.T) {
	m := emptyMem(t)
	h := faultfs.New(m)
	l := create(t, small(h))
	appendAll(t, l, "a", "b", text(1, 100))
	hook(h, func(op, name string) error {
		if op == "sync" {
			return errors.New("test: lost")
		}
		return nil
	})
	wantIs(t, "Sync", l.Sync(3), fault.ErrPoisoned)

	v := &rangeFS{FS: m.Clone()}
	before := readFile(t, v.FS, segmentPath(1))
	tail, got := must.Get2(replay(small(v), 1))(t)
	must.Equal(t, len(got), 3, "records")
	l = must.Get(tail.Repair(nil))(t)
	must.Equal(t, l.Durable(), 3, "LSN counts as durable")
	must.Equal(t, v.synced, int64(len(before)), "bytes were written again and synced")
	must.Equal(t, string(readFile(t, v.FS, segmentPath(1))), string(before), "the bytes differ")
}

// rangeFS records how much of the file was written from its start before a sync.
type rangeFS struct {
	vfs.FS
	written, synced int64
}

func (r *rangeFS) Open(name string, write bool) (vfs.File, error) {
	f, err := r.FS.Open(name, write)
	return &rangeFile{f, r}, err
}

type rangeFile struct {
	vfs.File
	r *rangeFS
}

func (f *rangeFile) WriteAt(b []byte, off int64) (int, error) {
	if off == f.r.written {
		f.r.written += int64(len(b))
	}
	return f.File.WriteAt(b, off)
}

func (f *rangeFile) Sync() error {
	f.r.synced = f.r.written
	return f.File.Sync()
}
