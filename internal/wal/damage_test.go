package wal

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/vfs"
	"github.com/oribi-db/oribi/vfs/faultfs"
)

// damageLog returns a log of two segments: LSNs 1 to 4 in the first, 5 to 10 in the second; 3 and 8
// have several frames. Nothing is synced after 7, which the frames from 9 on record. It is in the
// state after a kill.
func damageLog(t testing.TB) (m *vfs.Mem, payloads []string) {
	t.Helper()
	m = emptyMem(t)
	l := create(t, small(m))
	l.o.SegmentBytes = 1 << 20
	for i, n := range []int{5, 0, 150, 40, 64, 9, 33, 130, 1, 24} {
		payloads = append(payloads, text(i, n))
		if i == 4 {
			appendToNext(t, l, payloads[i])
		} else {
			appendAll(t, l, payloads[i])
		}
		if i == 6 {
			must.Do(t, l.Sync(7))
		}
	}
	return m.Clone(), payloads
}

// appendToNext appends to a new segment.
func appendToNext(t testing.TB, l *Log, payload string) {
	t.Helper()
	size := l.o.SegmentBytes
	l.o.SegmentBytes = 1
	appendAll(t, l, payload)
	l.o.SegmentBytes = size
}

// recordRange is the location of a record, and the LSN that its first frame records as durable.
type recordRange struct {
	from, to int64
	durable  lsn.LSN
}

// recordRanges walks an undamaged segment.
func recordRanges(t testing.TB, v vfs.FS, number uint64) map[lsn.LSN]recordRange {
	t.Helper()
	o := small(v)
	segs := must.Get(survey(&o))(t)
	r := must.Get(openReader(&o, &segs[number-1]))(t)
	defer r.close()
	out := map[lsn.LSN]recordRange{}
	for {
		from := r.at.off
		lsn, _, err := r.next()
		if err != nil {
			return out
		}
		b, err := r.read(from, frameLen)
		must.Do(t, err)
		f, _ := parseFrame(b, number, r.seed)
		out[lsn] = recordRange{from, r.at.off, f.durable}
	}
}

// checkPrefix replays v, which must contain exactly the payloads up to last, and appends to it.
func checkPrefix(t *testing.T, what string, v *vfs.Mem, payloads []string, last int) {
	t.Helper()
	_, got, err := replay(small(v), 1)
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	if len(got) != last {
		t.Errorf("%s: %d records, want %d", what, len(got), last)
		return
	}
	for lsn, p := range got {
		must.Equal(t, p, payloads[lsn-1], what, "LSN", lsn, "has another payload")
	}
	if f := verify(t, small(v), 1); f != nil {
		t.Errorf("%s: Verify finds %q", what, f)
	}
	l, _ := open(t, small(v), 1)
	appendAll(t, l, "next")
	must.Do(t, l.Close())
	if _, got, err := replay(small(v.Crash()), 1); err != nil || len(got) != last+1 || got[lsn.LSN(last+1)] != "next" {
		t.Errorf("%s: after repair %d records, %v", what, len(got), err)
	}
}

// checkRepaired replays v, which has one flipped bit: all records are present, and a writer leaves
// the files as they were. Verify reports the bit if only damage can cause it.
func checkRepaired(t *testing.T, what string, v *vfs.Mem, proven bool, payloads []string, before map[string]string) {
	t.Helper()
	tail, got, err := replay(small(v), 1)
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	if r := tail.Report(); r.RepairedBits != 1 || r.TornBytes != 0 || len(got) != len(payloads) {
		t.Errorf("%s: %d records of %d, report %+v", what, len(got), len(payloads), r)
	}
	for lsn, p := range got {
		must.Equal(t, p, payloads[lsn-1], what, "LSN", lsn, "has another payload")
	}
	if f := verify(t, small(v), 1); (len(f) == 1) != proven {
		t.Errorf("%s: Verify finds %q", what, f)
	}
	l, err := tail.Repair(nil)
	must.Do(t, err)
	l.Poison(errors.New("nothing more is written"))
	l.Close()
	checkSame(t, what+", repaired", snapshot(t, v), before)
	checkSame(t, what+", repaired and cut off from power", snapshot(t, v.Crash()), before)
}

func checkRefused(t *testing.T, what string, v vfs.FS, logStart lsn.LSN) {
	t.Helper()
	_, _, err := replay(small(v), logStart)
	must.Fail(t, err, fault.ErrCorrupt, what)
	if f := verify(t, small(v), logStart); f == nil {
		t.Errorf("%s: Verify finds nothing", what)
	}
}

func TestLogCutAtAnyLength(t *testing.T) {
	m, payloads := damageLog(t)
	for number := uint64(1); number <= 2; number++ {
		content := readFile(t, m, segmentPath(number))
		at := recordRanges(t, m, number)
		for n := range content {
			what := fmt.Sprintf("segment %d cut to %d of %d bytes", number, n, len(content))
			v := m.Clone()
			writeFile(t, v, segmentPath(number), content[:n])
			if number == 1 {
				checkRefused(t, what, v, 1)
				continue
			}
			last := 4
			for lsn, p := range at {
				if p.to <= int64(n) {
					last = max(last, int(lsn))
				}
			}
			checkPrefix(t, what, v, payloads, last)
		}
	}
}

// The effect of changing a byte of a record in a log that was not closed: a single bit is repaired.
// Otherwise, if a later frame recorded the record as durable, the log is refused; if not, the
// record and all later ones are a torn tail. Zeros that were written ahead make no difference.
func TestEveryByteFlipped(t *testing.T) {
	for _, ahead := range []int{0, 333} {
		t.Run(fmt.Sprint("ahead=", ahead), func(t *testing.T) { everyByteFlipped(t, ahead) })
	}
}

func everyByteFlipped(t *testing.T, ahead int) {
	m, payloads := damageLog(t)
	before := snapshot(t, m)
	for number := uint64(1); number <= 2; number++ {
		content := readFile(t, m, segmentPath(number))
		at := recordRanges(t, m, number)
		for off := range content {
			change := func(mask byte) (string, *vfs.Mem) {
				v := m.Clone()
				written := content
				if number == 2 {
					written = append(slices.Clip(content), make([]byte, ahead)...)
				}
				written[off] ^= mask
				writeFile(t, v, segmentPath(number), written)
				written[off] ^= mask
				return fmt.Sprintf("segment %d byte %d mask %#02x", number, off, mask), v
			}
			hit := lsn.LSN(0) // LSN of the damaged record, or 0 if the header is damaged
			for lsn, p := range at {
				if p.from <= int64(off) && int64(off) < p.to {
					hit = lsn
				}
			}
			proven := number == 1 || hit == 0
			for lsn, p := range at {
				proven = proven || lsn > hit && p.durable >= hit
			}
			what, v := change(1 << (off % 8))
			checkRepaired(t, what, v, proven, payloads, before)
			what, v = change(3 << (off % 7))
			if proven {
				checkRefused(t, what, v, 1)
			} else {
				checkPrefix(t, what, v, payloads, int(hit)-1)
			}
		}
	}
}

func TestDamageBelowLogStartDoesNotMatter(t *testing.T) {
	m, payloads := damageLog(t)
	damaged := m.Clone()
	f, err := damaged.Open(segmentPath(1), true)
	must.Do(t, err)
	_, err = f.WriteAt([]byte("junk"), 0)
	must.Do(t, err)
	must.Do(t, f.Close())
	tail, _, err := replay(small(damaged), 5)
	must.Do(t, err)
	_, err = tail.Repair(nil)
	must.Do(t, err)
	must.Refuse(t, must.Err(damaged.Crash().Stat(segmentPath(1))), "the leftover is still there after repair")
	writeFile(t, m, segmentPath(1), []byte("junk"))
	tail, got, err := replay(small(m), 5)
	must.Do(t, err)
	must.Equal(t, len(got), 6, "records")
	must.Equal(t, got[5], payloads[4])
	if r := tail.Report(); r.Leftovers != 1 || r.Records != 6 {
		t.Errorf("report %+v", r)
	}
	if f := verify(t, small(m), 5); len(f) != 1 || !strings.HasPrefix(f[0], segmentName(1)) {
		t.Errorf("Verify finds %q", f)
	}
	checkRefused(t, "needed", m, 4)
	_, err = tail.Repair(nil)
	must.Do(t, err)
	must.Do(t, must.Err(m.Crash().Stat(segmentPath(1))), "a file that is no segment of the log")
}

// manySegments returns a log of 30 LSNs, 5 in each segment.
func manySegments(t testing.TB) *vfs.Mem {
	t.Helper()
	m := emptyMem(t)
	l := create(t, small(m))
	for i := range 30 {
		if i%5 == 0 && i > 0 {
			appendToNext(t, l, text(i, 20))
		} else {
			appendAll(t, l, text(i, 20))
		}
	}
	must.Do(t, l.Close())
	return m
}

func TestGapsMatterFromLogStartOn(t *testing.T) {
	m := manySegments(t)
	for number := uint64(1); number <= 5; number++ { // without the sixth nothing proves that the fifth existed
		v := m.Clone()
		must.Do(t, v.Remove(segmentPath(number)))
		end := lsn.LSN(number * 5) // last LSN of the missing segment
		for logStart := lsn.LSN(1); logStart <= 31; logStart++ {
			what := fmt.Sprintf("segment %d is missing, log start %d", number, logStart)
			if logStart <= end {
				checkRefused(t, what, v, logStart)
				continue
			}
			_, got := must.Get2(replay(small(v), logStart))(t)
			must.Equal(t, len(got), 31-int(logStart), what, "records")
			if f := verify(t, small(v), logStart); f != nil {
				t.Errorf("%s: Verify finds %q", what, f)
			}
		}
	}
	checkRefused(t, "log ends before log start", m, 32)
	v := m.Clone()
	must.Do(t, v.Remove(segmentPath(6)))
	checkRefused(t, "newest is missing", v, 27)
}

// releaseFS removes the oldest segments before the n-th Open, like a Release concurrent with
// Verify.
type releaseFS struct {
	vfs.FS
	opens, n int
}

func (r *releaseFS) Open(name string, write bool) (vfs.File, error) {
	if r.opens++; r.opens == r.n {
		for number := uint64(1); number <= 3; number++ {
			if err := r.FS.Remove(segmentPath(number)); err != nil {
				return nil, err
			}
		}
	}
	return r.FS.Open(name, write)
}

func TestVerifyDuringReleaseFindsNothing(t *testing.T) {
	m := manySegments(t)
	for n := 1; n <= 12; n++ { // 6 for the headers, 6 for the records
		for _, logStart := range []lsn.LSN{1, 6, 12, 16, 31} {
			if f := verify(t, small(&releaseFS{FS: m.Clone(), n: n}), logStart); f != nil {
				t.Errorf("released at open %d, log start %d: %q", n, logStart, f)
			}
		}
	}
}

func TestWrongSegmentsAreRefused(t *testing.T) {
	m := manySegments(t)
	other := emptyMem(t)
	foreign := small(other)
	foreign.Instance[0]++
	l := create(t, foreign)
	for i := range 30 {
		if i%5 == 0 && i > 0 {
			appendToNext(t, l, text(i, 20))
		} else {
			appendAll(t, l, text(i, 20))
		}
	}
	must.Do(t, l.Close())
	// Same instance, same numbers, different payloads.
	twin := emptyMem(t)
	l = create(t, small(twin))
	for i := range 30 {
		if i%5 == 0 && i > 0 {
			appendToNext(t, l, text(100+i, 20))
		} else {
			appendAll(t, l, text(100+i, 20))
		}
	}
	must.Do(t, l.Close())

	for number := uint64(1); number <= 6; number++ {
		v := m.Clone()
		writeFile(t, v, segmentPath(number), readFile(t, other, segmentPath(number)))
		checkRefused(t, fmt.Sprintf("segment %d of another store", number), v, 1)

		v = m.Clone()
		writeFile(t, v, segmentPath(number), readFile(t, twin, segmentPath(number)))
		checkRefused(t, fmt.Sprintf("segment %d of another history", number), v, 1)

		v = m.Clone()
		next := number%6 + 1
		a, b := readFile(t, m, segmentPath(number)), readFile(t, m, segmentPath(next))
		writeFile(t, v, segmentPath(number), b)
		writeFile(t, v, segmentPath(next), a)
		checkRefused(t, fmt.Sprintf("segments %d and %d swapped", number, next), v, 1)
	}

	empty := emptyMem(t)
	checkRefused(t, "no segment at all", empty, 1)
	writeFile(t, empty, segmentPath(1), []byte("half a header"))
	checkRefused(t, "an unfinished segment alone", empty, 1)
}

func TestUnfinishedNewestFileIsRemoved(t *testing.T) {
	m := manySegments(t)
	head := readFile(t, m, segmentPath(6))[:headerLen]
	sealed := m.Clone()
	must.Do(t, sealed.Remove(segmentPath(6)))
	for n := range headerLen {
		v := sealed.Clone()
		writeFile(t, v, segmentPath(6), head[:n])
		tail, got, err := replay(small(v), 1)
		must.Do(t, err)
		if r := tail.Report(); len(got) != 25 || r.Clean || r.Leftovers != 1 || r.TornBytes != 0 {
			t.Fatalf("%d bytes: %d records, report %+v", n, len(got), r)
		}
		if f := verify(t, small(v), 1); f != nil {
			t.Errorf("%d bytes: Verify finds %q", n, f)
		}
		l, err := tail.Repair(nil)
		must.Do(t, err)
		appendAll(t, l, "x")
		must.Do(t, l.Close())
		tail, got, err = replay(small(v.Crash()), 1)
		if err != nil || got[26] != "x" || !tail.Report().Clean {
			t.Fatalf("%d bytes: after repair %d records, %v", n, len(got), err)
		}
	}
	v := sealed.Clone()
	writeFile(t, v, segmentPath(6), append(make([]byte, headerLen), readFile(t, m, segmentPath(6))[headerLen:]...))
	checkRefused(t, "frames after a bad header", v, 1)
}

func TestTornTailIsKeptThenCut(t *testing.T) {
	m, payloads := damageLog(t)
	content := readFile(t, m, segmentPath(2))
	at := recordRanges(t, m, 2)
	junk := append(content[:at[8].to:at[8].to], strings.Repeat("junk", 100000)...)
	writeFile(t, m, segmentPath(2), junk)
	writeFile(t, m, testDir+"/"+tornName(2), []byte("older"))
	tail, _ := must.Get2(replay(small(m), 1))(t)
	if r := tail.Report(); r.TornBytes != 400000 || r.TornFile != segmentName(2) || r.Clean || r.Records != 8 ||
		r.Frames != 12 {
		t.Errorf("report %+v", r)
	}
	must.Do(t, must.Err(tail.Repair(nil)))
	if kept := readFile(t, m.Crash(), testDir+"/"+tornName(2)); string(kept) != strings.Repeat("junk", 100000) {
		t.Errorf("%d bytes are kept", len(kept))
	}
	checkPrefix(t, "after repair", m.Crash(), payloads, 8)
	must.Refuse(t, must.Err(tail.Repair(nil)), "a tail can be repaired twice")
}

// A value may contain a copy of the log itself.
func TestFramesInsideATornPayloadAreIgnored(t *testing.T) {
	o := small(emptyMem(t))
	o.SegmentBytes, o.FrameBytes = 1<<20, 1<<20
	l := create(t, o)
	for i := range 5 {
		appendAll(t, l, text(i, 10))
		must.Do(t, l.Sync(lsn.LSN(i+1)))
	}
	image := readFile(t, o.FS, segmentPath(1))
	appendAll(t, l, string(image[headerLen:]))
	content := readFile(t, o.FS, segmentPath(1))
	for _, off := range []int{len(image), len(content) - 1} { // its header, its end
		v := o.FS.(*vfs.Mem).Clone()
		content[off] ^= 0x11
		writeFile(t, v, segmentPath(1), content)
		content[off] ^= 0x11
		if _, got, err := replay(small(v), 1); err != nil || len(got) != 5 {
			t.Errorf("byte %d: %d records, %v", off, len(got), err)
		}
	}
}

func TestErrorOfTheCallbackEndsReplay(t *testing.T) {
	m, _ := damageLog(t)
	stop := errors.New("stop")
	calls := 0
	must.Fail(t, must.Err(Replay(small(m), 1, func(lsn.LSN, []byte) error { calls++; return stop })), stop)
	must.Equal(t, calls, 1, "calls")
}

func TestReplayWritesNothing(t *testing.T) {
	m, _ := damageLog(t)
	content := readFile(t, m, segmentPath(2))
	writeFile(t, m, segmentPath(2), append(content, 1, 2, 3))
	writeFile(t, m, segmentPath(3), []byte("oribi"))
	h := faultfs.New(m)
	hook(h, func(op, name string) error {
		t.Errorf("%s of %s", op, name)
		return nil
	})
	_, _, err := replay(small(h), 1) // segment 3 was begun, and nothing written to it, before 2 was sealed
	must.Do(t, err)
	must.Do(t, m.Remove(segmentPath(3)))
	_, _, err = replay(small(h), 6)
	must.Do(t, err)
}

// A record that did not fit on the disk is cut off again; a power cut may undo the cut, but not the
// footer written in its place.
func TestBytesAfterNewestFooterAreTornTail(t *testing.T) {
	m := manySegments(t)
	content := append(readFile(t, m, segmentPath(5)), "rest of a record that did not fit"...)
	writeFile(t, m, segmentPath(5), content)
	checkRefused(t, "not the newest", m, 1)
	must.Do(t, m.Remove(segmentPath(6)))
	tail, got, err := replay(small(m), 1)
	must.Do(t, err)
	must.Equal(t, len(got), 25, "records")
	must.Equal(t, tail.Report().TornBytes, footerLen+33)
	l, err := tail.Repair(nil)
	must.Do(t, err)
	appendAll(t, l, "x")
	must.Do(t, l.Close())
	if _, got, err = replay(small(m.Crash()), 1); err != nil || got[26] != "x" {
		t.Errorf("after repair %d records, %v", len(got), err)
	}
}

func TestInterruptedRepairKeepsTornTail(t *testing.T) {
	m, _ := damageLog(t)
	junk := strings.Repeat("junk", 50)
	content := readFile(t, m, segmentPath(2))
	writeFile(t, m, segmentPath(2), append(content, junk...))
	steps := 0
	for done := false; !done; steps++ {
		v := m.Clone()
		h := faultfs.New(v)
		tail, _, err := replay(small(h), 1)
		must.Do(t, err)
		left := steps
		hook(h, func(op, name string) error {
			if left--; left < 0 {
				return errCrashed
			}
			return nil
		})
		_, err = tail.Repair(nil)
		done = err == nil
		v = v.Crash()
		if strings.HasSuffix(string(readFile(t, v, segmentPath(2))), junk) {
			continue
		}
		if _, err := v.Stat(testDir + "/" + tornName(2)); err != nil {
			t.Errorf("%d operations of repair: the tail is cut and not kept: %v", steps, err)
		} else if kept := readFile(t, v, testDir+"/"+tornName(2)); string(kept) != junk {
			t.Errorf("%d operations of repair: the tail is cut, kept are %d bytes", steps, len(kept))
		}
	}
	if steps < 8 {
		t.Errorf("repair took %d operations", steps-1)
	}
}
