package wal

import (
	"bytes"
	"fmt"
	"math/rand"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/vfs"
	"github.com/oribi-db/oribi/vfs/faultfs"
)

// soonAhead makes a small log write ahead after two syncs.
var soonAhead = aheadRules{syncs: 2, least: 200, most: 500, serve: 1}

// aheadLog returns a log on m of ten synced records with zeros written ahead.
func aheadLog(t testing.TB, m vfs.FS) (*Log, []string) {
	t.Helper()
	o := small(m)
	o.ahead, o.SegmentBytes = soonAhead, 1<<20
	l := create(t, o)
	var payloads []string
	for i := range 10 {
		payloads = append(payloads, text(i, 10+5*i))
		appendAll(t, l, payloads[i])
		must.Do(t, l.Sync(lsn.LSN(i+1)))
	}
	if _, spare := l.Spare(); spare < 100 {
		t.Fatalf("%d bytes are written ahead", spare)
	}
	return l, payloads
}

func TestZerosAreWrittenAheadOnlyWhereWorthwhile(t *testing.T) {
	const kib = 1 << 10
	r := &defaultAhead
	for _, c := range []struct{ syncs, bytes, want int64 }{
		{0, 500 * kib, 0},           // no caller waits for syncs
		{7, 7 * 200, 0},             // a store of a few records
		{8, 8 * 200, 64 * kib},      // small records: the minimum
		{300, 64 * kib, 128 * kib},  // used up: twice as many
		{5000, 1024 * kib, 1 << 20}, // the maximum
		{16, 16 * 4 * kib, 128 * kib},
		{64, 64 * 64 * kib, 1 << 20}, // 16 syncs more
		{64, 64 * 65 * kib, 0},       // too large: each byte is written twice for few syncs
	} {
		must.Equal(t, r.length(c.syncs, c.bytes), c.want, c.syncs, "syncs for", c.bytes, "bytes: zeros")
	}
}

func TestSyncedRecordsAreWrittenOverZeros(t *testing.T) {
	m := emptyMem(t)
	h := faultfs.New(m)
	l, _ := aheadLog(t, h)
	name, spare := l.Spare()
	size := int64(len(readFile(t, m, segmentPath(1))))
	if name != segmentName(1) || size != l.Bytes()+spare {
		t.Errorf("%s has %d bytes, %d of records, %d ahead", name, size, l.Bytes(), spare)
	}
	writes := 0
	hook(h, func(op, _ string) error {
		if op == "write" {
			writes++
		}
		return nil
	})
	grown := 0
	for i := range 100 {
		appendAll(t, l, text(i, 20))
		must.Do(t, l.Sync(l.Next()-1))
		if n := int64(len(readFile(t, m, segmentPath(1)))); n > size {
			size, grown = n, grown+1
		}
	}
	if grown == 0 || grown > 30 || writes < 100+grown || writes > 100+2*grown { // zeros are written page by page
		t.Errorf("100 records: the file grew %d times, %d writes", grown, writes)
	}
	must.Do(t, l.Close())
	content := readFile(t, m.Crash(), segmentPath(1))
	if _, spare := l.Spare(); int64(len(content)) != l.Bytes() || spare != 0 {
		t.Errorf("closed: the file has %d bytes, %d of records, %d ahead", len(content), l.Bytes(), spare)
	}
	if tail, got, err := replay(small(m), 1); err != nil || len(got) != 110 || !tail.Report().Clean {
		t.Errorf("closed: %d records, %v", len(got), err)
	}
}

func TestNoZerosAheadWithoutSyncs(t *testing.T) {
	m := emptyMem(t)
	o := small(m)
	o.ahead, o.SegmentBytes = soonAhead, 1<<20
	l := create(t, o)
	for i := range 200 {
		appendAll(t, l, text(i, 100))
		if _, spare := l.Spare(); spare > 0 {
			t.Fatalf("record %d: %d bytes ahead", i, spare)
		}
		if i%50 == 0 {
			must.Do(t, l.Sync(lsn.LSN(i+1)))
		}
	}
}

// Zeros that a killed writer had written ahead are not a torn tail; a writer removes them.
func TestRepairCutsZerosOfKilledWriter(t *testing.T) {
	m := emptyMem(t)
	l, payloads := aheadLog(t, m)
	_, spare := l.Spare()
	v := m.Clone()
	tail, got := must.Get2(replay(small(v), 1))(t)
	r := tail.Report()
	if name, bytes := tail.Spare(); len(got) != 10 || r.TornBytes != 0 || r.SpareBytes != spare || r.Clean ||
		r.Bytes != l.Bytes() ||
		name != segmentName(1) || bytes != spare {
		t.Errorf("%d records, report %+v, %d bytes of %s ahead", len(got), r, bytes, name)
	}
	next := must.Get(tail.Repair(nil))(t)
	if n := int64(len(readFile(t, v.Crash(), segmentPath(1)))); n != l.Bytes() || next.Bytes() != n {
		t.Errorf("%d bytes after repair, want %d", n, l.Bytes())
	}
	must.Refuse(t, must.Err(v.Stat(filepath.Join(testDir, tornName(1)))), "zeros are kept as a torn tail")
	checkPrefix(t, "repaired", v.Crash(), payloads, 10)
}

// After a power cut, any part of a record in flight may be present, over the zeros. All of it is
// kept, and no zero after it.
func TestTornTailEndsBeforeTheZeros(t *testing.T) {
	m := emptyMem(t)
	l, payloads := aheadLog(t, m)
	end := l.at.off
	for n := int64(1); n <= 60; n++ {
		v := m.Clone()
		content := readFile(t, v, segmentPath(1))
		copy(content[end:end+n], bytes.Repeat([]byte{0, 7}, 30))
		writeFile(t, v, segmentPath(1), content)
		tail, _ := must.Get2(replay(small(v), 1))(t)
		want := n / 2 * 2
		if r := tail.Report(); r.TornBytes != want || want > 0 && r.TornFile != segmentName(1) ||
			r.SpareBytes != int64(len(content))-end-want {
			t.Errorf("%d bytes of a frame: report %+v", n, r)
		}
		checkPrefix(t, fmt.Sprintf("%d bytes of a frame", n), v, payloads, 10)
		if want == 0 {
			continue
		}
		must.Equal(t, readFile(t, v, filepath.Join(testDir, tornName(1))), content[end:end+want],
			n, "bytes of a frame are kept")
	}
}

// Bytes of the newest segment that did not reach the disk read as the zeros that were there before,
// from any byte on.
func TestLogZeroedFromAnyByte(t *testing.T) {
	m, payloads := damageLog(t)
	content := readFile(t, m, segmentPath(2))
	at := recordRanges(t, m, 2)
	for n := headerLen; n <= len(content); n++ {
		v := m.Clone()
		writeFile(t, v, segmentPath(2), append(bytes.Clone(content[:n]), make([]byte, len(content)-n+300)...))
		last := 4
		for lsn, p := range at {
			whole := p.to <= int64(n) || p.from < int64(n) && len(bytes.TrimRight(content[n:p.to], "\x00")) == 0
			if whole {
				last = max(last, int(lsn))
			}
		}
		// A single missing bit is repaired, whatever its cause.
		if p, ok := at[lsn.LSN(last+1)]; ok && p.from < int64(n) && ones(content[n:p.to]) == 1 {
			last++
		}
		checkPrefix(t, fmt.Sprintf("zeros from byte %d on", n), v, payloads, last)
	}
}

func ones(b []byte) (n int) {
	for _, c := range b {
		for ; c != 0; c &= c - 1 {
			n++
		}
	}
	return n
}

// A changed byte in the zeros of a killed writer costs no record, wherever it is, and Verify does
// not report it, since a crash may cause it.
func TestChangedZerosAfterAKilledLogAreIgnored(t *testing.T) {
	m := emptyMem(t)
	l, payloads := aheadLog(t, m)
	content := readFile(t, m, segmentPath(1))
	for off := l.at.off; off < int64(len(content)); off++ {
		for _, mask := range []byte{1 << (off % 8), 0xff} {
			v := m.Clone()
			content[off] ^= mask
			writeFile(t, v, segmentPath(1), content)
			content[off] ^= mask
			checkPrefix(t, fmt.Sprintf("byte %d mask %#02x", off, mask), v, payloads, 10)
		}
	}
}

// Seal removes the zeros; a power cut may undo only the removal. The newest segment still counts as
// sealed; no crash leaves zeros in another one.
func TestZerosAfterFooter(t *testing.T) {
	m := manySegments(t)
	for _, number := range []uint64{3, 6} {
		v := m.Clone()
		whole := readFile(t, v, segmentPath(number))
		writeFile(t, v, segmentPath(number), append(bytes.Clone(whole), make([]byte, 333)...))
		if number == 3 {
			checkRefused(t, "zeros after the footer of segment 3", v, 1)
			continue
		}
		tail, got := must.Get2(replay(small(v), 1))(t)
		if r := tail.Report(); len(got) != 30 || tail.foot == nil || r.TornBytes != 0 || r.SpareBytes != 333 ||
			r.Clean {
			t.Errorf("%d records, report %+v", len(got), r)
		}
		if f := verify(t, small(v), 1); f != nil {
			t.Errorf("Verify finds %q", f)
		}
		l := must.Get(tail.Repair(nil))(t)
		must.Do(t, l.Close())
		must.Equal(t, readFile(t, v.Crash(), segmentPath(number)), whole, "bytes after repair", len(whole))
	}
}

// If there is no space for zeros, records are appended as usual, and no partly written zeros are
// left.
func TestFullDiskPreventsWritingAhead(t *testing.T) {
	m := emptyMem(t)
	h := faultfs.New(m)
	o := small(h)
	o.ahead, o.SegmentBytes = soonAhead, 1<<20
	l := create(t, o)
	writes := 0
	hook(h, func(op, _ string) error {
		if op == "write" {
			if writes++; writes == 3 { // zeros, after two syncs
				return fmt.Errorf("test: %w", fault.ErrNoSpace)
			}
		}
		return nil
	})
	for i := range 20 {
		appendAll(t, l, text(i, 20))
		if _, spare := l.Spare(); spare != 0 || int64(len(readFile(t, m, segmentPath(1)))) != l.Bytes() {
			t.Fatalf("record %d: %d bytes ahead, the file has %d", i, spare, len(readFile(t, m, segmentPath(1))))
		}
		must.Do(t, l.Sync(lsn.LSN(i+1)))
	}
	must.Equal(t, writes, 21, "writes for 20 records: not tried, or more than once in a segment")
	must.Do(t, l.Close())
	if _, got, err := replay(small(m.Crash()), 1); err != nil || len(got) != 20 {
		t.Errorf("%d records, %v", len(got), err)
	}
}

func TestFailedWriteAheadPoisons(t *testing.T) {
	h := faultfs.New(emptyMem(t))
	l, _ := aheadLog(t, h)
	hook(h, func(op, _ string) error {
		if op == "truncate" {
			return syscall.EIO
		}
		return nil
	})
	wantIs(t, "Close", l.Close(), fault.ErrPoisoned)

	h = faultfs.New(emptyMem(t))
	l, _ = aheadLog(t, h)
	hook(h, func(op, _ string) error {
		if op == "write" {
			return syscall.EIO
		}
		return nil
	})
	l.ahead.end.Store(l.at.off)
	must.Do(t, l.Sync(10))
	l.ahead.syncs -= 5
	_, err := l.Append(nil)
	wantIs(t, "Append", err, fault.ErrPoisoned)
}

// beforeRead calls do before the n-th read of a file.
type beforeRead struct {
	vfs.FS
	n  int
	do func()
}

func (b *beforeRead) Open(name string, write bool) (vfs.File, error) {
	f, err := b.FS.Open(name, write)
	return &beforeReadFile{f, b}, err
}

type beforeReadFile struct {
	vfs.File
	b *beforeRead
}

func (f *beforeReadFile) ReadAt(p []byte, off int64) (int, error) {
	if f.b.n--; f.b.n == 0 {
		f.b.do()
	}
	return f.File.ReadAt(p, off)
}

// Concurrent writes of a Log after the end that Verify has seen are not damage: records over zeros,
// and a seal that removes the zeros.
func TestVerifyDuringAppendsFindsNothing(t *testing.T) {
	for _, doing := range []string{"append", "close", "append and close"} {
		for n := 1; n <= 6; n++ {
			m := emptyMem(t)
			o := Options{FS: m, Dir: testDir, Instance: exampleInstance,
				ahead: aheadRules{syncs: 2, least: 3 * windowBytes, most: 3 * windowBytes, serve: 1}}
			l := create(t, o)
			write := func(records, size int) {
				for i := range records {
					appendAll(t, l, text(i, size))
					must.Do(t, l.Sync(l.Next()-1))
				}
			}
			write(5, 20)
			o.FS = &beforeRead{m, n, func() {
				if doing != "close" {
					write(5, windowBytes/3)
				}
				if doing != "append" {
					must.Do(t, l.Close())
				}
			}}
			if f := verify(t, o, 1); f != nil {
				t.Errorf("%s before read %d: Verify finds %q", doing, n, f)
			}
		}
	}
}

// Close and Roll remove the zeros after the footer. Whatever part of the footer and the removal a
// crash leaves, all synced records are present, at most a footer is torn, and the log continues.
func TestCrashWhileZerosAreCutOff(t *testing.T) {
	for name, do := range map[string]func(l *Log) error{"close": (*Log).Close, "roll": (*Log).Roll} {
		for step := 0; ; step++ {
			done := false
			for seed := range int64(30) {
				rng := rand.New(rand.NewSource(seed))
				m := emptyMem(t)
				h := faultfs.New(m)
				l, payloads := aheadLog(t, h)
				var left []*vfs.Mem
				crash := func() { left = []*vfs.Mem{m.Clone(), m.Crash(), torn(t, rng, m)} }
				hook(h, crashAt(step, crash))
				if err := do(l); err == nil {
					done = true
					crash()
				}
				for _, v := range left {
					tail, _ := must.Get2(replay(small(v), 1))(t)
					if r := tail.Report(); r.TornBytes > footerLen || done && r.TornBytes+r.SpareBytes > 0 {
						t.Errorf("%s, crash at operation %d, seed %d: report %+v", name, step, seed, r)
					}
					checkPrefix(t, fmt.Sprintf("%s, crash at operation %d, seed %d", name, step, seed), v, payloads, 10)
				}
			}
			if done {
				if step < 3 {
					t.Errorf("%s has %d operations, want a write, a cut, a sync at least", name, step)
				}
				break
			}
		}
	}
}

// Syncs of many bytes write zeros after the records, while others are appended. No record is
// overwritten, and records appended during a sync do not make the file longer.
func TestSyncsWriteZerosDuringAppends(t *testing.T) {
	m := emptyMem(t)
	o := Options{FS: m, Dir: testDir, Instance: exampleInstance, SegmentBytes: 40_000,
		ahead: aheadRules{syncs: 1 << 40, least: 3000, most: 9000, serve: 1, large: 1000}, windows: soonWindows}
	l := create(t, o)
	appendAll(t, l, text(0, 2000))
	must.Do(t, l.Sync(1))
	if _, spare := l.Spare(); spare < 3000 {
		t.Errorf("%d zeros after a sync of 2,000 bytes, want 3,000 at least", spare)
	}
	var syncing sync.WaitGroup
	over := make(chan struct{})
	syncing.Go(func() {
		for {
			select {
			case <-over:
				return
			default:
				must.Do(t, l.Sync(l.Next()-1))
			}
		}
	})
	rng := rand.New(rand.NewSource(1))
	payloads := []string{text(0, 2000)}
	for i := range 600 {
		p := text(i, rng.Intn(1200))
		payloads = append(payloads, p)
		if i%3 == 0 {
			must.Do(t, must.Err(l.AppendLater([]byte(p))))
		} else {
			appendAll(t, l, p)
		}
	}
	close(over)
	syncing.Wait()
	must.Do(t, l.Sync(l.Next()-1))
	_, got := must.Get2(replay(small(m.Crash()), 1))(t)
	for i, p := range payloads {
		must.Equal(t, got[lsn.LSN(i+1)], p, "LSN", i+1, "other bytes than were appended")
	}
}
