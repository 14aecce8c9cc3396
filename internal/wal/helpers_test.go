package wal

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand"
	"path/filepath"
	"slices"
	"testing"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/vfs"
	"github.com/oribi-db/oribi/vfs/faultfs"
)

const testDir = "/wal"

// small returns options for a log of small segments and frames on v.
func small(v vfs.FS) Options {
	return Options{FS: v, Dir: testDir, Instance: exampleInstance, SegmentBytes: 700, FrameBytes: 64,
		windows: noWindows}
}

func wantIs(t testing.TB, what string, err, target error) {
	t.Helper()
	must.Fail(t, err, target, what)
}

// emptyMem is a file system with an empty log directory, all of it durable.
func emptyMem(t testing.TB) *vfs.Mem {
	t.Helper()
	m := vfs.NewMem()
	must.Do(t, m.Mkdir(testDir))
	must.Do(t, m.SyncDir("/"))
	return m
}

// create creates an empty log and opens it.
func create(t testing.TB, o Options) *Log {
	t.Helper()
	must.Do(t, Create(o, 1))
	l, _ := open(t, o, 1)
	return l
}

// open replays and repairs.
func open(t testing.TB, o Options, logStart lsn.LSN) (*Log, records) {
	t.Helper()
	tail, got := must.Get2(replay(o, logStart))(t)
	l := must.Get(tail.Repair(nil))(t)
	return l, got
}

// records contains payloads by LSN.
type records map[lsn.LSN]string

func replay(o Options, logStart lsn.LSN) (*Tail, records, error) {
	got := records{}
	next := max(logStart, 1)
	tail, err := Replay(o, logStart, func(lsn lsn.LSN, payload []byte) error {
		if lsn != next {
			return fmt.Errorf("test: LSN %d, want %d", lsn, next)
		}
		next++
		got[lsn] = string(payload)
		return nil
	})
	if err == nil && tail.Last() != next-1 && len(got) > 0 {
		return nil, nil, fmt.Errorf("test: last LSN is %d, Last says %d", next-1, tail.Last())
	}
	return tail, got, err
}

// verify returns the findings as lines.
func verify(t testing.TB, o Options, logStart lsn.LSN) (findings []string) {
	t.Helper()
	must.Do(t, Verify(o, logStart, func(file string, off int64, problem string) {
		findings = append(findings, fmt.Sprintf("%s: %d: %s", file, off, problem))
	}))
	return findings
}

func appendAll(t testing.TB, l *Log, payloads ...string) {
	t.Helper()
	for _, p := range payloads {
		must.Do(t, must.Err(l.Append([]byte(p))))
	}
}

// text returns a payload of n bytes that depends on serial.
func text(serial, n int) string {
	b := make([]byte, n)
	rand.New(rand.NewSource(int64(serial))).Read(b)
	return string(b)
}

func segmentPath(number uint64) string { return filepath.Join(testDir, segmentName(number)) }

func readFile(t testing.TB, v vfs.FS, name string) []byte {
	t.Helper()
	f := must.Get(v.Open(name, false))(t)
	defer f.Close()
	size := must.Get(f.Size())(t)
	return must.Get(io.ReadAll(io.NewSectionReader(f, 0, size)))(t)
}

// snapshot returns the content of all files of a log by name.
func snapshot(t testing.TB, v vfs.FS) map[string]string {
	t.Helper()
	names := must.Get(v.List(testDir))(t)
	out := map[string]string{}
	for _, n := range names {
		out[n] = string(readFile(t, v, filepath.Join(testDir, n)))
	}
	return out
}

// writeFile creates or replaces a file, durably.
func writeFile(t testing.TB, v vfs.FS, name string, content []byte) {
	t.Helper()
	f, err := v.Open(name, true)
	if err != nil {
		f, err = v.Create(name)
	}
	must.Do(t, err)
	defer f.Close()
	must.Do(t, f.Truncate(0))
	_, err = f.WriteAt(content, 0)
	must.Do(t, err)
	must.Do(t, f.Sync())
	must.Do(t, v.SyncDir(filepath.Dir(name)))
}

// hook makes fn be called before each call that changes the disk, with the last element of its
// name; nil removes it. An error from fn is returned by the call; a fault.ErrNoSpace lets a write
// do half of its work first.
func hook(disk *faultfs.FS, fn func(op, name string) error) {
	disk.Watch(func(c faultfs.Call) error {
		if fn == nil || !c.Changes() {
			return nil
		}
		err := fn(string(c.Op), filepath.Base(c.Name))
		if errors.Is(err, fault.ErrNoSpace) {
			err = faultfs.Halfway(err)
		}
		return err
	})
}

// torn returns a state that a power cut may leave between m.Crash and m.Clone. Of the names created
// since their directory was synced, none, some or all exist, and the same for removed names. Of
// each file any 64-byte sectors are as last synced, the others as last written, and the length is
// one of the two.
func torn(t testing.TB, rng *rand.Rand, m *vfs.Mem) *vfs.Mem {
	t.Helper()
	return tornNames(t, rng, m, share(rng.Intn(3)), share(rng.Intn(3)))
}

// share specifies how many of several names exist.
type share int

const (
	none share = iota
	some
	all
)

func (s share) has(rng *rand.Rand) bool { return rng.Intn(2) < int(s) }

// tornNames is torn with a given share of the names.
func tornNames(t testing.TB, rng *rand.Rand, m *vfs.Mem, made, removed share) *vfs.Mem {
	t.Helper()
	killed, cut := m.Clone(), m.Crash()
	out := emptyMem(t)
	names := map[string][2][]byte{}
	for i, v := range []*vfs.Mem{killed, cut} {
		for n, content := range snapshot(t, v) {
			both := names[n]
			both[i] = append([]byte{}, content...)
			names[n] = both
		}
	}
	for _, n := range slices.Sorted(maps.Keys(names)) { // sorted, so that a seed always gives the same state
		both := names[n]
		if both[1] == nil && !made.has(rng) || both[0] == nil && !removed.has(rng) {
			continue
		}
		if both[0] == nil { // a removed file that reappears is complete
			both[0] = both[1]
		}
		length := len(both[rng.Intn(2)])
		content := make([]byte, length)
		for off := 0; off < length; off += 64 {
			from := both[rng.Intn(2)]
			if off < len(from) {
				copy(content[off:min(off+64, length)], from[off:])
			}
		}
		writeFile(t, out, filepath.Join(testDir, n), content)
	}
	return out
}
