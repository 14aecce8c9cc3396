package wal

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/fuzztest"
	"github.com/oribi-db/oribi/internal/must"
)

// FuzzSegment makes the newest of two segments from the input. Replay opens the log or returns
// ErrCorrupt or ErrUnsupported. If it opens, Verify finds nothing but the bits that Repair repairs,
// and afterwards the same records are present and durable.
func FuzzSegment(f *testing.F) {
	m, _ := damageLog(f)
	newest := readFile(f, m, segmentPath(2))
	for _, n := range []int{0, 10, headerLen, headerLen + 30, len(newest) - 1, len(newest)} {
		f.Add(newest[:n])
	}
	f.Add(append(bytes.Clone(newest), make([]byte, 100)...))
	f.Add(append(bytes.Clone(newest[:headerLen]), make([]byte, 400)...)) // written ahead, all records lost
	hole := append(bytes.Clone(newest), make([]byte, 300)...)
	clear(hole[len(newest)/2:][:frameLen])
	f.Add(hole) // a frame lost between others, over zeros
	sealed, _ := closedLog(f)
	f.Add(append(readFile(f, sealed, segmentPath(2)), make([]byte, 200)...)) // sealed, the zeros not cut off
	fuzztest.Run(f, func(t *testing.T, data []byte) {
		v := m.Clone()
		writeFile(t, v, segmentPath(2), data)
		must.Do(t, Dump(io.Discard, data))
		tail, want, err := replay(small(v), 1)
		findings := verify(t, small(v), 1)
		if err != nil {
			if !errors.Is(err, fault.ErrCorrupt) && !errors.Is(err, fault.ErrUnsupported) {
				t.Errorf("got error %v", err)
			}
			if findings == nil {
				t.Errorf("Verify finds nothing, Replay says %v", err)
			}
			return
		}
		if repaired := tail.Report().RepairedBits; int64(len(findings)) > repaired {
			t.Errorf("Verify finds %q, Repair repaired %d bits", findings, repaired)
		}
		l, err := tail.Repair(nil)
		must.Do(t, err)
		appendAll(t, l, "next")
		must.Do(t, l.Close())
		_, got, err := replay(small(v.Crash()), 1)
		must.Do(t, err)
		must.Equal(t, len(got), len(want)+1, "records after repair and one more")
		for lsn, p := range want {
			must.Equal(t, got[lsn], p, "LSN", lsn, "differs after repair")
		}
	})
}
