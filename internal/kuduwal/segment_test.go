package kuduwal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/oribi-db/oribi/internal/coding"
	"github.com/oribi-db/oribi/internal/compress"
	"github.com/oribi-db/oribi/internal/corpustest"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/kudupb"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/vfs"
)

// The examples in the comment above headMagic.
func TestBatchIsTheDocumentedExample(t *testing.T) {
	want := must.Hex(t, "04 00 00 00 04 00 00 00 9c de e1 47 fa 31 54 d1 6b 75 64 75")
	must.Equal(t, appendBatch(nil, []byte("kudu"), 4), want)
	if h, ok := parseBatchHeader(want, batchLen); !ok || h != (batchHeader{4, 4, 0x47e1de9c}) {
		t.Errorf("parsed %+v, %v", h, ok)
	}
}

func TestFooterIsTheDocumentedExample(t *testing.T) {
	got := appendFooter(t, nil, &kudupb.LogSegmentFooterPB{NumEntries: proto.Int64(2),
		MinReplicateIndex: proto.Int64(1),
		MaxReplicateIndex: proto.Int64(1), CloseTimestampMicros: proto.Int64(1700000000000000)})
	if want := must.Hex(t,
		"08 02 10 01 18 01 20 80 80 f9 c0 c1 c4 82 03 63 6c 6f 73 65 64 6c 73 0f 00 00 00"); !bytes.Equal(got, want) {
		t.Errorf("encoded % x, want % x", got, want)
	}
}

// TestDumpEqualsGoldenFile compares dumps with testdata; ORIBI_REWRITE=1 writes these anew.
func TestDumpEqualsGoldenFile(t *testing.T) {
	open := segmentOf(t, 2, compress.LZ4, replicate(1, 1), commit(1, 1))
	closed := appendFooter(t, segmentOf(t, 1, compress.None, replicate(1, 1)),
		&kudupb.LogSegmentFooterPB{NumEntries: proto.Int64(1)})
	for name, data := range map[string][]byte{
		"open": append(bytes.Clone(open), make([]byte, 50)...), "closed": closed, "cut": open[:len(open)-1],
		"short": open[:9], "empty": nil,
	} {
		var out bytes.Buffer
		must.Do(t, Dump(&out, data))
		golden := filepath.Join("testdata", name+".dump")
		if os.Getenv("ORIBI_REWRITE") != "" {
			must.Do(t, os.MkdirAll("testdata", 0o755))
			must.Do(t, os.WriteFile(golden, out.Bytes(), 0o644))
		}
		want := must.Get(os.ReadFile(golden))(t)
		must.Equal(t, out.Bytes(), want, golden)
	}
}

// An unclosed segment ends at the last entry; only bytes of an entry after that are damage. Source:
// tablet spec §18.3.
func TestEndOfSegment(t *testing.T) {
	whole := segmentOf(t, 1, compress.LZ4, replicate(1, 1), commit(1, 1), replicate(1, 2), commit(1, 2))
	last := len(segmentOf(t, 1, compress.LZ4, replicate(1, 1), commit(1, 1), replicate(1, 2)))
	third := len(segmentOf(t, 1, compress.LZ4, replicate(1, 1), commit(1, 1)))
	flip := func(at int) []byte {
		b := bytes.Clone(whole)
		b[at] ^= 1
		return b
	}
	add := func(b []byte, more ...byte) []byte { return append(bytes.Clone(b), more...) }
	hole := bytes.Clone(whole)
	clear(hole[third : third+batchLen])
	for _, c := range []struct {
		name    string
		data    []byte
		entries int
		finding string
		err     error
	}{
		{"as written", whole, 4, "", nil},
		{"zeros at the end", add(whole, make([]byte, 1<<20)...), 4, "", nil},
		{"few zeros at the end", add(whole, 0, 0), 4, "", nil},
		{"garbage at the end", add(whole, []byte("0123456789abcdef0123456789abcdef")...), 4, "not entries", nil},
		{"payload cut off", whole[:len(whole)-1], 3, "cut off", nil},
		{"header of a batch cut off", whole[:last+5], 3, "cut off", nil},
		{"cut between batches", whole[:last], 3, "", nil},
		{"payload of the last batch damaged", flip(len(whole) - 1), 3, "crc", nil},
		{"header of the last batch damaged", flip(last + 2), 3, "checksum", nil},
		{"payload in the middle damaged", flip(last - 1), 2, "", fault.ErrCorrupt},
		{"header in the middle damaged", flip(third), 2, "", fault.ErrCorrupt},
		{"zeros in the middle", hole, 2, "", fault.ErrCorrupt},
		{"zeros and a batch far after them", append(add(whole, make([]byte, 1<<20)...), whole[last:]...), 4, "",
			fault.ErrCorrupt},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := must.Get(Open(writeLog(t, c.data), segmentPath(1)))(t)
			n := 0
			for r.Next() {
				n++
			}
			must.Fail(t, r.Close(), c.err)
			var found string
			for _, f := range r.Findings() {
				found += f.String()
			}
			if n != c.entries || !strings.Contains(found, c.finding) || (found != "") != (c.finding != "") {
				t.Errorf("%d entries, want %d; finding %q, want %q", n, c.entries, found, c.finding)
			}
		})
	}
}

// In a closed segment a change of any byte is damage, except in a footer that is itself damaged.
func TestClosedSegments(t *testing.T) {
	body := segmentOf(t, 1, compress.LZ4, replicate(1, 1), commit(1, 1))
	closed := appendFooter(t, bytes.Clone(body), &kudupb.LogSegmentFooterPB{NumEntries: proto.Int64(2)})
	miscounted := appendFooter(t, bytes.Clone(body), &kudupb.LogSegmentFooterPB{NumEntries: proto.Int64(3)})
	damaged := bytes.Clone(closed)
	damaged[len(body)] ^= 0xff
	long := bytes.Clone(closed)
	binary.LittleEndian.PutUint32(long[len(long)-4:], 1<<30)
	torn := bytes.Clone(closed)
	torn[len(body)-1] ^= 1
	for _, c := range []struct {
		name     string
		data     []byte
		entries  int
		findings int
		err      error
	}{
		{"intact", closed, 2, 0, nil},
		{"footer damaged", damaged, 2, 1, nil},
		{"impossible length of the footer", long, 2, 1, nil},
		{"footer cut off", closed[:len(closed)-5], 2, 1, nil},
		{"wrong count", miscounted, 2, 1, nil},
		{"last batch damaged", torn, 1, 0, fault.ErrCorrupt},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := must.Get(Open(writeLog(t, c.data), segmentPath(1)))(t)
			n := 0
			for r.Next() {
				n++
			}
			if err := r.Close(); !errors.Is(err, c.err) || n != c.entries || len(r.Findings()) != c.findings {
				t.Errorf("%d entries, %v, error %v", n, r.Findings(), err)
			}
		})
	}
}

func TestSegmentsThatDoNotOpen(t *testing.T) {
	whole := segmentOf(t, 1, compress.LZ4, replicate(1, 1), commit(1, 1))
	features := marshal(t, &kudupb.LogSegmentHeaderPB{TabletId: []byte("t"), SequenceNumber: proto.Uint64(1),
		Schema: []byte{}, IncompatibleFeatures: proto.Uint32(2)})
	unknown := binary.LittleEndian.AppendUint32([]byte(headMagic), uint32(len(features)))
	noMagic := bytes.Clone(whole)
	clear(noMagic[:headLen])
	for _, c := range []struct {
		name string
		data []byte
		err  error
	}{
		{"empty", nil, fault.ErrCorrupt},
		{"magic cut off", whole[:5], fault.ErrCorrupt},
		{"header cut off", whole[:headLen+3], fault.ErrCorrupt},
		{"wrong magic", append([]byte("x"), whole[1:]...), fault.ErrCorrupt},
		{"malformed header", append([]byte(headMagic), 2, 0, 0, 0, 0xff, 0xff), fault.ErrCorrupt},
		{"header without fields", append([]byte(headMagic), 0, 0, 0, 0), fault.ErrCorrupt},
		{"unknown feature", append(unknown, features...), fault.ErrUnsupported},
		{"unknown codec", appendHeader(t, nil, 1, 9), fault.ErrUnsupported},
		{"zeros before entries", noMagic, fault.ErrCorrupt},
	} {
		must.Fail(t, must.Err(Open(writeLog(t, c.data), segmentPath(1))), c.err, c.name)
	}
}

// Old servers wrote headers of batches without the length of the payload.
func TestOldBatchHeaders(t *testing.T) {
	h := marshal(t, &kudupb.LogSegmentHeaderPB{DeprecatedMajorVersion: proto.Uint32(1), TabletId: []byte("t"),
		SequenceNumber: proto.Uint64(1), Schema: []byte{}})
	b := append(binary.LittleEndian.AppendUint32([]byte(headMagic), uint32(len(h))), h...)
	payload := marshal(t, &kudupb.LogEntryBatchPB{Entry: []*kudupb.LogEntryPB{replicate(1, 1)}})
	batch := appendBatch(nil, payload, len(payload))
	head := append(bytes.Clone(batch[:4]), batch[8:12]...)
	head = binary.LittleEndian.AppendUint32(head, coding.CRC32C(head))
	r := must.Get(Open(writeLog(t, append(append(b, head...), payload...)), segmentPath(1)))(t)
	if !r.Next() || r.Entry().GetReplicate().GetId().GetIndex() != 1 || r.Next() {
		t.Error("the entry was not read")
	}
	must.Do(t, r.Close())
}

// goldenCases are read by default, all with $ORIBI_FULL.
var goldenCases = []string{"special-columns", "recovery-dir"}

// goldenLogs returns the directories of logs of a case, in memory.
func goldenLogs(t testing.TB, name string) (m *vfs.Mem, dirs []string) {
	t.Helper()
	m = vfs.NewMem()
	for _, f := range corpustest.Archive(t, filepath.Join(corpustest.Dir(t), "golden", "kudu", name, "fs.tar.gz")) {
		path := filepath.Join("/", f.Name)
		switch {
		case f.Content == nil:
			must.Do(t, m.Mkdir(path))
			if filepath.Base(filepath.Dir(path)) == "wals" {
				dirs = append(dirs, path)
			}
		case strings.HasPrefix(filepath.Base(path), "wal-"):
			writeFile(t, m, path, f.Content)
		}
	}
	return m, dirs
}

// The entries of real segments are those that "kudu wal dump" prints.
func TestEntriesOfRealServers(t *testing.T) {
	cases := goldenCases
	if os.Getenv("ORIBI_FULL") != "" {
		entries := must.Get(os.ReadDir(filepath.Join(corpustest.Dir(t), "golden", "kudu")))(t)
		cases = nil
		for _, e := range entries {
			if e.IsDir() && e.Name() != "encrypted" {
				cases = append(cases, e.Name())
			}
		}
	}
	for _, name := range cases {
		t.Run(name, func(t *testing.T) {
			m, dirs := goldenLogs(t, name)
			for _, dir := range dirs {
				segments := must.Get(Segments(m, dir))(t)
				if strings.HasSuffix(filepath.Base(dir), ".recovery") {
					continue // Kudu's tool was given the other directory
				}
				for _, s := range segments {
					compareWithTool(t, m, name, dir, s)
				}
			}
		})
	}
}

func compareWithTool(t *testing.T, m *vfs.Mem, name, dir string, s Segment) {
	t.Helper()
	text := filepath.Join(corpustest.Dir(t), "golden", "kudu", name, "tools",
		"wal."+filepath.Base(dir)[:8]+"."+filepath.Base(s.Path)+".txt")
	var want []string
	for _, line := range corpustest.Lines(t, text) {
		if id, kind, ok := strings.Cut(line, "\tREPLICATE "); ok {
			id, ts, _ := strings.Cut(id, "@")
			want = append(want, "REPLICATE "+id+" at "+ts+": "+kind)
		} else if id, ok := strings.CutPrefix(line, "COMMIT "); ok {
			want = append(want, "COMMIT "+id)
		}
	}
	r := must.Get(Open(m, s.Path))(t)
	var got []string
	for r.Next() {
		line := describe(r.Entry())
		if strings.HasPrefix(line, "COMMIT") {
			line, _, _ = strings.Cut(line, ":")
		}
		got = append(got, line)
	}
	must.Do(t, r.Close())
	if len(r.Findings()) > 0 {
		t.Errorf("%s: %v", s.Path, r.Findings())
	}
	must.Equal(t, strings.Join(got, "\n"), strings.Join(want, "\n"), s.Path)
}
