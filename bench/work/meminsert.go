package work

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/google/btree"

	"github.com/oribi-db/oribi/bench/harness"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/memrowset"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

const (
	memScanEvery = 10 * time.Millisecond
	memScanRows  = 1000
	btreeDegree  = 32
)

// memInsert measures the MemRowSet alone: random keys of 16 bytes, values of 8 bytes, row images
// made in advance. A scan of the first 1,000 rows starts every 10 ms. The B-tree that it is
// compared with contains only the keys and is not scanned.
func memInsert() harness.Workload {
	return harness.Workload{
		Name: "mem-insert", About: "inserts of random 16-byte keys into the MemRowSet alone; a scan starts every 10 ms",
		Unit: "µs", MemoryLimit: peakLimit,
		Peers: []harness.Peer{
			{Name: "oribi", Ours: true, Measure: insertMemRowSet},
			{Name: "btree", Measure: insertTree},
		},
		Floors: []harness.Floor{{Peer: "oribi", Figure: 1.2, Against: "btree", Ratio: 2.5}},
	}
}

const memKeyLen = 16

// memKeys returns n random keys, one after another.
func memKeys(n int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	keys := make([]byte, 0, memKeyLen*n)
	for range n {
		keys = binary.BigEndian.AppendUint64(keys, r.Uint64())
		keys = binary.BigEndian.AppendUint64(keys, r.Uint64())
	}
	return keys
}

// piece returns piece i of pieces of n bytes each.
func piece(all []byte, i, n int) []byte { return all[i*n : i*n+n : i*n+n] }

func insertMemRowSet(env *harness.Env) (harness.Measurement, error) {
	s, err := schema.New([]schema.Column{{Name: "k", Type: schema.Binary}, {Name: "v", Type: schema.Int64}}, 1)
	if err != nil {
		return harness.Measurement{}, err
	}
	n, keys := env.Scale.Inserts, memKeys(env.Scale.Inserts)
	layout := change.NewRowFormat(s)
	imageLen := len(layout.AppendRow(nil, [][]byte{piece(keys, 0, memKeyLen), make([]byte, 8)}))
	images := make([]byte, 0, imageLen*n)
	var value [8]byte
	for i := range n {
		binary.LittleEndian.PutUint64(value[:], uint64(i))
		images = layout.AppendRow(images, [][]byte{piece(keys, i, memKeyLen), value[:]})
	}
	m := memrowset.New(s, nil)
	scans := 0
	took, err := env.Clock(func() error {
		last := time.Now()
		for i := range n {
			m.Insert(piece(keys, i, memKeyLen), mvcc.Timestamp(i+1), lsn.LSN(i+1), piece(images, i, imageLen))
			if i%64 == 0 && time.Since(last) >= memScanEvery {
				m.NewIterator(mvcc.AsOf(mvcc.Timestamp(i+1)), nil, nil, false).Next(memScanRows)
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
	it := m.NewIterator(mvcc.Everything, nil, nil, false)
	for keys, _ := it.Next(4096); keys != nil; keys, _ = it.Next(4096) {
		for _, key := range keys {
			sum.add(key, nil)
		}
	}
	return harness.Measurement{Value: took.Seconds() * 1e6 / float64(n), Checksum: sum.String(),
		Metrics: map[string]float64{"scans": float64(scans)}}, nil
}

func insertTree(env *harness.Env) (harness.Measurement, error) {
	n, keys := env.Scale.Inserts, memKeys(env.Scale.Inserts)
	t := btree.NewG(btreeDegree, func(a, b []byte) bool { return bytes.Compare(a, b) < 0 })
	took, err := env.Clock(func() error {
		for i := range n {
			if _, twice := t.ReplaceOrInsert(piece(keys, i, memKeyLen)); twice {
				return fmt.Errorf("duplicate key %d", i)
			}
		}
		return nil
	})
	var sum checksum
	t.Ascend(func(key []byte) bool {
		sum.add(key, nil)
		return true
	})
	return harness.Measurement{Value: took.Seconds() * 1e6 / float64(n), Checksum: sum.String()}, err
}
