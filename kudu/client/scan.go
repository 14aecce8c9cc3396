package client

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/kudurow"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// Scan is the rows of a table at one time, in batches:
//
//	scan, err := t.Scan(ctx, client.ScanOptions{Columns: []string{"host", "usage"}})
//	…
//	for scan.Next() {
//		use(scan.Batch()) // valid until the next call of Next
//	}
//	err = scan.Close() // the first error
//
// A Scan is not safe for concurrent use.
type Scan struct {
	t    *Table
	p    *plan
	left int64 // of the limit, unless that is 0

	cancel  context.CancelFunc
	results chan *answer // is closed after the last one
	wg      sync.WaitGroup
	memory  memory
	last    *answer // which the caller has

	mu      sync.Mutex
	err     error // the first one of any tablet
	stopped bool  // the caller wants no more rows
}

// answer is an answer of a server, as rows.
type answer struct {
	tablet string
	batch  *batch.RecordBatch
	rows   int64 // also if there are no columns
	bytes  int   // that are noted for it in Scan.memory
	memory *answerMemory
}

// Scan begins to read rows, until ctx ends. Errors: ErrNoColumn, ErrSchema, ErrTooOld, ErrFuture; with
// From, ErrUnsupported for a table that was altered.
func (t *Table) Scan(ctx context.Context, o ScanOptions) (*Scan, error) {
	s, err := t.scan(ctx, o)
	if err != nil {
		return nil, t.wrap(err)
	}
	return s, nil
}

func (t *Table) scan(ctx context.Context, o ScanOptions) (*Scan, error) {
	if o.Columns != nil && len(o.Columns) == 0 && o.From == 0 {
		return nil, errors.New("scan without columns: use Count")
	}
	p, err := t.plan(o)
	if err != nil {
		return nil, err
	}
	return t.start(ctx, p)
}

// start begins a scan.
func (t *Table) start(ctx context.Context, p *plan) (*Scan, error) {
	if err := t.checkDiff(ctx, p); err != nil {
		return nil, err
	}
	tablets, err := t.chosen(ctx, p.o.Tablet, p.pruner(t))
	if err != nil {
		return nil, err
	}
	s := &Scan{t: t, p: p, left: p.o.Limit, results: make(chan *answer)}
	s.memory.limit = p.o.MemoryBytes
	if p.o.At == 0 && p.o.From == 0 && len(tablets) == 1 && !p.tests.None {
		return s, s.runOne(ctx, tablets[0])
	}
	at := p.o.At
	if at == 0 {
		if at, err = t.snapshot(ctx, p.o); err != nil {
			return nil, err
		}
	}
	p.setTimes(at)
	ctx, s.cancel = context.WithCancel(ctx)
	if p.tests.None {
		tablets = nil
	}
	s.run(ctx, tablets)
	return s, nil
}

// chosen returns the IDs of the tablets of a scan: one, or all that may have its rows. A read of all rows
// asks the masters for them: it must not miss a range that another client has added.
func (t *Table) chosen(ctx context.Context, only string, prune *kudurow.Pruner) (ids []string, err error) {
	known, err := t.tablets(ctx)
	if err == nil && prune == nil {
		known, err = t.refresh(ctx, known)
	}
	if err != nil {
		return nil, err
	}
	if only != "" {
		return []string{only}, nil
	}
	for _, tablet := range known.all {
		if prune == nil || prune.MayHave(tablet.start, tablet.end, tablet.buckets) {
			ids = append(ids, tablet.id)
		}
	}
	return ids, nil
}

// checkDiff refuses to read the changes of a table whose servers may report them wrongly.
func (t *Table) checkDiff(ctx context.Context, p *plan) error {
	if p.o.From == 0 || p.o.AltersAddOnly {
		return nil
	}
	version, err := t.SchemaVersion(ctx)
	if err == nil && version != 0 {
		err = fmt.Errorf("scan of changes of a table that was altered %d times: read all rows, or set AltersAddOnly "+
			"if the alterations have added only: %w", version, ErrUnsupported)
	}
	return err
}

// run reads the tablets, some at a time.
func (s *Scan) run(ctx context.Context, ids []string) {
	queue := make(chan string, len(ids))
	for _, id := range ids {
		queue <- id
	}
	close(queue)
	for range min(s.p.o.Tablets, len(ids)) {
		s.wg.Go(func() {
			for id := range queue {
				r, err := s.open(ctx, id)
				if err == nil {
					err = r.read(ctx, nil)
				}
				if err != nil {
					s.fail(err)
					return
				}
			}
		})
	}
	go func() {
		s.wg.Wait()
		close(s.results)
	}()
}

// runOne reads the only tablet. Its server chooses the time, with the first rows.
func (s *Scan) runOne(ctx context.Context, id string) error {
	ctx, s.cancel = context.WithCancel(ctx)
	r, err := s.open(ctx, id)
	if err != nil {
		s.cancel()
		return err
	}
	first, err := r.next(ctx)
	if err != nil {
		r.close(ctx)
		s.cancel()
		return err
	}
	go func() {
		if err := r.read(ctx, first); err != nil {
			s.fail(err)
		}
		close(s.results)
	}()
	return nil
}

// fail ends the scan with an error, unless it has one.
func (s *Scan) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil && !s.stopped {
		s.err = err
	}
	s.cancel()
}

// stop ends the scan. That it fails from now on is no error.
func (s *Scan) stop() {
	s.mu.Lock()
	s.stopped = true
	s.mu.Unlock()
	s.cancel()
}

func (s *Scan) failed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Next reports whether there is another batch with rows. It waits for it.
func (s *Scan) Next() bool {
	for {
		s.release()
		a, ok := <-s.results
		if !ok {
			s.cancel()
			return false
		}
		s.last = a
		if s.p.o.Limit > 0 && !s.cut(a) {
			continue
		}
		if a.rows > 0 {
			return true
		}
	}
}

// cut keeps as many rows of a as the limit allows. It reports whether there are any.
func (s *Scan) cut(a *answer) bool {
	if s.left == 0 {
		s.stop()
		return false
	}
	if a.rows > s.left {
		keep := a.batch.Selection
		n := int64(0)
		for i := keep.Next(0); i >= 0; i = keep.Next(i + 1) {
			if n++; n > s.left {
				keep.Clear(i)
			}
		}
		a.rows = s.left
	}
	s.left -= a.rows
	return true
}

// release gives the memory of the last batch back.
func (s *Scan) release() {
	if s.last != nil {
		s.end(s.last)
		s.last = nil
	}
}

// Batch returns the rows of the last call of Next, valid until the next one. Some may not be selected.
func (s *Scan) Batch() *batch.RecordBatch { return s.last.batch }

// Tablet returns the ID of the tablet of Batch.
func (s *Scan) Tablet() string { return s.last.tablet }

// At returns the time of the rows: those written before it.
func (s *Scan) At() mvcc.Timestamp { return s.p.o.At }

// Columns returns the columns of the batches.
func (s *Scan) Columns() []schema.Column { return s.p.columns[:s.p.n] }

// Close ends the scan, and returns its first error. It may be called twice.
func (s *Scan) Close() error {
	s.stop()
	for a := range s.results { // until all tablets have ended
		s.end(a)
	}
	s.release()
	return s.t.wrap(s.failed())
}

// Count returns the number of rows of a scan, without their cells, and its time.
func (t *Table) Count(ctx context.Context, o ScanOptions) (rows int64, at mvcc.Timestamp, err error) {
	o.Columns = []string{}
	p, err := t.plan(o)
	if err != nil {
		return 0, 0, t.wrap(err)
	}
	s, err := t.start(ctx, p)
	if err != nil {
		return 0, 0, t.wrap(err)
	}
	for s.Next() {
		rows += s.last.rows
	}
	return rows, s.At(), s.Close()
}
