package oribi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/budget"
	"github.com/oribi-db/oribi/internal/parallel"
	"github.com/oribi-db/oribi/scan"
	"github.com/oribi-db/oribi/scaninfo"
)

// Workers reads in n goroutines, of which the caller's is one; a value below 1 means one for each
// processor that Go uses. It includes AnyOrder: the rows come in no order, and not in the same
// order each time. A goroutine takes up to 4,096 rows in memory or 65,536 rows of a file at
// a time. There are fewer goroutines if there is less to read, or if the memory of all scans, about
// 600 KiB for each goroutine and column, would exceed a quarter of Options.MemoryLimit.
// Errors of the read: one for Workers together with Desc.
func Workers(n int) CountOption {
	if n < 1 {
		n = runtime.GOMAXPROCS(0)
	}
	return countOption(func(o *readOptions) {
		if o.workers = n; o.order != descendingOrder {
			o.order = anyOrder
		}
	})
}

// workerColumnBytes is the memory that a goroutine of a scan may need for a column, apart from the
// cache: two cblocks that the cache has already dropped, and a window of cells.
const workerColumnBytes = 2<<18 + 16*batch.WindowRows

var errWorkersOrder = errors.New("Desc with Workers: rows in key order are read by one goroutine")

// partsScan is a scan whose parts several goroutines share.
type partsScan struct {
	store   *Store
	view    view
	options scan.Options
	parts   []scan.Opener // of one call of each
	columns int           // of the batches and of tests
	workers int
	bytes   int64              // reserved for all workers but the first
	explain *scaninfo.Recorder // nil: nothing is explained
	ctx     context.Context
	failed  atomic.Pointer[error] // the first error of a goroutine, or nil

	// Of the caller's goroutine, until others help.
	helped atomic.Bool // others help; true in a scan whose goroutines begin together
	help   func()      // starts the others
	begun  time.Time
	steps  int // parts of p.parts, or ranges of rows, that were begun
}

// Waking a processor takes some 40 µs, during which the caller works alone, and costs the caller
// about five.
const (
	// times columns: others help from the beginning; 0.8 million rows of a column take 60 µs or more
	manyParts = 12
	worthHelp = 30 * time.Microsecond // of work that is left, for others to help in a scan of less
)

// begin is called when the caller's goroutine begins.
func (p *partsScan) begin(help func()) {
	p.help, p.begun, p.steps = help, time.Now(), 0
	p.helped.Store(p.workers == 1)
	if p.workers > 1 && len(p.parts)*p.columns >= manyParts {
		p.wake()
	}
}

// wake starts the other goroutines.
func (p *partsScan) wake() {
	p.helped.Store(true)
	p.help()
}

// step is called before a part of the scan is begun. It starts the other goroutines if enough work
// is left, to judge by the time that the caller has taken so far.
func (p *partsScan) step() error {
	if p.helped.Load() {
		return p.pause()
	}
	if left := len(p.parts) - p.steps; p.steps > 0 &&
		time.Since(p.begun)*time.Duration(left)/time.Duration(p.steps) >= worthHelp {
		p.wake()
	}
	p.steps++
	return p.pause()
}

// errStopped is the error of goroutines of a scan that was closed.
var errStopped = errors.New("the scan is closed")

// fail makes the goroutines take no more rows. It returns the first error of all.
func (p *partsScan) fail(err error) error {
	p.failed.CompareAndSwap(nil, &err)
	return *p.failed.Load()
}

// pause returns the error with which a goroutine ends before it takes more rows, nil for none.
func (p *partsScan) pause() error {
	if err := p.failed.Load(); err != nil {
		return *err
	}
	return p.store.interrupted(p.ctx)
}

// newPartsScan divides a scan into parts, for so many workers or fewer. It takes over the view.
func newPartsScan(ctx context.Context, s *Store, workers int, v view, o scan.Options) (*partsScan, error) {
	p := &partsScan{store: s, view: v, options: o, columns: len(o.Columns), ctx: ctx}
	p.helped.Store(true)
	var err error
	if p.parts, err = v.Parts(o, p.step); err != nil {
		v.Release()
		return nil, fmt.Errorf("oribi: %w", err)
	}
	for range o.Filter.Tests() {
		p.columns++
	}
	each := max(1, int64(p.columns)) * workerColumnBytes
	workers = max(1, min(workers, len(p.parts)))
	if limit := s.core.Budget.Limit(); limit > 0 {
		workers = int(min(int64(workers), max(1, (limit/4-s.core.Budget.UsedBy(budget.Scan))/each)))
	}
	p.workers, p.bytes = workers, int64(workers-1)*each
	s.core.Budget.Reserve(budget.Scan, p.bytes)
	return p, nil
}

// Workers returns the number of goroutines.
func (p *partsScan) Workers() int { return p.workers }

// Each calls f for the batches of the scan, in up to p.workers goroutines, and begin, unless that
// is nil, for each part before its batches. Calls with the same worker, in [0, p.workers), never
// overlap.
func (p *partsScan) Each(begin func(worker int, it scan.Iterator),
	f func(worker int, b *batch.RecordBatch) error) error {
	start := time.Now()
	err := parallel.EachLate(len(p.parts), p.workers, p.begin, func(worker, i int) error {
		it, err := p.parts[i]()
		if err == nil {
			if begin != nil {
				begin(worker, it)
			}
			err = cmp.Or(p.use(worker, it, f), it.Close())
		}
		if err != nil {
			err = p.fail(err)
		}
		return err
	})
	if r := p.explain; r != nil {
		r.Timed(start)
		r.SetWorkers(p.workers)
		r.Complete = err == nil
	}
	return err
}

// use calls f for the batches of a part.
func (p *partsScan) use(worker int, it scan.Iterator, f func(worker int, b *batch.RecordBatch) error) error {
	if err := p.step(); err != nil {
		return err
	}
	for it.Next() {
		if err := f(worker, it.Batch()); err != nil {
			return err
		}
		if err := p.pause(); err != nil {
			return err
		}
	}
	return nil
}

// Restart makes p read all rows once more, in one goroutine.
func (p *partsScan) Restart() (err error) {
	p.workers = 1
	p.failed.Store(nil)
	p.explain.Restart()
	p.parts, err = p.view.Parts(p.options, p.step)
	return err
}

// close ends the scan. No goroutine uses it any longer.
func (p *partsScan) close() {
	p.view.Release()
	p.store.core.Budget.Release(budget.Scan, p.bytes)
	if p.explain != nil {
		p.explain.Finish(-1)
	}
}

// partsIterator returns the rows of a scan of parts.
type partsIterator struct {
	scan.Iterator
	parts *partsScan // nil: closed
}

func (it *partsIterator) Close() error {
	if it.parts != nil {
		it.parts.fail(errStopped)
	}
	err := it.Iterator.Close()
	if it.parts != nil {
		it.parts.close()
		it.parts = nil
	}
	return err
}
