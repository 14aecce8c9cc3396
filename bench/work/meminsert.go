package work

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/google/btree"

	"github.com/oribi-db/oribi/bench/harness"
	"github.com/oribi-db/oribi/internal/change"
	"github.com/oribi-db/oribi/memrowset"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

const (
	memScanEvery = 10 * time.Millisecond
	memScanRows  = 1000
	btreeDegree  = 32
)

// memInsert is the MemRowSet alone: random keys of 16 bytes, a value of 8, the row images made before; a scan starts every 10 ms
// and reads its first 1,000 rows. The tree beside it holds the bare keys and is never scanned.
func memInsert() harness.Workload {
	return harness.Workload{
		Name: "mem-insert", About: "inserts of random 16-byte keys into the MemRowSet alone, a scan starting every 10 ms",
		Unit: "µs", MemoryLimit: peakLimit,
		Peers: []harness.Peer{
			{Name: "oribi", Ours: true, Measure: insertMemRowSet},
			{Name: "btree", Measure: insertTree},
		},
		Floors: []harness.Floor{{Peer: "oribi", Figure: 1.2, Against: "btree", Ratio: 2.5}},
	}
}

// memKeys makes n random keys, which share one buffer.
func memKeys(n int) [][]byte {
	r := rand.New(rand.NewPCG(1, 2))
	buf := make([]byte, 16*n)
	keys := make([][]byte, n)
	for i := range keys {
		keys[i] = buf[16*i : 16*i+16 : 16*i+16]
		binary.BigEndian.PutUint64(keys[i], r.Uint64())
		binary.BigEndian.PutUint64(keys[i][8:], r.Uint64())
	}
	return keys
}

func insertMemRowSet(env *harness.Env) (harness.Measurement, error) {
	s, err := schema.New([]schema.Column{{Name: "k", Type: schema.Binary}, {Name: "v", Type: schema.Int64}}, 1)
	if err != nil {
		return harness.Measurement{}, err
	}
	keys := memKeys(env.Scale.Inserts)
	layout := change.NewLayout(s)
	var images []byte
	ends := make([]int, len(keys))
	for i, key := range keys {
		images = layout.AppendRow(images, [][]byte{key, binary.LittleEndian.AppendUint64(nil, uint64(i))})
		ends[i] = len(images)
	}
	m := memrowset.New(s, nil)
	scans := 0
	took, err := env.Clock(func() error {
		last, from := time.Now(), 0
		for i, key := range keys {
			m.Insert(key, mvcc.Timestamp(i+1), uint64(i+1), images[from:ends[i]])
			from = ends[i]
			if i%64 == 0 && time.Since(last) >= memScanEvery {
				m.NewIterator(mvcc.Timestamp(i+2), nil, nil, false).Next(memScanRows)
				scans++
				last = time.Now()
			}
		}
		return nil
	})
	if err != nil {
		return harness.Measurement{}, err
	}
	var sum checksum
	it := m.NewIterator(mvcc.Max, nil, nil, false)
	for keys, _ := it.Next(4096); keys != nil; keys, _ = it.Next(4096) {
		for _, key := range keys {
			sum.add(key, nil)
		}
	}
	return harness.Measurement{Value: took.Seconds() * 1e6 / float64(len(keys)), Checksum: sum.String(),
		Metrics: map[string]float64{"scans": float64(scans)}}, nil
}

func insertTree(env *harness.Env) (harness.Measurement, error) {
	keys := memKeys(env.Scale.Inserts)
	t := btree.NewG(btreeDegree, func(a, b []byte) bool { return bytes.Compare(a, b) < 0 })
	took, err := env.Clock(func() error {
		for _, key := range keys {
			if _, twice := t.ReplaceOrInsert(key); twice {
				return fmt.Errorf("key %x comes twice", key)
			}
		}
		return nil
	})
	var sum checksum
	t.Ascend(func(key []byte) bool {
		sum.add(key, nil)
		return true
	})
	return harness.Measurement{Value: took.Seconds() * 1e6 / float64(len(keys)), Checksum: sum.String()}, err
}
