package arena

import (
	"bytes"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
)

type piece struct {
	ref  Ref
	want []byte
}

func TestAllocationsKeepTheirBytes(t *testing.T) {
	seed := seedtest.Seed(t)
	r, random := rand.New(rand.NewPCG(seed, 0)), rand.NewChaCha8([32]byte{byte(seed)})
	var reported int64
	a := New(func(n int64) { reported += n })
	var pieces []piece
	var asked int64
	for range 5000 {
		n := r.IntN(200)
		switch r.IntN(200) {
		case 0:
			n = r.IntN(3 << 20)
		case 1:
			n = 0
		}
		ref, b := a.Alloc(n)
		if ref == 0 || ref%8 != 0 || len(b) != n || cap(b) != n {
			t.Fatalf("piece of %d: ref %x, %d of %d bytes", n, ref, len(b), cap(b))
		}
		must.Equal(t, bytes.Count(b, []byte{0}), n, "zeros of a new piece")
		random.Read(b)
		pieces = append(pieces, piece{ref, bytes.Clone(b)})
		asked += int64(n)
	}
	seen := map[Ref]bool{}
	for _, p := range pieces {
		if got := a.Bytes(p.ref)[:len(p.want)]; !bytes.Equal(got, p.want) {
			t.Fatalf("piece %x changed", p.ref)
		}
		if seen[p.ref] && len(p.want) > 0 {
			t.Fatalf("ref %x was returned twice", p.ref)
		}
		seen[p.ref] = len(p.want) > 0
	}
	if a.Size() != reported || reported < asked {
		t.Errorf("size %d, reported %d, allocated %d", a.Size(), reported, asked)
	}
	a.Release()
	a.Release()
	must.Equal(t, reported, 0, "bytes were not released")
	must.Equal(t, a.Bytes(pieces[0].ref)[:len(pieces[0].want)], pieces[0].want,
		"a reader lost its bytes on Release")
}

func TestSmallArenaIsSmall(t *testing.T) {
	a := New(nil)
	must.Equal(t, a.Size(), 0, "bytes of an empty arena")
	a.Alloc(10)
	if a.Size() > 8<<10 {
		t.Errorf("an arena of 10 bytes has %d", a.Size())
	}
}

// Chunks are few and mostly full for every size of pieces.
func TestChunksAreFewAndFull(t *testing.T) {
	for _, n := range []int{8, 100, 1500, 2100, 5000, 70000, 200000} {
		chunks := 0
		a := New(func(int64) { chunks++ })
		var asked int64
		for asked < 16<<20 {
			a.Alloc(n)
			asked += int64(n)
		}
		if chunks > 40 || a.Size() > asked*3/2 {
			t.Errorf("pieces of %d bytes: %d chunks of %d bytes for %d", n, chunks, a.Size(), asked)
		}
	}
}

func TestLargePieceLeavesTheCurrentChunkInUse(t *testing.T) {
	a := New(nil)
	first, _ := a.Alloc(8)
	a.Alloc(1 << 20)
	size := a.Size()
	next, _ := a.Alloc(8)
	if a.Size() != size || next != first+8 {
		t.Errorf("piece after a large one: ref %x after %x, size %d after %d", next, first, a.Size(), size)
	}
}

func TestWordReadsItsAllocation(t *testing.T) {
	a := New(nil)
	ref, b := a.Alloc(24)
	Word(a.Bytes(ref)[8:]).Store(0x0102030405060708)
	if !bytes.Equal(b[8:16], []byte{8, 7, 6, 5, 4, 3, 2, 1}) || b[7] != 0 || b[16] != 0 {
		t.Errorf("piece is % x", b)
	}
	defer func() {
		if recover() == nil {
			t.Error("a word across two was given out")
		}
	}()
	Word(a.Bytes(ref)[4:])
}

// One writer links pieces by atomic words in the arena while readers follow the chain.
func TestReadersSeePublishedPieces(t *testing.T) {
	a := New(nil)
	var head atomic.Uint64
	done := make(chan struct{})
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for {
				var before byte
				for ref := Ref(head.Load()); ref != 0; ref = Ref(Word(a.Bytes(ref)).Load()) {
					b := a.Bytes(ref)[8:16]
					if before != 0 && b[0] != before-1 && before != 1 {
						t.Errorf("%d after %d", b[0], before)
						return
					}
					before = b[0]
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	for i := range 250 {
		ref, b := a.Alloc(16 + i*40)
		b[8] = byte(i + 1)
		Word(a.Bytes(ref)).Store(head.Load())
		head.Store(uint64(ref))
	}
	close(done)
	wg.Wait()
}

func BenchmarkAlloc(b *testing.B) {
	a := New(nil)
	var sum Ref
	for b.Loop() {
		if a.Size() > 64<<20 {
			a = New(nil)
		}
		ref, _ := a.Alloc(100)
		sum += ref
	}
	if sum == 0 {
		b.Fatal("no piece")
	}
}
