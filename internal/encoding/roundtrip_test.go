package encoding

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/schema"
)

// randomCells returns n cells of one of several kinds: constant, runs, few values, any bytes.
func randomCells(r *rand.Rand, typ schema.Type, n int) [][]byte {
	shape := r.IntN(5)
	one := func() []byte {
		switch {
		case typ.Physical() == schema.Bool:
			return []byte{byte(r.IntN(2))}
		case typ.Variable():
			c := make([]byte, r.IntN(12))
			for i := range c {
				c[i] = "ab\x00\xff"[r.IntN(4)]
			}
			if r.IntN(50) == 0 {
				c = append(c, bytes.Repeat([]byte{'x'}, r.IntN(300))...)
			}
			return c
		}
		c := make([]byte, typ.Width())
		switch v := int64(r.Uint64()); shape {
		case 1, 2:
			small := v % 1000
			wide := binary.LittleEndian.AppendUint64(nil, uint64(small))
			copy(c, binary.LittleEndian.AppendUint64(wide, uint64(small>>63)))
		case 3:
			copy(c, binary.LittleEndian.AppendUint64(nil, uint64(v)%5))
		default:
			for i := range c {
				c[i] = byte(r.Uint32())
			}
		}
		return c
	}
	cells := make([][]byte, 0, n)
	for len(cells) < n {
		c, k := one(), 1
		switch {
		case shape == 0:
			k = n
		case shape == 1:
			k = 1 + r.IntN(25)
		case r.IntN(20) == 0:
			k = 1 + r.IntN(600)
		}
		for range min(k, n-len(cells)) {
			cells = append(cells, c)
		}
	}
	return cells
}

// chunkMap is a Chunks of unlimited size.
type chunkMap struct {
	sync.Mutex
	m          map[int][]byte
	gets, hits int
}

func (c *chunkMap) Get(i int) []byte {
	c.Lock()
	defer c.Unlock()
	c.gets++
	if c.m[i] != nil {
		c.hits++
	}
	return c.m[i]
}

func (c *chunkMap) Put(i int, b []byte) {
	c.Lock()
	defer c.Unlock()
	c.m[i] = b
}

func TestBuilderRoundTrip(t *testing.T) {
	r := seedtest.Rand(t)
	for _, pair := range pairs() {
		t.Run(fmt.Sprintf("type=%s/enc=%s", pair.Type, pair.Encoding), func(t *testing.T) {
			for round := range 12 {
				cells := randomCells(r, pair.Type, []int{0, 1, 7, 8, 9, 63, 500, 1100, 5000, 12000, 20000, 9000}[round])
				o := BuilderOptions{Type: pair.Type, Encoding: pair.Encoding,
					BlockBytes: []int{0, 512, 4096, 70000}[r.IntN(4)], RestartInterval: 1 + r.IntN(20)}
				b := mustBuilder(t, o)
				payloads, counts, dict := buildAll(b, pair.Type, cells, 1+r.IntN(3000))
				p := pair
				if dict != nil {
					d := must.Get(ParseDictionary(dict))(t)
					p.Dict = d
				}
				ord := 0
				for i, payload := range payloads {
					p.Payload, p.Chunks, p.Limit = payload, nil, r.IntN(3)*r.IntN(2000)
					if r.IntN(2) == 0 {
						p.Chunks = &chunkMap{m: map[int][]byte{}}
					}
					block := must.Get(Parse(p))(t)
					part := cells[ord : ord+counts[i]]
					must.Do(t, checkBlock(block, pair.Type, batch.Ordinal(ord), part, r),
						round, i, len(payloads), o)
					checkSelect(t, block, pair.Type, part, r)
					checkCodes(t, block, part, r)
					ord += counts[i]
				}
				must.Equal(t, ord, len(cells), "values in payloads")
			}
		})
	}
}

// checkSelect compares Select with EvalCell.
func checkSelect(t *testing.T, b Block, typ schema.Type, cells [][]byte, r *rand.Rand) {
	t.Helper()
	p := &batch.Predicate{Type: typ, Op: batch.Operator(1 + r.IntN(9))}
	pick := func() []byte {
		if len(cells) == 0 || r.IntN(4) == 0 {
			return randomCells(r, typ, 1)[0]
		}
		cell := cells[r.IntN(len(cells))]
		if typ.Variable() { // or a byte string that is close to it
			switch r.IntN(4) {
			case 0:
				return cell[:r.IntN(len(cell)+1)]
			case 1:
				return append(bytes.Clone(cell), "\x00\xff"[r.IntN(2)])
			}
		}
		return cell
	}
	switch {
	case p.Op <= batch.Ge:
		p.Values = [][]byte{pick()}
	case p.Op == batch.In:
		p.Values = [][]byte{pick(), pick(), pick()}
	}
	if r.IntN(2) == 0 {
		must.Do(t, p.Prepare())
	}
	from, at := r.IntN(len(cells)+1), r.IntN(100)
	n := r.IntN(len(cells) - from + 1)
	if r.IntN(3) == 0 { // whole words of the selection, as in most scans
		from, at, n = from&^63, at&^63, n&^63
	}
	sel := batch.MakeBitmap(at + n + 70)
	few := r.IntN(3) == 0
	for i := range at + n + 70 {
		if r.IntN(5) > 0 && (!few || i%100 == 0) {
			sel.Set(i)
		}
	}
	before := slices.Clone(sel)
	handled := must.Get(b.Select(p, from, n, sel, at))(t)
	for i := range at + n + 70 {
		want := before.Get(i)
		if handled && i >= at && i < at+n {
			want = want && p.EvalCell(cells[from+i-at])
		}
		must.Equal(t, sel.Get(i), want, p.Op, p.Values, from, from+n, at, i, handled)
	}
}

// checkCodes reads a block of codes in dictionary form.
func checkCodes(t *testing.T, b Block, cells [][]byte, r *rand.Rand) {
	t.Helper()
	c, ok := b.(CodeBlock)
	if !ok {
		return
	}
	from := r.IntN(len(cells) + 1)
	codes := make([]uint32, r.IntN(len(cells)-from+1))
	must.Do(t, c.Codes(from, len(codes), codes))
	for i, code := range codes {
		must.Equal(t, c.Dict().Words[code], cells[from+i], code, from+i)
	}
}

func TestSeekFindsTheFirstValueNotBelow(t *testing.T) {
	r := seedtest.Rand(t)
	for _, pair := range pairs() {
		if !pair.Type.Keyable() {
			continue
		}
		t.Run(fmt.Sprintf("type=%s/enc=%s", pair.Type, pair.Encoding), func(t *testing.T) {
			compare := func(a, b []byte) int { return batch.Compare(pair.Type, a, b) }
			for _, n := range []int{0, 1, 15, 100, 3000, 10000} {
				cells := randomCells(r, pair.Type, n)
				slices.SortFunc(cells, compare)
				// one block fits all values
				b := mustBuilder(t, BuilderOptions{Type: pair.Type, Encoding: pair.Encoding, BlockBytes: 16 << 20,
					RestartInterval: 1 + r.IntN(20)})
				payloads, _, dict := buildAll(b, pair.Type, cells, n+1)
				if n == 0 {
					payloads = [][]byte{b.Finish(nil, 0)}
				}
				p := pair
				p.Payload, p.Limit = payloads[0], r.IntN(2)
				if dict != nil {
					p.Dict, _ = ParseDictionary(dict)
				}
				block, err := Parse(p)
				must.Do(t, err, n)
				if block.Len() != n || block.Footprint() > 1<<16 && p.Limit > 0 {
					t.Fatalf("%d values: a block of %d, %d bytes in memory", n, block.Len(), block.Footprint())
				}
				for range 60 {
					target := randomCells(r, pair.Type, 1)[0]
					if n > 0 && r.IntN(2) == 0 {
						target = cells[r.IntN(n)]
					}
					want, found := slices.BinarySearchFunc(cells, target, compare)
					i, exact, err := block.Seek(target)
					if err != nil || i != want || exact != found {
						t.Fatalf("%d values: seek %x gives %d, %v, %v; want %d, %v", n, target, i, exact,
							err, want, found)
					}
				}
			}
		})
	}
}

func TestSeekRefusesTypesWithoutKeyEncoding(t *testing.T) {
	for _, pair := range pairs() {
		if pair.Type.Keyable() {
			continue
		}
		b := mustBuilder(t, BuilderOptions{Type: pair.Type, Encoding: pair.Encoding})
		pair.Payload = b.Finish(nil, 0)
		block := must.Get(Parse(pair))(t)
		must.Refuse(t, must.Err2(block.Seek(make([]byte, pair.Type.Width()))), pair.Type, pair.Encoding)
	}
}

func TestBlocksAreSafeForConcurrentUse(t *testing.T) {
	cells := make([][]byte, 5000)
	for i := range cells {
		cells[i] = binary.LittleEndian.AppendUint64(nil, uint64(i)*977)
	}
	b := mustBuilder(t, BuilderOptions{Type: schema.Int64, Encoding: schema.Bitshuffle})
	payloads, _, _ := buildAll(b, schema.Int64, cells, len(cells))
	block := must.Get(Parse(Params{Type: schema.Int64, Encoding: schema.Bitshuffle, Payload: payloads[0]}))(t)
	var wg sync.WaitGroup
	for seed := range uint64(4) {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(seed, seed))
			for range 20 {
				if err := checkBlock(block, schema.Int64, 0, cells, r); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

func TestCellReadsUseTheChunkCache(t *testing.T) {
	cells := randomCells(rand.New(rand.NewPCG(1, 1)), schema.Int32, 10000)
	b := mustBuilder(t, BuilderOptions{Type: schema.Int32, Encoding: schema.Bitshuffle})
	payloads, _, _ := buildAll(b, schema.Int32, cells, len(cells))
	cache := &chunkMap{m: map[int][]byte{}}
	block := must.Get(
		Parse(Params{Type: schema.Int32, Encoding: schema.Bitshuffle, Payload: payloads[0], Chunks: cache}))(t)
	for range 3 {
		for _, i := range []int{0, 2047, 2048, 9999} {
			must.Equal(t, must.Get(block.Cell(i))(t), cells[i], i)
		}
	}
	// A chunk is decoded at its second read: for cell 2047, and for cells 2048 and 9999 in the
	// second round.
	must.Equal(t, len(cache.m), 3, cache.gets)
	must.Equal(t, cache.hits, 6, cache.gets)
}

// Reads of single cells in many different chunks do not add these chunks to the cache.
func TestScatteredReadsDoNotFillTheChunkCache(t *testing.T) {
	for _, typ := range []schema.Type{schema.Int8, schema.Int16, schema.Uint32, schema.Int64, schema.Int128} {
		cells := randomCells(rand.New(rand.NewPCG(1, 1)), typ, 20*chunkBytes/typ.Width()-5)
		b := mustBuilder(t, BuilderOptions{Type: typ, Encoding: schema.Bitshuffle})
		payloads, _, _ := buildAll(b, typ, cells, len(cells))
		cache := &chunkMap{m: map[int][]byte{}}
		block := must.Get(Parse(Params{Type: typ, Encoding: schema.Bitshuffle, Payload: payloads[0], Chunks: cache}))(t)
		for round := range 3 {
			for i := round; i < len(cells); i += len(cells)/20 - 1 {
				must.Equal(t, must.Get(block.Cell(i))(t), cells[i], typ, i)
			}
			must.Equal(t, must.Get(block.Cell(len(cells)-1))(t), cells[len(cells)-1], typ)
		}
		if len(cache.m) > 3 {
			t.Errorf("%s: %d chunks kept", typ, len(cache.m))
		}
	}
}

// Reads of a few cells return correct values wherever they begin. Consecutive reads decode each
// chunk once and do not use the cache. Scattered reads add a chunk to the cache at its second read.
func TestReadsOfFewCells(t *testing.T) {
	r := seedtest.Rand(t)
	for _, typ := range []schema.Type{schema.Int8, schema.Int16, schema.Uint32, schema.Int64, schema.Int128} {
		cells := randomCells(r, typ, 7*chunkBytes/typ.Width()-5)
		// so that uint32 cells are not narrowed, which would put more of them into a chunk
		cells[0] = bytes.Repeat([]byte{0xff}, typ.Width())
		b := mustBuilder(t, BuilderOptions{Type: typ, Encoding: schema.Bitshuffle})
		payloads, _, _ := buildAll(b, typ, cells, len(cells))
		cache := &chunkMap{m: map[int][]byte{}}
		block := must.Get(Parse(Params{Type: typ, Encoding: schema.Bitshuffle, Payload: payloads[0], Chunks: cache}))(t)
		v := batch.NewVector(typ, 300)
		decode := func(from, n int) {
			t.Helper()
			must.Do(t, block.Decode(from, n, v, 7))
			for i := range n {
				must.Equal(t, v.Cell(7+i), cells[from+i], typ, from+i, n, from)
			}
		}
		for at := 0; at < len(cells); at += 100 {
			decode(at, min(100, len(cells)-at))
		}
		if len(cache.m) > 0 {
			t.Errorf("%s: %d chunks kept of runs that follow one another", typ, len(cache.m))
		}
		chunk := chunkBytes / typ.Width()
		for _, i := range []int{5, 3, 1, 6} {
			decode(i*chunk+chunk/2, 70)
		}
		if len(cache.m) > 0 {
			t.Errorf("%s: %d chunks kept of which one run was read", typ, len(cache.m))
		}
		decode(3*chunk+1, 70)
		if len(cache.m) != 1 || cache.m[3] == nil {
			t.Errorf("%s: %d chunks kept, want chunk 3", typ, len(cache.m))
		}
		for range 300 {
			n := r.IntN(200)
			decode(r.IntN(len(cells)-n+1), n)
		}
	}
}
