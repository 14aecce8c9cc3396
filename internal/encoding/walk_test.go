package encoding

import (
	"bytes"
	"encoding/binary"
	"errors"
	"sync"
	"testing"
	"unsafe"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/invariant"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/schema"
)

// walkedVector returns numbers of which some chunks are stored in real LZ4.
func walkedVector(t *testing.T, n int) *batch.Vector {
	rng := seedtest.Rand(t)
	v := batch.NewVector(schema.Int64, n)
	for i := range batch.Values[int64](v) {
		if batch.Values[int64](v)[i] = int64(i / 3); i/8192%2 == 0 {
			batch.Values[int64](v)[i] = rng.Int64N(2000) - 1000
		}
	}
	return v
}

func walkedPayload(t *testing.T, v *batch.Vector) []byte {
	b := mustBuilder(t, BuilderOptions{Type: schema.Int64, Encoding: schema.Bitshuffle, BlockBytes: 1 << 20})
	b.AppendAll(v, 0, v.Len)
	return b.Finish(nil, 0)
}

// A block in the cache finds its planes once, while several goroutines read it, and has the same
// values as a block that finds them in each call.
func TestBlocksInTheCacheFindPlanesOnce(t *testing.T) {
	v := walkedVector(t, 40_000)
	payload := walkedPayload(t, v)
	var cached, once shuffled
	must.Do(t, errors.Join(cached.parse(payload, schema.Int64, &chunkMap{m: map[int][]byte{}}),
		once.parse(payload, schema.Int64, nil)))
	size := cached.Footprint()
	if cell, err := cached.Cell(20_000); err != nil || !bytes.Equal(cell, v.Cell(20_000)) || cached.walk.Load() != nil {
		t.Errorf("cell %x, %v, walk %p", cell, err, cached.walk.Load())
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			got := batch.NewVector(schema.Int64, v.Len)
			if err := cached.Decode(0, v.Len, got, 0); err != nil || !bytes.Equal(got.Data, v.Data) {
				t.Errorf("decoded wrong: %v", err)
			}
		})
	}
	wg.Wait()
	w := cached.walk.Load()
	if w == nil {
		t.Fatal("no walk")
	}
	if used := len(w.chunks)*int(unsafe.Sizeof(w.chunks[0])) +
		cap(w.refs)*int(unsafe.Sizeof(w.refs[0])); used > walkBytes(len(w.chunks), 8) {
		t.Errorf("%d bytes, at most %d are counted", used, walkBytes(len(w.chunks), 8))
	}
	if got := cached.Footprint(); got != size || got < once.Footprint()+walkBytes(len(w.chunks), 8) {
		t.Errorf("footprint %d, was %d, without a cache %d", got, size, once.Footprint())
	}
	found := 0
	for i, c := range w.chunks {
		var x, y viewBuffer
		a, err := cached.view(i, &x)
		b, err2 := once.view(i, &y)
		must.Do(t, err)
		must.Do(t, err2)
		for k := range 8 * a.row {
			must.Equal(t, a.cell(k), b.cell(k), i, k)
		}
		if c.found {
			found++
		}
	}
	if found < len(w.chunks)/4 || found == len(w.chunks) {
		t.Errorf("planes of %d of %d chunks found", found, len(w.chunks))
	}
	if once.walk.Load() != nil {
		t.Error("a block that is not in the cache keeps its planes")
	}
}

// Calls that read a bad chunk fail. Those that read other chunks do not.
func TestWalkPassesBadChunks(t *testing.T) {
	v := walkedVector(t, 9000)
	payload := walkedPayload(t, v)
	var b shuffled
	must.Do(t, b.parse(payload, schema.Int64, &chunkMap{m: map[int][]byte{}}))
	copy(b.stream(3), bytes.Repeat([]byte{0xff}, 20))
	var buf viewBuffer
	for i := range b.chunks {
		view, err := b.view(i, &buf)
		if i == 3 {
			must.Fail(t, err, fault.ErrCorrupt)
			continue
		}
		must.Do(t, err)
		must.Equal(t, view.cell(0).lo, binary.LittleEndian.Uint64(v.Cell(i<<10)), i)
	}
}

func TestDecodingChunksDoesNotAllocate(t *testing.T) {
	if invariant.Race {
		t.Skip("the race detector empties pools at random")
	}
	v := walkedVector(t, 20_000)
	got := batch.NewVector(schema.Int64, v.Len)
	for _, chunks := range []Chunks{nil, &chunkMap{m: map[int][]byte{}}} {
		var b shuffled
		must.Do(t, b.parse(walkedPayload(t, v), schema.Int64, chunks))
		n := testing.AllocsPerRun(20, func() {
			must.Do(t, b.Decode(0, v.Len, got, 0))
		})
		if n >= 1 {
			t.Errorf("%v allocations", n)
		}
	}
}
