package work

import (
	"context"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/bench/harness"
	"github.com/oribi-db/oribi/vfs"
)

// scanChecksums measures the share of checksums in a scan: every cblock that a scan reads from a
// file is verified. It records the ranges that the scan reads, and then computes the same checksums
// over them again without the scan.
func scanChecksums() harness.Workload {
	return harness.Workload{
		Name: "scan-checksums",
		About: "share of CRC32C in a scan of lineitem from the page cache, with an empty store cache; best of all " +
			"passes",
		Unit: "% of a scan", MemoryLimit: peakLimit, Inputs: lineitemInputs,
		Peers: []harness.Peer{{Name: "oribi", Ours: true, Prepare: prepareStore, Measure: measureChecksums}},
		Floors: []harness.Floor{{Peer: "oribi", Figure: 5},
			{Peer: "oribi", Metric: "% of a one-column scan", Figure: 5}},
	}
}

func measureChecksums(env *harness.Env) (m harness.Measurement, err error) {
	var all, one share
	_, err = env.Clock(func() error {
		for range env.Scale.Passes + 1 {
			if err := all.pass(env); err != nil {
				return err
			}
			if err := one.pass(env, oribi.Columns("l_extendedprice")); err != nil {
				return err
			}
		}
		return nil
	})
	m.Value = all.percent()
	m.Metrics = map[string]float64{"% of a one-column scan": one.percent(), "MiB read": float64(all.bytes) / (1 << 20)}
	m.Checksum = fmt.Sprintf("%d rows", all.rows)
	return m, err
}

// share divides the time of the shortest verification of all passes by the time of the shortest
// scan.
type share struct {
	scan, check time.Duration
	rows, bytes int64
}

func (s *share) percent() float64 { return 100 * s.check.Seconds() / s.scan.Seconds() }

// pass opens the store with an empty cache, scans, and verifies.
func (s *share) pass(env *harness.Env, options ...oribi.ScanOption) (err error) {
	fs := &notingFS{FS: vfs.OS}
	store, t, err := openLineitem(env.Path(storeDir), &oribi.Options{ReadOnly: true, Manual: true, FS: fs})
	if err != nil {
		return err
	}
	defer func() { err = closeAll(err, store) }()
	fs.noted = nil
	begin := time.Now()
	s.rows = 0
	for b, err := range t.Scan(context.Background(), append(options, oribi.AnyOrder())...).Batches() {
		if err != nil {
			return err
		}
		s.rows += int64(b.Selection.Count())
	}
	s.scan = shorter(s.scan, time.Since(begin))
	check, err := fs.check(&s.bytes)
	s.check = shorter(s.check, check)
	return err
}

// shorter returns the shorter of two times; 0 = none yet.
func shorter(a, b time.Duration) time.Duration {
	if a == 0 {
		return b
	}
	return min(a, b)
}

// notingFS records the reads of containers.
type notingFS struct {
	vfs.FS
	mu    sync.Mutex
	noted []noted
}

type noted struct {
	f   vfs.File
	off int64
	n   int
}

func (n *notingFS) Open(name string, write bool) (vfs.File, error) {
	f, err := n.FS.Open(name, write)
	if err != nil || !strings.HasSuffix(name, ".data") {
		return f, err
	}
	return &notingFile{f, n}, nil
}

type notingFile struct {
	vfs.File
	fs *notingFS
}

func (f *notingFile) ReadAt(b []byte, off int64) (int, error) {
	n, err := f.File.ReadAt(b, off)
	f.fs.mu.Lock()
	f.fs.noted = append(f.fs.noted, noted{f.File, off, n})
	f.fs.mu.Unlock()
	return n, err
}

// castagnoli is the polynomial of the checksums of cblocks.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// check reads the recorded ranges again. It returns the time of their checksums and their size in
// bytes.
func (n *notingFS) check(bytes *int64) (took time.Duration, err error) {
	var buf []byte
	var sum uint32
	*bytes = 0
	for _, r := range n.noted {
		buf = slices.Grow(buf[:0], r.n)[:r.n]
		if _, err := r.f.ReadAt(buf, r.off); err != nil {
			return 0, err
		}
		begin := time.Now()
		sum += crc32.Checksum(buf, castagnoli)
		took += time.Since(begin)
		*bytes += int64(r.n)
	}
	if sum == 0 && *bytes > 0 {
		return 0, fmt.Errorf("the checksums of %d bytes add up to 0", *bytes)
	}
	return took, nil
}
