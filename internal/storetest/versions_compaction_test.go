package storetest

import (
	"encoding/binary"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/zeebo/xxh3"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
)

// Every version of a real history of 10,699 commits is still readable after a full compaction and a
// reopening: the table as of a commit has the hash of a replay of the history, a sum over files
// that does not depend on their order. With -proof.for all commits are read, otherwise one in 32.
func TestEveryVersionIsReadAfterCompaction(t *testing.T) {
	commits, every := seedtest.Needed(10699, 500), 32
	if *forFlag > 0 {
		commits, every = 10699, 1
	}
	h := loadTree(t, commits)
	s := newTreeStore(t, h)
	s.write(len(h.commits)/9, oribi.NoSync)
	s.compact()
	must.Do(t, s.store.Close())
	s.open()
	defer s.store.Close()
	want := treeHashes(h)
	var next atomic.Int64
	var readers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		readers.Go(func() {
			for {
				k := len(want) - 1 - every*int(next.Add(1)-1)
				if k < 0 {
					return
				}
				got, err := s.hash(oribi.AsOf(s.ts[k]))
				if err != nil || got != want[k] {
					t.Errorf("as of commit %d: hash %x, %v; want %x", k+1, got, err, want[k])
					return
				}
			}
		})
	}
	readers.Wait()
}

// treeHashes returns the hash of the tree after each commit.
func treeHashes(h *treeHistory) []uint64 {
	var sum uint64
	tree := map[string]uint64{}
	hashes := make([]uint64, len(h.commits))
	for i, c := range h.commits {
		for _, op := range c.Ops {
			path := op[1].(string)
			sum -= tree[path]
			delete(tree, path)
			if op[0] != "D" {
				tree[path] = fileHash([]byte(path), []byte(op[2].(string)), []byte(op[3].(string)),
					int64(op[4].(float64)), c.Seq)
				sum += tree[path]
			}
		}
		hashes[i] = sum
	}
	return hashes
}

func fileHash(path, mode, blob []byte, size int64, seq int32) uint64 {
	var buf [256]byte
	b := append(append(append(append(append(buf[:0], path...), 0), mode...), 0), blob...)
	return xxh3.Hash(binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint64(b, uint64(size)), uint32(seq)))
}

// hash returns the sum of the hashes of all files.
func (s *treeStore) hash(opts ...oribi.ScanOption) (sum uint64, err error) {
	for b, err := range s.table.Scan(s.t.Context(), append(opts, oribi.AnyOrder())...).Batches() {
		if err != nil {
			return 0, err
		}
		size, seq := batch.Values[int64](b.Columns[3]), batch.Values[int32](b.Columns[4])
		for i := b.Selection.Next(0); i >= 0; i = b.Selection.Next(i + 1) {
			sum += fileHash(b.Columns[0].Cell(i), b.Columns[1].Cell(i), b.Columns[2].Cell(i), size[i], seq[i])
		}
	}
	return sum, nil
}
