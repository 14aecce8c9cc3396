package live

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/kudu/client"
	"github.com/oribi-db/oribi/mvcc"
)

// Sync copies a table as Push does, then sends each change of it in the order of commits until ctx
// ends, which is no error. A transaction that changes several rows may become visible in the cluster
// one tablet after the other. Alterations of the table's columns are made in the cluster, too.
//
// The store is open in the process that writes it, or is a follower (oribi.Options.Follow): then the
// writer is another process, which Sync does not slow down. After a pause, Sync sends what has changed
// meanwhile if the table still has that history; otherwise it copies all rows again and removes those
// that are gone. While servers cannot be reached, Sync tries again and again, unless Options.Once is set.
//
// Errors: as for Push.
func Sync(ctx context.Context, s *oribi.Store, t *oribi.Table, to Target, o *Options) error {
	with := o.withDefaults()
	failed := int64(0)
	for wait := firstWait; ; wait = min(2*wait, longestWait) {
		begin := time.Now()
		err := syncOnce(ctx, s, t, to, with, failed)
		if err == nil || with.Once || ctx.Err() != nil || !client.Away(err) {
			return unlessEnded(ctx, err)
		}
		failed++
		if time.Since(begin) > longestWait {
			wait = firstWait
		}
		with.Note(fmt.Sprintf("%v: trying again in %v", err, wait))
		if pause(ctx, wait) != nil {
			return nil
		}
	}
}

// Pauses while a cluster is away.
const (
	firstWait   = time.Second
	longestWait = 30 * time.Second
)

// syncOnce is Sync until the next failure, before which there were some.
func syncOnce(ctx context.Context, s *oribi.Store, t *oribi.Table, to Target, o Options, failed int64) error {
	w, err := newWriter(ctx, s, t, to, &o)
	if err != nil {
		return err
	}
	defer w.close()
	w.failed = failed
	begun := s.Visible()
	for again := true; again; {
		if err = w.bring(ctx, s); err == nil && !w.o.Once {
			err = w.follow(ctx, s)
		}
		again, err = w.again(ctx, err)
		again = again || err == nil && w.o.Once && w.pos.Done < begun // an old copy was completed
	}
	if err = unlessEnded(ctx, err); err != nil {
		return err
	}
	return w.end(ctx)
}

// unlessEnded returns err, or nil if it is that ctx has ended.
func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx))) {
		return nil
	}
	return err
}

// endTime is how long the end of Sync waits for what was sent.
const endTime = 10 * time.Second

// end saves the position of a copy that was stopped.
func (w *writer) end(ctx context.Context) error {
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer cancel()
	if err := w.flush(last); err != nil {
		return err
	}
	w.stray()
	if err := w.unaltered(last); err != nil { // or it is unknown
		w.pos.Repair, w.pos.From, w.pos.Key = true, 0, ""
	}
	w.pos.Open = false
	if err := w.savePosition(); err != nil {
		return err
	}
	w.pending = 0
	w.o.Progress(w.status(0))
	return nil
}

// queued is how many batches wait to be sent while others are on their way.
const queued = 16

// follow sends changes as they become visible.
func (w *writer) follow(ctx context.Context, s *oribi.Store) error {
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	batches := make(chan *oribi.CommittedBatch, queued)
	go func() {
		defer close(batches)
		for b, err := range s.Subscribe(inner, w.pos.Done, mvcc.Max, w.t) {
			if err != nil {
				cancel(err)
				return
			}
			select {
			case batches <- b:
			case <-inner.Done():
				return
			}
		}
	}()
	err := w.consume(inner, batches)
	if err != nil {
		cancel(err)
		for range batches { // the subscription ends before the store may be closed
		}
	}
	if cause := context.Cause(inner); err == nil || errors.Is(err, context.Canceled) && cause != nil {
		err = cause
	}
	return err
}

// consume sends batches and saves positions until there are no more.
func (w *writer) consume(ctx context.Context, batches <-chan *oribi.CommittedBatch) error {
	tick := time.NewTicker(w.o.Interval)
	defer tick.Stop()
	whole := true // the last batch was sent to its end
	for {
		select {
		case b, ok := <-batches:
			if !ok {
				return nil
			}
			for i := range b.Changes {
				if err := w.change(ctx, &b.Changes[i].Difference, b.Timestamp); err != nil {
					return err
				}
			}
			if whole = !b.More; whole {
				w.pos.Done, w.ahead = b.Timestamp, false
			}
			if !whole || w.pending < int64(w.o.Rows) {
				continue
			}
		case <-tick.C:
			if !whole || w.pending == 0 {
				w.o.Progress(w.status(len(batches)))
				continue
			}
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := w.save(ctx); err != nil {
			return err
		}
	}
}

// pause waits.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(max(d, 0))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
