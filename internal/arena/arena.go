// Package arena allocates append-only memory without pointers, for many small pieces that are freed
// together.
//
// The garbage collector must visit each of a million rows that are separate Go objects. In an arena
// the rows are in a few dozen chunks that it does not scan. A Ref identifies a piece; it is a
// number without pointers, so it can be stored in another piece. Pieces do not move and are not
// freed one by one: the memory is freed with the Arena.
//
// Alloc and Release must not be called concurrently. Any number of goroutines may call Bytes, Word
// and Size at the same time, with Refs that they received through some synchronization (an atomic,
// a lock, a channel) after the piece was filled:
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

// Ref identifies a piece. The bits above refShift are the number of its chunk, the bits below are
// the offset in the chunk. 0 is no piece.
type Ref uint64

const (
	refShift = 40
	refMask  = 1<<refShift - 1

	wordLen = 8 // alignment of pieces

	// The first chunk is small, since a store with a thousand rowsets has a thousand delta mem
	// stores. Each further chunk is twice as large, up to the largest: at most half of a small
	// arena and one chunk of a large one are unused.
	firstChunkBytes = 4 << 10
	maxChunkBytes   = 1 << 20
)

// Arena is memory for pieces. Create one with New.
type Arena struct {
	grow func(n int64)

	// Used by the writer only.
	current int // index of the chunk that new pieces are allocated from
	off     int // offset of its first free byte
	next    int // size of the next chunk in bytes
	gone    bool

	// chunks is replaced as a whole when it grows. An append may write into the array that readers
	// use, but only beyond the length of their slice.
	chunks atomic.Pointer[[][]byte]
	size   atomic.Int64
}

// New returns an empty Arena. grow, if not nil, is called with the size in bytes of each chunk when
// it is allocated, and with the negative sum on Release.
func New(grow func(n int64)) *Arena {
	if grow == nil {
		grow = func(int64) {}
	}
	a := &Arena{grow: grow, next: firstChunkBytes}
	a.chunks.Store(new([][]byte))
	return a
}

// Alloc returns a new piece of n zero bytes and its Ref, which is never 0. The piece is aligned to
// 8 bytes. The caller may write to it until it shares the Ref.
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
			// Allocate a large piece in its own chunk to keep the rest of the current one.
			return a.alone(n, need)
		}
		chunks = a.startChunk(need)
	}
	ref := Ref(a.current)<<refShift | Ref(a.off)
	piece := chunks[a.current][a.off : a.off+n : a.off+n]
	a.off += need
	return ref, piece
}

// startChunk makes a new chunk with room for need bytes current. The rest of the chunk before is
// wasted; that is less than need, and except for chunks of the largest size, a chunk has at least
// four times need bytes. The first one need not, since many an arena has one piece only.
func (a *Arena) startChunk(need int) [][]byte {
	least := 4 * need
	if a.size.Load() == 0 {
		least = need + wordLen
	}
	for a.next < least && a.next < maxChunkBytes {
		a.next *= 2
	}
	chunks := a.addChunk(max(a.next, need+wordLen))
	a.current, a.off = len(chunks)-1, 0
	a.next = min(max(a.next, int(a.size.Load())), maxChunkBytes) // which doubles the size
	if a.current == 0 {
		a.off = wordLen // no piece has Ref 0
	}
	return chunks
}

// alone returns a piece that is alone in a new chunk.
func (a *Arena) alone(n, need int) (Ref, []byte) {
	chunks := a.addChunk(max(need, wordLen))
	last := len(chunks) - 1
	return Ref(last) << refShift, chunks[last][:n:n]
}

// addChunk appends a chunk of n bytes, a multiple of 8, and publishes it to readers.
func (a *Arena) addChunk(n int) [][]byte {
	// Allocated as words, which aligns the first byte for Word on every platform.
	words := make([]uint64, n/wordLen)
	chunks := append(*a.chunks.Load(), unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), n))
	a.chunks.Store(&chunks)
	a.size.Add(int64(n))
	a.grow(int64(n))
	return chunks
}

// Bytes returns the memory from the start of the piece to the end of its chunk. The caller must
// know the length of the piece; the bytes after it belong to others and must not be read.
func (a *Arena) Bytes(ref Ref) []byte {
	return (*a.chunks.Load())[ref>>refShift][ref&refMask:]
}

// Word returns the first 8 bytes of b, part of a piece from a multiple of 8 on, for atomic use.
func Word(b []byte) *atomic.Uint64 {
	p := unsafe.Pointer(&b[:wordLen][0])
	if uintptr(p)%wordLen != 0 {
		panic("arena: a word that is not aligned")
	}
	return (*atomic.Uint64)(p)
}

// Size returns the number of bytes allocated, including unused ends of chunks.
func (a *Arena) Size() int64 { return a.size.Load() }

// Release calls grow with the negative size of the Arena. Readers that still use the Arena may
// continue: its memory stays valid while it is referenced. Further calls do nothing.
func (a *Arena) Release() {
	if a.gone {
		return
	}
	a.gone = true
	a.grow(-a.size.Load())
}
