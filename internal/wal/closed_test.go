package wal

import (
	"errors"
	"fmt"
	"math/rand"
	"path/filepath"
	"slices"
	"testing"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/vfs"
	"github.com/oribi-db/oribi/vfs/faultfs"
)

// closedLog is damageLog, closed: ten records in two sealed segments.
func closedLog(t testing.TB) (m *vfs.Mem, payloads []string) {
	t.Helper()
	m, payloads = damageLog(t)
	l, _ := open(t, small(m), 1)
	must.Do(t, l.Close())
	return m, payloads
}

// checkSame compares two snapshots.
func checkSame(t *testing.T, what string, got, want map[string]string) {
	t.Helper()
	for n := range want {
		must.Equal(t, got[n], want[n], what, n)
	}
	for n := range got {
		if _, ok := want[n]; !ok {
			t.Errorf("%s: %s is new", what, n)
		}
	}
}

// Every bit of a closed log, one at a time, is repaired.
func TestEveryFlippedBitOfClosedLogIsRepaired(t *testing.T) {
	m, payloads := closedLog(t)
	before := snapshot(t, m)
	for number := uint64(1); number <= 2; number++ {
		content := readFile(t, m, segmentPath(number))
		for off := range content {
			for k := range seedtest.Rounds(8, 1) {
				bit := (off + k) % 8
				what := fmt.Sprintf("segment %d byte %d bit %d", number, off, bit)
				v := m.Clone()
				content[off] ^= 1 << bit
				writeFile(t, v, segmentPath(number), content)
				content[off] ^= 1 << bit
				checkRepaired(t, what, v, number == 1 || off < len(content)-footerLen, payloads, before)
			}
		}
	}
}

// Every byte of a closed log is changed by more than a bit: all damage is refused, except that a
// bad footer of the newest segment is a torn tail without a record, which Repair removes.
func TestEveryChangedByteOfClosedLogIsFound(t *testing.T) {
	m, payloads := closedLog(t)
	before := snapshot(t, m)
	for number := uint64(1); number <= 2; number++ {
		content := readFile(t, m, segmentPath(number))
		foot := len(content) - footerLen
		for off := range content {
			mask := byte(3) << (off % 7)
			what := fmt.Sprintf("segment %d byte %d mask %#02x", number, off, mask)
			v := m.Clone()
			content[off] ^= mask
			writeFile(t, v, segmentPath(number), content)
			content[off] ^= mask
			if number == 1 || off < foot {
				checkRefused(t, what, v, 1)
				continue
			}
			tail, got := must.Get2(replay(small(v), 1))(t)
			if r := tail.Report(); len(got) != 10 || r.TornBytes != footerLen || r.TornFile != segmentName(2) ||
				r.Clean {
				t.Errorf("%s: %d records, report %+v", what, len(got), r)
			}
			checkPrefix(t, what, v.Clone(), payloads, 10)
			l := must.Get(tail.Repair(nil))(t)
			must.Do(t, l.Close())
			must.Do(t, v.Remove(filepath.Join(testDir, tornName(2))))
			checkSame(t, what+", repaired and closed", snapshot(t, v), before)
		}
	}
}

// TestDamageNeverTruncatesClosedLogSilently lets random histories run, full disks and crashes
// included, and flips single bytes of whatever a successful Close leaves. Replay gives all records,
// or says ErrCorrupt; in the second case Verify finds something too, in the first only if a single
// bit was repaired. It prints which bytes may be damaged without an error.
func TestDamageNeverTruncatesClosedLogSilently(t *testing.T) {
	first, count := seeds(t, 40, 8)
	sum := flips{}
	for seed := first; seed < first+count && !t.Failed(); seed++ {
		h := newHistory(t, seed)
		for range 1 + h.rng.Intn(60) {
			h.step()
		}
		for !t.Failed() && !h.close() {
		}
		if !t.Failed() {
			h.flipAll(&sum)
		}
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	}
	t.Logf("seeds %d to %d: %+v", first, first+count-1, sum)
}

// flips counts flipped bits by their consequence.
type flips struct {
	repaired, refused, ofLeftover, ofFooter, ofEmptyHeader int // the last three are noticed or not, and cost no record
}

// flipAll flips each byte of the newest segment, and every seventh of the others. In half of the
// histories it raises the log start first, so that there are leftovers.
func (h *history) flipAll(sum *flips) {
	hook(h.fs, nil)
	v := h.mem.Clone()
	if h.rng.Intn(2) == 0 {
		h.logStart += lsn.LSN(h.rng.Intn(int(h.appended + 2 - h.logStart)))
	}
	o := small(v)
	tail, _ := must.Get2(replay(o, h.logStart))(h.t)
	segs := must.Get(list(&o))(h.t)
	for i := range segs {
		newest := i == len(segs)-1
		// Nothing says that the footer was durable, but the next header agrees with all records.
		beforeEmpty := false
		if i == len(segs)-2 {
			info := must.Get(v.Stat(o.path(segs[i+1].name)))(h.t)
			beforeEmpty = info.Size() == headerLen
		}
		content := readFile(h.t, v, o.path(segs[i].name))
		f := must.Get(v.Open(o.path(segs[i].name), true))(h.t)
		stride := 7
		if newest {
			stride = 1
		}
		for off := h.rng.Intn(stride); off < len(content) && !h.t.Failed(); off += stride {
			mask := byte(1 + h.rng.Intn(255))
			must.Do(h.t, must.Err(f.WriteAt([]byte{content[off] ^ mask}, int64(off))))
			isLeftover := slices.ContainsFunc(tail.plan.leftovers, func(s segment) bool {
				return s.name == segs[i].name
			})
			switch repaired, refused := h.flipped(v, fmt.Sprintf("%s byte %d mask %#02x", segs[i].name, off, mask),
				isLeftover || newest && len(content) == headerLen ||
					(newest || beforeEmpty) && off >= len(content)-footerLen); {
			case repaired:
				sum.repaired++
			case refused:
				sum.refused++
			case isLeftover:
				sum.ofLeftover++
			case newest && len(content) == headerLen:
				sum.ofEmptyHeader++
			case (newest || beforeEmpty) && off >= len(content)-footerLen:
				sum.ofFooter++
			default:
				h.t.Errorf("%s byte %d mask %#02x: not noticed", segs[i].name, off, mask)
			}
			must.Do(h.t, must.Err(f.WriteAt(content[off:off+1], int64(off))))
		}
		must.Do(h.t, f.Close())
	}
}

// flipped replays a damaged log and reports whether it was repaired or refused.
func (h *history) flipped(v *vfs.Mem, what string, quiet bool) (repaired, refused bool) {
	h.t.Helper()
	tail, got, err := replay(small(v), h.logStart)
	findings := verify(h.t, small(v), h.logStart)
	if err != nil {
		if !errors.Is(err, fault.ErrCorrupt) {
			h.t.Errorf("%s: got error %v", what, err)
		}
		if findings == nil {
			h.t.Errorf("%s: Verify finds nothing, Replay says %v", what, err)
		}
		return false, true
	}
	repaired = tail.Report().RepairedBits == 1
	if repaired != (findings != nil) && !quiet {
		h.t.Errorf("%s: Verify finds %q", what, findings)
	}
	if want := int(h.appended + 1 - h.logStart); len(got) != want {
		h.t.Errorf("%s: %d records, want %d", what, len(got), want)
	}
	for lsn, p := range got {
		if p != h.payloads[lsn-1] {
			h.t.Errorf("%s: LSN %d has another payload", what, lsn)
		}
	}
	return repaired, false
}

// If the next segment does not fit on the disk, the newest segment is sealed already, since Append
// sealed it to begin the next; Close adds nothing.
func TestCloseAfterFullDisk(t *testing.T) {
	for _, reopened := range []bool{false, true} {
		t.Run(fmt.Sprint("reopened=", reopened), func(t *testing.T) {
			m := emptyMem(t)
			h := faultfs.New(m)
			l := create(t, small(h))
			appendAll(t, l, text(0, 100), text(1, 100)) // neither is synced
			hook(h, func(op, name string) error {
				if op == "create" {
					return fault.ErrNoSpace
				}
				return nil
			})
			_, err := l.Append([]byte(text(2, 600)))
			wantIs(t, "Append", err, fault.ErrNoSpace)
			if reopened { // the process was killed then
				m = m.Clone()
				l, _ = open(t, small(m), 1)
			}
			must.Do(t, l.Close())
			content := readFile(t, m, segmentPath(1))
			for off := range len(content) - footerLen {
				v := m.Clone()
				content[off] ^= 0x11
				writeFile(t, v, segmentPath(1), content)
				content[off] ^= 0x11
				checkRefused(t, fmt.Sprintf("byte %d", off), v, 1)
			}
		})
	}
}

// Opening for writing and closing a closed log leaves it byte for byte as it was, and makes and
// removes no file on the way.
func TestReopenedAndClosedWithoutAppendIsUnchanged(t *testing.T) {
	logs := map[string]func() *vfs.Mem{
		"empty":   func() *vfs.Mem { m := emptyMem(t); must.Do(t, create(t, small(m)).Close()); return m },
		"two":     func() *vfs.Mem { m, _ := closedLog(t); return m },
		"many":    func() *vfs.Mem { return manySegments(t) },
		"nothing": func() *vfs.Mem { m := emptyMem(t); must.Do(t, Create(small(m), 7)); return m },
		"newest holds no record": func() *vfs.Mem {
			m := emptyMem(t)
			h := faultfs.New(m)
			l := create(t, small(h))
			appendAll(t, l, "a")
			l.o.SegmentBytes = 1
			hook(h, failFrames(m, 2))
			_, err := l.Append([]byte("b"))
			wantIs(t, "Append", err, fault.ErrNoSpace)
			hook(h, nil)
			must.Do(t, l.Close())
			return m
		},
	}
	for name, make := range logs {
		t.Run(name, func(t *testing.T) {
			m := make()
			before := snapshot(t, m)
			h := faultfs.New(m)
			hook(h, func(op, name string) error {
				if op == "create" || op == "remove" || op == "truncate" {
					t.Errorf("%s of %s", op, name)
				}
				return nil
			})
			for range 3 {
				first := lsn.LSN(1)
				if name == "nothing" {
					first = 7
				}
				l, got := open(t, small(h), first)
				size := l.Bytes()
				must.Do(t, l.Close())
				must.Equal(t, l.Bytes(), size, "Bytes")
				must.Equal(t, l.Durable(), lsn.LSN(len(got))+first-1, "durable LSN")
				checkSame(t, "written", snapshot(t, m), before)
				checkSame(t, "durable", snapshot(t, m.Crash()), before)
			}
		})
	}
}

// failFrames is a hook: the disk is full for all of a segment but its header.
func failFrames(m *vfs.Mem, number uint64) func(op, name string) error {
	return func(op, name string) error {
		if info, err := m.Stat(segmentPath(number)); err == nil && op == "write" &&
			name == segmentName(number) && info.Size() >= headerLen {
			return fault.ErrNoSpace
		}
		return nil
	}
}

func TestFirstAppendAfterSealedSegmentBeginsTheNext(t *testing.T) {
	m, payloads := closedLog(t)
	before := snapshot(t, m)
	l, _ := open(t, small(m), 1)
	checkSame(t, "opened", snapshot(t, m), before)
	must.Do(t, l.Release(11)) // never the newest, though none of its records is needed
	delete(before, segmentName(1))
	checkSame(t, "released", snapshot(t, m), before)
	lsn, err := l.Append([]byte("next"))
	must.Do(t, err)
	must.Equal(t, lsn, 11, "LSN")
	must.Do(t, l.Sync(lsn))
	after := snapshot(t, m.Crash())
	must.Equal(t, after[segmentName(2)], before[segmentName(2)])
	must.Equal(t, len(after[segmentName(3)]), headerLen+frameLen+8, "bytes in segment 3")
	must.Equal(t, l.Bytes(), int64(len(after[segmentName(2)])+len(after[segmentName(3)])), "bytes")
	_, got, err := replay(small(m.Crash()), 5)
	if err != nil || len(got) != 7 || got[11] != "next" || got[10] != payloads[9] {
		t.Errorf("%d records, %v", len(got), err)
	}
	must.Do(t, l.Release(11))
	must.Refuse(t, must.Err(m.Stat(segmentPath(2))), "the closed segment cannot be released")
}

// Close syncs, writes the footer, syncs. A crash after each operation, and in the middle of it,
// leaves all records from the first sync on, before it those that were synced, or after a kill all.
func TestCrashWhileClosing(t *testing.T) {
	for step, what := range []string{"sync", "write", "sync", "nothing"} {
		for seed := range int64(40) {
			rng := rand.New(rand.NewSource(seed))
			m := emptyMem(t)
			h := faultfs.New(m)
			l := create(t, small(h))
			appendAll(t, l, text(0, 30))
			must.Do(t, l.Sync(1))
			appendAll(t, l, text(1, 100), text(2, 0))
			var ops []string
			var killed, cut, part *vfs.Mem
			hook(h, func(op, name string) error {
				if ops = append(ops, op); len(ops) > step {
					if len(ops) == step+1 {
						killed, cut, part = m.Clone(), m.Crash(), torn(t, rng, m)
					}
					return errCrashed
				}
				return nil
			})
			err := l.Close()
			if what == "nothing" {
				must.Do(t, err)
				must.Equal(t, fmt.Sprint(ops), "[sync write sync]", "Close")
				killed, cut, part = m.Clone(), m.Crash(), torn(t, rng, m)
			} else {
				wantIs(t, "Close", err, errCrashed)
			}
			for i, v := range []*vfs.Mem{killed, cut, part} {
				tail, got, err := replay(small(v), 1)
				must.Do(t, err)
				if step == 0 && i > 0 {
					if len(got) < 1 {
						t.Errorf("seed %d: power cut before the first sync: %d records", seed, len(got))
					}
					continue
				}
				must.Equal(t, len(got), 3, "seed", seed, "crash before", what, "records")
				must.Equal(t, got[2], text(1, 100), "seed", seed, "crash before", what)
				if torn := tail.Report().TornBytes; torn > footerLen || torn > 0 && step != 2 {
					t.Errorf("seed %d: crash before %s: %d torn bytes", seed, what, torn)
				}
				l, err := tail.Repair(nil)
				must.Do(t, err)
				must.Do(t, l.Close())
				tail, got, err = replay(small(v.Crash()), 1)
				if err != nil || len(got) != 3 || !tail.Report().Clean || tail.foot == nil {
					t.Errorf("seed %d: repaired and closed: %d records, %v", seed, len(got), err)
				}
			}
		}
	}
}

// Without room for the footer Close says so. Nothing is lost, and the next Close makes up for it.
func TestFullDiskWhileClosing(t *testing.T) {
	m := emptyMem(t)
	h := faultfs.New(m)
	l := create(t, small(h))
	appendAll(t, l, "a", "b")
	hook(h, func(op, name string) error {
		if op == "write" {
			return fault.ErrNoSpace
		}
		return nil
	})
	wantIs(t, "Close", l.Close(), fault.ErrNoSpace)
	wantIs(t, "second Close", l.Close(), fault.ErrNoSpace)
	m = m.Crash()
	l, got := open(t, small(m), 1)
	must.Equal(t, len(got), 2, "records")
	must.Do(t, l.Close())
	if tail, _, err := replay(small(m.Crash()), 1); err != nil || tail.foot == nil || tail.foot.durable != 2 {
		t.Errorf("the segment is not sealed, %v", err)
	}
}

// Sessions of one record each share a segment; a power cut while the frame that takes the footer's
// place is on its way to the disk leaves all records of the sessions before.
func TestShortSessionsShareASegment(t *testing.T) {
	const sessions = 40
	m := emptyMem(t)
	o := Options{FS: m, Dir: testDir, Instance: exampleInstance}
	must.Do(t, create(t, o).Close())
	for i := range sessions {
		l, got := open(t, o, 1)
		must.Equal(t, len(got), i, "session", i, "records")
		lsn := must.Get(l.Append([]byte(text(i, 50))))(t)
		for seed := range int64(8) {
			after := torn(t, rand.New(rand.NewSource(seed)), m)
			cut := o
			cut.FS = after
			_, got, err := replay(cut, 1)
			if err != nil || len(got) < i || len(got) > i+1 {
				t.Fatalf("session %d, cut %d: %d records, %v", i, seed, len(got), err)
			}
		}
		must.Do(t, l.Sync(lsn))
		must.Do(t, l.Close())
	}
	names := must.Get(m.List(testDir))(t)
	must.Equal(t, len(names), 1, sessions, "sessions left", names)
}
