package scan

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/oribi-db/oribi/batch"
)

// errNoOrder is the error of Seek on an iterator whose rows are in no order.
var errNoOrder = errors.New("scan: seek in a scan without order")

// queue hands out parts, each once. It is safe for concurrent use.
type queue struct {
	parts []Opener
	taken atomic.Int64
}

// next opens the next part. It returns nil if none is left.
func (q *queue) next() (Iterator, error) {
	i := q.taken.Add(1) - 1
	if i >= int64(len(q.parts)) {
		return nil, nil
	}
	it, err := q.parts[i]()
	if err != nil {
		return nil, err // it may be a nil pointer in an interface
	}
	return it, nil
}

// empty ends the queue.
func (q *queue) empty() { q.taken.Store(int64(len(q.parts))) }

// Parallel returns the rows of all parts in one iterator, in any order. They are read by n
// goroutines, of which the caller of Next is one: if no other has a batch ready, it reads one
// itself. Each of them keeps one part open and one batch in memory. Close ends the others and waits
// for them.
func Parallel(parts []Opener, n int) Iterator {
	n = max(1, min(n, len(parts)))
	return &parallel{queue: queue{parts: parts}, workers: n - 1, ready: make(chan *worker), stop: make(chan struct{})}
}

type parallel struct {
	queue   queue
	workers int          // the other goroutines, to be started or running
	started bool         // they were started
	ready   chan *worker // those that have a batch, or have ended
	stop    chan struct{}
	stopped bool
	running sync.WaitGroup
	own     Iterator // the caller's part
	cur     *worker  // whose batch is the current one; nil if it is own's
	err     error
}

// worker is one of the other goroutines.
type worker struct {
	it     Iterator
	ended  bool
	err    error
	resume chan struct{} // the caller no longer needs the batch
}

// run reads parts and passes each batch to the caller.
func (p *parallel) run(w *worker) {
	for {
		var err error
		if w.it, err = p.queue.next(); err != nil || w.it == nil {
			w.err = err
			break
		}
		if !p.pass(w) {
			w.it.Close()
			return
		}
		if w.err = w.it.Close(); w.err != nil {
			break
		}
	}
	w.ended = true
	select {
	case p.ready <- w:
	case <-p.stop:
	}
}

// pass passes the batches of one part. It returns false if the scan was stopped.
func (p *parallel) pass(w *worker) bool {
	for w.it.Next() {
		select {
		case p.ready <- w:
		case <-p.stop:
			return false
		}
		select {
		case <-w.resume:
		case <-p.stop:
			return false
		}
	}
	return true
}

func (p *parallel) start() {
	p.started = true
	for range p.workers {
		w := &worker{resume: make(chan struct{}, 1)}
		p.running.Go(func() { p.run(w) })
	}
}

func (p *parallel) Next() bool {
	if !p.started {
		p.start()
	}
	if p.cur != nil {
		p.cur.resume <- struct{}{}
		p.cur = nil
	}
	for p.err == nil && !p.stopped {
		select {
		case w := <-p.ready:
			if p.take(w) {
				return true
			}
			continue
		default:
		}
		if p.own == nil {
			p.own, p.err = p.queue.next()
		}
		switch {
		case p.err != nil:
		case p.own == nil && p.workers == 0:
			return false
		case p.own == nil:
			if p.take(<-p.ready) {
				return true
			}
		case p.own.Next():
			return true
		default:
			p.err = p.own.Close()
			p.own = nil
		}
	}
	return false
}

// take makes the batch of w the current one. It returns false if w has ended instead.
func (p *parallel) take(w *worker) bool {
	if w.ended {
		p.workers--
		p.err = w.err
		return false
	}
	p.cur = w
	return true
}

func (p *parallel) current() Iterator {
	if p.cur != nil {
		return p.cur.it
	}
	return p.own
}

func (p *parallel) Batch() *batch.RecordBatch { return p.current().Batch() }
func (p *parallel) Keys() [][]byte            { return p.current().Keys() }
func (p *parallel) Seek([]byte) error         { return errNoOrder }

func (p *parallel) Close() error {
	if p.stopped {
		return p.err
	}
	p.stopped = true
	p.queue.empty()
	close(p.stop)
	p.running.Wait()
	if p.own != nil {
		if err := p.own.Close(); p.err == nil {
			p.err = err
		}
	}
	return p.err
}
