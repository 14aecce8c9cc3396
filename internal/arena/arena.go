// Package arena is append-only memory without pointers, for many small pieces that are freed all at
// once.
//
// A million rows as a million Go objects cost the garbage collector a visit each; in an arena they
// are a few dozen chunks that it does not scan. A Ref identifies a piece: a plain number that can
// be stored in another piece. Pieces do not move and are not freed one by one: the memory is freed
// with the Arena.
//
// One goroutine at a time may call Alloc and Release. Any number may call Bytes, Word and Size at
// the same time, with Refs that reached them through some synchronisation (an atomic, a lock, a
// channel) after the piece was filled:
//
//	writer                         reader
//	ref, b := a.Alloc(n)
//	copy(b, row)
//	head.Store(uint64(ref))   ───▶  ref := arena.Ref(head.Load())
//	                               a.Bytes(ref)[:n]
package arena

import (
	"fmt"
	"sync/atomic"
	"unsafe"
)

// Ref names a piece: its chunk's number above refShift, its first byte in the chunk below. 0 names
// none.
type Ref uint64

const (
	refShift = 40
	refMask  = 1<<refShift - 1

	wordLen = 8 // pieces begin at multiples of this

	// The first chunk is small, since a store with a thousand rowsets has a thousand delta mem
	// stores; each next one doubles up to the largest, so that at most half of a small arena and
	// one chunk of a large one are unused.
	firstChunkBytes = 4 << 10
	maxChunkBytes   = 1 << 20
)

// Arena is the memory. Make one with New.
type Arena struct {
	grow func(n int64)

	// Of the writer alone.
	current int // index of the chunk that pieces are cut from
	off     int // first free byte of it
	next    int // bytes of the next chunk
	gone    bool

	// chunks is replaced as a whole when it grows. An append may write into the array that readers
	// use, but only after the length of their copy of the slice.
	chunks atomic.Pointer[[][]byte]
	size   atomic.Int64
}

// New returns an empty Arena. grow, if not nil, is called with the bytes of each chunk when it is
// allocated, and with the negative sum on Release.
func New(grow func(n int64)) *Arena {
	if grow == nil {
		grow = func(int64) {}
	}
	a := &Arena{grow: grow, next: firstChunkBytes}
	a.chunks.Store(new([][]byte))
	return a
}

// Alloc returns a new piece of n zero bytes and its name, which is never 0. The piece begins at a
// multiple of 8 and belongs to the caller until others learn its Ref.
func (a *Arena) Alloc(n int) (Ref, []byte) {
	if n < 0 {
		panic(fmt.Sprintf("arena: piece of %d bytes", n))
	}
	if a.gone {
		panic("arena: Alloc after Release")
	}
	need := (n + wordLen - 1) &^ (wordLen - 1)
	chunks := *a.chunks.Load()
	if len(chunks) == 0 || need > len(chunks[a.current])-a.off {
		if need > maxChunkBytes/4 && len(chunks) > 0 {
			// A large piece gets a chunk of its own, lest the rest of the current one be lost.
			return a.alone(n, need)
		}
		chunks = a.startChunk(need)
	}
	ref := Ref(a.current)<<refShift | Ref(a.off)
	piece := chunks[a.current][a.off : a.off+n : a.off+n]
	a.off += need
	return ref, piece
}

// startChunk makes a chunk with room for need bytes the current one. What is left of the one before
// is lost: less than need, and at least four times need is what a chunk has, save the largest.
func (a *Arena) startChunk(need int) [][]byte {
	for a.next < 4*need && a.next < maxChunkBytes {
		a.next *= 2
	}
	chunks := a.addChunk(max(a.next, need+wordLen))
	a.current, a.off = len(chunks)-1, 0
	a.next = min(2*a.next, maxChunkBytes)
	if a.current == 0 {
		a.off = wordLen // so that no piece is named 0
	}
	return chunks
}

// alone returns a piece in a new chunk that holds nothing else.
func (a *Arena) alone(n, need int) (Ref, []byte) {
	chunks := a.addChunk(max(need, wordLen))
	last := len(chunks) - 1
	return Ref(last) << refShift, chunks[last][:n:n]
}

// addChunk puts a chunk of n bytes, a multiple of 8, at the end and shows it to readers.
func (a *Arena) addChunk(n int) [][]byte {
	// Made of words, so that the first byte is aligned for Word wherever the program runs.
	words := make([]uint64, n/wordLen)
	chunks := append(*a.chunks.Load(), unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), n))
	a.chunks.Store(&chunks)
	a.size.Add(int64(n))
	a.grow(int64(n))
	return chunks
}

// Bytes returns the memory from the start of the piece to the end of its chunk. How long the piece
// is, its owner knows; what follows belongs to others and must not be read.
func (a *Arena) Bytes(ref Ref) []byte {
	return (*a.chunks.Load())[ref>>refShift][ref&refMask:]
}

// Word returns 8 bytes of a piece as a number for atomic use; ref may be the name of a piece plus a
// multiple of 8 that is within it.
func (a *Arena) Word(ref Ref) *atomic.Uint64 {
	b := a.Bytes(ref)[:wordLen]
	if ref%wordLen != 0 {
		panic(fmt.Sprintf("arena: word at %d", ref&refMask))
	}
	return (*atomic.Uint64)(unsafe.Pointer(&b[0]))
}

// Size returns the bytes that the Arena has taken, unused ends of chunks among them.
func (a *Arena) Size() int64 { return a.size.Load() }

// Release calls grow with the negative number of all bytes taken. Readers that still use the Arena
// may continue: its memory stays valid while it is referenced. Further calls do nothing.
func (a *Arena) Release() {
	if a.gone {
		return
	}
	a.gone = true
	a.grow(-a.size.Load())
}
