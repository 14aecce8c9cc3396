package hfile

import (
	"errors"
	"runtime"
)

// readAhead uncompresses the data blocks after the current one in other goroutines. A scan of
// compressed blocks spends nearly all its time there.
//
// It looks at the entries of one index block only, so a scan waits at the end of each.
type readAhead struct {
	r      *Reader
	blocks int           // how many were requested; the first ones start few goroutines
	queue  []*aheadBlock // blocks being read, in the order of the file
	cur    *aheadBlock   // the block that load returned last; nil if it returned none
	free   []*aheadBlock
}

// aheadBlock is a data block that a goroutine reads.
type aheadBlock struct {
	entry indexEntry
	block loadedBlock
	buf   blockBuffer
	err   error
	done  chan struct{} // receives a value when the goroutine is done
}

// A block read ahead takes at most maxAheadRatio+1 times its size in the file, so that together they
// stay within the memory limit, which is a multiple of the file's size.
const (
	maxAheadBlocks = 4
	maxAheadRatio  = 16
)

// errNotAhead is the error of a block that was not read ahead.
var errNotAhead = errors.New("hfile: not read ahead")

// load returns the block of an entry, which is valid until the next call, if it was read ahead, or
// else errNotAhead. It begins to read those of the entries after it, which next returns.
func (a *readAhead) load(e indexEntry, magic string, next func(i int) (indexEntry, bool)) (*loadedBlock, error) {
	if a.cur != nil {
		a.free, a.cur = append(a.free, a.cur), nil
	}
	if len(a.queue) > 0 && a.queue[0].entry.offset == e.offset && a.queue[0].entry.size == e.size {
		a.cur = a.pop()
	} else {
		a.wait()
	}
	depth := min(a.blocks, runtime.GOMAXPROCS(0), maxAheadBlocks)
	a.blocks++
	for len(a.queue) < depth {
		e, ok := next(len(a.queue))
		if !ok {
			break
		}
		b := a.take()
		b.entry = e
		a.queue = append(a.queue, b)
		go func() {
			b.err = b.read(a.r, magic)
			b.done <- struct{}{}
		}()
	}
	if a.cur == nil {
		return nil, errNotAhead
	}
	return &a.cur.block, a.cur.err
}

// read reads and uncompresses the block.
func (b *aheadBlock) read(r *Reader, magic string) error {
	if err := r.readStored(&b.buf, b.entry.offset, b.entry.size); err != nil {
		return err
	}
	if h, err := parseHeader(b.buf.stored); err == nil && h.uncompressed/maxAheadRatio > len(b.buf.stored) {
		return errNotAhead
	}
	return r.openInto(&b.block, &b.buf, b.entry.offset, magic)
}

// take returns memory for a block.
func (a *readAhead) take() *aheadBlock {
	n := len(a.free)
	if n == 0 {
		return &aheadBlock{done: make(chan struct{}, 1)}
	}
	b := a.free[n-1]
	a.free = a.free[:n-1]
	return b
}

// pop waits for the first block of the queue and removes it.
func (a *readAhead) pop() *aheadBlock {
	b := a.queue[0]
	a.queue = append(a.queue[:0], a.queue[1:]...)
	<-b.done
	return b
}

// wait waits until no goroutine reads.
func (a *readAhead) wait() {
	for len(a.queue) > 0 {
		a.free = append(a.free, a.pop())
	}
}
