package oribi

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/internal/budget"
	"github.com/oribi-db/oribi/internal/fault"
)

// Bounds of what may wait to be flushed or compacted.
const (
	maxLogBytes   = 128 << 20 // above it, whatever pins the oldest segment is flushed
	maxCompaction = 256 << 20 // bytes of input that one background compaction should stay below, if the memory limit is not less
	confirmAfter  = time.Second
	historyAfter  = time.Minute // after which an idle store looks for history that has become too old
	syncAfter     = 4 << 20     // bytes by which the log grows before the syncer syncs it
)

// background flushes and compacts unless Options.Manual is set, and confirms the newest metadata
// when the store is idle.
//
// It has three goroutines: one for flushes and confirmation; one for compactions, so that a long
// compaction of one table does not delay the flush of another; and one that syncs the log of write
// batches that do not wait for it. With Options.Manual only the first runs, and only confirms.
type background struct {
	s       *Store
	ctx     context.Context
	cancel  context.CancelFunc
	done    sync.WaitGroup
	flush   chan struct{} // a flush may be due
	compact chan struct{} // a compaction may be due
	sync    chan struct{} // a sync of the log is due
	synced  atomic.Int64  // length of the log when that was last begun
}

func startBackground(s *Store) *background {
	b := &background{s: s, flush: make(chan struct{}, 1), compact: make(chan struct{}, 1), sync: make(chan struct{}, 1)}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	b.done.Go(b.flusher)
	if !s.opts.Manual {
		b.done.Go(b.syncer)
		b.done.Go(b.compactor)
	}
	return b
}

// stop cancels the work in progress, before its commit, and waits for the goroutines.
func (b *background) stop() {
	b.cancel()
	b.done.Wait()
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// check wakes the flusher if a write batch has brought a table to its limit, and the syncer if the
// log has grown.
func (b *background) check(tables []*tableOps) {
	if b.s.opts.Manual {
		return
	}
	switch length := b.s.log.Bytes(); {
	case length >= b.synced.Load()+syncAfter:
		wake(b.sync)
	case length < b.synced.Load(): // segments were removed
		b.synced.Store(length)
	}
	for _, p := range tables {
		if mem, _ := p.table.tab.MemBytes(); mem >= b.s.opts.FlushBytes {
			wake(b.flush)
			return
		}
	}
	if b.s.budget.UsedBy(budget.Delta) >= b.s.deltaLimit() || b.s.log.Bytes() >= maxLogBytes {
		wake(b.flush)
	}
}

// wakeCompactor runs the policy on layouts that changed without a flush.
func (b *background) wakeCompactor() {
	if !b.s.opts.Manual {
		wake(b.compact)
	}
}

// syncer makes the log of write batches that were committed with NoSync durable, a few megabytes at
// a time. If the disk had to write all of them at once, at the end of a segment or before a flush,
// writers would wait for it.
func (b *background) syncer() {
	s := b.s
	for {
		select {
		case <-b.ctx.Done():
			return
		case <-b.sync:
		}
		b.synced.Store(s.log.Bytes())
		if err := s.log.Sync(s.lastLSN.Load()); err != nil {
			s.poison(err)
			return
		}
	}
}

func (b *background) flusher() {
	tick := time.NewTicker(confirmAfter)
	defer tick.Stop()
	for {
		select {
		case <-b.ctx.Done():
			return
		case <-tick.C:
			b.confirm()
		case <-b.flush:
			b.flushDue()
			wake(b.compact)
		}
	}
}

// confirm makes the anchor refuse older metadata, if it does not yet, and removes the log segments
// that this frees.
func (b *background) confirm() {
	s := b.s
	if s.poisoned() != nil {
		return
	}
	err := s.blocks.Confirm()
	if err == nil {
		err = s.log.Release(s.blocks.ConfirmedLogStart())
	}
	if err != nil && !isNoSpace(err) {
		s.poison(err)
	}
}

// flushDue flushes every table that has reached its limit. If the log is too long, it then flushes
// whatever pins the log.
func (b *background) flushDue() {
	s := b.s
	deltas := s.budget.UsedBy(budget.Delta) >= s.deltaLimit()
	for _, t := range s.sortedTables() {
		mem, changes := t.tab.MemBytes()
		if mem >= s.opts.FlushBytes || deltas && changes > 0 {
			b.run("flush", t, func() error { _, err := t.tab.Flush(b.ctx); return err })
		}
	}
	for range 2 {
		if s.log.Bytes() < maxLogBytes {
			return
		}
		var oldest *Table
		for _, t := range s.sortedTables() {
			if oldest == nil || t.tab.FirstLSN() < oldest.tab.FirstLSN() {
				oldest = t
			}
		}
		if oldest != nil {
			b.run("flush", oldest, func() error { _, err := oldest.tab.Flush(b.ctx); return err })
		}
		b.confirm()
	}
}

func (b *background) compactor() {
	tick := time.NewTicker(historyAfter)
	defer tick.Stop()
	for {
		select {
		case <-b.ctx.Done():
			return
		case <-b.compact:
		case <-tick.C: // more history is too old
		}
		for _, t := range b.s.sortedTables() {
			b.compactDeltas(t)
			b.run("compaction", t, func() error {
				_, err := t.tab.MergeBy(b.ctx, b.s.opts.Policy, min(maxCompaction, b.s.opts.MemoryLimit))
				return err
			})
		}
		b.s.rewriteSparse(b.ctx)
	}
}

// run performs one step and logs its failure. A table that was dropped during the step is not a
// failure.
func (b *background) run(what string, t *Table, step func() error) bool {
	err := step()
	switch {
	case err == nil:
		return true
	case errors.Is(err, context.Canceled), errors.Is(err, fault.ErrNoTable), errors.Is(err, fault.ErrClosed):
	default:
		b.s.opts.Logger.Error(what+" failed", slog.String("table", t.tab.Name()), slog.Any("err", err))
	}
	return false
}

// deltaLimit bounds the delta mem stores of all tables together.
func (s *Store) deltaLimit() int64 { return min(maxDeltaBytes, s.opts.MemoryLimit/8) }

// makeRoom makes a write batch wait while memory is full. It flushes the batch's own tables first,
// then the others. So a writer waits for the flush that its batch needs, even if Options.Manual is
// set.
func (s *Store) makeRoom(ctx context.Context, b *Batch) error {
	hard := s.opts.MemoryLimit / 2
	over := func() bool { return s.budget.Used()-s.budget.UsedBy(budget.Scan)+b.bytes > hard } // a flush frees no memory of scans
	if !over() {
		return nil
	}
	defer s.stall(b)()
	flush := func(t *Table) error {
		// Other writers may have waited for the same flush, which is usually enough for all of
		// them.
		err := t.tab.FlushIf(ctx, over)
		if errors.Is(err, fault.ErrNoTable) {
			return nil
		}
		return err
	}
	for _, p := range b.tables {
		if !over() {
			return nil
		}
		if err := flush(p.table); err != nil {
			return err
		}
	}
	for _, t := range s.sortedTables() {
		if !over() {
			return nil
		}
		if err := flush(t); err != nil {
			return err
		}
	}
	return nil
}

// compactDeltas runs delta compactions of a table until the policy chooses none.
func (b *background) compactDeltas(t *Table) {
	for b.ctx.Err() == nil {
		infos, err := t.tab.Deltas()
		if err != nil {
			return // the table was dropped or the store closed
		}
		choice := compaction.PickDeltas(infos)
		if choice.Kind == "" || !b.run("delta compaction", t, func() error { return t.tab.CompactDeltas(b.ctx, choice) }) {
			return
		}
	}
}
