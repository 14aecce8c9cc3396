package arrowio

import (
	"math"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/oribi-db/oribi/batch"
)

// allocator returns a, or the default allocator.
func allocator(a memory.Allocator) memory.Allocator {
	if a == nil {
		return memory.DefaultAllocator
	}
	return a
}

// bounded is an allocator for reading files. It refuses a buffer that is larger than any that a
// well-formed file needs, which arrow-go would allocate for a length in a damaged one.
type bounded struct {
	memory.Allocator
	left int // bytes that may be allocated, in all, until it is set again
}

// maxBuffer is the size of the largest buffer for reading a file: one page of Parquet, one buffer
// of a record batch.
const maxBuffer = 1 << 30

// Compressed buffers of a message have at most maxExpansion times the bytes of its body: zstd makes
// 128 KiB of four bytes. freeBytes more may be allocated, since sizes are rounded.
const (
	maxExpansion = 1 << 15
	freeBytes    = 1 << 20
)

// newBounded returns an allocator that bounds only the size of each buffer.
func newBounded(a memory.Allocator) *bounded { return &bounded{a, math.MaxInt} }

func (b *bounded) take(size int) {
	if size < 0 || size > maxBuffer || size > b.left {
		panic(corruptf("a buffer of %d bytes, limit %d", size, min(b.left, maxBuffer)))
	}
	b.left -= size
}

func (b *bounded) Allocate(size int) []byte {
	b.take(size)
	return b.Allocator.Allocate(size)
}

func (b *bounded) Reallocate(size int, old []byte) []byte {
	b.take(size)
	return b.Allocator.Reallocate(size, old)
}

// tracked is an allocator that knows what was not freed: arrow-go's decoders of differences keep
// their buffer. Not safe for concurrent use.
type tracked struct {
	memory.Allocator
	live map[*byte][]byte
}

func newTracked(a memory.Allocator) *tracked { return &tracked{a, map[*byte][]byte{}} }

func (t *tracked) add(b []byte) []byte {
	if cap(b) > 0 {
		t.live[unsafe.SliceData(b)] = b
	}
	return b
}

func (t *tracked) Allocate(size int) []byte { return t.add(t.Allocator.Allocate(size)) }

func (t *tracked) Reallocate(size int, old []byte) []byte {
	b := t.Allocator.Reallocate(size, old) // old is still live if this panics
	delete(t.live, unsafe.SliceData(old))
	return t.add(b)
}

// Free frees b, once.
func (t *tracked) Free(b []byte) {
	if _, ok := t.live[unsafe.SliceData(b)]; !ok && cap(b) > 0 {
		return
	}
	delete(t.live, unsafe.SliceData(b))
	t.Allocator.Free(b)
}

// freeAll frees what was not freed.
func (t *tracked) freeAll() {
	for _, b := range t.live {
		t.Allocator.Free(b)
	}
	clear(t.live)
}

// bytesOf returns the bytes of s, which it aliases.
func bytesOf[T any](s []T) []byte {
	var z T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(z)))
}

// valuesOf returns n values at the beginning of b, which it aliases if that is aligned for them.
func valuesOf[T any](b []byte, n int) []T {
	var z T
	size := int(unsafe.Sizeof(z))
	b = b[:n*size] // panics if b is too short
	if n == 0 {
		return nil
	}
	if uintptr(unsafe.Pointer(unsafe.SliceData(b)))%uintptr(min(size, 8)) != 0 {
		words := make([]uint64, (len(b)+7)/8)
		copy(bytesOf(words), b)
		b = bytesOf(words)
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), n)
}

// borrowed returns a buffer over memory of Go, which it does not copy. Nobody changes the memory
// afterwards; the garbage collector frees it.
func borrowed[T any](s []T) *memory.Buffer { return memory.NewBufferBytes(bytesOf(s)) }

// allocate returns a buffer of n bytes.
func allocate(mem memory.Allocator, n int) *memory.Buffer {
	b := memory.NewResizableBuffer(mem)
	b.Resize(n)
	return b
}

// release releases the buffers that are not nil.
func release(buffers []*memory.Buffer) {
	for _, b := range buffers {
		if b != nil {
			b.Release()
		}
	}
}

// makeArray returns an array of n cells, which owns buffers: they are released with it.
func makeArray(t arrow.DataType, n, nulls int, buffers []*memory.Buffer, children ...arrow.ArrayData) arrow.Array {
	data := array.NewData(t, n, buffers, children, nulls, 0)
	defer data.Release()
	release(buffers) // data holds its own references
	return array.MakeFromData(data)
}

// validity returns the buffer of a presence bitmap and the number of NULLs; no buffer if there is
// none.
func validity(present batch.Bitmap, n int) (b *memory.Buffer, nulls int) {
	if present == nil {
		return nil, 0
	}
	if nulls = n - present.Count(); nulls == 0 {
		return nil, 0
	}
	return memory.NewBufferBytes(bytesOf(present)[:(n+7)/8]), nulls
}
