package hfile

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/must"
)

func TestBloomBuilderRefusesOptions(t *testing.T) {
	for _, c := range []struct {
		kind               BloomKind
		hash               BloomHash
		blockBytes, prefix int
	}{
		{kind: BloomNone}, {kind: BloomRowPrefix + 1}, {kind: BloomRow, hash: Murmur3 + 1},
		{kind: BloomRow, blockBytes: -1},
		{kind: BloomRow, blockBytes: math.MaxInt32}, {kind: BloomRowPrefix}, {kind: BloomRowPrefix, prefix: -3},
		{kind: BloomRowPrefix, prefix: MaxRowBytes + 1},
	} {
		must.Refuse(t, must.Err(newBloomBuilder(c.kind, c.hash, c.blockBytes, c.prefix)), c)
	}
	b, err := newBloomBuilder(BloomRowCol, Jenkins, 1, 0)
	if err != nil || b.chunkBytes != 128 || b.hashes != 8 || b.chunkKeys != 92 {
		t.Errorf("the smallest chunk: %+v (%v)", b, err)
	}
}

// Chunks of every fill, folded or not, contain their keys and give few other answers.
func TestBloomChunksKeepTheirErrorRate(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, hash := range []BloomHash{Jenkins, Murmur, Murmur3} {
		for _, keys := range []int{1, 2, 53, 54, 106, 1000, 3400} {
			b := must.Get(newBloomBuilder(BloomRow, hash, 4096, 0))(t)
			var rows []string
			for i := range keys {
				rows = append(rows, fmt.Sprintf("%08d-%x", i, rng.Uint32()))
				b.add(Key{Row: []byte(rows[i])})
				b.add(Key{Row: []byte(rows[i]), Qualifier: []byte("again")})
			}
			must.Equal(t, b.ready(true), true, "no chunk")
			bits := b.takeChunk()
			must.Equal(t, b.totalKeys, int64(keys), hash)
			for _, row := range rows {
				must.Equal(t, bloomContains(bits, hash, b.hashes, []byte(row)), true, hash, keys, row)
			}
			yes := 0
			for range 20000 {
				if bloomContains(bits, hash, b.hashes, fmt.Appendf(nil, "other-%x", rng.Uint64())) {
					yes++
				}
			}
			// 1 % is 200. HBase folds chunks of few keys so far that they have more.
			if yes > 300 && keys > 50 {
				t.Errorf("%v: %d keys in %d bytes: %d of 20000 other keys may be present", hash, keys, len(bits), yes)
			}
			if len(bits) > 4096 || keys == 1 && len(bits) > 8 {
				t.Errorf("%v: %d keys in %d bytes", hash, keys, len(bits))
			}
			b.chunkWritten(0, 0)
			must.Equal(t, b.ready(true), false, hash, keys)
		}
	}
}

func TestBloomBuilderWithoutKeysHasNoMetadata(t *testing.T) {
	b := must.Get(newBloomBuilder(BloomRow, Murmur, 0, 0))(t)
	if b.ready(true) || b.meta() != nil || b.lastKey() != nil {
		t.Errorf("chunk %v, metadata %x, last key %x", b.ready(true), b.meta(), b.lastKey())
	}
	b.add(Key{}) // the empty row is a key
	if !b.ready(true) || b.lastKey() == nil || b.totalKeys != 1 {
		t.Errorf("%d keys after adding the empty row", b.totalKeys)
	}
}

func TestBloomMetaRefusesMalformedBytes(t *testing.T) {
	good := bloomMeta{bytes: 8, keys: 5, capacity: 6, hashes: 7, hash: Murmur, chunks: 1, comparator: comparatorBloom}
	b := good.append(nil)
	if m, index, err := parseBloomMeta(b); err != nil || m != good || len(index) != 0 {
		t.Fatalf("%+v, %d bytes of index, %v; want %+v", m, len(index), err, good)
	}
	for n := range b {
		must.Fail(t, must.Err2(parseBloomMeta(b[:n])), ErrCorrupt, n, len(b))
	}
	for name, m := range map[string]bloomMeta{
		"bytes":     {bytes: -1, hashes: 1},
		"keys":      {keys: -1, hashes: 1},
		"capacity":  {capacity: -1, hashes: 1},
		"chunks":    {chunks: -1, hashes: 1},
		"no hashes": {},
		"hashes":    {hashes: maxBloomHashes + 1},
	} {
		must.Fail(t, must.Err2(parseBloomMeta(m.append(nil))), ErrCorrupt, name)
	}
	must.Fail(t, must.Err2(parseBloomMeta(bloomMeta{hashes: 1, hash: Murmur3 + 1}.append(nil))), ErrUnsupported)
}

// A filter of a newer version does not keep Get from reading the row; a damaged one does.
func TestGetReadsRowsWithoutUnknownBloomFilters(t *testing.T) {
	for _, kind := range []BloomKind{BloomRow, BloomRowCol, BloomRowPrefix} {
		for _, version := range []byte{bloomMetaVersion, bloomMetaVersion + 1} {
			r := must.Get(Open(&block.Memory{Bytes: bloomSeedFile(t, kind)}, ReaderOptions{}))(t)
			r.blooms[0].payload[3] = version
			for _, get := range []func() ([]Cell, error){
				func() ([]Cell, error) { return r.Get([]byte("row-077")) },
				func() ([]Cell, error) { return r.GetColumn([]byte("row-077"), []byte("f"), []byte("q")) },
			} {
				must.Equal(t, len(must.Get(get())(t)), 1, kind, version)
			}
		}
		r := must.Get(Open(&block.Memory{Bytes: bloomSeedFile(t, kind)}, ReaderOptions{}))(t)
		r.blooms[0].payload = r.blooms[0].payload[:20]
		must.Fail(t, must.Err(r.GetColumn([]byte("row-077"), []byte("f"), []byte("q"))), ErrCorrupt, kind)
	}
}
