package kuduwal

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/oribi-db/oribi/internal/compress"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/kudupb"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/vfs"
)

// In which order operations are applied, and with which results. "1.2?" is applied without a
// result. Source: tablet spec §18.5.
func TestReplayOrder(t *testing.T) {
	R, C := replicate, commit
	for _, c := range []struct {
		name    string
		entries []*kudupb.LogEntryPB
		applied string
		pending string
		err     error
	}{
		{"in order", []*kudupb.LogEntryPB{R(1, 1), C(1, 1), R(1, 2), C(1, 2)}, "1.1 1.2", "", nil},
		{"results out of order", []*kudupb.LogEntryPB{R(1, 1), R(1, 2), R(1, 3), C(1, 3), C(1, 2), C(1, 1)},
			"1.1 1.2 1.3", "", nil},
		{"last one without a result", []*kudupb.LogEntryPB{R(1, 1), C(1, 1), R(1, 2), R(1, 3)}, "1.1", "1.2 1.3", nil},
		{"a result after a missing one", []*kudupb.LogEntryPB{R(1, 1), R(1, 2), C(1, 2), R(1, 3)},
			"1.1? 1.2", "1.3", nil},
		{"replaced by a new leader", []*kudupb.LogEntryPB{R(1, 1), R(1, 2), R(1, 3), R(2, 2), C(1, 1), C(2, 2)},
			"1.1 2.2", "", nil},
		{"replaced by itself", []*kudupb.LogEntryPB{R(1, 1), R(1, 2), R(1, 1), R(1, 2), C(1, 1), C(1, 2)},
			"1.1 1.2", "", nil},
		{"result of an operation before the log", []*kudupb.LogEntryPB{C(1, 4), R(1, 6), C(1, 5), C(1, 6)},
			"orphan 1.4 orphan 1.5 1.6", "", nil},
		{"large index", []*kudupb.LogEntryPB{R(1, 1<<40), C(1, 1<<40)}, "1.1099511627776", "", nil},
		{"missing operation", []*kudupb.LogEntryPB{R(1, 1), R(1, 3)}, "", "", fault.ErrCorrupt},
		{"falling term", []*kudupb.LogEntryPB{R(2, 1), R(1, 2)}, "", "", fault.ErrCorrupt},
		{"result of an operation that is not there", []*kudupb.LogEntryPB{R(1, 1), C(1, 2)}, "", "", fault.ErrCorrupt},
		{"result of another term", []*kudupb.LogEntryPB{R(1, 1), C(2, 1)}, "", "", fault.ErrCorrupt},
		{"two results", []*kudupb.LogEntryPB{R(1, 1), R(1, 2), C(1, 2), C(1, 2)}, "", "", fault.ErrCorrupt},
		{"replaced with a result", []*kudupb.LogEntryPB{R(1, 1), R(1, 2), C(1, 2), R(2, 2)}, "", "", fault.ErrCorrupt},
		{"replaced after it was applied", []*kudupb.LogEntryPB{R(1, 1), C(1, 1), R(2, 1)}, "", "", fault.ErrCorrupt},
		{"impossible index", []*kudupb.LogEntryPB{R(1, 0)}, "", "", fault.ErrCorrupt},
		{"entry without a message", []*kudupb.LogEntryPB{{Type: R(1, 1).Type}}, "", "", fault.ErrCorrupt},
		{"unknown entry", []*kudupb.LogEntryPB{{Type: new(int32)}}, "", "", fault.ErrUnsupported},
	} {
		t.Run(c.name, func(t *testing.T) {
			// The second half of the entries is in another segment.
			half := len(c.entries) / 2
			calls, sum, err := replayLog(t, writeLog(t,
				segmentOf(t, 1, compress.None, c.entries[:half]...),
				segmentOf(t, 2, compress.LZ4, c.entries[half:]...)))
			if c.err != nil || err != nil {
				if !errors.Is(err, c.err) || c.err == nil {
					t.Errorf("got error %v, want %v", err, c.err)
				}
				return
			}
			var pending []string
			for _, op := range sum.Pending {
				pending = append(pending, idText(op.Msg.GetId()))
			}
			if got := strings.Join(calls, " "); got != c.applied || strings.Join(pending, " ") != c.pending {
				t.Errorf("applied %q, want %q; pending %q, want %q", got, c.applied, pending, c.pending)
			}
		})
	}
}

// What a list of files shows about lost entries.
func TestReplayFindsLostSegments(t *testing.T) {
	first := segmentOf(t, 1, compress.LZ4, replicate(1, 1), commit(1, 1))
	closed := appendFooter(t, bytes.Clone(first), &kudupb.LogSegmentFooterPB{NumEntries: proto.Int64(2)})
	second := segmentOf(t, 2, compress.LZ4, replicate(1, 2), commit(1, 2))
	third := segmentOf(t, 3, compress.LZ4)
	lost := writeLog(t, first, second, third)
	must.Do(t, lost.Remove(segmentPath(2)))
	if _, _, err := replayLog(t, lost); !errors.Is(err, fault.ErrCorrupt) ||
		!strings.Contains(err.Error(), "segment 2 is missing") {
		t.Errorf("second of three segments missing: %v", err)
	}
	must.Fail(t, must.Err2(replayLog(t, writeLog(t, first, make([]byte, 1000), third))), fault.ErrCorrupt)
	for _, c := range []struct {
		name     string
		segments [][]byte
		finding  string
	}{
		{"header only", [][]byte{first, segmentOf(t, 2, compress.LZ4)}, ""},
		{"last segment of zeros", [][]byte{first, make([]byte, 1000)}, "only zeros"},
		{"last segment missing", [][]byte{closed}, "a later one is missing"},
		{"header of another segment", [][]byte{first, third}, "segment 3"},
	} {
		_, sum := must.Get2(replayLog(t, writeLog(t, c.segments...)))(t)
		var found string
		for _, f := range sum.Findings {
			found += f.String() + "\n"
		}
		if !strings.Contains(found, c.finding) || c.finding == "" && found != "" {
			t.Errorf("%s: found %q", c.name, found)
		}
	}
}

// removingFS removes a file before it is opened.
type removingFS struct{ *vfs.Mem }

func (r removingFS) Open(name string, write bool) (vfs.File, error) {
	if name == segmentPath(2) {
		_ = r.Remove(name) // the error of Open shows whether it worked
	}
	return r.Mem.Open(name, write)
}

// A segment that a server removes during the read is missing.
func TestReplayWithoutASegmentThatWasListed(t *testing.T) {
	m := writeLog(t, segmentOf(t, 1, compress.LZ4, replicate(1, 1), commit(1, 1)), segmentOf(t, 2, compress.LZ4))
	if _, err := Replay(removingFS{m}, "/", Handler{
		Begin: func(*kudupb.LogSegmentHeaderPB) error { return nil },
		Apply: func(*Operation) error { return nil },
	}); !errors.Is(err, fault.ErrCorrupt) {
		t.Errorf("got %v", err)
	}
}

// An operation without rows takes memory, too: what Replay counts returns to zero when all are
// decided.
func TestPendingCost(t *testing.T) {
	p := player{h: Handler{Apply: func(*Operation) error { return nil }}}
	for i := range int64(3) {
		must.Do(t, p.replicate(&Operation{Msg: replicate(1, i+1).Replicate}))
	}
	if p.bytes < 3*256 {
		t.Errorf("three operations count as %d bytes", p.bytes)
	}
	must.Do(t, p.replicate(&Operation{Msg: replicate(2, 3).Replicate})) // replaces one
	for i, term := range []int64{1, 1, 2} {
		c := commit(term, int64(i+1)).Commit
		c.Result = make([]byte, 100)
		must.Do(t, p.commit(c))
	}
	must.Do(t, p.applyDecided())
	must.Equal(t, p.bytes, 0, "bytes of no operations")
}
