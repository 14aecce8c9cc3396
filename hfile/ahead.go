package hfile

import (
	"errors"
	"runtime"
	"sync"
)

// readAhead reads, checks, and uncompresses the data blocks after the current one. A scan of
// compressed blocks spends most of its time on that, a scan of other blocks up to a third.
//
// Workers take the blocks in the order of the file. The cursor works too: where the block that it
// needs is not ready, it begins the next block that no goroutine has begun. It waits only if all
// requested blocks are begun. So it rarely sleeps, and a scan is not slower where no other CPU is
// free:
//
//	cursor  scans 1, reads 3, scans 2, scans 3, reads 5, scans 4, scans 5, …
//	worker  reads 2,          reads 4,          reads 6, …
//
// It looks at the entries of one index block only, so the workers end at the end of each.
type readAhead struct {
	r       *Reader
	workers int           // goroutines, at most
	blocks  int           // how many were loaded one after the other; the first ones request few
	cur     *aheadBlock   // the block that load returned last; nil if it returned none
	free    []*aheadBlock // memory for blocks

	mu      sync.Mutex
	changed sync.Cond     // a block is ready, or a worker has ended
	queue   []*aheadBlock // requested blocks, in the order of the file
	running int           // goroutines
}

// aheadBlock is a block that is read ahead. Who begins it uses it alone until it is ready.
type aheadBlock struct {
	entry indexEntry
	state aheadState
	block loadedBlock
	buf   blockBuffer
	err   error
}

type aheadState uint8

const (
	aheadWaiting aheadState = iota
	aheadBegun
	aheadReady
)

// Each worker has a block, and two more are requested: one a worker takes next, and another for the
// cursor. A block read ahead takes at most maxAheadRatio+1 times its size in the file, so together
// they stay within the memory limit, which is a multiple of the file's size.
const (
	maxAheadWorkers = 3
	aheadMore       = 2
	maxAheadRatio   = 16
)

// errNotAhead is the error of a block that was not read ahead.
var errNotAhead = errors.New("hfile: not read ahead")

// newReadAhead returns nil if there is nothing to gain.
func newReadAhead(r *Reader) *readAhead {
	workers := min(runtime.GOMAXPROCS(0)-1, maxAheadWorkers)
	if workers == 0 || r.cache != nil {
		return nil
	}
	a := &readAhead{r: r, workers: workers}
	a.changed.L = &a.mu
	return a
}

// load returns the block of an entry, which is valid until the next call, if it was read ahead, or
// else errNotAhead. It requests the blocks of the entries after it, which next returns.
func (a *readAhead) load(e indexEntry, next func(i int) (indexEntry, bool)) (*loadedBlock, error) {
	if a.cur != nil {
		a.free, a.cur = append(a.free, a.cur), nil
	}
	if len(a.queue) > 0 {
		if first := a.queue[0].entry; first.offset == e.offset && first.size == e.size {
			a.request(1, next)
			a.cur = a.pop()
			return &a.cur.block, a.cur.err
		}
		a.stop()
	}
	a.request(0, next)
	return nil, errNotAhead
}

// request adds blocks after the current one to the queue until there are enough, and starts workers
// for them. The first own blocks of the queue are not after the current one.
func (a *readAhead) request(own int, next func(i int) (indexEntry, bool)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	depth := min(a.blocks, a.workers+aheadMore)
	a.blocks++
	for len(a.queue)-own < depth {
		e, ok := next(len(a.queue) - own)
		if !ok {
			break
		}
		b := new(aheadBlock)
		if n := len(a.free); n > 0 {
			b, a.free = a.free[n-1], a.free[:n-1]
		}
		b.entry, b.state = e, aheadWaiting
		a.queue = append(a.queue, b)
		if a.running < a.workers {
			a.running++
			go a.work()
		}
	}
}

// work reads blocks as long as there are any.
func (a *readAhead) work() {
	for b := a.begin(); b != nil; b = a.begin() {
		a.read(b)
	}
}

// begin begins the next block for a worker. It returns nil when no more blocks will be requested,
// and the worker ends.
func (a *readAhead) begin() *aheadBlock {
	a.mu.Lock()
	defer a.mu.Unlock()
	b := a.firstWaiting()
	if b == nil {
		a.running--
		a.changed.Signal()
	}
	return b
}

// pop removes the first block of the queue, once it is ready. Until then it reads others.
func (a *readAhead) pop() *aheadBlock {
	first := a.queue[0]
	for b := a.beginUntil(first); b != nil; b = a.beginUntil(first) {
		a.read(b)
	}
	return first
}

// beginUntil begins the next block for the cursor. Once the first block of the queue is ready, it
// removes that and returns nil.
func (a *readAhead) beginUntil(first *aheadBlock) *aheadBlock {
	a.mu.Lock()
	defer a.mu.Unlock()
	for first.state != aheadReady {
		if b := a.firstWaiting(); b != nil {
			return b
		}
		a.changed.Wait()
	}
	a.queue = append(a.queue[:0], a.queue[1:]...)
	return nil
}

// firstWaiting begins the first block that no goroutine has begun. It returns nil if all are begun.
// a.mu is locked.
func (a *readAhead) firstWaiting() *aheadBlock {
	for _, b := range a.queue {
		if b.state == aheadWaiting {
			b.state = aheadBegun
			return b
		}
	}
	return nil
}

// read reads a block that was begun.
func (a *readAhead) read(b *aheadBlock) {
	b.err = b.read(a.r)
	a.mu.Lock()
	b.state = aheadReady
	a.changed.Signal()
	a.mu.Unlock()
}

// stop forgets the requested blocks and waits until the workers have ended.
func (a *readAhead) stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.queue, a.free, a.blocks = nil, nil, 0
	for a.running > 0 {
		a.changed.Wait()
	}
}

// read reads and uncompresses the block.
func (b *aheadBlock) read(r *Reader) error {
	if err := r.readStored(&b.buf, b.entry.offset, b.entry.size); err != nil {
		return err
	}
	if h, err := parseHeader(b.buf.stored); err == nil && h.uncompressed/maxAheadRatio > len(b.buf.stored) {
		return errNotAhead
	}
	return r.openInto(&b.block, &b.buf, b.entry.offset, r.dataMagic())
}
