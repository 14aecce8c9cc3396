package wal

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/vfs"
	"github.com/oribi-db/oribi/vfs/crashfs"
	"github.com/oribi-db/oribi/vfs/faultfs"
)

var (
	noWindows   = windowRules{after: math.MaxInt64}
	soonWindows = windowRules{after: 2, frame: 200, least: 150, most: 700}
)

// mappedLog returns a log with windows on m, of twenty records.
func mappedLog(t testing.TB, m vfs.FS) *Log {
	t.Helper()
	o := small(m)
	o.windows, o.SegmentBytes = soonWindows, 1<<20
	l := create(t, o)
	for i := range 20 {
		appendAll(t, l, text(i, 10+5*i))
	}
	if _, spare := l.Spare(); spare == 0 || l.mapped.window == nil {
		t.Fatalf("%d zeros are in the window", spare)
	}
	return l
}

// A log with windows has the same bytes, once it is closed, as one without, whatever is appended
// and synced in between.
func TestCopiedFramesAreThoseThatAreWritten(t *testing.T) {
	closed := func(rules windowRules) (segments map[string]string, disk *faultfs.FS) {
		disk = faultfs.New(emptyMem(t))
		o := small(disk)
		o.windows, o.ahead, o.FrameBytes = rules, soonAhead, 300
		l := create(t, o)
		for i := range 120 {
			write := l.Append
			if i%7 == 6 {
				write = l.AppendLater
			}
			lsn := must.Get(write([]byte(text(i, i*i%400))))(t)
			if i%10 == 9 {
				must.Do(t, l.Sync(lsn))
			}
		}
		must.Do(t, l.Close())
		return snapshot(t, disk.Base().(*vfs.Mem)), disk
	}
	want, without := closed(noWindows)
	got, with := closed(soonWindows)
	must.Equal(t, got, want, "the segments differ")
	if n, all := with.Count(faultfs.Copy), without.Count(faultfs.Write); without.Count(faultfs.Map) > 0 ||
		n < 30 || with.Count(faultfs.Map) > n || with.Count(faultfs.Write)+n > all+50 {
		t.Errorf("%d copies, %d writes; %d without windows", n, with.Count(faultfs.Write), all)
	}
}

// The window of a killed writer reads as the end of the log; Repair cuts it off.
func TestRepairCutsWindowOfKilledWriter(t *testing.T) {
	m := emptyMem(t)
	l := mappedLog(t, m)
	_, spare := l.Spare()
	v := m.Clone()
	tail, got := must.Get2(replay(small(v), 1))(t)
	if r := tail.Report(); len(got) != 20 || r.TornBytes != 0 || r.SpareBytes != spare || r.Clean ||
		r.Bytes != l.Bytes() {
		t.Errorf("%d records, report %+v, %d bytes spare", len(got), r, spare)
	}
	must.Do(t, must.Err(tail.Repair(nil)))
	must.Equal(t, int64(len(readFile(t, v.Crash(), segmentPath(1)))), l.Bytes(), "bytes after repair")
}

// A frame whose copy fails is written, and so are the next ones in the segment.
func TestFailedCopyIsWritten(t *testing.T) {
	for _, cause := range []error{faultfs.ErrIO, faultfs.ErrSpace} {
		for _, when := range []faultfs.When{faultfs.Before, faultfs.Middle, faultfs.After} {
			m := emptyMem(t)
			disk := faultfs.New(m)
			l := mappedLog(t, disk)
			must.Do(t, l.Sync(20))
			failed := disk.Fail(faultfs.Rule{Ops: []faultfs.Op{faultfs.Copy}, Err: cause, When: when,
				Times: faultfs.Forever})
			for i := range 10 {
				appendAll(t, l, text(20+i, 30))
			}
			must.Equal(t, failed.Failures(), 1, "copies failed")
			killed := m.Clone()
			must.Do(t, l.Close())
			for _, left := range []*vfs.Mem{killed, m.Crash()} {
				tail, got := must.Get2(replay(small(left), 1))(t)
				must.Equal(t, len(got), 30, when, "records")
				must.Equal(t, tail.Report().TornBytes, 0, when)
			}
		}
	}
}

// If the disk has no space for the write either, the record is undone, and may be appended again.
func TestCopyOnFullDiskIsUndone(t *testing.T) {
	for _, when := range []faultfs.When{faultfs.Before, faultfs.Middle, faultfs.After} {
		m := emptyMem(t)
		disk := faultfs.New(m)
		l := mappedLog(t, disk)
		bytes := l.Bytes()
		failed := disk.Fail(faultfs.Rule{Ops: []faultfs.Op{faultfs.Copy, faultfs.Write}, Err: faultfs.ErrSpace,
			When: when, Times: 3})
		for range 2 {
			_, err := l.Append([]byte("x"))
			wantIs(t, "Append", err, fault.ErrNoSpace)
			must.Do(t, l.Poisoned())
			must.Equal(t, int64(len(readFile(t, m, segmentPath(1)))), bytes, when, "bytes of the file")
			must.Equal(t, l.Bytes(), bytes, when)
		}
		must.Equal(t, failed.Failures(), 3, "calls failed")
		appendAll(t, l, "y")
		must.Do(t, l.Close())
		if _, got, err := replay(small(m.Crash()), 1); err != nil || len(got) != 21 || got[21] != "y" {
			t.Errorf("%v: %d records, %v", when, len(got), err)
		}
	}
}

// A write that fails after a failed copy poisons the log.
func TestFailedWriteAfterFailedCopyPoisons(t *testing.T) {
	m := emptyMem(t)
	disk := faultfs.New(m)
	l := mappedLog(t, disk)
	must.Do(t, l.Sync(20))
	disk.Fail(faultfs.Rule{Ops: []faultfs.Op{faultfs.Copy, faultfs.Write}, When: faultfs.Middle, Times: 2})
	_, err := l.Append([]byte("x"))
	wantIs(t, "Append", err, fault.ErrPoisoned)
	wantIs(t, "Close", l.Close(), fault.ErrPoisoned)
	if _, got, err := replay(small(m), 1); err != nil || len(got) != 20 {
		t.Errorf("%d records, %v", len(got), err)
	}
}

// Without room for a window, records are written as usual, and no zeros remain.
func TestFullDiskPreventsWindows(t *testing.T) {
	for _, when := range []faultfs.When{faultfs.Before, faultfs.Middle, faultfs.After} {
		m := emptyMem(t)
		disk := faultfs.New(m)
		zeros := func(c faultfs.Call) bool { return c.Len == soonWindows.least }
		failed := disk.Fail(faultfs.Rule{Ops: []faultfs.Op{faultfs.Write}, Match: zeros, Err: faultfs.ErrSpace,
			When: when, Times: faultfs.Forever})
		o := small(disk)
		o.windows, o.SegmentBytes = soonWindows, 1<<20
		l := create(t, o)
		for i := range 20 {
			appendAll(t, l, text(i, 20))
			if _, spare := l.Spare(); spare != 0 || int64(len(readFile(t, m, segmentPath(1)))) != l.Bytes() {
				t.Fatalf("record %d: %d bytes spare, the file has %d", i, spare, len(readFile(t, m, segmentPath(1))))
			}
		}
		must.Equal(t, failed.Failures(), 1, "tries in a segment")
		must.Do(t, l.Close())
		if _, got, err := replay(small(m.Crash()), 1); err != nil || len(got) != 20 {
			t.Errorf("%d records, %v", len(got), err)
		}
	}
}

// If a window cannot be mapped, records are written over its zeros. On a file system without
// windows, no zeros are written before the records.
func TestRecordsAreWrittenWithoutWindows(t *testing.T) {
	for _, fails := range []bool{false, true} {
		m := emptyMem(t)
		disk := faultfs.New(m)
		failed := disk.Fail(faultfs.Rule{Ops: []faultfs.Op{faultfs.Map}, Times: faultfs.Forever})
		o := small(disk)
		if !fails {
			o.FS = &rangeFS{FS: disk}
		}
		o.windows, o.SegmentBytes = soonWindows, 1<<20
		l := create(t, o)
		for i := range 20 {
			appendAll(t, l, text(i, 20))
		}
		if _, spare := l.Spare(); failed.Failures() > 1 || fails != (failed.Failures() == 1) || spare > 0 && !fails {
			t.Errorf("%d windows failed, %d zeros", failed.Failures(), spare)
		}
		must.Do(t, l.Close())
		if _, got, err := replay(small(m.Crash()), 1); err != nil || len(got) != 20 {
			t.Errorf("%d records, %v", len(got), err)
		}
	}
}

// A segment that has been cut off poisons the log. The page that is missing is an error of Append, not
// the end of the process, and the record is not written after a gap.
func TestLostPageOfWindowPoisons(t *testing.T) {
	dir := t.TempDir()
	l := create(t, Options{FS: vfs.OS, Dir: dir,
		windows: windowRules{after: 1, frame: 2 << 10, least: 1 << 20, most: 1 << 20}})
	for i := range 10 {
		appendAll(t, l, text(i, 1000))
	}
	if l.mapped.window == nil {
		t.Skip("the file system has no windows")
	}
	must.Do(t, l.Sync(10))
	must.Do(t, os.Truncate(filepath.Join(dir, segmentName(1)), headerLen))
	_, err := l.Append([]byte(text(10, 1000)))
	wantIs(t, "Append", err, fault.ErrPoisoned)
	wantIs(t, "Close", l.Close(), fault.ErrPoisoned)
	if info, err := os.Stat(filepath.Join(dir, segmentName(1))); err != nil || info.Size() != headerLen {
		t.Errorf("the file was written afterwards: %v, %v", info, err)
	}
}

// pageHistory is a log on a crashable disk, whose unsynced frames are in a window.
type pageHistory struct {
	disk     *crashfs.FS
	log      *Log
	payloads []string
}

func pageOptions(v vfs.FS) Options {
	return Options{FS: v, Dir: testDir, Instance: exampleInstance,
		windows: windowRules{frame: 4 << 10, least: 16 << 10, most: 16 << 10}}
}

func (h *pageHistory) append(t *testing.T, prefix string, sizes ...int) {
	t.Helper()
	for _, n := range sizes {
		p := prefix + text(len(h.payloads), n-len(prefix))
		appendAll(t, h.log, p)
		h.payloads = append(h.payloads, p)
	}
}

// reopen opens the log after a power cut. The log must contain a prefix of the records, at least n.
func (h *pageHistory) reopen(t *testing.T, what string, m *vfs.Mem, n int) *pageHistory {
	t.Helper()
	next := &pageHistory{disk: crashfs.New(m)}
	tail, got, err := replay(pageOptions(next.disk), 1)
	if err != nil || len(got) < n || len(got) > len(h.payloads) {
		t.Fatalf("%s: %d records, want %d to %d: %v", what, len(got), n, len(h.payloads), err)
	}
	for i := range len(got) {
		must.Equal(t, got[lsn.LSN(i+1)], h.payloads[i], what, "LSN", i+1, "is not the record that was acknowledged")
	}
	next.log, err = tail.Repair(nil)
	must.Do(t, err, what)
	next.payloads = h.payloads[:len(got):len(got)]
	return next
}

// eachPages calls fn with each state in which every page of the window is as after any number of
// its copies, and returns how many there are.
func (h *pageHistory) eachPages(fn func(what string, m *vfs.Mem)) (states int) {
	point := h.disk.Point()
	var most []int
	point.Pages(func(_ int64, n int) int {
		most = append(most, n)
		return n
	})
	counts := make([]int, len(most))
	for {
		i := -1
		m := point.Pages(func(int64, int) int {
			i++
			return counts[i]
		})
		states++
		fn(fmt.Sprintf("copies of pages %v of %v", counts, most), m)
		for i = 0; i < len(counts) && counts[i] == most[i]; i++ {
			counts[i] = 0
		}
		if i == len(counts) {
			return states
		}
		counts[i]++
	}
}

// After a power cut each page of the window is as it was at any time since the last sync: frames
// are missing before others that are there. Replay finds a prefix with all synced records. Records
// of the same length and LSN then take the place of those that were lost, and a second power cut
// must not bring any of the lost ones back after them.
func TestPowerCutLeavesPagesOfAWindowInAnyOrder(t *testing.T) {
	first := &pageHistory{disk: crashfs.New(emptyMem(t))}
	first.log = create(t, pageOptions(first.disk))
	first.append(t, "a", 500, 700)
	must.Do(t, first.log.Sync(2))
	sizes := []int{1400, 1300, 1200, 1800, 900, 1700}
	first.append(t, "b", sizes...)
	seconds, shorter := 0, 0
	firsts := first.eachPages(func(what string, m *vfs.Mem) {
		second := first.reopen(t, what, m, 2)
		had := len(second.payloads)
		if had < len(first.payloads) {
			shorter++
		}
		if had > 6 { // too few records are lost to come back
			return
		}
		second.append(t, "c", sizes[had-2:had]...)
		must.Do(t, second.log.Sync(lsn.LSN(had+1)))
		second.append(t, "d", sizes[had-1])
		seconds += second.eachPages(func(again string, m *vfs.Mem) {
			second.reopen(t, what+", then "+again, m, had+1)
		})
	})
	if firsts < 40 || shorter < firsts/2 || seconds < 2*shorter {
		t.Errorf("%d states, %d with lost records, %d after them", firsts, shorter, seconds)
	}
	t.Logf("%d states, %d with lost records, %d after them", firsts, shorter, seconds)
}
